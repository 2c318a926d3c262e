"""Erasing traces: what they hold goes from every table; their ids, their windows and their score rows stay.

The traces of one erasure are staged first, so that each statement reaches its table by an index and memory does not
grow with them. All of it is one transaction of the caller.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Literal

import sqlalchemy as sa

from stepacc_dagster.storage import erasure_sql
from stepacc_dagster.storage.copy import copy_in, create_staging
from stepacc_dagster.storage.locks import lock
from stepacc_dagster.storage.tombstones import TargetKind, is_buried

Door = Literal["command", "landing", "ingest"]
"""Where an erasure happens: asked for, or where something erased before came again."""

_COUNTS = ("traces", "raw_spans", "spans", "score_metadata", "messages", "annotations")
_RECORD = sa.text(f"""
    INSERT INTO stepacc.erasures (door, source, target_type, target_digest, author, reason, {", ".join(_COUNTS)})
    VALUES ('command', :source, :target_type, :target_digest, :author, :reason,
            {", ".join(f":{name}" for name in _COUNTS)})
    RETURNING id
""")  # noqa: S608 (names of this module)
_RECORD_AT_DOOR = sa.text(f"""
    INSERT INTO stepacc.erasures (door, source, target_type, target_digest, author, reason, {", ".join(_COUNTS)})
    SELECT :door, :source, target_type, target_digest, author, reason, {", ".join(f":{name}" for name in _COUNTS)}
    FROM stepacc.erasures WHERE id = :cause
    RETURNING id
""")  # noqa: S608 (names of this module)
_BURY_TARGET = sa.text("""
    INSERT INTO stepacc.tombstones (kind, key, source, erasure_id) VALUES (:kind, :key, :source, :erasure_id)
    ON CONFLICT DO NOTHING
""")


@dataclass(frozen=True, slots=True)
class Removed:
    """How much an erasure removes.

    Attributes:
        traces: traces that were not erased before.
        raw_spans: rows of `otel_spans`.
        spans: rows of `spans`.
        score_metadata: rows of `score_metadata`.
        messages: messages of failed scores.
        annotations: annotation revisions that lose value and note.
    """

    traces: int = 0
    raw_spans: int = 0
    spans: int = 0
    score_metadata: int = 0
    messages: int = 0
    annotations: int = 0

    @property
    def nothing(self) -> bool:
        """Whether there is nothing to remove."""
        return self == Removed()


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody asked to have erased, as the audit keeps it.

    Attributes:
        kind: trace, session or user.
        keys: what its tombstones have: the id of a trace, the digests of the forms of a session or user; first that
            of the id as given.
        digest: the digest of its id.
        source: name of the source; `EVERY_SOURCE` for all.
        author: who asked.
        reason: why.
    """

    kind: TargetKind
    keys: tuple[str, ...]
    digest: str
    source: str
    author: str
    reason: str


class StagedErasure:
    """Traces to erase, staged on a connection whose transaction is the caller's."""

    def __init__(self, conn: sa.Connection) -> None:
        self._conn = conn
        create_staging(conn, "given", erasure_sql.GIVEN)
        create_staging(conn, "named_sessions", erasure_sql.NAMED_SESSIONS)

    def add_traces(self, source: str, trace_ids: Iterable[str]) -> None:
        """Add traces by their ids."""
        copy_in(self._conn, "given", erasure_sql.GIVEN, ((source, ident) for ident in trace_ids))

    def add_traces_of_session(self, source: str, session_id: str) -> None:
        """Add the traces of a session that were ingested."""
        self._conn.execute(erasure_sql.ADD_TRACES_OF_SESSION, {"source": source, "session_id": session_id})

    def add_session(self, source: str, session_id: str) -> None:
        """Add a session: what is said of it and its scores. Its traces are added by themselves."""
        copy_in(self._conn, "named_sessions", erasure_sql.NAMED_SESSIONS, [(source, session_id)])

    def add_erased_before(self, digest: str, sources: Collection[str]) -> None:
        """Add the traces that were erased for the same target before, so that their windows are among those told."""
        self._conn.execute(erasure_sql.ADD_ERASED_BEFORE, {"digest": digest, "sources": list(sources)})

    def count(self) -> Removed:
        """Count what would be removed."""
        for table, columns in erasure_sql.PREPARED.items():
            create_staging(self._conn, table, columns)
        for statement, table in zip(erasure_sql.PREPARE, erasure_sql.PREPARED, strict=True):
            self._conn.execute(statement)
            self._conn.execute(sa.text(f"ANALYZE {table}"))
        return Removed(**self._conn.execute(erasure_sql.COUNT).mappings().one())

    def windows(self) -> Mapping[str, list[str]]:
        """Return the windows concerned by source, in order; after `count`."""
        found: dict[str, list[str]] = {}
        for source, key in self._conn.execute(erasure_sql.WINDOWS):
            found.setdefault(source, []).append(key)
        return found

    def erase(self) -> None:
        """Remove what was counted; the locks of all sources concerned are held."""
        for statement in erasure_sql.ERASE:
            self._conn.execute(statement)

    def bury(self, erasure_id: int) -> None:
        """Leave tombstones for the traces."""
        self._conn.execute(erasure_sql.BURY, {"erasure_id": erasure_id})


def lock_for_erasure(conn: sa.Connection, sources: Collection[str]) -> None:
    """Wait for all who land, ingest, annotate or score these sources, and keep them waiting."""
    for source in sorted(sources):
        for name in ("otel_spans", "annotations", "erasure"):
            lock(conn, name, source)


def erase_staged(conn: sa.Connection, staged: StagedErasure, request: Request) -> Removed:
    """Erase what is staged, leave tombstones for it and for what was asked for, and write down what was done.

    Asking again for what is erased already changes nothing.
    """
    removed = staged.count()
    staged.erase()
    if removed.nothing and all(is_buried(conn, request.kind, key, request.source) for key in request.keys):
        return removed
    values = {name: getattr(request, name) for name in ("source", "author", "reason")}
    erasure_id = conn.execute(
        _RECORD, values | asdict(removed) | {"target_type": request.kind, "target_digest": request.digest}
    ).scalar_one()
    staged.bury(erasure_id)
    for key in request.keys:
        target = {"kind": request.kind, "key": key, "source": request.source}
        conn.execute(_BURY_TARGET, target | {"erasure_id": erasure_id})
    return removed


def erase_at_door(conn: sa.Connection, door: Door, source: str, found: Mapping[str, int]) -> None:
    """Erase what is stored of traces that were found to belong to an erased session or user.

    Args:
        conn: in a transaction that holds no lock that comes after that of landings, see `locks`.
        door: where they were found.
        source: their source.
        found: trace id -> the erasure to which each belongs.
    """
    lock_for_erasure(conn, [source])
    for cause in sorted(set(found.values())):
        staged = StagedErasure(conn)
        staged.add_traces(source, (ident for ident, erasure_id in found.items() if erasure_id == cause))
        removed = staged.count()
        staged.erase()
        values = {"door": door, "source": source, "cause": cause, **asdict(removed)}
        staged.bury(conn.execute(_RECORD_AT_DOOR, values).scalar_one())
