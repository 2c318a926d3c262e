"""Authored values as plain JSON values, before anything looks at what they say."""

import datetime as dt
import math
from collections.abc import Mapping
from typing import Any

_DEEPEST = 60
"""Levels of lists and objects."""
_MOST = 100_000
"""Values in all; a few lines of YAML can stand for millions."""
_LONGEST = 14_000
"""Bits of a whole number; Python writes up to 4,300 digits, and YAML reads more of them where they are hexadecimal."""


def plain_json(value: Any) -> Any:
    """Return a copy with lists for tuples and ISO text for dates, as unquoted YAML gives them.

    Raises:
        ValueError: something is no JSON value, or there is too much of it, in words.
    """
    left = [_MOST]
    return _copy(value, 0, left)


def _copy(value: Any, depth: int, left: list[int]) -> Any:
    left[0] -= 1
    if left[0] < 0 or depth > _DEEPEST:
        msg = f"it holds more than {_MOST:,} values, or more than {_DEEPEST} levels; write less"
        raise ValueError(msg)
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, dt.date | dt.datetime):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [_copy(item, depth + 1, left) for item in value]
    if isinstance(value, Mapping):
        if others := [key for key in value if not isinstance(key, str)]:
            msg = f"the key {others[0]!r} is no text; write it in quotes, as YAML reads `on` and `yes` as true"
            raise ValueError(msg)
        return {key: _copy(item, depth + 1, left) for key, item in value.items()}
    msg = f"{type(value).__name__} is no JSON value; write text, a number, true, false, null, a list or an object"
    raise ValueError(msg)


def _number(value: float) -> float:
    exact: object = value
    if isinstance(exact, int):
        if exact.bit_length() > _LONGEST:
            msg = f"a whole number of {exact.bit_length():,} bits is too long; write one of {_LONGEST:,} at most"
            raise ValueError(msg)
    elif not math.isfinite(value):
        msg = f"{value} is no JSON value; write a finite number"
        raise ValueError(msg)
    return value
