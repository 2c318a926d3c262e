"""Writers at the same time, and writers that die: the tables hold what one after the other would have left."""

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from stepacc_core.model import CanonicalTrace, RawSpan
from stepacc_dagster.storage import tables
from stepacc_dagster.storage.canonical import Ingested, write_traces
from stepacc_dagster.storage.columns import metadata
from stepacc_dagster.storage.locks import lock, lock_id, lock_windows
from stepacc_dagster.storage.raw_spans import land_spans
from stepacc_dagster.storage.score_rows import ScoreRow
from stepacc_dagster.storage.scores import write_scores
from stepacc_dagster.storage.tables import sessions, spans, traces
from tests.integration.storage_access import (
    content,
    rows_by,
    session_partitions,
    together,
    trace_partitions,
    write_window,
)
from tests.integration.storage_samples import MONDAY, SOURCE, SUNDAY, TUESDAY, raw, trace


def test_two_writers_of_one_window_leave_each_row_once(migrated_engine: sa.Engine) -> None:
    """The second waits before it reads its traces, then finds nothing to do."""
    given = [trace(f"t{n}", session_id=f"s{n % 5}") for n in range(300)]
    results = together(*[partial(write_window, migrated_engine, MONDAY, *given)] * 3)
    assert sorted(result.unchanged for result in results) == [0, 300, 300]
    assert {result.spans for result in results} == {900}
    with migrated_engine.connect() as conn:
        assert conn.scalar(sa.select(sa.func.count()).select_from(traces)) == 300
        assert conn.scalar(sa.select(sa.func.count()).select_from(spans)) == 900
        assert conn.scalar(sa.select(sa.func.sum(sessions.c.trace_count))) == 300


def test_the_store_is_read_under_the_lock(migrated_engine: sa.Engine) -> None:
    """Whoever writes second has read second, so older content never replaces newer."""
    versions = iter(["a", "ab", "abc", "abcd"])

    def reading() -> Iterator[CanonicalTrace]:
        yield trace("t", tools=next(versions))

    def write() -> Ingested:
        with migrated_engine.begin() as conn:
            return write_traces(conn, SOURCE, MONDAY, reading())

    together(write, write, write, write)
    assert len(trace_partitions(migrated_engine, MONDAY)[0].spans) == 5


def test_traces_that_swap_windows_at_once_do_not_deadlock(migrated_engine: sa.Engine) -> None:
    """Two writers that take from each other's windows both succeed, and every trace is in one window."""
    ids = [f"t{n}" for n in range(60)]
    for turn in range(6):
        early, late = (ids[:30], ids[30:]) if turn % 2 else (ids[30:], ids[:30])
        together(
            partial(write_window, migrated_engine, MONDAY, *(trace(i, session_id="s") for i in early)),
            partial(write_window, migrated_engine, TUESDAY, *(trace(i, TUESDAY, session_id="s") for i in late)),
        )
        assert [p.partition_id for p in trace_partitions(migrated_engine, MONDAY)] == sorted(early)
        assert [p.partition_id for p in trace_partitions(migrated_engine, TUESDAY)] == sorted(late)
        [session] = session_partitions(migrated_engine, MONDAY)
        assert len(session.spans) == 180


def test_a_trace_that_appears_elsewhere_while_its_writer_waits_is_moved(migrated_engine: sa.Engine) -> None:
    """Which windows to lock is looked at again once they are locked, and the one it left is waited for too."""
    results: list[Ingested] = []
    connect = migrated_engine.connect
    with connect() as holder, connect() as other_holder, connect() as watcher:
        lock(holder, "canonical_traces", SOURCE, MONDAY.key)
        writer = threading.Thread(target=lambda: results.append(write_window(migrated_engine, MONDAY, trace("t"))))
        writer.start()
        _wait_for_a_waiter(watcher)
        write_window(migrated_engine, SUNDAY, trace("t", SUNDAY))
        lock(other_holder, "canonical_traces", SOURCE, SUNDAY.key)
        holder.rollback()
        writer.join(timeout=0.5)
        assert writer.is_alive()
        other_holder.rollback()
        writer.join()
    assert results == [Ingested(1, 3, 0, 0, 0, (SUNDAY.key,))]
    assert trace_partitions(migrated_engine, SUNDAY) == []
    assert len(trace_partitions(migrated_engine, MONDAY)) == 1


def test_one_session_written_from_two_windows_at_once(migrated_engine: sa.Engine) -> None:
    """Neither writer overlooks the traces of the other."""
    for turn in range(8):
        session = f"s{turn}"
        days = {"a": MONDAY, "b": TUESDAY, "c": SUNDAY}
        together(
            *(
                partial(write_window, migrated_engine, day, trace(f"{name}{session}", day, session_id=session))
                for name, day in days.items()
            )
        )
        row = rows_by(migrated_engine, sessions, "session_id")[session]
        assert (row.trace_count, row.window_key, row.first_trace_id) == (3, SUNDAY.key, f"c{session}")


def test_locks_of_several_windows_are_taken_in_key_order(migrated_engine: sa.Engine) -> None:
    """Whoever waits for the last one holds all the others."""
    keys = [f"2025-11-0{day}" for day in range(1, 9)]
    with migrated_engine.connect() as holder, migrated_engine.connect() as waiter, migrated_engine.connect() as watcher:
        lock(holder, "asset", SOURCE, keys[-1])
        waiting = threading.Thread(target=lock_windows, args=(waiter, "asset", SOURCE, keys[::-1]))
        waiting.start()
        _wait_for_a_waiter(watcher)
        free = [key for key in keys if _is_free(watcher, "asset", SOURCE, key)]
        holder.rollback()
        waiting.join()
        waiter.rollback()
    assert free == []


def test_landings_of_a_source_wait_for_each_other(migrated_engine: sa.Engine) -> None:
    """A landing waits for one of the same source that has not been committed; other sources do not."""
    with migrated_engine.connect() as first, migrated_engine.connect() as watcher:
        land_spans(first, SOURCE, [raw("t", "first", MONDAY.start_ns)])
        with migrated_engine.begin() as conn:
            land_spans(conn, "other", [raw("t", "a", MONDAY.start_ns)])
        second = threading.Thread(target=_land, args=(migrated_engine, raw("t", "second", MONDAY.start_ns)))
        second.start()
        _wait_for_a_waiter(watcher)
        assert _count(migrated_engine, "otel_spans") == 1
        first.commit()
        second.join()
    rows = rows_by(migrated_engine, tables.otel_spans, "span_id")
    assert int(rows["first"].written_in) < int(rows["second"].written_in)


def test_a_reader_that_fails_leaves_the_window_as_it_was(migrated_engine: sa.Engine) -> None:
    """An error while traces are read undoes everything."""
    write_window(migrated_engine, MONDAY, trace("t"))
    before = content(migrated_engine)

    def failing() -> Iterator[CanonicalTrace]:
        yield from (trace(f"x{n}") for n in range(3_000))
        raise RuntimeError("store")  # noqa: EM101 (any error)

    with pytest.raises(RuntimeError, match="store"), migrated_engine.begin() as conn:
        write_traces(conn, SOURCE, MONDAY, failing())
    assert content(migrated_engine) == before


@pytest.mark.parametrize("table", ["traces", "otel_spans", "scores"])
def test_a_backend_killed_in_the_middle_leaves_nothing(migrated_engine: sa.Engine, table: str) -> None:
    """Neither rows nor locks stay, and the same write succeeds afterwards."""
    writers: dict[str, tuple[Callable[..., Any], Callable[[int], Any]]] = {
        "traces": (partial(write_traces, source=SOURCE, window=MONDAY), lambda n: trace(f"x{n}")),
        "otel_spans": (partial(land_spans, source=SOURCE), lambda n: raw(f"t{n}", "a", MONDAY.start_ns)),
        "scores": (
            partial(write_scores, source=SOURCE, window=MONDAY, metric="m", metric_version="1", config_hash="c"),
            lambda n: ScoreRow("trace", f"t{n}", "scored", score=0.5),
        ),
    }
    write, make = writers[table]
    stream, extra = {"traces": ("traces", {}), "otel_spans": ("spans", {}), "scores": ("rows", {"run_id": "r"})}[table]
    pids: list[int] = []

    def killed() -> Iterator[Any]:
        for n in range(12_000):
            if n == 11_000:
                with migrated_engine.begin() as other:
                    other.execute(sa.text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": pids[0]})
            yield make(n)

    dropped = pytest.raises((sa.exc.DBAPIError, psycopg.OperationalError))
    with dropped, migrated_engine.begin() as conn:
        pids += conn.scalars(sa.text("SELECT pg_backend_pid()"))
        write(conn, **{stream: killed()}, **extra)
    assert _count(migrated_engine, table) == 0
    with migrated_engine.begin() as conn:
        write(conn, **{stream: (make(n) for n in range(2))}, **extra)
    assert _count(migrated_engine, table) == 2


def _land(engine: sa.Engine, *given: RawSpan) -> None:
    with engine.begin() as conn:
        land_spans(conn, SOURCE, given)


def _wait_for_a_waiter(conn: sa.Connection) -> None:
    waiting = sa.text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
    for _ in range(2_000):
        if conn.scalar(waiting):
            return
        time.sleep(0.005)
    pytest.fail("nobody waits for a lock")


def _is_free(conn: sa.Connection, *names: str) -> Any:
    free = conn.scalar(sa.select(sa.func.pg_try_advisory_xact_lock(lock_id(*names))))
    conn.rollback()
    return free


def _count(engine: sa.Engine, table: str) -> Any:
    with engine.connect() as conn:
        return conn.scalar(sa.select(sa.func.count()).select_from(metadata.tables[f"stepacc.{table}"]))
