"""Marks: what stands in the place of a redacted value."""

import hmac
import re
from collections import Counter
from typing import Any

_HEX = 16
"""Hex digits of the hash that a mark keeps: 64 bits, so that two values of one database do not meet by chance."""
_KIND = r"[a-z][a-z0-9_]{0,39}"
_BEGINS = b"[redacted:"

MARK = re.compile(rf"\[redacted:({_KIND}):[0-9a-f]{{{_HEX}}}\]")
_IN_BYTES = re.compile(MARK.pattern.encode())


def mark(kind: str, value: str | int, key: bytes) -> str:
    """Return the mark of a value; equal values of one type have equal marks under one key.

    Args:
        kind: what was found; lower-case letters, digits and underscores.
        value: text, or a number, whose hash is that of no text.
        key: the key of the hash, HMAC-SHA256.
    """
    content = value if isinstance(value, str) else f"\x00integer:{value}"
    digest = hmac.digest(key, content.encode("utf-8", "surrogatepass"), "sha256")
    return f"[redacted:{kind}:{digest.hex()[:_HEX]}]"


def is_mark(text: str) -> bool:
    """Tell whether a text is one mark and nothing else."""
    return MARK.fullmatch(text) is not None


def holds_mark(value: Any) -> bool:
    """Tell whether a text, or any text in a list or object (keys too), holds a mark."""
    if isinstance(value, str):
        return MARK.search(value) is not None
    if isinstance(value, dict):
        return any(holds_mark(name) or holds_mark(item) for name, item in value.items())
    return isinstance(value, list | tuple) and any(map(holds_mark, value))


def marks_in(encoded: bytes, tally: Counter[str]) -> None:
    """Count the marks in encoded text by kind."""
    if _BEGINS in encoded:
        tally.update(kind.decode() for kind in _IN_BYTES.findall(encoded))
