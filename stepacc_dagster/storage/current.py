"""The current scores of a source, each with its reasons and the annotation it was measured against."""

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

_CURRENT = sa.text("""
    SELECT s.window_key, s.partition_type, s.partition_id, s.task_id, s.status, s.reason, s.code, s.message, s.score,
           m.metadata, a.id AS annotation_id, a.revision, a.author
    FROM stepacc.current_scores s
    LEFT JOIN stepacc.score_metadata m ON m.score_id = s.id
    LEFT JOIN stepacc.annotations a ON a.id = s.annotation_id
    WHERE s.source = :source AND s.metric = :metric AND s.metric_version = :version AND s.config_hash = :config_hash
      AND s.window_key BETWEEN :first AND :last
    ORDER BY s.window_key, s.partition_type DESC, s.partition_id
""")


@dataclass(frozen=True, slots=True)
class CurrentScore:
    """A row of the score table with its reasons and the annotation it was measured against."""

    window_key: str
    partition_type: str
    partition_id: str
    task_id: str | None
    status: str
    reason: str | None
    code: str | None
    message: str | None
    score: float | None
    metadata: dict[str, Any]
    annotation_id: int | None
    revision: int | None
    author: str | None


@dataclass(frozen=True, slots=True)
class ScoreSelection:
    """What scores may be shown together: one source, metric, version and config, in the windows `first` to `last`."""

    source: str
    metric: str
    version: str
    config_hash: str
    first: str
    last: str


def current_scores(conn: sa.Connection, selection: ScoreSelection) -> list[CurrentScore]:
    """Return the current scores of a selection, by window, sessions after traces, then by id."""
    names = {name: getattr(selection, name) for name in selection.__slots__}
    rows = conn.execute(_CURRENT, names).mappings()
    return [CurrentScore(**{**row, "metadata": row["metadata"] or {}}) for row in rows]
