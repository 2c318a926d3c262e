"""Marks that a redactor left in place of a secret: `[redacted:<kind>:<keyed hash>]`; equal secrets have equal marks."""

import re
from collections.abc import Mapping
from typing import Any

_MARK = re.compile(r"\[redacted:[^\[\]:]+:[0-9a-f]+\]")


def holds_mark(value: Any) -> bool:
    """Tell whether text, or any text in a list or object, holds a mark."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, str):
            if _MARK.search(found):
                return True
        elif isinstance(found, Mapping):
            waiting += found.values()
        elif isinstance(found, list | tuple):
            waiting += found
    return False
