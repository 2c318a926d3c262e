"""Erasing a trace, a session or a person: what is stored of them is found, then removed in one transaction.

A user's id is in raw spans only, so all of them are read: before the transaction, while everything goes on, and in it,
while everything waits, only what came since.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    names,
    trace_is_known,
    traces_gone_upstream,
    traces_without_raw_spans,
)
from stepacc_dagster.storage.tombstones import TargetKind, digest_of, made_salt, salt_of, stored_as, was_erased
from stepacc_dagster.storage.transactions import look
from stepacc_dagster.windows import window_of


@dataclass(frozen=True, slots=True)
class Target:
    """What is to be erased: a trace, a session or a user, in one source, or in every one (`source` None).

    `redacted` are the forms of the id that redaction leaves of it.
    """

    kind: TargetKind
    ident: str
    source: str | None = None
    redacted: tuple[str, ...] = ()

    @classmethod
    def of(cls, kind: TargetKind, given: str, source: str | None, redacted: Sequence[str] = ()) -> "Target":
        """Return the target that a person names."""
        forms = tuple(stored_as(kind, form) for form in redacted) if kind != "trace" else ()
        return cls(kind, stored_as(kind, given), None if source is None else encode.text(source), forms)

    @property
    def idents(self) -> tuple[str, ...]:
        """The id in every form in which it may be stored, first as it was given."""
        return (self.ident, *self.redacted)


@dataclass(frozen=True, slots=True)
class Looked:
    """What was found in a source, and up to where it was looked through.

    Attributes:
        traces: traces of which a raw span names the session or user; of a session, those that are not ingested.
        seen: snapshot of the raw spans that the search looked at; None: at none.
        ingested: when each window was last ingested before the search.
    """

    traces: frozenset[str]
    seen: str | None
    ingested: Mapping[str, datetime]


_NOTHING = Looked(frozenset(), None, {})


@dataclass(frozen=True, slots=True)
class Found:
    """What is stored of a target.

    Attributes:
        target: the target.
        removed: what erasing it removes, by source; sources with nothing are left out.
        erased_before: whether it was erased before, so that nothing of it can have come since.
        unsearched: traces that may be the user's, of which nothing here tells whose they are, by source.
        looked: where it was looked for, by source.
    """

    target: Target
    removed: Mapping[str, Removed]
    erased_before: bool
    unsearched: Mapping[str, int]
    looked: Mapping[str, Looked]

    @property
    def unknown(self) -> bool:
        """Whether nothing is known by the id, and never was."""
        return not self.removed and not self.erased_before


@dataclass(frozen=True, slots=True)
class Erased:
    """What an erasure removed, and the windows concerned by source, also those of an earlier one of the same target."""

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
        sources = _sources(conn, target, configured)
        looked = {source: _look(engine, conn, target, source, configured.get(source)) for source in sources}
        removed = {source: _counted(conn, target, source, looked[source].traces) for source in sources}
        conn.rollback()  # the staging tables go
        salt = salt_of(conn)
        return Found(
            target,
            {source: counts for source, counts in removed.items() if not counts.nothing},
            salt is not None and was_erased(conn, target.kind, _keys(salt, target)[0], target.source),
            _unsearched(conn, sources, configured) if target.kind == "user" else {},
            looked,
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
        sources = sorted({*_sources(conn, target, configured), *found.looked})
        lock_for_erasure(conn, sources)
        staged = StagedErasure(conn)
        for source in sources:
            before = found.looked.get(source, _NOTHING)
            later = _look(engine, conn, target, source, configured.get(source), before)
            _stage(conn, staged, target, source, before.traces | later.traces)
        salt = made_salt(conn)
        digest = digest_of(salt, target.kind, target.ident)
        staged.add_erased_before(digest, sources)
        where = EVERY_SOURCE if target.source is None else target.source
        removed = erase_staged(conn, staged, Request(target.kind, _keys(salt, target), digest, where, author, reason))
        return Erased(removed, staged.windows())


def _sources(conn: sa.Connection, target: Target, configured: Mapping[str, Source]) -> list[str]:
    return sorted({*known_sources(conn), *configured}) if target.source is None else [target.source]


def _keys(salt: bytes, target: Target) -> tuple[str, ...]:
    """Return the keys of the tombstones of a target, first that of the id as given."""
    if target.kind == "trace":
        return (target.ident,)
    return tuple(digest_of(salt, target.kind, ident) for ident in target.idents)


def _look(  # noqa: PLR0913, PLR0917 (where, for what, and since when)
    engine: sa.Engine,
    conn: sa.Connection,
    target: Target,
    source: str,
    settings: Source | None,
    before: Looked = _NOTHING,
) -> Looked:
    """Look for traces of a session or user among the raw spans of a source: all, or those that came since."""
    if target.kind == "trace":
        return _NOTHING
    this, ingested = look(conn, before.seen), ingested_windows(conn, source)
    everywhere = target.kind == "user" or not this.anew  # what came since is little, ingested or not
    traces: set[str] = set()
    for ident in target.idents:
        traces |= landed_traces(conn, source, target.kind, ident, this=this, not_ingested=not everywhere)
    if target.kind == "user" and settings is not None and settings.store.kind != "otel_spans":
        windows = [key for key, at in ingested.items() if before.ingested.get(key) != at]
        traces |= _in_store(engine, target.ident, settings, windows)
    return Looked(frozenset(traces), this.snapshot, ingested)


def _in_store(engine: sa.Engine, user: str, settings: Source, windows: Sequence[str]) -> set[str]:
    """Return the traces in a source's own store, in these windows, of which a span names a user."""
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


def _counted(conn: sa.Connection, target: Target, source: str, traces: frozenset[str]) -> Removed:
    staged = StagedErasure(conn)
    _stage(conn, staged, target, source, traces)
    return staged.count()


def _stage(conn: sa.Connection, staged: StagedErasure, target: Target, source: str, traces: frozenset[str]) -> None:
    if target.kind == "trace" and trace_is_known(conn, source, target.ident):
        staged.add_traces(source, [target.ident])
    for ident in target.idents if target.kind == "session" else ():
        staged.add_session(source, ident)
        staged.add_traces_of_session(source, ident)
    staged.add_traces(source, traces)


def _unsearched(conn: sa.Connection, sources: Sequence[str], configured: Mapping[str, Source]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for source in sources:
        settings = configured.get(source)
        in_own_table = settings is None or settings.store.kind == "otel_spans"
        counts[source] = (traces_without_raw_spans if in_own_table else traces_gone_upstream)(conn, source)
    return {source: count for source, count in counts.items() if count}
