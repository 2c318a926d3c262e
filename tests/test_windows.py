"""Windows: Dagster's keys and nanoseconds, both ways, without rounding."""

import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepacc_core.errors import ConfigError
from stepacc_dagster.windows import Window, WindowKind, window_containing, window_of

DAY = 86_400_000_000_000
HOUR = 3_600_000_000_000


def test_a_day() -> None:
    """A daily window is a UTC day, its end not included."""
    assert window_of("1970-01-02", "daily") == Window("1970-01-02", DAY, 2 * DAY)
    assert window_containing(2 * DAY - 1, "daily").key == "1970-01-02"
    assert window_containing(2 * DAY, "daily").key == "1970-01-03"


def test_an_hour() -> None:
    """An hourly window has the key that Dagster gives it."""
    assert window_of("1970-01-01-05:00", "hourly") == Window("1970-01-01-05:00", 5 * HOUR, 6 * HOUR)


def test_before_the_epoch() -> None:
    """Negative times belong to the window that begins before them."""
    assert window_containing(-1, "daily") == Window("1969-12-31", -DAY, 0)


@pytest.mark.parametrize(
    ("kind", "definition"),
    [
        ("daily", dg.DailyPartitionsDefinition("2026-02-27", end_offset=1)),
        ("hourly", dg.HourlyPartitionsDefinition("2026-02-27-00:00", end_offset=1)),
    ],
)
def test_keys_are_dagsters(kind: WindowKind, definition: dg.TimeWindowPartitionsDefinition) -> None:
    """Every key of a Dagster partitions definition names the window Dagster means."""
    for key in definition.get_partition_keys()[:60]:
        expected = definition.time_window_for_partition_key(key)
        window = window_of(key, kind)
        assert (window.start_ns, window.end_ns) == (
            int(expected.start.timestamp()) * 10**9,
            int(expected.end.timestamp()) * 10**9,
        )


@given(ns=st.integers(-(2**62), 2**63 - 1), kind=st.sampled_from(["daily", "hourly"]))
def test_every_moment_is_in_the_window_it_names(ns: int, kind: WindowKind) -> None:
    """And the key leads back to the window."""
    window = window_containing(ns, kind)
    assert window.start_ns <= ns < window.end_ns
    assert window_of(window.key, kind) == window


@given(st.lists(st.integers(0, 2**63 - 1), min_size=2, max_size=2), st.sampled_from(["daily", "hourly"]))
def test_keys_sort_by_time(moments: list[int], kind: WindowKind) -> None:
    """Locks are taken in key order, and lists are read in it."""
    early, late = sorted(moments)
    assert window_containing(early, kind).key <= window_containing(late, kind).key


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("2026-11-30-05:00", "daily"),
        ("2026-11-30", "hourly"),
        ("2026-11-30-05:30", "hourly"),
        ("2026-02-30", "daily"),
        ("2026-1-3", "daily"),
        (" 2026-11-30", "daily"),
        ("", "daily"),
        ("\uff12\uff10\uff12\uff16-11-30", "daily"),  # digits, but not ASCII ones
    ],
)
def test_other_keys_are_refused(key: str, kind: WindowKind) -> None:
    """With the key and the form that is allowed."""
    with pytest.raises(ConfigError, match=r"YYYY-MM-DD.*UTC"):
        window_of(key, kind)


def test_moments_beyond_the_calendar_are_refused() -> None:
    """Not with an error of arithmetic."""
    with pytest.raises(ConfigError, match="nanoseconds"):
        window_containing(10**30, "daily")
