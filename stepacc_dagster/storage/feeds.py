"""Following a store: how far it was read, kept in the transaction that notes what was found."""

import sqlalchemy as sa

from stepacc_dagster.storage.locks import lock
from stepacc_dagster.storage.transactions import CAME_SINCE, look
from stepacc_dagster.storage.work import note_changes
from stepacc_dagster.stores.base import TraceReader
from stepacc_dagster.windows import WindowKind

_CURSOR = sa.text("SELECT cursor FROM stepacc.feeds WHERE source = :source AND reads = :reads")
_KEEP = sa.text("""
    INSERT INTO stepacc.feeds (source, reads, cursor) VALUES (:source, :reads, :cursor)
    ON CONFLICT (source) DO UPDATE SET reads = excluded.reads, cursor = excluded.cursor, checked_at = now()
""")
_SEEN = sa.text("SELECT annotations_seen FROM stepacc.feeds WHERE source = :source")
_KEEP_SEEN = sa.text("""
    INSERT INTO stepacc.feeds (source, reads, annotations_seen) VALUES (:source, '', :now)
    ON CONFLICT (source) DO UPDATE SET annotations_seen = excluded.annotations_seen
""")
# A window counts changes of its annotations by their key, so that only the metrics that read the key score it anew.
# Of the revisions that came since, whichever transaction wrote them and whenever it ended: the windows of what they are
# about. What is not ingested yet is marked by its ingest, and scored after that by what is committed by then.
_ANNOTATED = sa.text(f"""
    WITH said AS (
        SELECT DISTINCT target_type, target_id, partition_type, key FROM stepacc.annotations
        WHERE source = :source AND {CAME_SINCE}
    )
    INSERT INTO stepacc.window_annotations AS present (source, window_key, key, content)
    SELECT :source, window_key, key, 1 FROM (
        SELECT occurrence.window_key, key FROM said JOIN stepacc.traces occurrence
            ON occurrence.source = :source AND occurrence.trace_id = said.target_id
            WHERE said.target_type = 'trace'
        UNION
        SELECT occurrence.window_key, key FROM said JOIN stepacc.sessions occurrence
            ON occurrence.source = :source AND occurrence.session_id = said.target_id
            WHERE said.target_type = 'session'
        UNION
        SELECT occurrence.window_key, key FROM said JOIN stepacc.traces occurrence
            ON occurrence.source = :source AND occurrence.task_id = said.target_id
            WHERE said.target_type = 'task' AND said.partition_type = 'trace'
        UNION
        SELECT home.window_key, key FROM said JOIN stepacc.traces occurrence
            ON occurrence.source = :source AND occurrence.task_id = said.target_id
            JOIN stepacc.sessions home ON home.source = :source AND home.session_id = occurrence.session_id
            WHERE said.target_type = 'task' AND said.partition_type = 'session'
    ) concerned ORDER BY window_key, key
    ON CONFLICT (source, window_key, key) DO UPDATE SET content = present.content + 1
""")  # noqa: S608 (a condition of the storage)


def follow_annotations(conn: sa.Connection, source: str) -> None:
    """Mark the windows that annotations concern which were committed since somebody last looked.

    Args:
        conn: where it is noted; the caller's transaction, at READ COMMITTED.
        source: the source.
    """
    lock(conn, "feed", source)
    this = look(conn, conn.scalar(_SEEN, {"source": source}))
    conn.execute(_ANNOTATED, {"source": source, **this.bounds})
    conn.execute(_KEEP_SEEN, {"source": source, "now": this.snapshot})


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
