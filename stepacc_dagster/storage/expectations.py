"""Expectations that a trace store holds, taken over as annotations."""

from collections.abc import Iterable

import sqlalchemy as sa

from stepacc_dagster.storage import encode
from stepacc_dagster.storage.annotations import Added, AnnotationEntry, add_annotations, value_hash
from stepacc_dagster.storage.locks import lock
from stepacc_dagster.storage.tables import annotations
from stepacc_dagster.storage.tombstones import erased_targets


def take_over_expectations(conn: sa.Connection, source: str, entries: Iterable[AnnotationEntry]) -> list[Added]:
    """Add a revision for each expectation that its store did not tell, just so, the last time.

    Compared is with what the same place in the store (the entry's `origin`) said before, not with what is in force: a
    person who corrected the expectation here is not overruled by the store that still says what it said. Nothing is
    taken over that is about an erased trace.

    Returns:
        The revisions that were added.
    """
    lock(conn, "annotations", source)
    told = {entry.origin: entry for entry in not_erased(conn, source, entries)}
    known = _last_told(conn, source, list(told))
    return add_annotations(conn, [entry for origin, entry in told.items() if value_hash(entry) != known.get(origin)])


def not_erased(conn: sa.Connection, source: str, entries: Iterable[AnnotationEntry]) -> list[AnnotationEntry]:
    """Return the entries of which the trace or session was not erased."""
    given = [(entry, (entry.target_type, encode.stored_id(entry.target_id))) for entry in entries]
    erased = erased_targets(conn, source, [target for _, target in given])
    return [entry for entry, target in given if target not in erased]


def _last_told(conn: sa.Connection, source: str, origins: list[str]) -> dict[str, str | None]:
    columns = annotations.c
    newest = sa.select(sa.func.max(columns.id)).where(columns.source == source, columns.origin.in_(origins))
    query = sa.select(columns.origin, columns.value_hash).where(columns.id.in_(newest.group_by(columns.origin)))
    return {row.origin: row.value_hash for row in conn.execute(query)}
