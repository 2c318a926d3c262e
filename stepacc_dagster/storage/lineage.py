"""Lineage of scores: the evaluations that used an annotation, and what stands behind each evaluation.

Both ways read views that anybody may read by SQL: `stepacc.annotation_scores` and `stepacc.score_lineage`.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, Literal

import sqlalchemy as sa

from stepacc_core.annotations import TargetType
from stepacc_core.model import PartitionType
from stepacc_dagster.errors import UnknownIdError
from stepacc_dagster.storage import encode
from stepacc_dagster.storage.occurrences import (
    KNOWN_SOURCES,
    Landed,
    Occurrence,
    SessionRow,
    TraceRow,
    landed_spans,
    session_row,
    trace_row,
    traces_of_session,
)

ScoreState = Literal["current", "superseded", "retired"]

_OF_ANNOTATIONS = """
    SELECT * FROM stepacc.annotation_scores WHERE {condition}
    ORDER BY source, annotation_partition_type, annotation_key, annotation_revision,
             metric, metric_version, config_hash, window_key, partition_type, partition_id, confirmed_at, score_id
"""
_BY_ID = sa.text(
    _OF_ANNOTATIONS.format(condition="annotation_id = :id AND source = coalesce(CAST(:source AS text), source)")
)
_BY_TARGET = sa.text(
    KNOWN_SOURCES.format(table="annotations")
    + _OF_ANNOTATIONS.format(
        condition="source IN (SELECT name FROM known WHERE name = coalesce(CAST(:source AS text), name)) "
        "AND annotation_target_type = :type AND annotation_target_id = :id"
    )
)
_OF_OCCURRENCE = sa.text("""
    SELECT * FROM stepacc.score_lineage WHERE source = :source AND partition_type = :kind AND partition_id = :id
    ORDER BY metric, metric_version, config_hash, confirmed_at, score_id
""")
_WRITTEN_AT = sa.text("SELECT created_at FROM stepacc.annotations WHERE id = :id")


@dataclass(frozen=True, slots=True)
class Revision:
    """One annotation revision; it is in force until a later one changes or withdraws what it says, or it is erased."""

    id: int
    revision: int
    target_type: TargetType
    target_id: str
    partition_type: PartitionType
    key: str
    value: Any
    withdrawn: bool
    in_force: bool
    author: str
    note: str
    origin: str
    created_at: datetime
    erased_at: datetime | None


@dataclass(frozen=True, slots=True)
class Score:
    """One evaluation. It is `current` for its metric version and config, whichever the source has now.

    `config` is what the config's hash stands for, with the step policy where there is one; None where it was never
    kept, as of scores that are older than the table of configs.
    """

    score_id: int
    window_key: str
    partition_type: PartitionType
    partition_id: str
    session_id: str | None
    task_id: str | None
    metric: str
    metric_version: str
    config_hash: str
    config: Mapping[str, Any] | None
    status: Literal["scored", "failed", "not_applicable"]
    code: str | None
    reason: str | None
    message: str | None
    score: float | None
    state: ScoreState
    retired_at: datetime | None
    expected_from: str | None
    reference_hash: str | None
    steps_hash: str | None
    dagster_run_id: str | None
    evaluated_at: datetime
    confirmed_at: datetime


@dataclass(frozen=True, slots=True)
class AnnotationLineage:
    """An annotation revision of a source, and every evaluation that used it."""

    source: str
    revision: Revision
    scores: tuple[Score, ...]


@dataclass(frozen=True, slots=True)
class ScoreLineage:
    """An evaluation, and the annotation revision that set its expectation; None where none did."""

    score: Score
    revision: Revision | None


@dataclass(frozen=True, slots=True)
class UsedRevisions:
    """The annotation revisions behind some scores: how many, and the one that was written last."""

    count: int
    newest_id: int
    newest_at: datetime


@dataclass(frozen=True, slots=True)
class TraceLineage:
    """A trace, where it came from, and its evaluations; each part as far as it is known."""

    occurrence: Occurrence
    row: TraceRow | None
    landed: Landed | None
    evaluations: tuple[ScoreLineage, ...]


@dataclass(frozen=True, slots=True)
class SessionLineage:
    """A session, its traces in the order of their steps, and its evaluations as a session."""

    occurrence: Occurrence
    row: SessionRow | None
    traces: tuple[TraceRow, ...]
    evaluations: tuple[ScoreLineage, ...]


def annotation_lineage(conn: sa.Connection, annotation_id: int, source: str | None = None) -> AnnotationLineage:
    """Return the lineage of one annotation revision.

    Raises:
        UnknownIdError: there is none of that id, or it is of another source.
    """
    found = _lineages(conn.execute(_BY_ID, {"id": annotation_id, "source": source}))
    for lineage in found:
        return lineage
    where = f" in source `{source}`" if source else ""
    msg = f"There is no annotation {annotation_id}{where}; `stepacc annotations list --history` shows what there is."
    raise UnknownIdError(msg)


def target_lineage(
    conn: sa.Connection, target_type: TargetType, target_id: str, source: str | None = None
) -> list[AnnotationLineage]:
    """Return the lineage of every revision of what is said of a target, by source and partition type, oldest first.

    Raises:
        UnknownIdError: nothing was ever said of it.
    """
    names = {"type": target_type, "id": encode.stored_id(target_id), "source": source}
    found = list(_lineages(conn.execute(_BY_TARGET, names)))
    if not found:
        where = f"source `{source}`" if source else "any source"
        msg = (
            f"Nothing was ever said of {target_type} `{target_id}` in {where}; "
            "`stepacc annotations list --history` shows of what something was."
        )
        raise UnknownIdError(msg)
    return found


def used_revisions(conn: sa.Connection, ids: Collection[int]) -> UsedRevisions | None:
    """Return what to say of annotation revisions that exist, by one look-up; None of none."""
    if not ids:
        return None
    newest = max(ids)
    return UsedRevisions(len(ids), newest, conn.execute(_WRITTEN_AT, {"id": newest}).scalar_one())


def trace_lineage(conn: sa.Connection, occurrence: Occurrence) -> TraceLineage:
    """Return the lineage of a trace; its evaluations by metric, version and config, the newest of each last."""
    row, landed = trace_row(conn, occurrence), landed_spans(conn, occurrence)
    return TraceLineage(occurrence, row, landed, _evaluations(conn, occurrence))


def session_lineage(conn: sa.Connection, occurrence: Occurrence) -> SessionLineage:
    """Return the lineage of a session; its evaluations by metric, version and config, the newest of each last."""
    row, traces = session_row(conn, occurrence), tuple(traces_of_session(conn, occurrence))
    return SessionLineage(occurrence, row, traces, _evaluations(conn, occurrence))


def _evaluations(conn: sa.Connection, occurrence: Occurrence) -> tuple[ScoreLineage, ...]:
    names = {"source": occurrence.source, "kind": occurrence.kind, "id": occurrence.id}
    rows = conn.execute(_OF_OCCURRENCE, names).mappings()
    return tuple(ScoreLineage(_score(row), None if row["annotation_id"] is None else _revision(row)) for row in rows)


def _lineages(result: sa.CursorResult[Any]) -> Iterator[AnnotationLineage]:
    for _, group in groupby(result.mappings(), key=itemgetter("annotation_id")):
        rows = list(group)
        scores = tuple(_score(row) for row in rows if row["score_id"] is not None)
        yield AnnotationLineage(rows[0]["source"], _revision(rows[0]), scores)


def _score(row: sa.RowMapping) -> Score:
    return Score(**{name: row[name] for name in Score.__slots__})


def _revision(row: sa.RowMapping) -> Revision:
    own = {"created_at": row["annotated_at"]}
    named = {name: row[f"annotation_{name}"] for name in Revision.__slots__ if name not in own}
    return Revision(**named, **own)
