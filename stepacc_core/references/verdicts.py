"""Verdicts of comparators, and values in their words."""

import json
from typing import Any

from stepacc_core.references.model import Verdict

HOLDS, FAILS = Verdict(holds=True), Verdict(holds=False)
REDACTED, TOO_SLOW = Verdict(None, "redacted"), Verdict(None, "too_slow")


def told(holds: bool) -> Verdict:  # noqa: FBT001 (the one thing it is given)
    """Return the verdict of a comparison that could be made."""
    return HOLDS if holds else FAILS


def quoted(value: Any) -> str:
    """Return a value in a sentence: as JSON."""
    return json.dumps(value, ensure_ascii=False)
