"""Comparing names (contract of `agent.step_accuracy`, section 4).

A tool's name is compared folded, an agent's code point by code point; the observed step decides
which. The relation is not an equivalence: the tool `get_weather` matches both `Get-Weather` and
`get_weather`, which do not match each other as agents.
"""

import unicodedata
from functools import lru_cache
from typing import Literal

StepKind = Literal["TOOL", "AGENT"]

_REMOVED = str.maketrans("", "", "-_")


@lru_cache(maxsize=65_536)
def fold(name: str) -> str:
    """Return the form in which tool names are compared: NFC, case-folded, without `-` and `_`.

    Cached: a trace repeats few names, and normalising costs more than the comparison.
    """
    return unicodedata.normalize("NFC", name).casefold().translate(_REMOVED)


def matches(expected: str, observed: str, kind: StepKind) -> bool:
    """Tell whether an expected name is satisfied by an observed step of that kind."""
    if kind == "AGENT":
        return expected == observed
    return fold(expected) == fold(observed)
