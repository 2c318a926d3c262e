"""Values in messages: short whatever they are, since a refused value may be huge, deep or full of itself."""

import reprlib
from typing import Any

_LONGEST = 120
"""Characters of a value that a message shows."""

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = _LONGEST
_REPR.maxlevel = 4


def shown(value: Any) -> str:
    """Return a value as Python writes it, cut to what a sentence can hold."""
    text = _REPR.repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
