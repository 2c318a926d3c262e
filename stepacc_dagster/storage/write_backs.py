"""Scores that were written back to where traces came from: which are due, and the note that they are there."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert

from stepacc_core.model import PartitionType, Status
from stepacc_dagster.storage.columns import metadata, moment, source, text

write_backs = sa.Table(
    "write_backs",
    metadata,
    source(),
    text("destination", "kind and address of the server that has the score"),
    text("partition_type", "trace or session"),
    text("partition_id", "id of the trace or session"),
    text("metric", "name of the metric or of a member of its family, as in scores"),
    text("metric_version", "version of the metric"),
    text("config_hash", "hash of the config fields that change what a score means"),
    sa.Column("score_id", sa.BigInteger(), nullable=False, comment="id of the evaluation that is there"),
    moment("evaluated_at", "when the result that is there was written in scores"),
    moment("written_at", "when it was written back"),
    sa.PrimaryKeyConstraint(
        "source",
        "destination",
        "partition_type",
        "partition_id",
        "metric",
        "metric_version",
        "config_hash",
    ),
    sa.CheckConstraint("partition_type IN ('trace', 'session')", name="partition_type"),
    comment="Scores that were written back to where the traces came from, so that each is sent once. Without a row a "
    "score is sent again, which makes it anew in its place.",
)

_DUE = sa.text("""
    SELECT s.id AS score_id, s.partition_type, s.partition_id, s.metric, s.metric_version, s.config_hash, s.status,
           s.code, s.reason, s.message, s.score, s.total_steps, s.correct_steps, s.edit_distance, s.dagster_run_id,
           s.evaluated_at, a.revision AS annotation_revision, trace.root_span_id,
           CASE s.partition_type WHEN 'session' THEN home.first_trace_id ELSE s.partition_id END AS trace_id,
           s.session_id, w.score_id IS NOT NULL AS is_there
    FROM stepacc.current_scores s
    LEFT JOIN stepacc.annotations a ON a.id = s.annotation_id
    LEFT JOIN stepacc.sessions home ON home.source = s.source AND home.session_id = s.partition_id
        AND s.partition_type = 'session'
    LEFT JOIN stepacc.traces trace ON trace.source = s.source
        AND trace.trace_id = CASE s.partition_type WHEN 'session' THEN home.first_trace_id ELSE s.partition_id END
    LEFT JOIN stepacc.write_backs w ON w.source = s.source AND w.destination = :destination
        AND w.partition_type = s.partition_type AND w.partition_id = s.partition_id AND w.metric = s.metric
        AND w.metric_version = s.metric_version AND w.config_hash = s.config_hash
    WHERE s.source = :source AND s.metric = :metric AND s.metric_version = :metric_version
      AND s.config_hash = :config_hash AND s.id > :after
      AND (w.score_id, w.evaluated_at) IS DISTINCT FROM (s.id, s.evaluated_at)
      AND trace.gone_upstream_at IS NULL AND trace.erased_at IS NULL AND home.erased_at IS NULL
    ORDER BY s.id
    LIMIT :most
""")


@dataclass(frozen=True, slots=True)
class DueScore:
    """A current score that its destination does not have yet, or has with another result.

    Attributes:
        trace_id: the trace itself, or the first one of the session; None where that is not known.
        root_span_id: root span of that trace; None where it has none.
        is_there: whether the destination has an earlier result of the same metric, version and config.
    """

    score_id: int
    partition_type: PartitionType
    partition_id: str
    metric: str
    metric_version: str
    config_hash: str
    status: Status
    code: str | None
    reason: str | None
    message: str | None
    score: float | None
    total_steps: int | None
    correct_steps: int | None
    edit_distance: int | None
    dagster_run_id: str | None
    evaluated_at: datetime
    annotation_revision: int | None
    root_span_id: str | None
    trace_id: str | None
    session_id: str | None
    is_there: bool


def due_scores(  # noqa: PLR0913 (what names the scores)
    conn: sa.Connection,
    source: str,
    destination: str,
    *,
    metric: str,
    metric_version: str,
    config_hash: str,
    after: int,
    most: int,
) -> list[DueScore]:
    """Return the current scores of a metric, version and config that a destination does not have, by id.

    Scores of traces that were erased, or that their store no longer has, are none of them.

    Args:
        conn: where from.
        source: the source.
        destination: kind and address of the server.
        metric: name of the metric or member.
        metric_version: its version.
        config_hash: its config.
        after: id of the score after which to begin.
        most: how many at most.
    """
    names: dict[str, Any] = {
        "source": source,
        "destination": destination,
        "metric": metric,
        "metric_version": metric_version,
        "config_hash": config_hash,
        "after": after,
        "most": most,
    }
    return [DueScore(**row) for row in conn.execute(_DUE, names).mappings()]


def note_written(conn: sa.Connection, source: str, destination: str, written: Iterable[DueScore]) -> None:
    """Note that a destination has these scores."""
    rows: Sequence[dict[str, Any]] = [
        {
            "source": source,
            "destination": destination,
            "partition_type": score.partition_type,
            "partition_id": score.partition_id,
            "metric": score.metric,
            "metric_version": score.metric_version,
            "config_hash": score.config_hash,
            "score_id": score.score_id,
            "evaluated_at": score.evaluated_at,
        }
        for score in written
    ]
    if not rows:
        return
    statement = insert(write_backs)
    changed = {name: statement.excluded[name] for name in ("score_id", "evaluated_at")}
    conn.execute(
        statement.on_conflict_do_update(
            constraint="write_backs_pkey", set_={**changed, "written_at": sa.func.statement_timestamp()}
        ),
        rows,
    )
