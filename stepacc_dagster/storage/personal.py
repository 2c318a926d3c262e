"""Finding the traces of a session or a user."""

import re
from datetime import datetime

import sqlalchemy as sa

from stepacc_core.identity import sessions_named, users_named
from stepacc_core.model import RawEvent, RawSpan
from stepacc_dagster.storage import encode
from stepacc_dagster.storage.copy import ColumnType, closed, copy_out
from stepacc_dagster.storage.occurrences import KNOWN_SOURCES
from stepacc_dagster.storage.tombstones import TargetKind
from stepacc_dagster.storage.transactions import Look, came_since

_TABLES = ("otel_spans", "traces", "sessions", "scores", "annotations")
_KNOWN_TRACE = sa.text("""
    SELECT EXISTS (SELECT 1 FROM stepacc.otel_spans WHERE source = :source AND trace_id = :id)
        OR EXISTS (SELECT 1 FROM stepacc.traces WHERE source = :source AND trace_id = :id)
        OR EXISTS (SELECT 1 FROM stepacc.scores
                   WHERE source = :source AND partition_type = 'trace' AND partition_id = :id)
        OR EXISTS (SELECT 1 FROM stepacc.annotations
                   WHERE source = :source AND target_type = 'trace' AND target_id = :id)
""")

_PLAIN = re.compile(r"[\w.@:~ \[\]-]+", re.ASCII)
"""Ids that no encoder of JSON writes in another way, so that what holds one holds it letter by letter."""
_TYPES: list[ColumnType] = ["text", "jsonb", "jsonb", "jsonb"]
_LANDED = "SELECT trace_id, attributes, events, resource FROM stepacc.otel_spans WHERE source = {source}"
_SINCE = f" AND {came_since('{seen}', '{now}')}"
_HOLDS = (
    " AND (strpos(CAST(attributes AS text), {id}) > 0 OR strpos(CAST(events AS text), {id}) > 0"
    " OR strpos(CAST(resource AS text), {id}) > 0)"
)
# One step along the index for each trace, whatever the number of its spans.
_NOT_INGESTED = """
    WITH RECURSIVE landed (trace_id) AS (
        SELECT min(trace_id) FROM stepacc.otel_spans WHERE source = {source}
        UNION ALL
        SELECT (SELECT min(trace_id) FROM stepacc.otel_spans WHERE source = {source} AND trace_id > landed.trace_id)
        FROM landed WHERE landed.trace_id IS NOT NULL
    )
    SELECT span.trace_id, span.attributes, span.events, span.resource FROM landed CROSS JOIN LATERAL (
        SELECT trace_id, attributes, events, resource FROM stepacc.otel_spans
        WHERE source = {source} AND trace_id = landed.trace_id OFFSET 0
    ) span
    WHERE NOT EXISTS (
        SELECT 1 FROM stepacc.traces known WHERE known.source = {source} AND known.trace_id = landed.trace_id
    )
"""
_WITHOUT_RAW = sa.text("""
    SELECT count(*) FROM stepacc.traces trace WHERE source = :source AND erased_at IS NULL AND NOT EXISTS (
        SELECT 1 FROM stepacc.otel_spans WHERE otel_spans.source = :source AND otel_spans.trace_id = trace.trace_id
    )
""")
_GONE = sa.text("""
    SELECT count(*) FROM stepacc.traces
    WHERE source = :source AND erased_at IS NULL AND gone_upstream_at IS NOT NULL
""")
_INGESTED = sa.text("""
    SELECT window_key, ingested_at FROM stepacc.windows WHERE source = :source AND ingested_at IS NOT NULL
    ORDER BY window_key
""")


def known_sources(conn: sa.Connection) -> list[str]:
    """Return the names of the sources of which anything is stored, in order."""
    names: set[str] = set()
    for table in _TABLES:
        query = f"{KNOWN_SOURCES.format(table=table)} SELECT name FROM known WHERE name IS NOT NULL"  # noqa: S608
        names |= set(conn.scalars(sa.text(query)))
    return sorted(names)


def trace_is_known(conn: sa.Connection, source: str, trace_id: str) -> bool:
    """Tell whether anything is stored about a trace."""
    return bool(conn.scalar(_KNOWN_TRACE, {"source": source, "id": trace_id}))


def landed_traces(  # noqa: PLR0913 (whose, and which spans)
    conn: sa.Connection, source: str, kind: TargetKind, ident: str, *, this: Look, not_ingested: bool = False
) -> set[str]:
    """Return the traces of which a raw span names a session or user.

    Args:
        conn: where from.
        source: the source.
        kind: session or user.
        ident: its id, as `tombstones.stored_as` has it.
        this: the look, which may be only at spans that came since an earlier one.
        not_ingested: look only at traces that are not ingested; without it, all spans of the source are read.
    """
    query = _NOT_INGESTED if not_ingested else _LANDED + ("" if this.anew else _SINCE)
    if _PLAIN.fullmatch(ident):
        query += _HOLDS
    rows = copy_out(conn, query, _TYPES, {"source": source, "id": ident, **this.bounds})
    found: set[str] = set()
    with closed(rows):
        for trace_id, *content in rows:
            if trace_id not in found and names(_span(trace_id, *content), kind, ident):
                found.add(trace_id)
    return found


def names(span: RawSpan, kind: TargetKind, ident: str) -> bool:
    """Tell whether a span names a session or user, by its id as `tombstones.stored_as` has it."""
    named = sessions_named(span) if kind == "session" else users_named(span)
    return any(encode.stored_id(each) == ident for each in named)


def traces_without_raw_spans(conn: sa.Connection, source: str) -> int:
    """Count the traces of which no raw span is in stepacc's own table."""
    return int(conn.execute(_WITHOUT_RAW, {"source": source}).scalar_one())


def traces_gone_upstream(conn: sa.Connection, source: str) -> int:
    """Count the traces that their store has no longer."""
    return int(conn.execute(_GONE, {"source": source}).scalar_one())


def ingested_windows(conn: sa.Connection, source: str) -> dict[str, datetime]:
    """Return when each window of a source was last ingested, in order."""
    return {row.window_key: row.ingested_at for row in conn.execute(_INGESTED, {"source": source})}


def _span(trace_id: str, attributes: bytes, events: bytes, resource: bytes) -> RawSpan:
    return RawSpan(
        trace_id,
        "",
        "",
        attributes=encode.decode(attributes),
        events=tuple(RawEvent(event["name"], attributes=event["attributes"]) for event in encode.decode(events)),
        resource=encode.decode(resource),
    )
