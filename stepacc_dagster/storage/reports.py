"""What the score tables say of a window; every query names metric, version and config."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from stepacc_core.model import PartitionType
from stepacc_dagster.storage.tables import annotations, score_metadata, scores, sessions, spans, traces
from stepacc_dagster.storage.views import current_scores
from stepacc_dagster.windows import Window


@dataclass(frozen=True, slots=True)
class MetricKey:
    """What scores may be compared within: one metric, one version, one config."""

    metric: str
    metric_version: str
    config_hash: str


@dataclass(frozen=True, slots=True)
class WindowSummary:
    """Counts and scores over the current evaluations of a window; the scores are None where nothing is scored."""

    scored: int
    failed: int
    not_applicable: int
    mean: float | None
    minimum: float | None
    median: float | None


@dataclass(frozen=True, slots=True)
class PartitionScore:
    """The current evaluation of one partition."""

    partition_type: PartitionType
    partition_id: str
    session_id: str | None
    task_id: str | None
    status: str
    code: str | None
    message: str | None
    score: float | None
    metadata: dict[str, Any]


def window_summary(conn: sa.Connection, source: str, window: Window, key: MetricKey) -> WindowSummary:
    """Count the current evaluations of a window and sum their scores up."""
    score, status = current_scores.c.score, current_scores.c.status
    number = [sa.func.count().filter(status == name).label(name) for name in ("scored", "failed", "not_applicable")]
    statistics = (
        sa.func.avg(score).label("mean"),
        sa.func.min(score).label("minimum"),
        sa.func.percentile_cont(0.5).within_group(score).label("median"),
    )
    query = sa.select(*number, *statistics).where(*_current(source, window, key))
    return WindowSummary(**conn.execute(query).mappings().one())


def worst_partitions(
    conn: sa.Connection, source: str, window: Window, key: MetricKey, *, limit: int = 10
) -> list[PartitionScore]:
    """Return the scored partitions of a window with the lowest scores, then by id."""
    order = (current_scores.c.score, current_scores.c.partition_id)
    conditions = (*_current(source, window, key), current_scores.c.status == "scored")
    return _partitions(conn, *conditions, order=order, limit=limit)


def failed_partitions(
    conn: sa.Connection, source: str, window: Window, key: MetricKey, *, limit: int = 10
) -> list[PartitionScore]:
    """Return the partitions of a window that could not be scored, by code, then by id."""
    order = (current_scores.c.code, current_scores.c.partition_id)
    conditions = (*_current(source, window, key), current_scores.c.status == "failed")
    return _partitions(conn, *conditions, order=order, limit=limit)


def row_counts(conn: sa.Connection, source: str, window: Window) -> dict[str, int]:
    """Return how many rows each table has for a window, by table name.

    Sessions count in their home window; scores of all metrics, versions and configs count, superseded ones included.
    Annotations are not of a window: they are those of the source, with all their revisions.
    """
    in_window = {
        table.name: sa.select(sa.func.count())
        .select_from(table)
        .where(table.c.source == source, table.c.window_key == window.key)
        for table in (traces, sessions, scores)
    }
    of_traces = traces.c.source == source, traces.c.window_key == window.key
    of_scores = scores.c.source == source, scores.c.window_key == window.key
    counts = {
        **in_window,
        "spans": sa.select(sa.func.count())
        .select_from(
            spans.join(traces, sa.and_(traces.c.source == spans.c.source, traces.c.trace_id == spans.c.trace_id))
        )
        .where(*of_traces),
        "score_metadata": sa.select(sa.func.count()).select_from(score_metadata.join(scores)).where(*of_scores),
        "annotations": sa.select(sa.func.count()).select_from(annotations).where(annotations.c.source == source),
    }
    query = sa.select(*(query.scalar_subquery().label(name) for name, query in counts.items()))
    return dict(conn.execute(query).mappings().one())


def _partitions(
    conn: sa.Connection, *conditions: sa.ColumnElement[bool], order: Sequence[sa.ColumnElement[Any]], limit: int
) -> list[PartitionScore]:
    columns = [current_scores.c[name] for name in PartitionScore.__slots__ if name != "metadata"]
    query = (
        sa.select(*columns, score_metadata.c.metadata)
        .join(score_metadata, score_metadata.c.score_id == current_scores.c.id)
        .where(*conditions)
        .order_by(*order, current_scores.c.partition_type)
        .limit(limit)
    )
    return [PartitionScore(**row) for row in conn.execute(query).mappings()]


def _current(source: str, window: Window, key: MetricKey) -> tuple[sa.ColumnElement[bool], ...]:
    columns = current_scores.c
    return (
        columns.source == source,
        columns.window_key == window.key,
        columns.metric == key.metric,
        columns.metric_version == key.metric_version,
        columns.config_hash == key.config_hash,
    )
