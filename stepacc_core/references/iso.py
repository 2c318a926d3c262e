"""Days and instants in any form of ISO 8601."""

import re
from datetime import UTC, date, datetime, timedelta

from stepacc_core.marks import is_mark

_ORDINAL = re.compile(r"(\d{4})-?(\d{3})(?![\d-])")
_MIDNIGHT_AFTER = re.compile(r"(?<=T)24(?=(:?00){0,2}([.,]0+)?($|Z|[+-]))")
_TIMED = re.compile(r"[^ T]+[ T]\d{2}\S*")


def read_iso(text: str) -> date | datetime | None:
    """Read a day or a date with a time, calendar, week and ordinal dates alike; None for anything else.

    A time is kept in the zone it is written in; without one it is in UTC. Digits beyond microseconds are left out.
    """
    written = text.strip().upper()
    try:
        written = _ORDINAL.sub(_calendar, written, count=1) if _ORDINAL.match(written) else written
        if not _TIMED.fullmatch(written):
            return date.fromisoformat(written)
        written, after = _MIDNIGHT_AFTER.subn("00", written.replace(" ", "T", 1), count=1)
        found = datetime.fromisoformat(written) + timedelta(days=after)
    except (ValueError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def check_iso(text: str) -> str:
    """Return text that is a day or a date with a time, or the mark of one that was redacted.

    Raises:
        ValueError: it is neither, in words.
    """
    if not is_mark(text) and read_iso(text) is None:
        msg = f"{text!r} is no date; write it as ISO 8601 does, such as 2026-01-02 or 2026-01-02T15:04:05Z"
        raise ValueError(msg)
    return text


def day_of(found: date | datetime) -> date:
    """Return the day, as it was written: that of a time in its own zone."""
    return found.date() if isinstance(found, datetime) else found


def instant_of(found: date | datetime) -> datetime:
    """Return the instant; that of a day is its beginning in UTC."""
    return found if isinstance(found, datetime) else datetime(found.year, found.month, found.day, tzinfo=UTC)


def _calendar(ordinal: re.Match[str]) -> str:
    year, number = int(ordinal[1]), int(ordinal[2])
    found = date(year, 1, 1) + timedelta(days=number - 1)
    if found.year != year:
        msg = f"the year {year} has no day {number}"
        raise ValueError(msg)
    return found.isoformat()
