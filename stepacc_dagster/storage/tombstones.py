"""What is never stored again: reading the tombstones, and the digests under which sessions and users stand there.

A digest is keyed with a salt of the database, so equal ids in two databases, or in a list of known digests, do not
meet. Whoever has the database has the salt too, and can find out whether an id he guesses is there, but not read one.
"""

import hmac
import secrets
from collections.abc import Collection, Iterable, Mapping
from typing import Literal

import sqlalchemy as sa

from stepacc_core.conventions.values import identifier
from stepacc_core.identity import sessions_named, users_named
from stepacc_core.model import RawSpan
from stepacc_dagster.storage import encode
from stepacc_dagster.storage.erasure_tables import EVERY_SOURCE

TargetKind = Literal["trace", "session", "user"]
"""By what an erasure is asked for."""

_SALT_BYTES = 32
_SALT = sa.text("SELECT salt FROM stepacc.erasure_salt")
_MAKE_SALT = sa.text("INSERT INTO stepacc.erasure_salt (id, salt) VALUES (1, :salt) ON CONFLICT DO NOTHING")
_HERE = f"source IN (:source, '{EVERY_SOURCE}')"
_TRACES = sa.text(f"""
    SELECT key, erasure_id FROM stepacc.tombstones WHERE kind = 'trace' AND key = ANY(:keys) AND {_HERE}
""")  # noqa: S608 (a name of this package)
_PEOPLE = sa.text(f"""
    SELECT key, erasure_id FROM stepacc.tombstones WHERE kind IN ('session', 'user') AND key = ANY(:keys) AND {_HERE}
""")  # noqa: S608 (as above)
_ALL_PEOPLE = sa.text(f"""
    SELECT key, erasure_id FROM stepacc.tombstones WHERE kind IN ('session', 'user') AND {_HERE}
""")  # noqa: S608 (as above)
_BURIED = sa.text("SELECT 1 FROM stepacc.tombstones WHERE kind = :kind AND key = :key AND source = :source")
_MET = sa.text(f"""
    SELECT 1 FROM stepacc.tombstones
    WHERE kind = :kind AND key = :key AND (CAST(:source AS text) IS NULL OR {_HERE}) LIMIT 1
""")  # noqa: S608 (as above)
_ERASED_SESSIONS = sa.text("""
    SELECT session_id FROM stepacc.sessions
    WHERE source = :source AND session_id = ANY(:ids) AND erased_at IS NOT NULL
""")


def salt_of(conn: sa.Connection) -> bytes | None:
    """Return the salt of the database; None where nothing was ever erased."""
    salt: bytes | None = conn.scalar(_SALT)
    return salt


def made_salt(conn: sa.Connection) -> bytes:
    """Return the salt of the database, once it has one."""
    conn.execute(_MAKE_SALT, {"salt": secrets.token_bytes(_SALT_BYTES)})
    salt: bytes = conn.execute(_SALT).scalar_one()
    return salt


def stored_as(kind: TargetKind, given: str) -> str:
    """Return an id as spans and tables have it, of what a person gave."""
    return encode.stored_id(given if kind == "trace" else identifier(given) or given)


def digest_of(salt: bytes, kind: TargetKind, stored: str) -> str:
    """Return the digest of an id, hex; the id is one of `stored_as`."""
    return hmac.digest(salt, f"{kind}\x00{stored}".encode(), "sha256").hex()


def digests_of(salt: bytes, spans: Iterable[RawSpan]) -> set[str]:
    """Return the digests of all sessions and users that spans name."""
    named: set[tuple[TargetKind, str]] = set()
    for span in spans:
        named |= {("session", encode.stored_id(ident)) for ident in sessions_named(span)}
        named |= {("user", encode.stored_id(ident)) for ident in users_named(span)}
    return {digest_of(salt, kind, ident) for kind, ident in named}


def erased_traces(conn: sa.Connection, source: str, trace_ids: Collection[str]) -> Mapping[str, int]:
    """Return which of these traces were erased, with the erasure."""
    return _found(conn, _TRACES, source, trace_ids)


def erased_people(conn: sa.Connection, source: str, digests: Collection[str] | None = None) -> Mapping[str, int]:
    """Return which of these digests, or of all, stand for erased sessions and users of a source, with the erasure."""
    return _found(conn, _ALL_PEOPLE if digests is None else _PEOPLE, source, digests)


def is_buried(conn: sa.Connection, kind: TargetKind, key: str, source: str) -> bool:
    """Tell whether there is a tombstone for just this."""
    return conn.scalar(_BURIED, {"kind": kind, "key": key, "source": source}) is not None


def was_erased(conn: sa.Connection, kind: TargetKind, key: str, source: str | None) -> bool:
    """Tell whether this was erased in a source, or in any where none is given."""
    return conn.scalar(_MET, {"kind": kind, "key": key, "source": source}) is not None


def erased_targets(conn: sa.Connection, source: str, targets: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return which of these targets of annotations, as type and id, were erased, or belong to what was.

    A session counts as erased when a trace of it was: it is never scored again.
    """
    salt = salt_of(conn)
    if salt is None:
        return set()
    asked = list(targets)
    traces = [ident for kind, ident in asked if kind == "trace"]
    sessions = {digest_of(salt, "session", ident): ident for kind, ident in asked if kind == "session"}
    partly = conn.scalars(_ERASED_SESSIONS, {"source": source, "ids": list(sessions.values())})
    return {
        *(("trace", ident) for ident in erased_traces(conn, source, traces)),
        *(("session", sessions[digest]) for digest in erased_people(conn, source, list(sessions))),
        *(("session", ident) for ident in partly),
    }


def _found(conn: sa.Connection, query: sa.TextClause, source: str, keys: Collection[str] | None) -> Mapping[str, int]:
    names = {"source": source} if keys is None else {"source": source, "keys": list(keys)}
    return {row.key: row.erasure_id for row in conn.execute(query, names)}
