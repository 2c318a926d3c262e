"""Task summaries: made of the current scores, all of a source's in one transaction."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from stepacc_core.summaries import TaskRuns, statistics
from stepacc_dagster.storage import encode
from stepacc_dagster.storage.copy import ColumnType, copy_in, create_staging
from stepacc_dagster.storage.locks import lock, lock_shared

_KEY: tuple[tuple[str, ColumnType], ...] = (
    ("task_id", "text"),
    ("partition_type", "text"),
    ("metric", "text"),
    ("metric_version", "text"),
    ("config_hash", "text"),
    ("annotation_id", "int8"),
    ("reference_hash", "text"),
)
_COLUMNS: tuple[tuple[str, ColumnType], ...] = (
    *_KEY,
    ("n", "int4"),
    ("n_scored", "int4"),
    ("n_failed", "int4"),
    ("n_not_applicable", "int4"),
    ("pass_threshold", "float8"),
    ("passes", "int4"),
    ("pass_rate", "float8"),
    ("pass_rate_low", "float8"),
    ("pass_rate_high", "float8"),
    ("pass_at_k", "jsonb"),
    ("pass_hat_k", "jsonb"),
    ("mean", "float8"),
    ("verdicts", "jsonb"),
    ("unconfirmed_references", "jsonb"),
    ("assumptions", "jsonb"),
)
_NAMES = [name for name, _ in _COLUMNS]
_KEY_NAMES = [name for name, _ in _KEY]
_SAID = _NAMES[len(_KEY) :]

# What a metric says of the reference it chose, and of what was assumed, is in the metadata of its headline's rows;
# where it has another form it is another metric's, and says nothing here.
_VERDICT = "m.metadata ->> 'verdict'"
_UNCONFIRMED = (
    "jsonb_path_query_array(m.metadata, 'lax $.assumptions[*] ? (@.kind == \"unconfirmed_reference\").reference')"
)
_GAPS = "jsonb_path_query_array(m.metadata, 'lax $.gaps[*].kind')"
_COUNTED = sa.text(f"""
    SELECT {", ".join(f"s.{name}" for name in _KEY_NAMES)}, pass.threshold AS pass_threshold, count(*) AS n,
           count(*) FILTER (WHERE s.status = 'scored') AS n_scored,
           count(*) FILTER (WHERE s.status = 'failed') AS n_failed,
           count(*) FILTER (WHERE s.status = 'not_applicable') AS n_not_applicable,
           count(*) FILTER (WHERE CASE WHEN pass.lower THEN s.score <= pass.threshold
                                       ELSE s.score >= pass.threshold AND s.score <> 'NaN' END) AS passes,
           avg(s.score) AS mean,
           array_agg({_VERDICT}) AS verdicts, array_agg({_UNCONFIRMED}) AS unconfirmed, array_agg({_GAPS}) AS gaps
    FROM stepacc.current_scores s
    JOIN unnest(CAST(:metrics AS text[]), CAST(:thresholds AS float8[]), CAST(:lowers AS bool[]))
        pass (metric, threshold, lower) ON pass.metric = s.metric
    LEFT JOIN stepacc.score_metadata m ON m.score_id = s.id
    WHERE s.source = :source AND s.task_id IS NOT NULL
    GROUP BY {", ".join(f"s.{name}" for name in _KEY_NAMES)}, pass.threshold
    ORDER BY {", ".join(f"s.{name}" for name in _KEY_NAMES)}
""")  # noqa: S608 (names of this module)
_SAME = " AND ".join(f"given.{name} IS NOT DISTINCT FROM present.{name}" for name in _KEY_NAMES)
_WRITE = sa.text(f"""
    INSERT INTO stepacc.task_summaries AS present (source, {", ".join(_NAMES)})
    SELECT :source, {", ".join(_NAMES)} FROM staged_summaries
    ON CONFLICT (source, {", ".join(_KEY_NAMES)}) DO UPDATE SET
        {", ".join(f"{name} = excluded.{name}" for name in _SAID)}, changed_at = now()
    WHERE ({", ".join(f"present.{name}" for name in _SAID)})
        IS DISTINCT FROM ({", ".join(f"excluded.{name}" for name in _SAID)})
""")  # noqa: S608 (names of this module)
_REMOVE = sa.text(f"""
    DELETE FROM stepacc.task_summaries present WHERE source = :source
      AND NOT EXISTS (SELECT 1 FROM staged_summaries given WHERE {_SAME})
""")  # noqa: S608 (names of this module)
_LISTED = sa.text(f"""
    SELECT {", ".join(f"summary.{name}" for name in _NAMES)}, revision AS annotation_revision, changed_at
    FROM stepacc.task_summaries summary LEFT JOIN stepacc.annotations said ON said.id = annotation_id
    WHERE summary.source = :source AND task_id = coalesce(CAST(:task AS text), task_id)
    ORDER BY task_id, partition_type DESC, summary.id
""")  # noqa: S608 (names of this module)


@dataclass(frozen=True, slots=True)
class SummarisedMetric:
    """What rows are summarised: those of a metric or member of this name, and which of them pass.

    What was assumed is told with the rows of the `headline`, and holds for all members; a metric without a family is
    its own headline.
    """

    name: str
    headline: str
    pass_threshold: float
    lower_is_better: bool


@dataclass(frozen=True, slots=True)
class Summarised:
    """What a summarising amounts to: summaries there are, those of them that are new or changed, and those removed."""

    summaries: int
    changed: int
    removed: int
    tasks: int


@dataclass(frozen=True, slots=True)
class TaskSummary:
    """A row of the summaries. `pass_at_k` and `pass_hat_k` are by k, as text; `changed_at` is when it last changed."""

    task_id: str
    partition_type: str
    metric: str
    metric_version: str
    config_hash: str
    annotation_id: int | None
    annotation_revision: int | None
    reference_hash: str | None
    n: int
    n_scored: int
    n_failed: int
    n_not_applicable: int
    pass_threshold: float
    passes: int
    pass_rate: float | None
    pass_rate_low: float | None
    pass_rate_high: float | None
    pass_at_k: Mapping[str, float | None]
    pass_hat_k: Mapping[str, float | None]
    mean: float | None
    verdicts: Mapping[str, int]
    unconfirmed_references: Sequence[str]
    assumptions: Mapping[str, int]
    changed_at: datetime


def summarise(conn: sa.Connection, source: str, metrics: Sequence[SummarisedMetric], ks: Sequence[int]) -> Summarised:
    """Bring the summaries of a source up to date with its current scores; doing so again changes nothing.

    Every version and config of the metrics is summarised by itself. Summaries of which no run is left, or of other
    metrics, are removed.

    Args:
        conn: in a transaction, at READ COMMITTED.
        source: the source.
        metrics: the rows that are summarised; runs without a task are not.
        ks: for which numbers of runs pass@k and pass^k are given.
    """
    lock(conn, "summaries", source)
    lock_shared(conn, "erasure", source)
    asked = {
        "metrics": [metric.name for metric in metrics],
        "thresholds": [metric.pass_threshold for metric in metrics],
        "lowers": [metric.lower_is_better for metric in metrics],
    }
    found = conn.execute(_COUNTED, {"source": source, **asked}).mappings().all()
    create_staging(conn, "staged_summaries", _COLUMNS)
    headlines = {metric.name: metric.headline for metric in metrics}
    told = {_key(counted): counted for counted in found}
    rows = (_row(counted, told.get(_key(counted, headlines[counted["metric"]]), counted), ks) for counted in found)
    copy_in(conn, "staged_summaries", _COLUMNS, rows)
    removed = conn.execute(_REMOVE, {"source": source}).rowcount
    changed = conn.execute(_WRITE, {"source": source}).rowcount
    return Summarised(len(found), changed, removed, len({counted["task_id"] for counted in found}))


def task_summaries_of(conn: sa.Connection, source: str, task: str | None = None) -> list[TaskSummary]:
    """Return the summaries of a source, or of one of its tasks, by task; in each, in the order they came to be."""
    rows = conn.execute(_LISTED, {"source": source, "task": None if task is None else encode.stored_id(task)})
    return [TaskSummary(**row) for row in rows.mappings()]


def _key(counted: sa.RowMapping, metric: str | None = None) -> tuple[Any, ...]:
    return tuple(metric if name == "metric" and metric else counted[name] for name in _KEY_NAMES)


def _row(counted: sa.RowMapping, told_with: sa.RowMapping, ks: Sequence[int]) -> tuple[Any, ...]:
    counts = TaskRuns(*(counted[each.name] for each in fields(TaskRuns)))
    found = statistics(counts, ks)
    told = {
        **counted,
        "pass_rate": found.pass_rate,
        "pass_rate_low": found.interval and found.interval.low,
        "pass_rate_high": found.interval and found.interval.high,
        "pass_at_k": encode.jsonb({str(k): chance for k, chance in found.pass_at.items()}),
        "pass_hat_k": encode.jsonb({str(k): chance for k, chance in found.pass_hat.items()}),
        "verdicts": encode.jsonb(Counter(verdict for verdict in counted["verdicts"] if verdict)),
        "unconfirmed_references": encode.jsonb(
            sorted({name for each in told_with["unconfirmed"] for name in _texts(each)})
        ),
        "assumptions": encode.jsonb(Counter(kind for each in told_with["gaps"] for kind in _texts(each))),
    }
    return tuple(told[name] for name in _NAMES)


def _texts(found: Sequence[Any] | None) -> set[str]:
    return {each for each in found or () if isinstance(each, str)}
