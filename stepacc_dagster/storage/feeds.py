"""Following a store: how far it was read, kept in the transaction that notes what was found."""

import sqlalchemy as sa

from stepacc_dagster.storage.locks import lock
from stepacc_dagster.storage.work import note_changes
from stepacc_dagster.stores.base import TraceReader
from stepacc_dagster.windows import WindowKind

_CURSOR = sa.text("SELECT cursor FROM stepacc.feeds WHERE source = :source AND reads = :reads")
_KEEP = sa.text("""
    INSERT INTO stepacc.feeds (source, reads, cursor) VALUES (:source, :reads, :cursor)
    ON CONFLICT (source) DO UPDATE SET reads = excluded.reads, cursor = excluded.cursor, checked_at = now()
""")


def follow(conn: sa.Connection, source: str, reader: TraceReader, kind: WindowKind, *, reads: str) -> tuple[str, ...]:
    """Ask a store what changed since it was last asked, and note the windows.

    What was found and how far the store was read are committed together, so no change is noted without the other and
    none is skipped, whatever dies in between.

    Args:
        conn: where it is noted; the caller's transaction.
        source: the source.
        reader: its store, open.
        kind: length of its windows.
        reads: fingerprint of the store's settings; after another one, the store is read from the beginning.

    Returns:
        Keys of the windows that changed, in order.
    """
    lock(conn, "feed", source)
    cursor = conn.scalar(_CURSOR, {"source": source, "reads": reads})
    changes = reader.changes(cursor, kind)
    note_changes(conn, source, changes.windows)
    conn.execute(_KEEP, {"source": source, "reads": reads, "cursor": changes.cursor})
    return changes.windows
