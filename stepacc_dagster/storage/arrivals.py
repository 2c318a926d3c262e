"""What landed since somebody last looked: the windows whose raw spans changed."""

from dataclasses import dataclass

import sqlalchemy as sa

from stepacc_dagster.storage.transactions import CAME_SINCE, look
from stepacc_dagster.windows import WindowKind, window_containing, window_length_ns

_CHANGED = sa.text(f"""
    SELECT DISTINCT coalesce(start_ns - mod(mod(start_ns, :length) + :length, :length), seen_ns) AS moment FROM (
        SELECT DISTINCT trace_id FROM stepacc.otel_spans WHERE source = :source AND {CAME_SINCE}
    ) trace CROSS JOIN LATERAL (
        SELECT min(start_time_unix_nano) AS start_ns,
               CAST(extract(epoch FROM min(first_seen_at)) AS bigint) * 1000000000 AS seen_ns
        FROM stepacc.otel_spans WHERE source = :source AND trace_id = trace.trace_id OFFSET 0
    ) span
""").bindparams(sa.bindparam("length", type_=sa.BigInteger()))  # noqa: S608 (a condition of the storage)


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Keys of the windows in which traces changed, in order, and the snapshot to go on from next time."""

    windows: tuple[str, ...]
    seen: str


def changed_windows(conn: sa.Connection, source: str, kind: WindowKind, *, seen: str | None = None) -> Arrivals:
    """Return the windows whose traces got new or changed spans since a snapshot; None means from the beginning.

    None is missed between two calls, whoever wrote the spans: what a transaction wrote that was open then is told once
    it is committed. Where nothing came, the snapshot stays the same.
    """
    this = look(conn, seen)
    values = {"source": source, "length": window_length_ns(kind), **this.bounds}
    keys = {window_containing(moment, kind).key for moment in conn.scalars(_CHANGED, values)}
    if not keys and seen == this.seen:
        return Arrivals((), seen)
    return Arrivals(tuple(sorted(keys)), this.snapshot)
