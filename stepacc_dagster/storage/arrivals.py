"""What landed since somebody last looked: the windows whose raw spans changed."""

from dataclasses import dataclass

import sqlalchemy as sa

from stepacc_dagster.windows import WindowKind, window_containing, window_length_ns

_CHANGED = sa.text("""
    SELECT DISTINCT coalesce(start_ns - mod(mod(start_ns, :length) + :length, :length), seen_ns) AS moment FROM (
        SELECT DISTINCT trace_id FROM stepacc.otel_spans
        WHERE source = :source AND arrival > :after AND arrival <= :latest
    ) trace CROSS JOIN LATERAL (
        SELECT min(start_time_unix_nano) AS start_ns,
               CAST(extract(epoch FROM min(first_seen_at)) AS bigint) * 1000000000 AS seen_ns
        FROM stepacc.otel_spans WHERE source = :source AND trace_id = trace.trace_id OFFSET 0
    ) span
""").bindparams(sa.bindparam("length", type_=sa.BigInteger()))
_LATEST = sa.text("SELECT max(arrival) FROM stepacc.otel_spans WHERE source = :source")


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Keys of the windows in which traces changed, in order, and the arrival to go on from next time."""

    windows: tuple[str, ...]
    latest: int


def changed_windows(conn: sa.Connection, source: str, kind: WindowKind, *, after: int = 0) -> Arrivals:
    """Return the windows whose traces got new or changed spans after an arrival.

    None is missed between two calls: a source's arrivals become visible in their order.
    """
    latest = conn.scalar(_LATEST, {"source": source})
    if latest is None or latest <= after:
        return Arrivals((), after)
    values = {"source": source, "after": after, "latest": latest, "length": window_length_ns(kind)}
    keys = {window_containing(moment, kind).key for moment in conn.scalars(_CHANGED, values)}
    return Arrivals(tuple(sorted(keys)), latest)
