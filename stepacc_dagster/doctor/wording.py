"""Words for numbers, times and lists in findings."""

from collections.abc import Sequence
from datetime import timedelta

_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def lasting(time: timedelta) -> str:
    """Return a length of time in its largest whole unit, as `3 hours`; one below zero is none."""
    seconds = max(0, int(time.total_seconds()))
    length, unit = next((each for each in _UNITS if seconds >= 2 * each[0]), _UNITS[-1])
    number = seconds // length
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"


def listed(names: Sequence[str], shown: int = 5) -> str:
    """Return names in one line, the first of them where there are many."""
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more
