"""Content hashes, so that the same evaluation is recognised and never stored twice."""

import hashlib
import json
from typing import Any

_BYTES = 16
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def fingerprint(value: Any) -> str:
    """Return 32 hex digits that depend only on the JSON content of `value`, not on the order of object keys."""
    return hashlib.blake2b(_text(value), digest_size=_BYTES).hexdigest()


class RunningFingerprint:
    """The fingerprint of values that come one after the other, in their order, none of which is kept."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=_BYTES)

    def add(self, value: Any) -> None:
        """Take the next value in."""
        self._hash.update(_text(value))
        self._hash.update(b"\n")  # JSON text as it is written here holds none, so this parts the values

    def __str__(self) -> str:
        """Return 32 hex digits."""
        return self._hash.hexdigest()


def _text(value: Any) -> bytes:
    return _ENCODER.encode(value).encode()
