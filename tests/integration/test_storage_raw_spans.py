"""Raw spans land once, whoever delivers them and how often, and are read back by the window their trace starts in."""

import math
import time
from dataclasses import replace
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import Any

import pytest
import sqlalchemy as sa

from stepacc_core.model import RawEvent, RawSpan
from stepacc_dagster.storage.arrivals import Arrivals, changed_windows
from stepacc_dagster.storage.raw_spans import Landed, land_spans, landed_windows, read_window_spans
from stepacc_dagster.storage.tables import otel_spans
from stepacc_dagster.windows import Window, window_containing, window_of
from tests.integration.storage_access import together
from tests.integration.storage_samples import HOUR, MONDAY, SOURCE, SUNDAY, TUESDAY, raw


def test_a_span_comes_back_as_it_was_landed(migrated_engine: sa.Engine) -> None:
    """Every field survives, JSON of any shape included."""
    span = RawSpan(
        "t", "a", "tool", "parent", MONDAY.start_ns + 1, MONDAY.start_ns + 2, "ERROR", "it broke",
        {"n": 1, "x": 0.1, "none": None, "list": [{"a": []}], "text": 'quote " and \\u0000 spelled out é 😀'},
        (RawEvent("log", 5, {"body": {"k": [1]}}), RawEvent("bare")),
        {"service.name": "shop"}, "scope", "1.2",
    )  # fmt: skip
    assert _land(migrated_engine, span) == Landed(1, 0, 0)
    assert _read(migrated_engine, MONDAY) == {"t": [span]}


def test_landing_again_changes_nothing(migrated_engine: sa.Engine) -> None:
    """The same span, once more or twice in one batch, leaves row, transaction and time alone."""
    span = raw("t", "a", MONDAY.start_ns, attributes={"b": 1, "a": 2})
    _land(migrated_engine, span)
    before = _rows(migrated_engine)
    again = raw("t", "a", MONDAY.start_ns, attributes={"a": 2, "b": 1})
    assert _land(migrated_engine, again, again) == Landed(0, 0, 2)
    assert _rows(migrated_engine) == before


def test_changed_content_replaces_and_is_written_anew(migrated_engine: sa.Engine) -> None:
    """Different content has a new transaction and time; the span stays first seen when it was."""
    _land(migrated_engine, raw("t", "a", MONDAY.start_ns), raw("t", "b", MONDAY.start_ns))
    before = _rows(migrated_engine)
    assert _land(migrated_engine, raw("t", "a", MONDAY.start_ns, status="OK")) == Landed(0, 1, 0)
    after = _rows(migrated_engine)
    assert after["b"] == before["b"]
    assert after["a"].status == "OK"
    assert int(after["a"].written_in) > int(before["b"].written_in)
    assert after["a"].ingested_at > before["a"].ingested_at
    assert after["a"].first_seen_at == before["a"].first_seen_at


def test_the_last_of_duplicates_in_one_batch_wins(migrated_engine: sa.Engine) -> None:
    """A batch may hold a span twice."""
    first, last = raw("t", "a", MONDAY.start_ns), raw("t", "a", MONDAY.start_ns, status_message="later")
    assert _land(migrated_engine, first, last) == Landed(1, 0, 1)
    assert _read(migrated_engine, MONDAY) == {"t": [last]}


@pytest.mark.parametrize("apart", [True, False], ids=["in two landings", "in one"])
@pytest.mark.parametrize("started_first", [True, False], ids=["in order", "out of order"])
def test_a_copy_sent_at_the_start_never_replaces_the_span_that_ended(
    migrated_engine: sa.Engine, *, started_first: bool, apart: bool
) -> None:
    """Delivered twice, once without an end: the one that has ended counts, as it does when a file is read."""
    started = replace(raw("t", "a", MONDAY.start_ns), end_time_unix_nano=None)
    ended = replace(started, end_time_unix_nano=MONDAY.start_ns + 5, attributes={"gen_ai.tool.name": "search"})
    copies = [started, ended] if started_first else [ended, started]
    for batch in [[copy] for copy in copies] if apart else [copies]:
        _land(migrated_engine, *batch)
    assert _read(migrated_engine, MONDAY) == {"t": [ended]}


def test_many_batches_are_one_landing(migrated_engine: sa.Engine) -> None:
    """More spans than a batch holds land completely, and a span repeated in a later batch is the same one."""
    spans = [raw(f"t{n % 700:04}", f"s{n}", MONDAY.start_ns + n) for n in range(12_000)]
    with migrated_engine.begin() as conn:
        assert land_spans(conn, SOURCE, iter([*spans, spans[0]])) == Landed(12_000, 0, 1)
    read = _read(migrated_engine, MONDAY)
    assert list(read) == sorted(read)
    assert sum(len(spans) for spans in read.values()) == 12_000


def test_sources_do_not_mix(migrated_engine: sa.Engine) -> None:
    """The same ids in two sources are two spans."""
    span = raw("t", "a", MONDAY.start_ns)
    assert _land(migrated_engine, span) == Landed(1, 0, 0)
    with migrated_engine.begin() as conn:
        assert land_spans(conn, "other", [span]) == Landed(1, 0, 0)
        assert landed_windows(conn, "nobody", "daily") == []


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ("nul \x00 in text", "nul \ufffd in text"),
        ("half \ud83d of a pair", "half \ufffd of a pair"),
        ("spelled \\u0000", "spelled \\u0000"),
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
        (10**5_000, hex(10**5_000)),
        (10**30, 10**30),
        (b"bytes", "b'bytes'"),
        ({"k\x00": {1: "\x00"}}, {"k\ufffd": {"1": "\ufffd"}}),
        (MappingProxyType({"a": range(2)}), {"a": [0, 1]}),
        (MappingProxyType({"a": (math.inf,)}), {"a": ["Infinity"]}),
    ],
    ids=[
        "nul",
        "surrogate",
        "spelled out",
        "nan",
        "infinity",
        "endless integer",
        "big integer",
        "bytes",
        "keys",
        "mapping",
        "mapping, slowly",
    ],
)
def test_what_postgres_cannot_store_is_replaced(migrated_engine: sa.Engine, value: Any, stored: Any) -> None:
    """An odd value costs itself, not the span, and landing it again is the same span."""
    name = value if isinstance(value, str) else "n"
    span = RawSpan("t", "a", name, start_time_unix_nano=MONDAY.start_ns, attributes={"v": value})
    _land(migrated_engine, span)
    assert _land(migrated_engine, span) == Landed(0, 0, 1)
    [read] = _read(migrated_engine, MONDAY)["t"]
    assert read.attributes == {"v": stored}
    assert read.name == (stored if isinstance(value, str) else "n")


def test_bottomless_values_and_endless_ids_are_cut(migrated_engine: sa.Engine) -> None:
    """Nesting beyond any use and ids too long for an index cost neither the span nor its neighbours."""
    deep: Any = []
    for _ in range(3_000):
        deep = [deep]
    long_id = "".join(chr(0x4E00 + n % 5_000) for n in range(9_000))
    spans = [
        raw(long_id, "a", MONDAY.start_ns, attributes={"deep": deep}),
        raw(long_id + "x", "a", MONDAY.start_ns),
        raw("t", "a", MONDAY.start_ns),
    ]
    assert _land(migrated_engine, *spans) == Landed(3, 0, 0)
    assert _land(migrated_engine, *spans) == Landed(0, 0, 3)
    assert len(_read(migrated_engine, MONDAY)) == 3


def test_a_trace_belongs_to_the_window_of_its_earliest_timed_span(migrated_engine: sa.Engine) -> None:
    """All its spans come with it, also those that start later, or have no time; zero is no time."""
    start = MONDAY.end_ns - 1
    spans = [raw("t", "a", start), raw("t", "b", TUESDAY.start_ns), raw("t", "c", None), raw("t", "d", 0)]
    _land(migrated_engine, *spans, raw("u", "a", TUESDAY.start_ns))
    assert {key: [s.span_id for s in spans] for key, spans in _read(migrated_engine, MONDAY).items()} == {
        "t": ["a", "b", "c", "d"]
    }
    assert list(_read(migrated_engine, TUESDAY)) == ["u"]
    assert _windows(migrated_engine) == [MONDAY.key, TUESDAY.key]
    assert _windows(migrated_engine, "hourly") == ["2025-11-03-23:00", "2025-11-04-00:00"]


def test_an_untimed_trace_belongs_to_the_window_of_its_arrival(migrated_engine: sa.Engine) -> None:
    """And stays there when its content changes later."""
    _land(migrated_engine, raw("t", "a", None), raw("t", "b", 0))
    with migrated_engine.begin() as conn:
        conn.execute(sa.update(otel_spans).values(first_seen_at=otel_spans.c.first_seen_at - timedelta(days=3)))
        seen = conn.scalar(sa.select(otel_spans.c.first_seen_at).limit(1))
    assert seen is not None
    arrival = window_containing(int(seen.timestamp()) * 10**9, "daily")
    _land(migrated_engine, raw("t", "a", None, status="OK"), raw("t", "c", None))
    assert [s.span_id for s in _read(migrated_engine, arrival)["t"]] == ["a", "b", "c"]
    today = window_containing(time.time_ns(), "daily")
    assert _read(migrated_engine, today) == {}
    assert _windows(migrated_engine) == [arrival.key]
    _land(migrated_engine, raw("t", "d", MONDAY.start_ns + HOUR))
    assert _read(migrated_engine, arrival) == {}
    assert list(_read(migrated_engine, MONDAY)) == ["t"]
    assert _windows(migrated_engine) == [MONDAY.key]


def test_a_window_with_only_the_rest_of_traces_is_not_listed(migrated_engine: sa.Engine) -> None:
    """Windows are listed by starts: far apart, before 1970 and at the end of time included."""
    absurd = 2**63 - 1
    _land(
        migrated_engine,
        raw("t", "a", SUNDAY.start_ns),
        raw("t", "b", MONDAY.start_ns),
        raw("u", "a", TUESDAY.start_ns),
        raw("v", "a", -1),
        raw("w", "a", window_of("2262-04-09", "daily").start_ns),
        raw("x", "a", TUESDAY.start_ns),
        raw("x", "b", absurd),
        raw("x", "c", 2**64 - 1),
    )
    assert _windows(migrated_engine) == ["1969-12-31", SUNDAY.key, TUESDAY.key, "2262-04-09"]
    assert len(_read(migrated_engine, TUESDAY)["x"]) == 3
    assert list(_read(migrated_engine, window_of("1969-12-31", "daily"))) == ["v"]


def test_reading_a_window_does_not_scan_the_others(migrated_engine: sa.Engine) -> None:
    """The rows read for one window do not grow with the rest of the table."""
    day = 86_400_000_000_000
    with migrated_engine.begin() as conn:
        land_spans(
            conn,
            SOURCE,
            (raw(f"t{n}", f"s{k}", MONDAY.start_ns + (n % 50) * day + k) for n in range(2_000) for k in range(5)),
        )
    with migrated_engine.connect() as conn:
        before = _scanned(conn)
        assert sum(1 for _ in read_window_spans(conn, SOURCE, TUESDAY)) == 40
        conn.rollback()
        scans, tuples = (after - old for after, old in zip(_scanned(conn), before, strict=True))
    assert scans == 0
    assert tuples < 2_000


def test_two_landings_at_once_write_each_span_once(migrated_engine: sa.Engine) -> None:
    """Writers of the same spans in opposite order wait for each other; what one calls new is not new to the other."""
    spans = [raw(f"t{n}", "a", MONDAY.start_ns + n) for n in range(6_000)]
    landed = together(partial(_land, migrated_engine, *spans), partial(_land, migrated_engine, *reversed(spans)))
    assert sorted((one.new, one.same) for one in landed) == [(0, 6_000), (6_000, 0)]
    assert len(_read(migrated_engine, MONDAY)) == 6_000


def test_changed_windows_are_those_of_the_traces_that_got_spans(migrated_engine: sa.Engine) -> None:
    """Since the snapshot one has seen; a late span changes the window its trace starts in."""
    _land(migrated_engine, raw("t", "a", MONDAY.start_ns), raw("u", "a", TUESDAY.start_ns))
    with migrated_engine.connect() as conn:
        first = changed_windows(conn, SOURCE, "daily")
        assert first.windows == (MONDAY.key, TUESDAY.key)
        assert changed_windows(conn, SOURCE, "daily", seen=first.seen) == Arrivals((), first.seen)
        assert changed_windows(conn, "nobody", "daily").windows == ()
    _land(migrated_engine, raw("t", "a", MONDAY.start_ns), raw("t", "b", TUESDAY.start_ns))
    with migrated_engine.connect() as conn:
        second = changed_windows(conn, SOURCE, "hourly", seen=first.seen)
        assert second.windows == ("2025-11-03-00:00",)
    _land(migrated_engine, raw("v", "a", None))
    with migrated_engine.connect() as conn:
        third = changed_windows(conn, SOURCE, "daily", seen=second.seen)
        assert list(third.windows) == [key for key in landed_windows(conn, SOURCE, "daily") if key not in first.windows]
        assert len(third.windows) == 1


def test_a_reader_may_stop_early(migrated_engine: sa.Engine) -> None:
    """After a rollback its connection is as good as new."""
    _land(migrated_engine, *(raw(f"t{n:04}", "a", MONDAY.start_ns, attributes={"x": "y" * 999}) for n in range(4_000)))
    with migrated_engine.connect() as conn:
        reading = read_window_spans(conn, SOURCE, MONDAY)
        assert next(reading)[0] == "t0000"
        reading.close()  # type: ignore[attr-defined]
        conn.rollback()
        assert sum(1 for _ in read_window_spans(conn, SOURCE, MONDAY)) == 4_000


def _land(engine: sa.Engine, *spans: RawSpan) -> Landed:
    with engine.begin() as conn:
        return land_spans(conn, SOURCE, spans)


def _read(engine: sa.Engine, window: Window) -> dict[str, list[RawSpan]]:
    with engine.connect() as conn:
        return dict(read_window_spans(conn, SOURCE, window))


def _windows(engine: sa.Engine, kind: Any = "daily") -> list[str]:
    with engine.connect() as conn:
        return landed_windows(conn, SOURCE, kind)


def _rows(engine: sa.Engine) -> dict[str, Any]:
    with engine.connect() as conn:
        return {row.span_id: row for row in conn.execute(sa.select(otel_spans))}


def _scanned(conn: sa.Connection) -> tuple[int, int]:
    conn.execute(sa.text("SELECT pg_stat_force_next_flush()"))
    conn.commit()
    row = conn.execute(
        sa.text("SELECT seq_scan, coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relname = 'otel_spans'")
    ).one()
    conn.commit()
    return row[0], row[1]
