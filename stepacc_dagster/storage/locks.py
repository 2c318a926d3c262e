"""Advisory locks: one writer at a time per asset, source and window.

All locks are Postgres' own and last until the transaction ends, however it ends; a killed writer leaves none
behind. They wait on each other only in one order: landings of a source, its annotations, a window's ingest or
scores, the summaries of the source, its erasures, windows of canonical content by key, then the sessions of the source.
Ingests, scorings and summaries share the lock of erasures; whoever erases has it alone, so that nobody writes back what
he read before.
"""

import hashlib
from collections.abc import Iterable

import sqlalchemy as sa


def lock(conn: sa.Connection, *names: str) -> None:
    """Wait for, and hold until the transaction ends, the lock of some names, such as asset, source and window key."""
    conn.execute(sa.select(sa.func.pg_advisory_xact_lock(lock_id(*names))))


def lock_shared(conn: sa.Connection, *names: str) -> None:
    """Hold a lock of some names together with others who share it; wait for whoever has it alone."""
    conn.execute(sa.select(sa.func.pg_advisory_xact_lock_shared(lock_id(*names))))


def lock_windows(conn: sa.Connection, asset: str, source: str, keys: Iterable[str]) -> None:
    """Hold the locks of several windows, taken in key order so that two writers cannot wait for each other."""
    for key in sorted(set(keys)):
        lock(conn, asset, source, key)


def lock_id(*names: str) -> int:
    """Return the 64-bit number that stands for some names; the same in every process and version."""
    digest = hashlib.sha256("\x00".join(("stepacc", *names)).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
