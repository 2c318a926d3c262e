"""Canonical content: writing the traces, spans and sessions of one window."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from stepacc_core.marks import marks_in
from stepacc_core.model import CanonicalTrace
from stepacc_dagster.storage import encode
from stepacc_dagster.storage.copy import ColumnType, copy_in, create_staging
from stepacc_dagster.storage.erasure_tables import EVERY_SOURCE
from stepacc_dagster.storage.locks import lock, lock_shared, lock_windows
from stepacc_dagster.storage.sessions import refresh_sessions
from stepacc_dagster.storage.span_rows import SPAN_COLUMNS, gaps_jsonb, span_row
from stepacc_dagster.windows import Window

_BATCH = 5_000
"""Spans held before they are sent."""

_TRACE_COLUMNS: tuple[tuple[str, ColumnType], ...] = (
    ("place", "int8"),
    ("trace_id", "text"),
    ("session_id", "text"),
    ("task_id", "text"),
    ("start_time_unix_nano", "int8"),
    ("end_time_unix_nano", "int8"),
    ("root_span_id", "text"),
    ("status", "text"),
    ("settled", "bool"),
    ("span_count", "int4"),
    ("spans_hash", "bytea"),
    ("gaps", "jsonb"),
)
_SPAN_COLUMNS: tuple[tuple[str, ColumnType], ...] = (("place", "int8"), *SPAN_COLUMNS)

_JSON_COLUMNS = 3
"""jsonb columns, at the end of a span's row."""

_TRACE_NAMES = [name for name, _ in _TRACE_COLUMNS[1:]]
_SPAN_NAMES = [name for name, _ in SPAN_COLUMNS]
_TRACE_VALUES = ["window_key", *_TRACE_NAMES[1:]]


_PLAN_COLUMNS: tuple[tuple[str, ColumnType], ...] = (
    ("place", "int8"),
    ("trace_id", "text"),
    ("missing", "bool"),
    ("old_window", "text"),
    ("old_session", "text"),
    ("new_session", "text"),
    ("respan", "bool"),
    ("changed", "bool"),
    ("gone_before", "bool"),
)

_LEAVE_OUT_ERASED = sa.text(f"""
    DELETE FROM staged_traces given USING stepacc.tombstones erased
    WHERE erased.kind = 'trace' AND erased.key = given.trace_id AND erased.source IN (:source, '{EVERY_SOURCE}')
""")  # noqa: S608 (a name of this package)
# What happens to each trace given, and to each that is in the window but was not given. A trace given twice counts as
# given last; `old` is NULL for a new one. Erased ones stay as they are.
_PLAN = sa.text(f"""
    WITH given AS (SELECT DISTINCT ON (trace_id) * FROM staged_traces ORDER BY trace_id, place DESC),
    old AS (
        SELECT * FROM stepacc.traces WHERE source = :source AND window_key = :window AND erased_at IS NULL
        UNION ALL
        SELECT elsewhere.* FROM given JOIN stepacc.traces elsewhere USING (trace_id)
        WHERE elsewhere.source = :source AND elsewhere.window_key <> :window
    )
    INSERT INTO plan
    SELECT given.place, trace_id, given.place IS NULL, old.window_key, old.session_id, given.session_id,
           given.place IS NOT NULL AND old.spans_hash IS DISTINCT FROM given.spans_hash,
           given.place IS NOT NULL AND (old.window_key, {", ".join(f"old.{name}" for name in _TRACE_NAMES[1:])})
               IS DISTINCT FROM (:window, {", ".join(f"given.{name}" for name in _TRACE_NAMES[1:])}),
           old.gone_upstream_at IS NOT NULL
    FROM given FULL JOIN old USING (trace_id)
""")  # noqa: S608 (names of this module)
_FINGERPRINT = sa.text("""
    SELECT encode(sha256(coalesce(
        string_agg(sha256(convert_to(trace_id, 'UTF8')) || spans_hash, '\\x' ORDER BY trace_id), '\\x'
    )), 'hex')
    FROM stepacc.traces WHERE source = :source AND window_key = :window
""")
_OLD_WINDOWS = sa.text("""
    SELECT DISTINCT window_key FROM stepacc.traces
    WHERE source = :source AND trace_id IN (SELECT trace_id FROM staged_traces)
""")
_REMOVE_SPANS = sa.text("""
    DELETE FROM stepacc.spans old USING plan
    WHERE old.source = :source AND old.trace_id = plan.trace_id AND plan.respan
      AND NOT EXISTS (
          SELECT 1 FROM staged_spans new WHERE new.place = plan.place AND new.span_id = old.span_id
      )
""")
# What its store has no longer keeps its content and its scores here.
_MARK_GONE = sa.text("""
    UPDATE stepacc.traces old SET gone_upstream_at = CASE WHEN plan.missing THEN now() END FROM plan
    WHERE source = :source AND old.trace_id = plan.trace_id AND plan.missing <> plan.gone_before
""")
_WRITE_TRACES = sa.text(f"""
    INSERT INTO stepacc.traces (source, window_key, {", ".join(_TRACE_NAMES)})
    SELECT :source, :window, {", ".join(f"given.{name}" for name in _TRACE_NAMES)}
    FROM staged_traces given JOIN plan USING (place) WHERE plan.changed ORDER BY given.trace_id
    ON CONFLICT (source, trace_id) DO UPDATE SET
        {", ".join(f"{name} = excluded.{name}" for name in _TRACE_VALUES)}, changed_at = now()
""")  # noqa: S608 (names of this module)
_WRITE_SPANS = sa.text(f"""
    INSERT INTO stepacc.spans (source, trace_id, {", ".join(_SPAN_NAMES)})
    SELECT :source, plan.trace_id, {", ".join(f"given.{name}" for name in _SPAN_NAMES)}
    FROM staged_spans given JOIN plan USING (place) WHERE plan.respan
    ON CONFLICT (source, trace_id, span_id) DO UPDATE SET
        {", ".join(f"{name} = excluded.{name}" for name in _SPAN_NAMES[1:])}
""")  # noqa: S608 (names of this module)
_TOUCH = sa.text("""
    INSERT INTO touched_sessions
    SELECT old_session FROM plan WHERE changed AND old_session IS NOT NULL
    UNION SELECT new_session FROM plan WHERE changed AND new_session IS NOT NULL
""")
_COUNTS = sa.text("""
    SELECT count(*) FILTER (WHERE NOT missing) AS traces,
           coalesce(sum(staged_traces.span_count) FILTER (WHERE NOT missing), 0) AS spans,
           count(DISTINCT new_session) AS sessions,
           count(*) FILTER (WHERE missing) AS gone,
           count(*) FILTER (WHERE NOT changed AND NOT missing) AS unchanged,
           array_agg(DISTINCT old_window) FILTER (WHERE old_window <> :window) AS old_windows
    FROM plan LEFT JOIN staged_traces USING (place)
""")


@dataclass(frozen=True, slots=True)
class Ingested:
    """What became of a window.

    Attributes:
        traces: traces the window has in its store, and `spans` and `sessions` those of these traces.
        spans: see `traces`.
        sessions: see `traces`; sessions of which at least one trace starts here.
        gone: traces that the store has no longer; their content and scores stay.
        unchanged: traces that were in the window already, just so; they were not written.
        stale_windows: other windows whose scores may be out of date by this: those that lost a trace to this one, and
            home windows, old and new, of sessions that changed. In order.
        redacted: values that are redacted in the arguments, calls and outputs of these traces, by kind.
    """

    traces: int
    spans: int
    sessions: int
    gone: int
    unchanged: int
    stale_windows: tuple[str, ...] = ()
    redacted: Mapping[str, int] = field(default_factory=dict)

    @property
    def changed(self) -> bool:
        """Whether any trace of the window is new or another than before."""
        return self.unchanged < self.traces


def write_traces(conn: sa.Connection, source: str, window: Window, traces: Iterable[CanonicalTrace]) -> Ingested:
    """Replace the canonical content of a window by the traces that start in it.

    Traces that are there already with the same spans are left alone. Spans that vanished go; a trace that vanished
    stays, marked as gone from its store, and one that is there again loses the mark. A trace that moved here from
    another window leaves that one in the same transaction. Sessions of changed traces are derived anew. Erased traces
    are left out.

    Nothing is read from `traces` before the window's lock is held, so a caller who reads the store in that iterator
    never overwrites newer content with older. `traces` must not use `conn`, which is busy. Call it once per
    transaction, at isolation level READ COMMITTED, Postgres' default: what others wrote while it waited must be seen.
    """
    names = {"source": source, "window": window.key}
    lock(conn, "ingest", source, window.key)
    lock_shared(conn, "erasure", source)
    redacted = _stage(conn, traces)
    conn.execute(_LEAVE_OUT_ERASED, names)
    _lock_content(conn, source, window)
    create_staging(conn, "plan", _PLAN_COLUMNS)
    conn.execute(_PLAN, names)
    conn.execute(sa.text("ANALYZE plan"))
    conn.execute(_WRITE_TRACES, names)
    conn.execute(_REMOVE_SPANS, names)
    conn.execute(_WRITE_SPANS, names)
    conn.execute(_MARK_GONE, names)
    counts = conn.execute(_COUNTS, names).one()
    create_staging(conn, "touched_sessions", [("session_id", "text")])
    conn.execute(_TOUCH)
    homes = refresh_sessions(conn, source)
    stale = {*homes, *(counts.old_windows or ())} - {window.key}
    return Ingested(
        counts.traces,
        counts.spans,
        counts.sessions,
        counts.gone,
        counts.unchanged,
        tuple(sorted(stale)),
        dict(sorted(redacted.items())),
    )


def _stage(conn: sa.Connection, traces: Iterable[CanonicalTrace]) -> Counter[str]:
    """Stage the rows, and count the marks of redacted values in them by kind."""
    redacted: Counter[str] = Counter()
    create_staging(conn, "staged_traces", _TRACE_COLUMNS)
    create_staging(conn, "staged_spans", _SPAN_COLUMNS)
    trace_rows: list[tuple[Any, ...]] = []
    span_rows: list[tuple[Any, ...]] = []
    for place, trace in enumerate(traces):
        rows = [(place, *row) for row in _span_rows(trace)]
        for row in rows:
            for value in row[-_JSON_COLUMNS:]:
                if value is not None:
                    marks_in(value, redacted)
        trace_rows.append(_trace_row(place, trace, rows))
        span_rows += rows
        if len(span_rows) >= _BATCH:
            _send(conn, trace_rows, span_rows)
    _send(conn, trace_rows, span_rows)
    conn.execute(sa.text("ANALYZE staged_traces"))
    conn.execute(sa.text("ANALYZE staged_spans (place, span_id)"))
    return redacted


def _send(conn: sa.Connection, trace_rows: list[tuple[Any, ...]], span_rows: list[tuple[Any, ...]]) -> None:
    copy_in(conn, "staged_traces", _TRACE_COLUMNS, trace_rows)
    copy_in(conn, "staged_spans", _SPAN_COLUMNS, span_rows)
    trace_rows.clear()
    span_rows.clear()


def _span_rows(trace: CanonicalTrace) -> Iterator[tuple[Any, ...]]:
    seen: set[str] = set()
    for span in trace.spans:
        row = span_row(len(seen), span)
        if row[0] not in seen:  # delivered twice, it counts once (contract, section 3)
            seen.add(row[0])
            yield row


def _trace_row(place: int, trace: CanonicalTrace, rows: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    root = next((span for span in trace.spans if span.span_id == trace.root_span_id), None)
    return (
        place,
        encode.stored_id(trace.trace_id),
        encode.optional_id(trace.session_id),
        encode.optional_id(trace.task_id),
        encode.nanoseconds(trace.start_time_unix_nano),
        encode.nanoseconds(trace.end_time_unix_nano),
        encode.optional_id(trace.root_span_id),
        root.status if root else "UNSET",
        root is not None and (root.end_time_unix_nano is not None or trace.end_time_unix_nano is None),
        len(rows),
        _spans_hash(rows),
        gaps_jsonb(trace.gaps),
    )


def _spans_hash(rows: list[tuple[Any, ...]]) -> bytes:
    digest = hashlib.sha256()
    for row in rows:
        digest.update(repr(row[1:-_JSON_COLUMNS]).encode())
        for value in row[-_JSON_COLUMNS:]:
            digest.update(b"\x00" + (value or b""))  # JSON text holds no such byte, so this parts the values
    return digest.digest()


def _lock_content(conn: sa.Connection, source: str, window: Window) -> None:
    """Hold the content locks of the window and of those its traces come from, all taken in key order.

    Which those are is certain only once they are held: if there are more by then, rolling back to the savepoint lets go
    of the locks, and all are taken again in order.
    """
    keys = {window.key}
    needed = keys | set(conn.scalars(_OLD_WINDOWS, {"source": source}))
    while True:
        keys |= needed
        savepoint = conn.begin_nested()
        lock_windows(conn, "canonical_traces", source, keys)
        needed = set(conn.scalars(_OLD_WINDOWS, {"source": source}))
        if needed <= keys:
            savepoint.commit()
            return
        savepoint.rollback()


def window_fingerprint(conn: sa.Connection, source: str, window: Window) -> str:
    """Return a fingerprint of the canonical content of a window: hex, and equal for equal traces."""
    return str(conn.scalar(_FINGERPRINT, {"source": source, "window": window.key}))
