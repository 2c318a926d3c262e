"""The current scores of a source, each with its reasons and the annotation it was measured against."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from stepacc_core.model import PartitionType
from stepacc_dagster.measured_against import annotation_words, unannotated_words
from stepacc_dagster.storage.occurrences import Occurrence

_FROM = """
    FROM stepacc.current_scores s
    LEFT JOIN stepacc.score_metadata m ON m.score_id = s.id
    LEFT JOIN stepacc.annotations a ON a.id = s.annotation_id
"""
_ROWS = f"""
    SELECT s.source, s.metric, s.metric_version, s.config_hash, s.window_key, s.partition_type, s.partition_id,
           s.session_id, s.task_id, s.status, s.reason, s.code, s.message, s.score, s.expected_from,
           a.id AS annotation_id, a.revision, a.author, a.target_type, a.target_id, s.dagster_run_id, s.evaluated_at,
           m.metadata, coalesce(
               (SELECT trace.erased_at FROM stepacc.traces trace
                WHERE s.partition_type = 'trace' AND trace.source = s.source AND trace.trace_id = s.partition_id),
               (SELECT chat.erased_at FROM stepacc.sessions chat
                WHERE s.partition_type = 'session' AND chat.source = s.source AND chat.session_id = s.partition_id)
           ) AS erased_at
    {_FROM}
"""  # noqa: S608 (parts of this module)
_SELECTED = """
    s.source = :source AND s.metric = :metric AND s.metric_version = :version AND s.config_hash = :config_hash
    AND s.window_key BETWEEN :first AND :last
    AND s.partition_type = coalesce(CAST(:partition_type AS text), s.partition_type)
"""
_CURRENT = sa.text(f"{_ROWS} WHERE {_SELECTED} ORDER BY s.window_key, s.partition_type DESC, s.partition_id")
_COUNTED = sa.text(f"SELECT count(*) FROM stepacc.current_scores s WHERE {_SELECTED} AND s.score IS NOT NULL")  # noqa: S608 (parts of this module)
_WORST = f"""
    {_ROWS} WHERE {_SELECTED} AND s.score IS NOT NULL
    ORDER BY s.score {{order}}, s.partition_type DESC, s.partition_id LIMIT :number
"""
_OF_OCCURRENCE = sa.text(f"""
    {_ROWS} WHERE s.source = :source AND s.partition_type = :kind AND s.partition_id = :id
    ORDER BY s.metric, s.confirmed_at, s.id
""")


@dataclass(frozen=True, slots=True)
class CurrentScore:
    """A row of the score table with its reasons and the annotation revision it was measured against.

    `annotation_id`, `revision`, `author`, `target_type` and `target_id` are of that revision, None where none was.
    `erased_at` is when the trace or session was erased, of which the bare score is kept; None: it was not.
    """

    source: str
    metric: str
    metric_version: str
    config_hash: str
    window_key: str
    partition_type: PartitionType
    partition_id: str
    session_id: str | None
    task_id: str | None
    status: str
    reason: str | None
    code: str | None
    message: str | None
    score: float | None
    expected_from: str | None
    annotation_id: int | None
    revision: int | None
    author: str | None
    target_type: str | None
    target_id: str | None
    dagster_run_id: str | None
    evaluated_at: datetime
    metadata: Mapping[str, Any]
    erased_at: datetime | None = None

    @property
    def measured_against(self) -> str:
        """What set the expectation, in words."""
        if self.annotation_id is None or self.revision is None or self.target_type is None:
            return unannotated_words(self.expected_from)
        # The target is the trace, the session or the task of this very row.
        return annotation_words(self.annotation_id, self.revision, self.target_type)


@dataclass(frozen=True, slots=True)
class ScoreSelection:
    """What scores may be shown together: one source, metric, version and config, in the windows `first` to `last`.

    They are of traces or of sessions, or of both where `partition_type` is None.
    """

    source: str
    metric: str
    version: str
    config_hash: str
    first: str
    last: str
    partition_type: PartitionType | None = None


def current_scores(conn: sa.Connection, selection: ScoreSelection) -> list[CurrentScore]:
    """Return the current scores of a selection, by window, sessions after traces, then by id."""
    return _scores(conn, _CURRENT, _names(selection))


def worst_scores(
    conn: sa.Connection, selection: ScoreSelection, number: int, *, lower_is_better: bool = False
) -> tuple[list[CurrentScore], int]:
    """Return the worst of a selection, so many at most and the worst first, and how many have a score at all."""
    names = _names(selection)
    query = sa.text(_WORST.format(order="DESC" if lower_is_better else "ASC"))
    return _scores(conn, query, names | {"number": number}), int(conn.execute(_COUNTED, names).scalar_one())


def scores_of(conn: sa.Connection, occurrence: Occurrence) -> list[CurrentScore]:
    """Return the current score of a trace or session by each metric, version and config, the newest last."""
    return _scores(conn, _OF_OCCURRENCE, {"source": occurrence.source, "kind": occurrence.kind, "id": occurrence.id})


def _names(selection: ScoreSelection) -> dict[str, Any]:
    return {name: getattr(selection, name) for name in selection.__slots__}


def _scores(conn: sa.Connection, query: sa.TextClause, names: Mapping[str, Any]) -> list[CurrentScore]:
    rows = conn.execute(query, names).mappings()
    return [CurrentScore(**{**row, "metadata": row["metadata"] or {}}) for row in rows]
