"""Fields of OTLP/JSON: ids, times, enums and attribute values, in every spelling that exporters use."""

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from stepacc_core.conventions.values import is_shallow
from stepacc_core.errors import SpanTimeError
from stepacc_core.model import SpanStatus
from stepacc_core.shown import begun, shown

_LATEST = 2**63 - 1
_ID_BYTES = {24: 16, 12: 8}
_SHOWN = 80
_UNREADABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
_STATUSES: dict[Any, SpanStatus] = {
    1: "OK",
    2: "ERROR",
    "1": "OK",
    "2": "ERROR",
    "OK": "OK",
    "ERROR": "ERROR",
    "STATUS_CODE_OK": "OK",
    "STATUS_CODE_ERROR": "ERROR",
}


def items(holder: Any, *keys: str) -> Iterator[Any]:
    """Yield the items of the first of these fields that holds a list."""
    if isinstance(holder, Mapping):
        for key in keys:
            found = holder.get(key)
            if isinstance(found, list):
                yield from found
                return


def read_status(code: Any) -> SpanStatus:
    """Return the status for a code written as number or name; anything else is UNSET."""
    return _STATUSES.get(code, "UNSET") if isinstance(code, str | int) else "UNSET"


def read_id(value: Any) -> str | None:
    """Return an id in lower-case hex; base64 is told by its length and padding, other text is kept as it is."""
    if not isinstance(value, str):
        return None
    found = value.strip()
    size = _ID_BYTES.get(len(found))
    if size and found.endswith("="):
        try:
            decoded = base64.b64decode(found, validate=True)
        except (binascii.Error, ValueError):
            return found
        found = decoded.hex() if len(decoded) == size else found
    elif len(found) in (32, 16):
        found = found.lower()
    return found if found.strip("0") else None


def read_time(value: Any, what: str) -> int | None:
    """Return nanoseconds; zero and absent are None. A fractional number was rounded by its writer and is refused."""
    if value is None or value == "":
        return None
    if isinstance(value, Mapping):
        high, low = value.get("high"), value.get("low")
        value = (high << 32) | (low & 0xFFFFFFFF) if isinstance(high, int) and isinstance(low, int) else value
    if isinstance(value, str):
        value = int(value) if value.strip().isdecimal() and len(value) <= 20 else value  # noqa: PLR2004 - 64 bits
    if not isinstance(value, int) or isinstance(value, bool):
        msg = f"its {what} {begun(str(value), _SHOWN)!r} is not an integer; write nanoseconds since 1970, no fraction"
        raise ValueError(msg)  # noqa: TRY004 - the caller reports one kind of bad value
    if not 0 <= value <= _LATEST:
        msg = f"its {what} {value} is not between 0 and {_LATEST} nanoseconds"
        raise ValueError(msg)
    return value or None


def event_time(value: Any) -> int | None:
    """Return the time of an event or log record; it decides nothing, so one that cannot be read is None."""
    try:
        return read_time(value, "time")
    except _UNREADABLE:
        return None


@dataclass(frozen=True, slots=True)
class Times:
    """Start and end of a span in nanoseconds, each None where it is missing, and what is wrong with those given."""

    start: int | None
    end: int | None
    problems: tuple[str, ...]


def read_times(start: Any, end: Any, read: Callable[[Any, str], int | None] = read_time) -> Times:
    """Read the times of a span; one that cannot be read is None, with what is wrong with it.

    The span is kept without it: where it matters, its occurrence fails, as the contract has it for a missing start.

    Args:
        start: as written.
        end: as written.
        read: how one time is read; it raises ValueError.
    """
    found: list[int | None] = []
    problems: list[str] = []
    for value, what in ((start, "start time"), (end, "end time")):
        try:
            found.append(read(value, what))
        except _UNREADABLE as error:
            found.append(None)
            problems.append(str(error) or f"its {what} cannot be read")
    return Times(found[0], found[1], tuple(problems))


def span_time_error(where: str, what: str, name: str, problems: Sequence[str]) -> SpanTimeError:
    """Make the error for a span that was read without a time.

    Args:
        where: the place, as `Line 3`.
        what: what the span is there, as `span`.
        name: its name.
        problems: what is wrong with its times.
    """
    return SpanTimeError(f"{where}: the {what} {shown(name)} was read without a time, since {' and '.join(problems)}.")


def read_attributes(pairs: Any) -> Mapping[str, Any]:
    """Return attributes as a dict; an exporter that writes a plain object instead of pairs is understood too."""
    if isinstance(pairs, list):
        return {
            pair["key"]: read_value(pair.get("value"))
            for pair in pairs
            if isinstance(pair, Mapping) and isinstance(pair.get("key"), str)
        }
    if isinstance(pairs, Mapping):
        return {key: read_value(held) if _is_any_value(held) else _plain(held) for key, held in pairs.items()}
    return {}


def _plain(value: Any) -> Any:
    if not is_shallow(value):
        msg = "an attribute nests too deeply"
        raise ValueError(msg)
    return value


def _is_any_value(value: Any) -> bool:
    return isinstance(value, Mapping) and any(key in _READERS for key in value)


def read_value(value: Any) -> Any:
    """Return the JSON value that an AnyValue holds."""
    if not isinstance(value, Mapping):
        return value
    if "stringValue" in value:
        return value["stringValue"]
    for name, held in value.items():
        reader = _READERS.get(name)
        if reader is not None:
            return reader(held)
    return None


def _integer(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            return value
    return value


def _double(value: Any) -> Any:
    return value if not isinstance(value, float) or abs(value) < float("inf") else str(value)


def _list(value: Any) -> list[Any]:
    return [read_value(item) for item in items(value, "values")]


def _object(value: Any) -> Mapping[str, Any]:
    pairs: Sequence[Any] = list(items(value, "values"))
    return read_attributes(pairs)


def _same(value: Any) -> Any:
    return value


_READERS = dict(
    chain.from_iterable(
        ((camel, reader), (snake, reader))
        for camel, snake, reader in (
            ("stringValue", "string_value", _same),
            ("boolValue", "bool_value", _same),
            ("intValue", "int_value", _integer),
            ("doubleValue", "double_value", _double),
            ("arrayValue", "array_value", _list),
            ("kvlistValue", "kvlist_value", _object),
            ("bytesValue", "bytes_value", _same),
        )
    )
)
