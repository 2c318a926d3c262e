"""Scores: one row per evaluation, written for a window at a time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from stepacc_dagster.storage import encode
from stepacc_dagster.storage.copy import ColumnType, copy_in, create_staging
from stepacc_dagster.storage.locks import lock, lock_shared
from stepacc_dagster.storage.score_rows import ScoreRow
from stepacc_dagster.storage.settling import Settling, is_open
from stepacc_dagster.windows import Window

_COLUMNS: tuple[tuple[str, ColumnType], ...] = (
    ("place", "int8"),
    ("metric", "text"),
    ("partition_type", "text"),
    ("partition_id", "text"),
    ("session_id", "text"),
    ("task_id", "text"),
    ("status", "text"),
    ("code", "text"),
    ("reason", "text"),
    ("message", "text"),
    ("score", "float8"),
    ("total_steps", "int4"),
    ("correct_steps", "int4"),
    ("edit_distance", "int4"),
    ("expected_from", "text"),
    ("annotation_id", "int8"),
    ("reference_hash", "text"),
    ("steps_hash", "text"),
    ("metadata", "jsonb"),
)
_OWN = [name for name, _ in _COLUMNS[1:-1]]
_RESULT = ["status", "code", "reason", "message", "score", "total_steps", "correct_steps", "edit_distance"]
_REPLACED = [*_RESULT, "expected_from", "evaluated_at"]
_SHARED = ["source", "window_key", "metric_version", "config_hash", "dagster_run_id"]
_KEY = ["metric", "partition_type", "partition_id", "annotation_id", "reference_hash", "steps_hash"]
_NEVER_NULL = 3
"""How many columns of the key, the first ones, are never NULL."""
_KEPT = 1_000
"""Encoded metadata that are kept for the next rows."""
_SMALL = 10_000
"""Bytes of encoded metadata up to which they are."""

# What is written last must be confirmed last. Hence statement_timestamp(), not now(), for the transaction may have
# begun long before it got the lock; and later than what the partitions have, for the server's clock may have gone back.
# Asked for by itself: beside the INSERT, an index that the planner does not take would be a scan of the growing table
# for each row. And in whatever window: a session may have been at home in another.
_LATEST = sa.text("""
    SELECT max(present.confirmed_at) FROM stepacc.scores present
    JOIN staged_scores given USING (metric, partition_type, partition_id)
    WHERE source = :source AND metric_version = :metric_version AND config_hash = :config_hash
""")
_CONFIRMED_AT = "greatest(statement_timestamp(), CAST(:latest AS timestamptz) + interval '1 microsecond')"
# Where the evaluation is there already, its result stays, unless a score replaces a failure; the partition may have
# moved to another window, session or task since.
_WRITE = sa.text(f"""
    WITH given AS (
        SELECT DISTINCT ON ({", ".join(_KEY)}) * FROM staged_scores
        ORDER BY {", ".join(_KEY)}, (status = 'scored') DESC, place DESC
    ),
    written AS (
        INSERT INTO stepacc.scores AS present ({", ".join([*_SHARED, *_OWN])}, evaluated_at, confirmed_at)
        SELECT {", ".join(f":{name}" for name in _SHARED)}, {", ".join(_OWN)},
               statement_timestamp(), {_CONFIRMED_AT}
        FROM given ORDER BY {", ".join(_KEY)}
        ON CONFLICT (source, partition_type, partition_id, metric, metric_version, config_hash, annotation_id,
                     reference_hash, steps_hash)
        DO UPDATE SET confirmed_at = excluded.confirmed_at, dagster_run_id = excluded.dagster_run_id,
            window_key = excluded.window_key, session_id = excluded.session_id, task_id = excluded.task_id,
            retired_at = NULL,
            {
    ", ".join(
        f"{name} = CASE WHEN present.status = 'failed' AND excluded.status = 'scored' "
        f"THEN excluded.{name} ELSE present.{name} END"
        for name in _REPLACED
    )
}
        RETURNING id, (xmax = 0) AS is_new, evaluated_at = statement_timestamp() AS is_fresh, {", ".join(_KEY)}
    ),
    explained AS (
        INSERT INTO stepacc.score_metadata (score_id, metadata)
        SELECT written.id, given.metadata FROM written JOIN given
            ON {" AND ".join(f"given.{name} IS NOT DISTINCT FROM written.{name}" for name in _KEY[_NEVER_NULL:])}
            AND {" AND ".join(f"given.{name} = written.{name}" for name in _KEY[:_NEVER_NULL])}
        WHERE written.is_fresh
        ON CONFLICT (score_id) DO UPDATE SET metadata = excluded.metadata
    )
    SELECT count(*) FILTER (WHERE is_new) AS inserted, count(*) FILTER (WHERE NOT is_new) AS confirmed FROM written
""")  # noqa: S608 (names of this module)

_RETIRE = sa.text(f"""
    UPDATE stepacc.scores present SET retired_at = statement_timestamp()
    WHERE source = :source AND window_key = :window_key AND metric = ANY(CAST(:metrics AS text[]))
      AND metric_version = :metric_version AND config_hash = :config_hash AND retired_at IS NULL
      AND NOT EXISTS (
          SELECT 1 FROM staged_scores given
          WHERE given.partition_type = present.partition_type AND given.partition_id = present.partition_id
            AND given.metric = present.metric
      )
      AND NOT EXISTS (
          SELECT 1 FROM stepacc.traces bare
          WHERE present.partition_type = 'trace' AND bare.source = :source AND bare.trace_id = present.partition_id
            AND bare.erased_at IS NOT NULL
      )
      AND NOT EXISTS (
          SELECT 1 FROM stepacc.sessions bare
          WHERE present.partition_type = 'session' AND bare.source = :source AND bare.session_id = present.partition_id
            AND bare.erased_at IS NOT NULL
      )
      AND NOT EXISTS (
          SELECT 1 FROM stepacc.traces trace
          WHERE present.partition_type = 'trace' AND trace.source = :source AND trace.trace_id = present.partition_id
            AND (trace.window_key <> :window_key OR {is_open("trace")})
      )
      AND NOT EXISTS (
          SELECT 1 FROM stepacc.sessions home
          WHERE present.partition_type = 'session' AND home.source = :source
            AND home.session_id = present.partition_id AND home.window_key <> :window_key
      )
      AND NOT EXISTS (
          SELECT 1 FROM stepacc.traces trace
          WHERE present.partition_type = 'session' AND trace.source = :source
            AND trace.session_id = present.partition_id AND {is_open("trace")}
      )
""")  # noqa: S608 (parts of this package)


@dataclass(frozen=True, slots=True)
class Written:
    """Evaluations that are new, and those that were there already and are confirmed."""

    inserted: int
    confirmed: int


def write_scores(  # noqa: PLR0913 (the parts of an evaluation's key)
    conn: sa.Connection,
    source: str,
    window: Window,
    *,
    metric: str,
    metric_version: str,
    config_hash: str,
    run_id: str | None,
    rows: Iterable[ScoreRow],
) -> Written:
    """Write the evaluations of a window by a metric, and their metadata; a family's rows have their members' names.

    An evaluation is the same when partition, metric, version, config, annotation revision, expectation and steps are.
    Making it again adds no row and does not change its result: only the run and the time that confirm it, and the
    window, session and task its partition is in now. The exception is a failure, which a score replaces; a score is
    never replaced by a failure. Of one evaluation given twice the scored one counts, else the last.

    Nothing is read from `rows` before the window's lock is held; `rows` must not use `conn`, which is busy.
    """
    lock(conn, "scores", source, window.key, metric, metric_version, config_hash)
    lock_shared(conn, "erasure", source)
    create_staging(conn, "staged_scores", _COLUMNS)
    encoded = _Encoded()
    copy_in(conn, "staged_scores", _COLUMNS, (_staged(place, metric, row, encoded) for place, row in enumerate(rows)))
    conn.execute(sa.text("ANALYZE staged_scores (metric, partition_type, partition_id)"))
    values: Sequence[Any] = (source, window.key, metric_version, config_hash, run_id)
    names = dict(zip(_SHARED, values, strict=True))
    counts = conn.execute(_WRITE, names | {"latest": conn.scalar(_LATEST, names)}).one()
    return Written(counts.inserted, counts.confirmed)


def retire_scores(  # noqa: PLR0913 (the parts of an evaluation's key)
    conn: sa.Connection,
    source: str,
    window: Window,
    *,
    metrics: Sequence[str],
    metric_version: str,
    config_hash: str,
    settling: Settling,
) -> int:
    """Retire the scores of a window's partitions of which `write_scores` has just been given none.

    Such a partition is one that nobody annotates any more, in a source that skips those, or one that is no more: it has
    no current score then, and its old ones stay in the table. What is still going on keeps its score, and so does what
    was erased.

    Args:
        conn: in the transaction of `write_scores`.
        source: the source.
        window: the window.
        metrics: the names that the metric's rows have: its own, or those of its family.
        metric_version: its version.
        config_hash: its config.
        settling: what has settled.

    Returns:
        How many scores were retired.
    """
    values: Sequence[Any] = (source, window.key, metric_version, config_hash)
    names = dict(zip(_SHARED[:-1], values, strict=True)) | {"metrics": list(metrics)}
    return conn.execute(_RETIRE, names | dict(settling.values)).rowcount


class _Encoded:
    """The jsonb of metadata, made once of an object that comes again, as that of evaluations that are alike does."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[dict[str, Any], bytes]] = {}

    def of(self, metadata: dict[str, Any]) -> bytes:
        found = self._kept.get(id(metadata))
        if found is not None:
            return found[1]
        encoded = encode.jsonb(metadata)
        if len(encoded) <= _SMALL:
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            self._kept[id(metadata)] = metadata, encoded  # held, so that no other object gets its id
        return encoded


def _staged(place: int, metric: str, row: ScoreRow, encoded: _Encoded) -> tuple[Any, ...]:
    return (
        place,
        encode.text(row.member or metric),
        row.partition_type,
        encode.stored_id(row.partition_id),
        encode.optional_id(row.session_id),
        encode.optional_id(row.task_id),
        row.status,
        encode.optional_text(row.code),
        encode.optional_text(row.reason),
        encode.optional_text(row.message),
        row.score,
        row.total_steps,
        row.correct_steps,
        row.edit_distance,
        row.expected_from,
        row.annotation_id,
        row.reference_hash,
        row.steps_hash,
        encoded.of(row.metadata),
    )
