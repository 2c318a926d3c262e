"""Fields of exported records: times, ids, and moving values from fields to attributes."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from stepacc_core.conventions.values import is_shallow
from stepacc_core.errors import ReadError
from stepacc_core.otlp_fields import read_time
from stepacc_core.shown import begun

BAD = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What a record with a value of another type than expected may raise."""

_SHOWN = 80
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d+))?\s*(Z|[+-]\d\d:?\d\d)?", re.IGNORECASE | re.ASCII
)

Moves = tuple[tuple[str, str], ...]
"""Pairs of a field and the attribute that gets its value."""


def first(record: Mapping[str, Any], *names: str) -> Any:
    """Return the value of the first of these fields that has one."""
    return next((record[name] for name in names if record.get(name) is not None), None)


def part(record: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """Return the first of these fields that holds an object, else an empty one."""
    return next((record[name] for name in names if isinstance(record.get(name), Mapping)), {})


def records(value: Any) -> list[Mapping[str, Any]]:
    """Return the objects of a list; anything else is an empty one."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def moved(record: Mapping[str, Any], moves: Moves) -> dict[str, Any]:
    """Return attributes made of the fields of a record that have a value.

    Raises:
        ValueError: a value nests too deeply to be compared, shown and written again.
    """
    attributes = {attribute: record[name] for name, attribute in moves if record.get(name) is not None}
    for attribute, value in attributes.items():
        if not is_shallow(value):
            msg = f"{attribute} nests too deeply"
            raise ValueError(msg)
    return attributes


def below(prefix: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes named after the keys of an object, below a prefix."""
    return moved(values, tuple((key, f"{prefix}.{key}") for key in values))


def required_id(record: Mapping[str, Any], what: str, *names: str) -> str:
    """Return the id that the first of these fields has.

    Raises:
        ValueError: none has one.
    """
    found = optional_id(record, *names)
    if found is None:
        msg = f"it has no {what} ({' or '.join(names)})"
        raise ValueError(msg)
    return found


def optional_id(record: Mapping[str, Any], *names: str) -> str | None:
    """Return the id that the first of these fields has, as text, or None."""
    value = first(record, *names)
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value).strip() or None


def nanoseconds(value: Any, what: str) -> int | None:
    """Return a time as nanoseconds since 1970, exactly; blank and absent are None.

    Args:
        value: ISO 8601 text, in UTC where it names no zone, or a number of milliseconds since 1970.
        what: the time's name in messages.

    Raises:
        ValueError: it is neither.
    """
    if value is None or value == "":
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return read_time(_from_milliseconds(value), what)
    found = _ISO.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise ValueError(_no_time(value, what))
    day, clock, fraction, zone = found.groups()
    offset = "+00:00" if zone is None or zone in "Zz" else zone
    try:
        whole = (datetime.fromisoformat(f"{day}T{clock}{offset}") - _EPOCH) // timedelta(seconds=1)
    except ValueError:
        raise ValueError(_no_time(value, what)) from None
    return read_time(whole * 1_000_000_000 + int((fraction or "0")[:9].ljust(9, "0")), what)


def _no_time(value: Any, what: str) -> str:
    return f"its {what} {begun(str(value), _SHOWN)!r} is no time; write it as 2026-11-30T12:00:00.123Z"


def _from_milliseconds(value: float) -> int:
    try:
        return int(Decimal(str(value)) * 1_000_000)
    except (InvalidOperation, OverflowError):
        msg = f"{value} milliseconds are no time"
        raise ValueError(msg) from None


def bad_record(where: str, what: str, record: Any, error: Exception) -> ReadError:
    """Make the error for a record that cannot be read.

    Args:
        where: the place, as `line 3`.
        what: what the record is, as `run`.
        record: it, or what stands in its place.
        error: why.
    """
    name = first(record, "name", "id") if isinstance(record, Mapping) else record
    reason = "it nests too deeply" if isinstance(error, RecursionError) else str(error) or type(error).__name__
    called = begun(repr(name), _SHOWN)
    return ReadError(f"{capitalised(where)}: the {what} {called} cannot be read: {reason}. The others were read.")


def capitalised(where: str) -> str:
    """Return a place as a sentence begins with it."""
    return f"{where[:1].upper()}{where[1:]}"
