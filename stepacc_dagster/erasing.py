"""Erasing a trace, a session or a person: what is stored of them is found, then removed in one transaction.

A user's id is in raw spans only, so all of them are read: once before, while everything goes on, and under the locks
what came since.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import sqlalchemy as sa

from stepacc_dagster.opening import opened_store
from stepacc_dagster.sources import Source
from stepacc_dagster.storage import encode
from stepacc_dagster.storage.copy import closed
from stepacc_dagster.storage.erasure import Removed, Request, StagedErasure, erase_staged, lock_for_erasure
from stepacc_dagster.storage.erasure_tables import EVERY_SOURCE
from stepacc_dagster.storage.personal import (
    ingested_windows,
    known_sources,
    landed_traces,
    latest_arrival,
    names,
    trace_is_known,
    traces_gone_upstream,
    traces_without_raw_spans,
)
from stepacc_dagster.storage.tombstones import TargetKind, digest_of, made_salt, salt_of, stored_as, was_erased
from stepacc_dagster.windows import window_of

_NOW = sa.text("SELECT clock_timestamp()")


@dataclass(frozen=True, slots=True)
class Target:
    """What is to be erased: a trace, a session or a user, in one source, or in every one (`source` None)."""

    kind: TargetKind
    ident: str
    source: str | None = None

    @classmethod
    def of(cls, kind: TargetKind, given: str, source: str | None) -> "Target":
        """Return the target that a person names."""
        return cls(kind, stored_as(kind, given), None if source is None else encode.text(source))


@dataclass(frozen=True, slots=True)
class Found:
    """What is stored of a target.

    Attributes:
        target: the target.
        removed: what erasing it removes, by source; sources with nothing are left out.
        erased_before: whether it was erased before, so that nothing of it may come again.
        unsearched: traces that may be the user's, of which no store tells it any more or here, by source.
        user_traces: traces found of a user, by source.
        arrivals: the last landing of each source that was looked at.
        at: when the search began.
    """

    target: Target
    removed: Mapping[str, Removed]
    erased_before: bool
    unsearched: Mapping[str, int] = field(default_factory=dict)
    user_traces: Mapping[str, frozenset[str]] = field(default_factory=dict)
    arrivals: Mapping[str, int] = field(default_factory=dict)
    at: datetime | None = None

    @property
    def unknown(self) -> bool:
        """Whether nothing is known by the id, and never was."""
        return not self.removed and not self.erased_before


@dataclass(frozen=True, slots=True)
class Erased:
    """What an erasure removed, and the windows concerned, by source; those of an earlier one of the same included."""

    removed: Removed
    windows: Mapping[str, Sequence[str]]


def find(engine: sa.Engine, target: Target, configured: Mapping[str, Source]) -> Found:
    """Look for what is stored of a target; nothing is changed, and nobody waits.

    Args:
        engine: of the database of stepacc.
        target: what to look for.
        configured: the sources whose settings are known here; in the stores of these a user is looked for.

    Raises:
        DatabaseError: the database of a store does not answer.
    """
    with engine.connect() as conn:
        at = conn.execute(_NOW).scalar_one()
        sources = _sources(conn, target)
        salt = salt_of(conn)
        arrivals = {source: latest_arrival(conn, source) for source in sources}
        found: dict[str, frozenset[str]] = {}
        unsearched: dict[str, int] = {}
        if target.kind == "user":
            for source in sources:
                found[source] = frozenset(_traces_of_user(engine, conn, target.ident, source, configured.get(source)))
                unsearched[source] = _unsearched(conn, source, configured.get(source))
        removed = {source: _counted(conn, target, source, found.get(source, frozenset())) for source in sources}
        conn.rollback()
        return Found(
            target,
            {source: counts for source, counts in removed.items() if not counts.nothing},
            erased_before=salt is not None and was_erased(conn, target.kind, _key(salt, target), target.source),
            unsearched={source: count for source, count in unsearched.items() if count},
            user_traces=found,
            arrivals=arrivals,
            at=at,
        )


def erase(engine: sa.Engine, found: Found, configured: Mapping[str, Source], *, author: str, reason: str) -> Erased:
    """Remove what is stored of a target, and let nothing of it come in again; all of it, or nothing.

    Waits for the landings, ingests and scorings of its sources that are under way, and lets no other begin until it is
    done. What came since `find` is removed too.

    Args:
        engine: of the database of stepacc.
        found: what `find` returned.
        configured: as for `find`.
        author: who asks for it.
        reason: why.
    """
    target = found.target
    with engine.begin() as conn:
        sources = sorted({*_sources(conn, target), *found.arrivals})
        lock_for_erasure(conn, sources)
        staged = StagedErasure(conn)
        for source in sources:
            traces = found.user_traces.get(source, frozenset())
            if target.kind == "user":
                traces |= _later_traces_of_user(engine, conn, found, source, configured.get(source))
            _stage(conn, staged, target, source, traces)
        salt = made_salt(conn)
        where = EVERY_SOURCE if target.source is None else target.source
        digest = digest_of(salt, target.kind, target.ident)
        staged.add_erased_before(digest, sources)
        request = Request(target.kind, _key(salt, target), digest, where, author, reason)
        removed = erase_staged(conn, staged, request)
        return Erased(removed, staged.windows())


def _sources(conn: sa.Connection, target: Target) -> list[str]:
    return known_sources(conn) if target.source is None else [target.source]


def _key(salt: bytes, target: Target) -> str:
    """Return the key of the tombstone of a target."""
    return target.ident if target.kind == "trace" else digest_of(salt, target.kind, target.ident)


def _counted(conn: sa.Connection, target: Target, source: str, traces: frozenset[str]) -> Removed:
    staged = StagedErasure(conn)
    _stage(conn, staged, target, source, traces)
    return staged.count()


def _stage(conn: sa.Connection, staged: StagedErasure, target: Target, source: str, traces: frozenset[str]) -> None:
    if target.kind == "trace":
        staged.add_traces(source, [target.ident] if trace_is_known(conn, source, target.ident) else [])
    elif target.kind == "session":
        staged.add_session(source, target.ident)
        staged.add_traces_of_session(source, target.ident)
        staged.add_traces(source, landed_traces(conn, source, "session", target.ident, not_ingested=True))
    else:
        staged.add_traces(source, traces)


def _traces_of_user(
    engine: sa.Engine, conn: sa.Connection, user: str, source: str, settings: Source | None
) -> set[str]:
    return landed_traces(conn, source, "user", user) | _in_store(engine, user, settings, ingested_windows(conn, source))


def _later_traces_of_user(
    engine: sa.Engine, conn: sa.Connection, found: Found, source: str, settings: Source | None
) -> set[str]:
    user = found.target.ident
    landed = landed_traces(conn, source, "user", user, after=found.arrivals.get(source, 0))
    return landed | _in_store(engine, user, settings, ingested_windows(conn, source, found.at))


def _in_store(engine: sa.Engine, user: str, settings: Source | None, windows: Sequence[str]) -> set[str]:
    """Return the traces in a source's own store, in these windows, of which a span names a user."""
    if settings is None or settings.store.kind == "otel_spans":
        return set()
    found: set[str] = set()
    with opened_store(settings, engine) as store:
        for key in windows:
            window = window_of(key, "hourly" if ":" in key else "daily")
            with store.open() as reader, closed(reader.traces(window)) as traces:
                found |= {
                    encode.stored_id(trace_id)
                    for trace_id, spans in traces
                    if any(names(span, "user", user) for span in spans)
                }
    return found


def _unsearched(conn: sa.Connection, source: str, settings: Source | None) -> int:
    if settings is None or settings.store.kind == "otel_spans":
        return traces_without_raw_spans(conn, source)
    return traces_gone_upstream(conn, source)
