"""Marks that a redactor left in place of a secret: `[redacted:<kind>:<keyed hash>]`; equal secrets have equal marks.

Said here once more, since the redactor brings its detectors with it, and comparing needs none of them.
"""

import re
from collections.abc import Mapping
from typing import Any

_MARK = re.compile(r"\[redacted:[^\[\]:]+:[0-9a-f]+\]")


def is_mark(value: Any) -> bool:
    """Tell whether a value is one mark and nothing else."""
    return isinstance(value, str) and _MARK.fullmatch(value) is not None


def holds_mark(value: Any) -> bool:
    """Tell whether text, or any text in a list or object (keys too), holds a mark; however deep it is."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, str):
            if _MARK.search(found):
                return True
        elif isinstance(found, Mapping):
            waiting += found
            waiting += found.values()
        elif isinstance(found, list | tuple):
            waiting += found
    return False
