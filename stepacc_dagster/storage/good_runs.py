"""Which runs of a task may be taken for good ones: those that no stored verdict calls bad."""

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from stepacc_dagster.storage import encode

_HEADLINE = "trajectory_match.passed"
"""The row of `agent.trajectory_match` that keeps verdict and forbidden steps in its metadata."""
# A forbidden step of a run by whatever version or config is one too many.
_JUDGED = """
    SELECT trace.trace_id, trace.start_time_unix_nano, coalesce(judged.failed, false) AS failed,
           coalesce(judged.forbidden, false) AS forbidden
    FROM stepacc.traces trace LEFT JOIN LATERAL (
        SELECT bool_or(m.metadata ->> 'verdict' = 'fail') AS failed,
               bool_or(jsonb_typeof(m.metadata -> 'forbidden') = 'array' AND m.metadata -> 'forbidden' <> '[]')
               AS forbidden
        FROM stepacc.current_scores s JOIN stepacc.score_metadata m ON m.score_id = s.id
        WHERE s.source = :source AND s.partition_type = 'trace' AND s.partition_id = trace.trace_id
          AND s.metric = :metric
    ) judged ON true
    WHERE trace.source = :source AND trace.settled AND trace.erased_at IS NULL
      AND (CAST(:task_id AS text) IS NULL OR trace.task_id = :task_id)
      AND (CAST(:trace_ids AS text[]) IS NULL OR trace.trace_id = ANY (:trace_ids))
"""
_GOOD = sa.text(f"""
    SELECT trace_id FROM ({_JUDGED}) run WHERE NOT failed AND NOT forbidden
    ORDER BY start_time_unix_nano DESC NULLS LAST, trace_id LIMIT :limit
""")  # noqa: S608 (parts of this module)
_BAD = sa.text(f"""
    SELECT trace_id, forbidden FROM ({_JUDGED}) run WHERE failed OR forbidden
    ORDER BY start_time_unix_nano DESC NULLS LAST, trace_id
""")  # noqa: S608 (parts of this module)


@dataclass(frozen=True, slots=True)
class JudgedRuns:
    """The traces of a task, by what is stored of them.

    Attributes:
        good: ids of those that no verdict calls bad, the newest first, so many at most; most have no verdict at all.
        failed: ids of those whose verdict is `fail`, for another reason than a forbidden step.
        forbidden: ids of those in which something forbidden ran.
    """

    good: tuple[str, ...]
    failed: tuple[str, ...]
    forbidden: tuple[str, ...]


def judged_runs(
    conn: sa.Connection, source: str, task_id: str | None, trace_ids: Sequence[str] | None, limit: int
) -> JudgedRuns:
    """Return the whole traces of a task by their current verdicts of `agent.trajectory_match`.

    Args:
        conn: where from.
        source: the source.
        task_id: of these traces; None for any.
        trace_ids: the traces to look among; None for all.
        limit: how many good ones at most, those that started last.
    """
    given = {
        "source": encode.text(source),
        "metric": _HEADLINE,
        "task_id": None if task_id is None else encode.stored_id(task_id),
        "trace_ids": None if trace_ids is None else [encode.stored_id(trace_id) for trace_id in trace_ids],
    }
    good = tuple(conn.scalars(_GOOD, {**given, "limit": limit}))
    bad = conn.execute(_BAD, given).all()
    return JudgedRuns(
        good,
        failed=tuple(row.trace_id for row in bad if not row.forbidden),
        forbidden=tuple(row.trace_id for row in bad if row.forbidden),
    )
