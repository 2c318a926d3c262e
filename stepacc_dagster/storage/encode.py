"""Values as Postgres can hold them.

Postgres stores neither U+0000 nor half a surrogate pair, in text or in jsonb. Producers send both. They become
U+FFFD, the replacement character, so that one odd character never costs a row.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_REPLACEMENT = "\ufffd"
_MAX_DEPTH = 200
"""Levels of nesting that are kept; Postgres itself gives up at some thousands."""
_MAX_DIGITS = 1_000
"""Digits of an integer that are kept as a number; Python itself refuses to read more than 4,300."""
_MAX_ID = 512
"""Characters of an id that are kept; an index entry has to stay below 2,700 bytes."""
_BIGINT = 2**63
_LATEST = _BIGINT - 86_400_000_000_000
"""Last time that is kept, in the year 2262: the end of its window still fits a bigint."""
_JSONB_VERSION = b"\x01"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, Sequence) and not isinstance(value, bytes) else str(value)


_ENCODER = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, check_circular=False, sort_keys=True, separators=(",", ":"), default=_plain
)
_DECODER = json.JSONDecoder()


def text(value: str) -> str:
    """Return a text with what Postgres cannot store replaced by U+FFFD."""
    if "\x00" not in value:
        if value.isascii():
            return value
        try:
            value.encode()
        except UnicodeEncodeError:
            pass
        else:
            return value
    return _UNSTORABLE.sub(_REPLACEMENT, value)


def optional_text(value: str | None) -> str | None:
    """Return `text(value)`, or None for None."""
    return None if value is None else text(value)


def stored_id(value: str) -> str:
    """Return an id as it is stored and looked up.

    An id too long for an index keeps its beginning and gets a hash of the whole: it stays one id, everywhere the same.
    """
    value = text(value)
    if len(value) <= _MAX_ID:
        return value
    return f"{value[: _MAX_ID - 65]}:{hashlib.sha256(value.encode()).hexdigest()}"


def optional_id(value: str | None) -> str | None:
    """Return `stored_id(value)`, or None for None and for an empty id."""
    return stored_id(value) if value else None


def nanoseconds(value: int | None) -> int | None:
    """Return a time, or None for one that says nothing: missing, zero, or not a number of nanoseconds that fits."""
    return value if value and abs(value) <= _LATEST else None


def count(value: int | None) -> int | None:
    """Return a count, or None where it does not fit a bigint."""
    return value if value is not None and -_BIGINT <= value < _BIGINT else None


def jsonb(value: Any) -> bytes:
    """Return a JSON value in the binary form of jsonb, compact, with sorted keys.

    Replaced are U+0000 and half surrogate pairs (by U+FFFD), NaN and infinities (by their names, as protobuf's JSON
    does), integers beyond 1,000 digits and what is nested deeper than 200 levels (by text). Equal values give equal
    bytes.
    """
    return _JSONB_VERSION + json_bytes(value)


def optional_jsonb(value: Any) -> bytes | None:
    """Return `jsonb(value)`, or None for None."""
    return None if value is None else _JSONB_VERSION + json_bytes(value)


def json_bytes(value: Any) -> bytes:
    """Return the JSON text of a value as `jsonb` stores it."""
    try:
        encoded = _ENCODER.encode(value).encode()
    except (ValueError, TypeError, RecursionError):  # a UnicodeEncodeError is a ValueError
        return _ENCODER.encode(_storable(value, 0)).encode()
    # The first test also meets a backslash that is itself escaped; the slow way is right for both.
    return _ENCODER.encode(_storable(value, 0)).encode() if b"\\u0000" in encoded else encoded


def decode(value: bytes) -> Any:
    """Return the JSON value of a jsonb column that COPY gave in binary."""
    decoded, _ = _DECODER.raw_decode(value[1:].decode())  # as json.loads, without its look for space around the value
    return decoded


def _storable(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, Mapping | list | tuple) and depth >= _MAX_DEPTH:
        return f"nested deeper than {_MAX_DEPTH} levels"
    if isinstance(value, Mapping):
        return {text(str(key)): _storable(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(item, depth + 1) for item in value]
    return text(str(value))


def _number(value: float) -> Any:
    if isinstance(value, int):
        return value if abs(value) < 10**_MAX_DIGITS else hex(value)
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
