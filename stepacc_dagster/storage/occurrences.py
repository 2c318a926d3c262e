"""Traces and sessions by their ids: in which sources they are known, and what is known of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from stepacc_core.model import PartitionType
from stepacc_dagster.errors import UnknownIdError
from stepacc_dagster.storage import encode

_SHOWN = 10
"""Ids that an error lists."""

# Every index begins with the source, and a table may have many millions of rows: the sources are found one look-up
# each, and the id in each of them.
KNOWN_SOURCES = """
    WITH RECURSIVE known (name) AS (
        SELECT min(source) FROM stepacc.{table}
        UNION ALL
        SELECT (SELECT min(source) FROM stepacc.{table} WHERE source > known.name)
        FROM known WHERE known.name IS NOT NULL
    )
"""
_FOUND = """
    SELECT known.name, found.id FROM known CROSS JOIN LATERAL (
        SELECT DISTINCT {id} AS id FROM stepacc.{table} WHERE source = known.name AND {own} AND {condition}
        ORDER BY 1 LIMIT :most
    ) found WHERE known.name = coalesce(CAST(:source AS text), known.name)
"""
_CONDITIONS = ("{id} = :given", "starts_with({id}, :given)")
_PLACES: dict[PartitionType, tuple[tuple[str, str, str], ...]] = {
    "trace": (
        ("traces", "trace_id", "true"),
        ("otel_spans", "trace_id", "true"),
        ("scores", "partition_id", "partition_type = 'trace'"),
    ),
    "session": (
        ("sessions", "session_id", "true"),
        ("scores", "partition_id", "partition_type = 'session'"),
    ),
}
"""Table, column and condition of each place an id may be known in: what landed may not be ingested yet, and what was
scored may be gone."""

_TRACE = sa.text("SELECT * FROM stepacc.traces WHERE source = :source AND trace_id = :id")
_SESSION = sa.text("SELECT * FROM stepacc.sessions WHERE source = :source AND session_id = :id")
_MEMBERS = sa.text("""
    SELECT * FROM stepacc.traces WHERE source = :source AND session_id = :id
    ORDER BY start_time_unix_nano NULLS LAST, trace_id
""")
_BURIED = sa.text("""
    SELECT erased_at FROM stepacc.tombstones tombstone JOIN stepacc.erasures erasure ON erasure.id = erasure_id
    WHERE kind = 'trace' AND key = :id AND (CAST(:source AS text) IS NULL OR tombstone.source IN (:source, ''))
    ORDER BY erased_at LIMIT 1
""")
_LANDED = sa.text("""
    SELECT count(*) AS spans, min(first_seen_at) AS first_seen_at, max(ingested_at) AS ingested_at,
           coalesce(array_agg(DISTINCT scope_name) FILTER (WHERE scope_name <> ''), '{}') AS scopes
    FROM stepacc.otel_spans WHERE source = :source AND trace_id = :id HAVING count(*) > 0
""")


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A trace or session of a source."""

    source: str
    kind: PartitionType
    id: str


@dataclass(frozen=True, slots=True)
class TraceRow:
    """What the trace table says of a trace; times of spans in nanoseconds since 1970."""

    trace_id: str
    session_id: str | None
    task_id: str | None
    window_key: str
    start_time_unix_nano: int | None
    end_time_unix_nano: int | None
    root_span_id: str | None
    status: str
    settled: bool
    span_count: int
    gaps: Sequence[Any]
    first_ingested_at: datetime
    changed_at: datetime
    gone_upstream_at: datetime | None
    erased_at: datetime | None


@dataclass(frozen=True, slots=True)
class SessionRow:
    """What the session table says of a session; times of spans in nanoseconds since 1970."""

    session_id: str
    task_id: str | None
    window_key: str
    first_trace_id: str
    start_time_unix_nano: int | None
    end_time_unix_nano: int | None
    trace_count: int
    changed_at: datetime
    erased_at: datetime | None


@dataclass(frozen=True, slots=True)
class Landed:
    """The raw spans of a trace in `stepacc.otel_spans`, and the instrumentations (`scopes`) that wrote them."""

    spans: int
    first_seen_at: datetime
    ingested_at: datetime
    scopes: Sequence[str]


def find_occurrences(
    conn: sa.Connection, kind: PartitionType, given: str, source: str | None = None
) -> list[Occurrence]:
    """Return the trace or session that an id names, or the beginning of one id only, in each source that knows it.

    Raises:
        UnknownIdError: nothing is known by it, which is said where it was erased, or several ids begin with it.
    """
    for condition in _CONDITIONS if given else ():
        found = _find(conn, kind, given, source, condition)
        ids = sorted({ident for _, ident in found})
        if len(ids) == 1:
            return [Occurrence(name, kind, ident) for name, ident in sorted(found)]
        if ids:
            shown = ", ".join(f"`{ident}`" for ident in ids[:_SHOWN]) + (" and more" if len(ids) > _SHOWN else "")
            msg = f"Several {kind}s have ids that begin with `{given}`: {shown}; give more of one."
            raise UnknownIdError(msg)
    erased = conn.scalar(_BURIED, {"id": encode.stored_id(given), "source": source}) if kind == "trace" else None
    if erased is not None:
        msg = f"Trace `{given}` was erased {erased.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC, and nothing of it is kept."
        raise UnknownIdError(msg)
    where = f"source `{source}`" if source else "any source"
    msg = f"There is no {kind} `{given}` in {where}; give its id, or the beginning of it, as `stepacc scores` shows it."
    raise UnknownIdError(msg)


def trace_row(conn: sa.Connection, occurrence: Occurrence) -> TraceRow | None:
    """Return the row of a trace; None where it is not ingested."""
    row = conn.execute(_TRACE, _names(occurrence)).mappings().first()
    return None if row is None else _trace(row)


def session_row(conn: sa.Connection, occurrence: Occurrence) -> SessionRow | None:
    """Return the row of a session; None where no trace names it any more."""
    row = conn.execute(_SESSION, _names(occurrence)).mappings().first()
    return None if row is None else SessionRow(**{name: row[name] for name in SessionRow.__slots__})


def traces_of_session(conn: sa.Connection, occurrence: Occurrence) -> list[TraceRow]:
    """Return the traces of a session, in the order in which their steps follow each other."""
    return [_trace(row) for row in conn.execute(_MEMBERS, _names(occurrence)).mappings()]


def landed_spans(conn: sa.Connection, occurrence: Occurrence) -> Landed | None:
    """Return what landed of a trace in stepacc's own table; None where nothing did."""
    row = conn.execute(_LANDED, _names(occurrence)).mappings().first()
    return None if row is None else Landed(**row)


def _find(
    conn: sa.Connection, kind: PartitionType, given: str, source: str | None, condition: str
) -> set[tuple[str, str]]:
    names = {"given": encode.stored_id(given), "source": source, "most": _SHOWN + 1}
    found: set[tuple[str, str]] = set()
    for table, column, own in _PLACES[kind]:
        query = (KNOWN_SOURCES + _FOUND).format(table=table, id=column, own=own, condition=condition.format(id=column))
        found |= {(name, ident) for name, ident in conn.execute(sa.text(query), names)}
    return found


def _trace(row: sa.RowMapping) -> TraceRow:
    return TraceRow(**{name: row[name] for name in TraceRow.__slots__})


def _names(occurrence: Occurrence) -> dict[str, str]:
    return {"source": occurrence.source, "id": occurrence.id}
