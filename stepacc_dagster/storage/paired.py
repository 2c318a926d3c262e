"""Reading the current scores that `stepacc diff` and `stepacc gate` compare."""

from collections import Counter
from collections.abc import Iterable

import sqlalchemy as sa

from stepacc_core.comparison.choosing import Group, Wanted
from stepacc_core.comparison.forbidden import Forbidden, ForbiddenSearch, forbidden_in
from stepacc_core.comparison.observations import Observation, Selection

# An hour's key begins with its day's, and must not be left out where that day is the last.
_WINDOWS = "window_key BETWEEN :first AND CAST(:last AS text) || '~'"
_SELECTED = f"""
    s.source = :source AND s.metric = :metric AND s.metric_version = :metric_version AND s.config_hash = :config_hash
    AND s.partition_type = :partition_type AND s.{_WINDOWS}
"""
_GROUPS = sa.text(f"""
    SELECT metric, metric_version, config_hash, partition_type, count(*) AS count
    FROM stepacc.current_scores WHERE source = :source AND {_WINDOWS}
    GROUP BY metric, metric_version, config_hash, partition_type
    ORDER BY metric, metric_version, config_hash, partition_type
""")  # noqa: S608 (parts of this module)
_OBSERVATIONS = sa.text(f"""
    SELECT s.partition_type, s.partition_id, s.status, s.score, s.task_id, s.reference_hash, s.steps_hash,
           s.annotation_id, s.id AS score_id
    FROM stepacc.current_scores s WHERE {_SELECTED}
    ORDER BY s.partition_id
""")  # noqa: S608 (parts of this module)
_OCCURRENCES = {"trace": ("traces", "trace_id"), "session": ("sessions", "session_id")}
_WITHOUT_ROW = {
    kind: sa.text(f"""
        SELECT count(*) FROM stepacc.{table} known
        WHERE known.source = :source AND known.erased_at IS NULL AND known.{_WINDOWS} AND NOT EXISTS (
            SELECT 1 FROM stepacc.current_scores s WHERE {_SELECTED} AND s.partition_id = known.{ident}
        )
    """)  # noqa: S608 (parts of this module)
    for kind, (table, ident) in _OCCURRENCES.items()
}
_METADATA = sa.text("SELECT score_id, metadata FROM stepacc.score_metadata WHERE score_id = ANY(:score_ids)")
_FORBIDDEN = sa.text(f"""
    SELECT s.partition_id, s.status, m.score_id IS NOT NULL AS has_metadata,
           jsonb_build_object('forbidden', m.metadata -> 'forbidden') AS said
    FROM stepacc.current_scores s LEFT JOIN stepacc.score_metadata m ON m.score_id = s.id
    WHERE {_SELECTED}
    ORDER BY s.partition_id
""")  # noqa: S608 (parts of this module)
_NEWEST = sa.text("""
    SELECT min(window_key) AS first, max(window_key) AS last FROM (
        SELECT window_key FROM stepacc.windows WHERE source = :source ORDER BY window_key DESC LIMIT :count
    ) newest
""")
_SOURCES = sa.text("SELECT DISTINCT source FROM stepacc.windows ORDER BY source")


def groups(conn: sa.Connection, wanted: Wanted) -> list[Group]:
    """Return what a source has in some windows: each metric, version, config and type with its number of rows."""
    names = {"source": wanted.source, "first": wanted.first, "last": wanted.last}
    return [Group(**row) for row in conn.execute(_GROUPS, names).mappings()]


def observations(conn: sa.Connection, selection: Selection) -> tuple[Observation, ...]:
    """Return the current evaluations of a selection, by id of the occurrence."""
    rows = conn.execute(_OBSERVATIONS, _names(selection)).mappings()
    return tuple(Observation(**row) for row in rows)


def without_row(conn: sa.Connection, selection: Selection) -> int:
    """Count the traces or sessions of the selected windows that have no current evaluation in the selection.

    Nobody annotated them and the source skips those, they still go on, or they were not evaluated yet. What was erased
    does not count.
    """
    return int(conn.execute(_WITHOUT_ROW[selection.partition_type], _names(selection)).scalar_one())


def metadata_of(conn: sa.Connection, score_ids: Iterable[int]) -> dict[int, dict[str, object]]:
    """Return the metadata of evaluations by their ids; what was erased has none."""
    rows = conn.execute(_METADATA, {"score_ids": sorted(score_ids)})
    return {row.score_id: row.metadata for row in rows}


def forbidden_steps(conn: sa.Connection, selection: Selection) -> ForbiddenSearch | None:
    """Return the scored occurrences in which something forbidden ran, by id, and how many could not be looked at.

    None where the metadata of any of them do not tell, since the metric does not look for it: no news of forbidden
    steps is not the news that there were none. What was erased has no metadata.
    """
    found: list[Forbidden] = []
    counts: Counter[str] = Counter()
    for row in conn.execute(_FORBIDDEN, _names(selection)):
        if row.status != "scored" or not row.has_metadata:
            counts[row.status if row.status != "scored" else "erased"] += 1
            continue
        steps = forbidden_in(row.said)
        if steps is None:
            return None
        counts["looked_at"] += 1
        if steps:
            found.append(Forbidden(row.partition_id, steps))
    return ForbiddenSearch(tuple(found), without_row=without_row(conn, selection), **counts)


def newest_windows(conn: sa.Connection, source: str, count: int) -> tuple[str, str] | None:
    """Return the first and last of the newest windows that have, or had, anything in them; None where there is none."""
    row = conn.execute(_NEWEST, {"source": source, "count": count}).one()
    return None if row.first is None else (row.first, row.last)


def known_sources(conn: sa.Connection) -> list[str]:
    """Return the names of the sources that have, or had, traces."""
    return list(conn.scalars(_SOURCES))


def _names(selection: Selection) -> dict[str, str]:
    return {name: getattr(selection, name) for name in selection.__slots__}
