"""Marks: what stands in the place of a redacted value, `[redacted:<kind>:<keyed hash>]`.

They stand apart from the redactor, since what only compares values needs none of its detectors.
"""

import hmac
import re
from collections import Counter
from collections.abc import Mapping
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


def is_mark(value: Any) -> bool:
    """Tell whether a value is one mark and nothing else."""
    return isinstance(value, str) and MARK.fullmatch(value) is not None


def holds_mark(value: Any) -> bool:
    """Tell whether text, or any text in a list or object (keys too), holds a mark; however deep it is."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, str):
            if MARK.search(found):
                return True
        elif isinstance(found, Mapping):
            waiting += found
            waiting += found.values()
        elif isinstance(found, list | tuple):
            waiting += found
    return False


def marks_in(encoded: bytes, tally: Counter[str]) -> None:
    """Count the marks in encoded text by kind."""
    if _BEGINS in encoded:
        tally.update(kind.decode() for kind in _IN_BYTES.findall(encoded))
