"""Raw spans: landing them in `otel_spans`, and reading the traces of a window back."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

import sqlalchemy as sa

from stepacc_core.model import RawEvent, RawSpan
from stepacc_core.redaction import Redactor
from stepacc_dagster.storage import encode
from stepacc_dagster.storage.copy import ColumnType, closed, copy_in, copy_out, create_staging
from stepacc_dagster.storage.encode import decode
from stepacc_dagster.storage.erasure_doors import LandingDoor
from stepacc_dagster.storage.locks import lock
from stepacc_dagster.windows import Window, WindowKind, moment, window_containing, window_length_ns

_BATCH = 5_000
"""Spans landed per statement: enough to make its cost small, few enough to keep in memory."""

_SHARED = 1_000
"""Decoded resources kept to be shared between spans; most producers have one."""

_NO_EVENTS = encode.jsonb([])

_COLUMNS: tuple[tuple[str, ColumnType], ...] = (
    ("source", "text"),
    ("trace_id", "text"),
    ("span_id", "text"),
    ("parent_span_id", "text"),
    ("name", "text"),
    ("start_time_unix_nano", "int8"),
    ("end_time_unix_nano", "int8"),
    ("status", "text"),
    ("status_message", "text"),
    ("attributes", "jsonb"),
    ("events", "jsonb"),
    ("resource", "jsonb"),
    ("scope_name", "text"),
    ("scope_version", "text"),
)
_TRACE_ID, _SPAN_ID, _END = (
    [name for name, _ in _COLUMNS].index(name) for name in ("trace_id", "span_id", "end_time_unix_nano")
)
_NAMES = ", ".join(name for name, _ in _COLUMNS)
_CONTENT = [name for name, _ in _COLUMNS[3:]]
_READ = _COLUMNS[1:]

# The rows come sorted from Python; the conflict clause leaves a span alone that is there already.
_LAND = sa.text(f"""
    WITH written AS (
        INSERT INTO stepacc.otel_spans AS present ({_NAMES})
        SELECT {_NAMES} FROM landing
        ON CONFLICT (source, trace_id, span_id) DO UPDATE SET
            {", ".join(f"{name} = excluded.{name}" for name in _CONTENT)},
            ingested_at = now()
        WHERE ({", ".join(f"present.{name}" for name in _CONTENT)})
            IS DISTINCT FROM ({", ".join(f"excluded.{name}" for name in _CONTENT)})
          AND (present.end_time_unix_nano IS NULL OR excluded.end_time_unix_nano IS NOT NULL)
        RETURNING (present.xmax = 0) AS is_new
    )
    SELECT count(*) FILTER (WHERE is_new), count(*) FILTER (WHERE NOT is_new) FROM written
""")  # noqa: S608 (names of this module)

# Traces that may start in a window, by index alone; then those of which nothing lies earlier. OFFSET 0 keeps the
# planner at one look-up per trace, in order, whatever it believes of the size of the tables.
_STARTING = """
    SELECT candidate.trace_id FROM (
        SELECT DISTINCT trace_id FROM stepacc.otel_spans
        WHERE source = {source} AND start_time_unix_nano IS NOT NULL
          AND start_time_unix_nano >= {start} AND start_time_unix_nano < {end}
    ) candidate
    WHERE NOT EXISTS (
        SELECT 1 FROM stepacc.otel_spans earlier
        WHERE earlier.source = {source} AND earlier.trace_id = candidate.trace_id
          AND earlier.start_time_unix_nano < {start}
        OFFSET 0
    )
    UNION ALL
    SELECT candidate.trace_id FROM (
        SELECT DISTINCT trace_id FROM stepacc.otel_spans
        WHERE source = {source} AND start_time_unix_nano IS NULL
          AND first_seen_at >= {start_at} AND first_seen_at < {end_at}
    ) candidate
    WHERE NOT EXISTS (
        SELECT 1 FROM stepacc.otel_spans other
        WHERE other.source = {source} AND other.trace_id = candidate.trace_id
          AND (other.start_time_unix_nano IS NOT NULL OR other.first_seen_at < {start_at})
        OFFSET 0
    )
"""
_READ_WINDOW = f"""
    SELECT span.* FROM (SELECT trace_id FROM ({_STARTING}) starting ORDER BY trace_id) trace
    CROSS JOIN LATERAL (
        SELECT {", ".join(name for name, _ in _READ)} FROM stepacc.otel_spans
        WHERE source = {{source}} AND trace_id = trace.trace_id
        ORDER BY span_id OFFSET 0
    ) span
"""  # noqa: S608 (names of this module)
_WINDOWS_BY_START = sa.text("""
    WITH RECURSIVE jump (start) AS (
        SELECT min(start_time_unix_nano) FROM stepacc.otel_spans WHERE source = :source
        UNION ALL
        SELECT (
            SELECT start_time_unix_nano FROM stepacc.otel_spans
            WHERE source = :source AND start_time_unix_nano IS NOT NULL
              AND start_time_unix_nano >= jump.start - mod(mod(jump.start, :length) + :length, :length) + :length
            ORDER BY start_time_unix_nano LIMIT 1
        ) FROM jump WHERE jump.start IS NOT NULL
    ),
    place AS (SELECT start - mod(mod(start, :length) + :length, :length) AS start FROM jump WHERE start IS NOT NULL)
    SELECT start FROM place WHERE EXISTS (
        SELECT 1 FROM stepacc.otel_spans span
        WHERE source = :source AND start_time_unix_nano IS NOT NULL
          AND start_time_unix_nano >= place.start AND start_time_unix_nano < place.start + :length
          AND NOT EXISTS (
              SELECT 1 FROM stepacc.otel_spans earlier
              WHERE earlier.source = :source AND earlier.trace_id = span.trace_id
                AND earlier.start_time_unix_nano < place.start
              OFFSET 0
          )
    )
""").bindparams(sa.bindparam("length", type_=sa.BigInteger()))
_WINDOWS_BY_ARRIVAL = sa.text("""
    WITH RECURSIVE jump (start) AS (
        SELECT date_bin(make_interval(secs => :seconds), min(first_seen_at), 'epoch') FROM stepacc.otel_spans
        WHERE source = :source AND start_time_unix_nano IS NULL
        UNION ALL
        SELECT (
            SELECT date_bin(make_interval(secs => :seconds), first_seen_at, 'epoch') FROM stepacc.otel_spans
            WHERE source = :source AND start_time_unix_nano IS NULL
              AND first_seen_at >= jump.start + make_interval(secs => :seconds)
            ORDER BY first_seen_at LIMIT 1
        ) FROM jump WHERE jump.start IS NOT NULL
    )
    SELECT CAST(extract(epoch FROM start) AS bigint) * 1000000000 FROM jump WHERE start IS NOT NULL AND EXISTS (
        SELECT 1 FROM stepacc.otel_spans span
        WHERE source = :source AND start_time_unix_nano IS NULL
          AND first_seen_at >= jump.start AND first_seen_at < jump.start + make_interval(secs => :seconds)
          AND NOT EXISTS (
              SELECT 1 FROM stepacc.otel_spans other
              WHERE other.source = :source AND other.trace_id = span.trace_id
                AND (other.start_time_unix_nano IS NOT NULL OR other.first_seen_at < jump.start)
              OFFSET 0
          )
    )
""").bindparams(sa.bindparam("seconds", type_=sa.Double()))


@dataclass(frozen=True, slots=True)
class Landed:
    """Spans that were new, that changed, and that were there already (or twice among those given).

    Spans of `erased` traces were left out. `redacted` says how many values were redacted in what was given, by kind.
    """

    new: int
    changed: int
    same: int
    erased: int = 0
    redacted: Mapping[str, int] = field(default_factory=dict)


def land_spans(conn: sa.Connection, source: str, spans: Iterable[RawSpan], redactor: Redactor | None = None) -> Landed:
    """Write raw spans; the same span again changes nothing, and different content replaces what was there.

    A copy without an end, as sent when a span starts, never replaces one that has ended, in whatever order they come.

    Spans of erased traces, sessions and users are left out, and of the others secrets and personal data are redacted:
    what is left out is told by ids as they come.

    A changed span gets a new `ingested_at`. Start and end times of zero are stored as not recorded, which is what zero
    means in OTLP. Characters that Postgres cannot store are replaced, see `encode`. One landing per source at a time,
    until the caller's transaction ends, so that no two wait for each other's spans.

    Args:
        conn: to where.
        source: whose spans they are.
        spans: what came.
        redactor: what redacts them; None where the source says to store values as they are.
    """
    redacted: Counter[str] = Counter()
    new = changed = given = admitted = 0
    iterator = iter(spans)
    door: LandingDoor | None = None
    while batch := list(islice(iterator, _BATCH)):
        if door is None:
            lock(conn, "otel_spans", source)
            create_staging(conn, "landing", _COLUMNS)
            door = LandingDoor(conn, source)
        rows: dict[tuple[str, str], tuple[Any, ...]] = {}
        stored = door.admitted(batch)
        kept = stored if redactor is None else (redactor.span(span, redacted) for span in stored)
        for row in (_row(source, span) for span in kept):
            key = (row[_TRACE_ID], row[_SPAN_ID])
            if key not in rows or row[_END] is not None or rows[key][_END] is None:
                rows[key] = row
        copy_in(conn, "landing", _COLUMNS, (rows[key] for key in sorted(rows)))
        counts = conn.execute(_LAND).one()
        conn.execute(sa.text("TRUNCATE landing"))
        given += len(batch)
        admitted += len(stored)
        new += counts[0]
        changed += counts[1]
    return Landed(new, changed, admitted - new - changed, given - admitted, dict(sorted(redacted.items())))


def read_window_spans(conn: sa.Connection, source: str, window: Window) -> Iterator[tuple[str, list[RawSpan]]]:
    """Yield, trace by trace in order of their ids, all spans of the traces that start in a window.

    A trace starts with its earliest timed span, a trace without any times when it first arrived. Spans of a trace come
    in order of their ids. Memory holds one trace at a time; the connection is busy until the iterator is exhausted or
    closed.
    """
    rows = copy_out(conn, _READ_WINDOW, [kind for _, kind in _READ], _bounds(source, window))
    resources: dict[bytes, Any] = {}
    with closed(rows):
        for trace_id, group in groupby(rows, key=itemgetter(0)):
            if len(resources) > _SHARED:
                resources.clear()
            yield trace_id, [_span(row, resources) for row in group]


def landed_windows(conn: sa.Connection, source: str, kind: WindowKind) -> list[str]:
    """Return the keys of the windows in which traces of a source start, in order.

    Jumps from window to window on the index: the cost grows with the windows, not with the spans.
    """
    length = window_length_ns(kind)
    timed = conn.scalars(_WINDOWS_BY_START, {"source": source, "length": length})
    untimed = conn.scalars(_WINDOWS_BY_ARRIVAL, {"source": source, "seconds": length // 1_000_000_000})
    return sorted({window_containing(start, kind).key for start in (*timed, *untimed)})


def _bounds(source: str, window: Window) -> dict[str, Any]:
    return {
        "source": encode.text(source),
        "start": window.start_ns,
        "end": window.end_ns,
        "start_at": moment(window.start_ns),
        "end_at": moment(window.end_ns),
    }


def _row(source: str, span: RawSpan) -> tuple[Any, ...]:
    return (
        source,
        encode.stored_id(span.trace_id),
        encode.stored_id(span.span_id),
        encode.optional_id(span.parent_span_id),
        encode.text(span.name),
        encode.nanoseconds(span.start_time_unix_nano),
        encode.nanoseconds(span.end_time_unix_nano),
        span.status,
        encode.text(span.status_message),
        encode.jsonb(span.attributes),
        encode.jsonb([_event(event) for event in span.events]),
        encode.jsonb(span.resource),
        encode.text(span.scope_name),
        encode.text(span.scope_version),
    )


def _event(event: RawEvent) -> dict[str, Any]:
    return {"name": event.name, "time_unix_nano": event.time_unix_nano, "attributes": event.attributes}


def _events(written: bytes) -> tuple[RawEvent, ...]:
    return tuple(RawEvent(e["name"], e["time_unix_nano"], e["attributes"]) for e in decode(written))


def _span(row: tuple[Any, ...], resources: dict[bytes, Any]) -> RawSpan:
    trace_id, span_id, parent_span_id, name, start, end, status, message, attributes, events, resource, *scope = row
    shared = resources.get(resource)
    if shared is None:
        shared = resources[resource] = decode(resource)
    return RawSpan(
        trace_id,
        span_id,
        name,
        parent_span_id,
        start,
        end,
        status,
        message,
        decode(attributes),
        () if events == _NO_EVENTS else _events(events),
        shared,
        scope[0],
        scope[1],
    )
