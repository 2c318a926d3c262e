"""Time windows: the Dagster partitions of a source, by the start of a trace, in UTC.

Keys are Dagster's own: `2026-11-30` for a day and `2026-11-30-14:00` for an hour, so a key means the
same in a Dagster run, on the command line and in the column `window_key`. Within one kind, keys
sort by time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from stepacc_core.errors import ConfigError

WindowKind = Literal["daily", "hourly"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FORMATS: dict[WindowKind, str] = {"daily": "%Y-%m-%d", "hourly": "%Y-%m-%d-%H:%M"}
_SHOWN: dict[WindowKind, str] = {"daily": "YYYY-MM-DD", "hourly": "YYYY-MM-DD-HH:00"}
_LENGTH_NS: dict[WindowKind, int] = {"daily": 86_400_000_000_000, "hourly": 3_600_000_000_000}


@dataclass(frozen=True, slots=True)
class Window:
    """One time window.

    Attributes:
        key: the Dagster partition key.
        start_ns: first nanosecond since the Unix epoch that belongs to it.
        end_ns: first nanosecond that no longer does.
    """

    key: str
    start_ns: int
    end_ns: int


def window_of(key: str, kind: WindowKind) -> Window:
    """Return the window that a key names.

    Raises:
        ConfigError: the key does not have the form of its kind, or is no date.
    """
    try:
        start = datetime.strptime(key, _FORMATS[kind]).replace(tzinfo=UTC)
    except ValueError:
        start = None
    window = None if start is None else window_containing(_nanoseconds(start), kind)
    if window is None or window.key != key:
        msg = f"{key!r} is no key of a {kind} window; write {_SHOWN[kind]}, in UTC."
        raise ConfigError(msg)
    return window


def window_containing(ns: int, kind: WindowKind) -> Window:
    """Return the window that holds a moment, in nanoseconds since the Unix epoch.

    Raises:
        ConfigError: the moment lies outside the years 1 to 9999.
    """
    length = _LENGTH_NS[kind]
    start_ns = ns - ns % length
    try:
        start = moment(start_ns)
    except OverflowError:
        msg = f"{ns} ns since 1970 lies outside the years 1 to 9999; give nanoseconds, not another unit."
        raise ConfigError(msg) from None
    text = f"{start.year:04}-{start.month:02}-{start.day:02}"
    return Window(text if kind == "daily" else f"{text}-{start.hour:02}:00", start_ns, start_ns + length)


def window_length_ns(kind: WindowKind) -> int:
    """Return how long a window of a kind is."""
    return _LENGTH_NS[kind]


def moment(ns: int) -> datetime:
    """Return nanoseconds since the Unix epoch as a UTC moment, cut to microseconds.

    Raises:
        OverflowError: it lies outside the years 1 to 9999.
    """
    return _EPOCH + timedelta(microseconds=ns // 1000)


def _nanoseconds(moment: datetime) -> int:
    elapsed = moment - _EPOCH
    return (elapsed.days * 86_400 + elapsed.seconds) * 1_000_000_000


def spanned(keys: Sequence[str]) -> str:
    """Return sorted keys of windows, one at least, as `2026-11-01` or `2026-11-01 to 2026-11-05`."""
    return keys[0] if keys[0] == keys[-1] else f"{keys[0]} to {keys[-1]}"
