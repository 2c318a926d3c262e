"""Canonical content: a window is replaced as a whole, and traces and sessions are where they start."""

from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from stepacc_core.model import CanonicalPartition, CanonicalSpan, CanonicalTrace
from stepacc_dagster.storage.canonical import Ingested, write_traces
from stepacc_dagster.storage.partitions import Wanted, load_trace_partitions
from stepacc_dagster.storage.tables import sessions, traces
from tests.integration.storage_access import (
    SETTLING,
    content,
    rows_by,
    session_partitions,
    trace_partitions,
    write_window,
)
from tests.integration.storage_samples import A_GAP, MONDAY, SOURCE, SUNDAY, TUESDAY, trace


def test_a_trace_comes_back_as_it_was_written(migrated_engine: sa.Engine) -> None:
    """Spans keep every field and their order; gaps, session and task come along."""
    written = trace("t", session_id="s", task_id="refund", gaps=(A_GAP,))
    assert write_window(migrated_engine, MONDAY, written) == Ingested(1, 3, 1, 0, 0)
    assert trace_partitions(migrated_engine, MONDAY) == [
        CanonicalPartition("trace", "t", "s", "refund", spans=written.spans, gaps=(A_GAP,))
    ]
    assert session_partitions(migrated_engine, MONDAY) == [
        CanonicalPartition("session", "s", "s", "refund", spans=written.spans, gaps=(A_GAP,))
    ]


def test_a_trace_row_sums_its_spans_up(migrated_engine: sa.Engine) -> None:
    """Status is the root's; a trace is settled once it has a root that has ended."""
    whole, open_ended, rootless = trace("a"), trace("b"), trace("c")
    open_ended = replace(open_ended, spans=(replace(open_ended.spans[0], end_time_unix_nano=None),))
    write_window(migrated_engine, MONDAY, whole, open_ended, replace(rootless, root_span_id=None), trace("d", tools=""))
    rows = rows_by(migrated_engine, traces, "trace_id")
    assert [(rows[i].status, rows[i].settled, rows[i].span_count) for i in "abcd"] == [
        ("OK", True, 3),
        ("OK", False, 1),
        ("UNSET", False, 3),
        ("OK", True, 1),
    ]


def test_writing_again_changes_no_row(migrated_engine: sa.Engine) -> None:
    """The same traces leave every row as it was, times of change and physical versions included."""
    given = [trace("t", session_id="s"), trace("u", session_id="s", hour=10), trace("v")]
    write_window(migrated_engine, MONDAY, *given)
    before = content(migrated_engine)
    assert write_window(migrated_engine, MONDAY, *given) == Ingested(3, 9, 1, 0, 3)
    assert content(migrated_engine) == before


def test_only_what_changed_is_rewritten(migrated_engine: sa.Engine) -> None:
    """A trace that grew, or lost a span, is written; its neighbour is not."""
    write_window(migrated_engine, MONDAY, trace("t"), trace("u"), trace("v", tools="abc"))
    before = rows_by(migrated_engine, traces, "trace_id")
    counts = write_window(migrated_engine, MONDAY, trace("t", tools="abx"), trace("u"), trace("v", tools="a"))
    assert counts == Ingested(3, 9, 0, 0, 1)
    after = rows_by(migrated_engine, traces, "trace_id")
    assert after["u"] == before["u"]
    assert after["t"].changed_at > before["t"].changed_at
    assert after["t"].first_ingested_at == before["t"].first_ingested_at
    assert [p.spans for p in trace_partitions(migrated_engine, MONDAY)] == [
        trace("t", tools="abx").spans,
        trace("u").spans,
        trace("v", tools="a").spans,
    ]


def test_a_new_identity_with_the_same_spans_is_a_change(migrated_engine: sa.Engine) -> None:
    """Session, task and gaps are not part of the spans' hash, and are kept up to date all the same."""
    write_window(migrated_engine, MONDAY, trace("t", session_id="old"))
    counts = write_window(migrated_engine, MONDAY, trace("t", session_id="new", task_id="k", gaps=(A_GAP,)))
    assert counts == Ingested(1, 3, 1, 0, 0)
    [partition] = trace_partitions(migrated_engine, MONDAY)
    assert (partition.session_id, partition.task_id, partition.gaps) == ("new", "k", (A_GAP,))
    assert [p.partition_id for p in session_partitions(migrated_engine, MONDAY)] == ["new"]


def test_traces_that_vanished_stay_and_are_marked(migrated_engine: sa.Engine) -> None:
    """Retention in a store takes no trace, session or span from what is here; and a trace may come back."""
    write_window(migrated_engine, MONDAY, trace("t", session_id="s"), trace("u"))
    write_window(migrated_engine, TUESDAY, trace("x", TUESDAY))
    with migrated_engine.begin() as conn:
        write_traces(conn, "other", MONDAY, [trace("t", session_id="s")])
    assert write_window(migrated_engine, MONDAY, trace("u")) == Ingested(1, 3, 0, 1, 1)
    assert _gone(migrated_engine) == {("support", "t")}
    assert [p.spans for p in trace_partitions(migrated_engine, MONDAY)] == [trace("t").spans, trace("u").spans]
    assert [p.partition_id for p in session_partitions(migrated_engine, MONDAY)] == ["s"]
    before = content(migrated_engine)
    assert write_window(migrated_engine, MONDAY, trace("u")) == Ingested(1, 3, 0, 1, 1)
    assert content(migrated_engine) == before
    assert write_window(migrated_engine, MONDAY, trace("t", session_id="s")) == Ingested(1, 3, 1, 1, 1)
    assert _gone(migrated_engine) == {("support", "u")}
    assert write_window(migrated_engine, MONDAY) == Ingested(0, 0, 0, 2, 0)
    assert _gone(migrated_engine) == {("support", "t"), ("support", "u")}


def test_a_trace_that_was_gone_and_starts_elsewhere_is_there_again(migrated_engine: sa.Engine) -> None:
    """It was looked for in its old window before its new one was ingested."""
    write_window(migrated_engine, MONDAY, trace("t"))
    write_window(migrated_engine, MONDAY)
    assert write_window(migrated_engine, TUESDAY, trace("t", TUESDAY)) == Ingested(1, 3, 0, 0, 0, (MONDAY.key,))
    assert _gone(migrated_engine) == set()


def _gone(engine: sa.Engine) -> set[tuple[str, str]]:
    with engine.connect() as conn:
        rows = conn.execute(sa.select(traces.c.source, traces.c.trace_id).where(traces.c.gone_upstream_at.is_not(None)))
        return {(row.source, row.trace_id) for row in rows}


def test_a_moved_trace_leaves_its_old_window(migrated_engine: sa.Engine) -> None:
    """It is in one window only, and the window it left is named as stale; both ways."""
    write_window(migrated_engine, TUESDAY, trace("t", TUESDAY), trace("u", TUESDAY))
    assert write_window(migrated_engine, MONDAY, trace("t", MONDAY)) == Ingested(1, 3, 0, 0, 0, (TUESDAY.key,))
    assert [p.partition_id for p in trace_partitions(migrated_engine, TUESDAY)] == ["u"]
    assert trace_partitions(migrated_engine, MONDAY)[0].spans == trace("t", MONDAY).spans
    assert write_window(migrated_engine, TUESDAY, trace("t", TUESDAY)) == Ingested(1, 3, 0, 1, 0, (MONDAY.key,))
    assert trace_partitions(migrated_engine, MONDAY) == []


def test_a_session_lives_in_the_window_of_its_first_trace(migrated_engine: sa.Engine) -> None:
    """It has all spans of all its traces, in order of their start, and moves when an earlier one appears."""
    first, second, third = trace("z", SUNDAY), trace("a", MONDAY), trace("m", TUESDAY)
    first, second, third = (replace(t, session_id="s", task_id=f"task {t.trace_id}") for t in (first, second, third))
    write_window(migrated_engine, TUESDAY, third)
    assert write_window(migrated_engine, MONDAY, second).stale_windows == (TUESDAY.key,)
    [session] = session_partitions(migrated_engine, MONDAY)
    assert session.spans == second.spans + third.spans
    assert session_partitions(migrated_engine, TUESDAY) == []
    assert write_window(migrated_engine, SUNDAY, first).stale_windows == (MONDAY.key,)
    [session] = session_partitions(migrated_engine, SUNDAY)
    assert (session.task_id, session.spans) == ("task z", first.spans + second.spans + third.spans)
    row = rows_by(migrated_engine, sessions, "session_id")["s"]
    assert (row.trace_count, row.first_trace_id, row.window_key) == (3, "z", SUNDAY.key)
    assert row.end_time_unix_nano == third.end_time_unix_nano
    assert write_window(migrated_engine, TUESDAY, replace(third, spans=third.spans[:2])).stale_windows == (SUNDAY.key,)
    assert write_window(migrated_engine, SUNDAY).stale_windows == ()  # gone from its store, it stays the first
    assert write_window(migrated_engine, SUNDAY, trace("z", SUNDAY)).stale_windows == (MONDAY.key,)
    assert [p.partition_id for p in session_partitions(migrated_engine, MONDAY)] == ["s"]


def test_untimed_traces_come_last_in_their_session(migrated_engine: sa.Engine) -> None:
    """Unless the session has none but those; then the smallest id is first."""
    untimed = [_untimed("a", "s"), _untimed("b", "u"), _untimed("c", "u")]
    timed = replace(trace("z"), session_id="s")
    write_window(migrated_engine, MONDAY, *untimed, timed)
    rows = rows_by(migrated_engine, sessions, "session_id")
    assert (rows["s"].first_trace_id, rows["u"].first_trace_id) == ("z", "b")
    assert [s.spans for s in session_partitions(migrated_engine, MONDAY)] == [
        timed.spans + untimed[0].spans,
        untimed[1].spans + untimed[2].spans,
    ]


def test_a_trace_without_spans_is_a_partition(migrated_engine: sa.Engine) -> None:
    """It has nothing to score, but is there."""
    write_window(migrated_engine, MONDAY, CanonicalTrace("t", "s", None, None, None, None, (), (A_GAP,)))
    assert trace_partitions(migrated_engine, MONDAY) == [CanonicalPartition("trace", "t", "s", gaps=(A_GAP,))]
    assert session_partitions(migrated_engine, MONDAY) == [CanonicalPartition("session", "s", "s", gaps=(A_GAP,))]


def test_duplicates_count_once(migrated_engine: sa.Engine) -> None:
    """A span given twice in its trace counts once, and of a trace given twice the last one counts."""
    double = trace("t")
    double = replace(double, spans=(*double.spans, double.spans[1]))
    assert write_window(migrated_engine, MONDAY, trace("t", tools="xyz"), double) == Ingested(1, 3, 0, 0, 0)
    assert trace_partitions(migrated_engine, MONDAY)[0].spans == trace("t").spans


def test_what_postgres_cannot_store_is_replaced(migrated_engine: sa.Engine) -> None:
    """NUL and half surrogate pairs anywhere cost a character, not the window, and are no change the second time."""
    span = CanonicalSpan(
        "t", "a\x00", "TOOL", "n\ud800", tool_name="\x00", tool_arguments={"\x00": "\udfff"}, output="\x00"
    )
    odd = CanonicalTrace("t", "s\x00", "k\x00", "a\x00", None, None, (span,), (replace(A_GAP, detail="\x00"),))
    write_window(migrated_engine, MONDAY, odd, trace("u"))
    assert write_window(migrated_engine, MONDAY, odd, trace("u")).unchanged == 2
    [partition, _] = trace_partitions(migrated_engine, MONDAY)
    [read] = partition.spans
    assert (partition.session_id, partition.task_id) == ("s\ufffd", "k\ufffd")
    assert (read.span_id, read.name, read.tool_name) == ("a\ufffd", "n\ufffd", "\ufffd")
    assert (read.tool_arguments, read.output) == ({"\ufffd": "\ufffd"}, "\ufffd")
    assert partition.gaps[0].detail == "\ufffd"


def test_json_null_and_empty_values_are_told_apart(migrated_engine: sa.Engine) -> None:
    """Empty arguments stay empty; nothing stays nothing."""
    values: list[Any] = [{}, [], "", 0, False, None, "null"]
    given = [
        replace(trace("t").spans[1], span_id=f"s{n}", tool_arguments=value, output=value)
        for n, value in enumerate(values)
    ]
    write_window(migrated_engine, MONDAY, replace(trace("t"), spans=tuple(given)))
    assert trace_partitions(migrated_engine, MONDAY)[0].spans == tuple(given)


def test_ids_are_ordered_by_code_point(migrated_engine: sa.Engine) -> None:
    """The same on every server, whatever its locale."""
    ids = ["B", "a", "_", "é", "Z", "\U0001f600", "\uffee"]
    write_window(migrated_engine, MONDAY, *(trace(i) for i in ids))
    assert [p.partition_id for p in trace_partitions(migrated_engine, MONDAY)] == sorted(ids)


def test_many_traces_stream(migrated_engine: sa.Engine) -> None:
    """More than one batch is one window; nothing is lost between batches."""
    given = (trace(f"t{n:05}", hour=n % 24, session_id=f"s{n % 50:02}") for n in range(4_000))
    assert write_window(migrated_engine, MONDAY, *given) == Ingested(4_000, 12_000, 50, 0, 0)
    assert sum(len(p.spans) for p in trace_partitions(migrated_engine, MONDAY)) == 12_000
    loaded = session_partitions(migrated_engine, MONDAY)
    assert sum(len(p.spans) for p in loaded) == 12_000
    starts = [s.start_time_unix_nano for s in loaded[0].spans if s.kind == "AGENT"]
    assert starts == sorted(starts, key=lambda start: start or 0)


def test_the_spans_of_a_large_trace_come_in_their_order(migrated_engine: sa.Engine) -> None:
    large = trace("t", tools="abcdefgh" * 100, session_id="s")
    write_window(migrated_engine, MONDAY, large, trace("u", hour=10, session_id="s"))
    (first, second), [session] = trace_partitions(migrated_engine, MONDAY), session_partitions(migrated_engine, MONDAY)
    assert first.spans == large.spans
    assert session.spans == first.spans + second.spans


def test_content_that_is_not_wanted_is_left_out_and_all_else_is_there(migrated_engine: sa.Engine) -> None:
    write_window(migrated_engine, MONDAY, trace("t"), replace(trace("u"), spans=(), root_span_id=None))
    with migrated_engine.connect() as conn:
        bare = list(load_trace_partitions(conn, SOURCE, MONDAY, SETTLING, Wanted(content=False)))
    none: dict[str, Any] = dict.fromkeys(("tool_arguments", "output", "input_tokens", "output_tokens", "cost_usd"))
    whole = trace_partitions(migrated_engine, MONDAY)
    assert bare == [replace(each, spans=tuple(replace(span, **none) for span in each.spans)) for each in whole]
    assert any(span.tool_calls for each in bare for span in each.spans)


def _untimed(trace_id: str, session_id: str) -> CanonicalTrace:
    span = CanonicalSpan(trace_id, "a", "TOOL", "call", tool_name="x")
    return CanonicalTrace(trace_id, session_id, None, "a", None, None, (span,))
