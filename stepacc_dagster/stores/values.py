"""Values of foreign rows: JSON that may be anything, ids, states and times."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from stepacc_core.conventions.values import decode, is_shallow
from stepacc_core.model import RawEvent, SpanStatus

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NO_PARENT = re.compile("0*")
_STATES: dict[str, SpanStatus] = {
    "1": "OK",
    "2": "ERROR",
    "OK": "OK",
    "ERROR": "ERROR",
    "STATUS_CODE_OK": "OK",
    "STATUS_CODE_ERROR": "ERROR",
}
_EVENT_TIMES = ("time_unix_nano", "timeUnixNano", "timestamp", "time")


def json_value(written: str | None) -> Any:
    """Return what JSON text says; text that is no JSON, or nests too deeply to be worked with, stays text."""
    if written is None:
        return None
    try:
        value = decode(written)
    except ValueError:
        return written
    return value if is_shallow(value) else written


def json_object(written: str | None) -> dict[str, Any]:
    """Return the object that JSON text says, empty where it says something else."""
    value = json_value(written)
    return value if isinstance(value, dict) else {}


def status(written: Any) -> SpanStatus:
    """Return the status in the canonical form; what is not known is UNSET."""
    return _STATES.get(str(written).upper(), "UNSET")


def parent(written: str | None) -> str | None:
    """Return the id of the parent, None for one that is empty or all zeros."""
    return None if written is None or _NO_PARENT.fullmatch(written) else written


def nanoseconds(microseconds: int | None) -> int | None:
    """Return a time in nanoseconds, None for one that is missing or no time after 1970."""
    return microseconds * 1_000 if microseconds is not None and microseconds > 0 else None


def events(written: Any) -> tuple[RawEvent, ...]:
    """Return the events of a JSON list; what is no event is left out."""
    found = written if isinstance(written, list) else []
    return tuple(
        RawEvent(str(each.get("name", "")), _moment(each), _attributes(each.get("attributes")))
        for each in found
        if isinstance(each, Mapping)
    )


def present(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return the attributes that have a value."""
    return {name: value for name, value in pairs if value is not None}


def _attributes(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _moment(event: Mapping[str, Any]) -> int | None:
    """Return an event's time: a number is nanoseconds, text an ISO date, in UTC where it names no zone."""
    value = next((event[key] for key in _EVENT_TIMES if event.get(key) is not None), None)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, str):
        return None
    if value.isdecimal() and len(value) < 20:  # noqa: PLR2004 - digits of 64 bits
        return int(value)
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    elapsed = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
    return ((elapsed.days * 86_400 + elapsed.seconds) * 1_000_000 + elapsed.microseconds) * 1_000
