"""Reading a report from the tables: counts are made by the database, so that a report of many traces stays small."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from stepacc_core.model import PartitionType
from stepacc_dagster.evaluators import Evaluator
from stepacc_dagster.measured_against import annotation_words, unannotated_words
from stepacc_dagster.report.model import (
    Bin,
    Coverage,
    MemberMean,
    Reason,
    Report,
    StepCount,
    StepFaults,
    Tasks,
    TaskScores,
    TrendPoint,
    View,
    WorstScore,
)
from stepacc_dagster.sources import Source

SHOWN_STEPS = 15
SHOWN_TASKS = 100
SHOWN_WORST = 25
SHOWN_REASONS = 30
SHOWN_VERSIONS = 6
"""Rows of the tables of a report; what is left out is counted."""

_DAY = len("2026-11-30")
_HOURLY_UP_TO = 14
"""Days up to which an hourly source is shown hour by hour."""
_BINS = 10
_HASH = 8

_CHOSEN = """
    source = :source AND metric = :metric AND partition_type = :partition_type
    AND window_key BETWEEN :first AND :last
"""
_CURRENT = f"{_CHOSEN} AND metric_version = :version AND config_hash = :config_hash"
_RANGE = sa.text("""
    SELECT min(window_key) AS first, max(window_key) AS last, count(DISTINCT left(window_key, :day)) AS days
    FROM stepacc.current_scores WHERE source = :source AND window_key BETWEEN :first AND :last
""")
_TREND = sa.text(f"""
    SELECT left(window_key, :chars) AS period, metric_version, config_hash, count(*) AS scored, avg(score) AS mean
    FROM stepacc.current_scores WHERE {_CHOSEN} AND status = 'scored'
    GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
""")  # noqa: S608 (parts of this module)
_VERSIONS = sa.text(f"""
    SELECT metric_version, config_hash FROM stepacc.current_scores WHERE {_CHOSEN}
    GROUP BY 1, 2 ORDER BY max(confirmed_at) DESC LIMIT :limit
""")  # noqa: S608 (parts of this module)
_HISTOGRAM = sa.text(f"""
    SELECT least(greatest(floor(score * :bins), 0), :bins) AS place, count(*) AS number, sum(score) AS total
    FROM stepacc.current_scores WHERE {_CURRENT} AND status = 'scored' GROUP BY 1
""")  # noqa: S608 (parts of this module)
_REASONS = sa.text(f"""
    SELECT status, coalesce(code, reason) AS code, count(*) AS number, min(message) AS message,
           min(partition_id) AS example_id
    FROM stepacc.current_scores WHERE {_CURRENT} AND status <> 'scored'
    GROUP BY 1, 2 ORDER BY count(*) DESC, 2 LIMIT :limit
""")  # noqa: S608 (parts of this module)
_LEFT_OUT = sa.text("""
    SELECT sum(skipped) AS skipped, sum(unsettled) AS unsettled FROM stepacc.window_scores
    WHERE source = :source AND metric = :manifest AND metric_version = :version AND config_hash = :config_hash
      AND window_key BETWEEN :first AND :last
""")
# An optional step that is absent is as it should be, and a strict position has what is too much in a list of its own.
_FAULTS = sa.text(f"""
    WITH chosen AS MATERIALIZED (
        SELECT s.id, m.metadata FROM stepacc.current_scores s JOIN stepacc.score_metadata m ON m.score_id = s.id
        WHERE {_CURRENT} AND s.status = 'scored' AND jsonb_typeof(m.metadata -> 'steps') = 'array'
    ),
    entry AS (
        SELECT id, step ->> 'op' AS op, step ->> 'expected' AS expected, step ->> 'actual' AS observed
        FROM chosen, jsonb_array_elements(metadata -> 'steps') AS step
        WHERE step ->> 'op' <> 'match' AND NOT coalesce(step -> 'optional' = 'true', false)
        UNION ALL
        SELECT id, 'insert', NULL, name
        FROM chosen, jsonb_array_elements_text(
            CASE WHEN jsonb_typeof(metadata -> 'extra_steps') = 'array' THEN metadata -> 'extra_steps' ELSE '[]' END
        ) AS name
    ),
    fault AS MATERIALIZED (
        SELECT id, op, expected, observed, count(*) AS number FROM entry GROUP BY 1, 2, 3, 4
    ),
    told AS (
        SELECT 'missing' AS kind, expected, NULL AS observed, sum(number) AS number, count(DISTINCT id) AS occurrences
        FROM fault WHERE op = 'delete' GROUP BY expected
        UNION ALL
        SELECT 'extra', NULL, observed, sum(number), count(DISTINCT id) FROM fault WHERE op = 'insert' GROUP BY observed
        UNION ALL
        SELECT 'substituted', expected, NULL, sum(number), count(DISTINCT id)
        FROM fault WHERE op = 'substitute' GROUP BY expected
        UNION ALL
        SELECT 'confusions', expected, observed, sum(number), count(DISTINCT id)
        FROM fault WHERE op = 'substitute' GROUP BY expected, observed
    ),
    ranked AS (
        SELECT *, row_number() OVER (PARTITION BY kind ORDER BY number DESC, expected, observed) AS rank FROM told
    )
    SELECT kind, expected, observed, number, occurrences FROM ranked WHERE rank <= :limit ORDER BY kind, rank
""")  # noqa: S608 (parts of this module)
_TASKS = f"""
    SELECT task_id, count(score) AS scored, count(*) - count(score) AS unscored, avg(score) AS mean,
           {{lowest}}(score) AS lowest, count(*) OVER () AS total
    FROM stepacc.current_scores WHERE {_CURRENT} GROUP BY task_id
    ORDER BY avg(score) {{order}} NULLS FIRST, count(*) DESC, task_id LIMIT :limit
"""  # noqa: S608 (parts of this module)
_WORST = """
    SELECT s.partition_id, s.task_id, s.window_key, s.score, s.dagster_run_id AS run_id, m.metadata,
           s.expected_from, a.id AS annotation_id, a.target_type, a.target_id, a.revision, a.author,
           CASE s.partition_type WHEN 'trace' THEN s.partition_id ELSE session.first_trace_id END AS trace_id
    FROM stepacc.current_scores s
    LEFT JOIN stepacc.score_metadata m ON m.score_id = s.id
    LEFT JOIN stepacc.annotations a ON a.id = s.annotation_id
    LEFT JOIN stepacc.sessions session
      ON s.partition_type = 'session' AND session.source = s.source AND session.session_id = s.partition_id
    WHERE s.source = :source AND s.metric = :metric AND s.partition_type = :partition_type
      AND s.window_key BETWEEN :first AND :last AND s.metric_version = :version AND s.config_hash = :config_hash
      AND s.status = 'scored' AND s.score {imperfect}
    ORDER BY s.score {order}, s.partition_id LIMIT :limit
"""
_MEMBERS = sa.text("""
    SELECT metric AS name, count(score) AS scored, avg(score) AS mean FROM stepacc.current_scores
    WHERE source = :source AND metric = ANY (:names) AND partition_type = :partition_type
      AND window_key BETWEEN :first AND :last AND metric_version = :version AND config_hash = :config_hash
    GROUP BY metric
""")


@dataclass(frozen=True, slots=True)
class Selected:
    """The windows that a report is about, both ends included, and the periods its trends are told in."""

    first: str
    last: str
    period_chars: int


def read_report(
    conn: sa.Connection, source: Source, evaluators: Sequence[Evaluator], first: str = "", last: str = "~"
) -> Report:
    """Read the report of a source over the windows from `first` to `last`.

    Each metric is told in the version and config that the source has now; other versions are in its trend only.
    """
    names = {"source": source.name, "first": first, "last": last, "day": _DAY}
    found = conn.execute(_RANGE, names).one()
    hourly = found.days <= _HOURLY_UP_TO and source.partitions == "hourly"
    selected = Selected(first, last, max(len(found.last or ""), _DAY) if hourly else _DAY)
    views = [
        _view(conn, source, evaluator, kind, selected) for evaluator in evaluators for kind in source.partition_types
    ]
    return Report(source.name, found.first, found.last, datetime.now(UTC), tuple(views))


def _view(conn: sa.Connection, source: Source, evaluator: Evaluator, kind: PartitionType, selected: Selected) -> View:
    manifest = evaluator.metric.manifest
    lower_is_better = manifest.direction == "lower_is_better"
    names: dict[str, Any] = {
        "source": source.name,
        "manifest": manifest.name,
        "metric": evaluator.headline,
        "version": manifest.version,
        "config_hash": evaluator.config_hash,
        "partition_type": kind,
        "first": selected.first,
        "last": selected.last,
    }
    bins, mean = _bins(conn, names)
    return View(
        metric=manifest.name,
        headline=evaluator.headline,
        display_name=manifest.display_name,
        version=manifest.version,
        config_hash=evaluator.config_hash,
        partition_type=kind,
        lower_is_better=lower_is_better,
        mean=mean,
        trend=_trend(conn, names, selected.period_chars),
        bins=bins,
        coverage=_coverage(conn, names, sum(each.count for each in bins)),
        faults=_faults(conn, names),
        tasks=_tasks(conn, names, lower_is_better=lower_is_better),
        worst=_worst(conn, names, lower_is_better=lower_is_better),
        members=_members(conn, names, evaluator),
    )


def _trend(conn: sa.Connection, names: dict[str, Any], chars: int) -> tuple[TrendPoint, ...]:
    configs: dict[str, set[str]] = {}
    for row in conn.execute(_VERSIONS, {**names, "limit": SHOWN_VERSIONS}):
        configs.setdefault(row.metric_version, set()).add(row.config_hash)
    rows = conn.execute(_TREND, {**names, "chars": chars})
    return tuple(
        TrendPoint(
            row.period,
            row.metric_version
            if len(configs[row.metric_version]) == 1
            else f"{row.metric_version} ({row.config_hash[:_HASH]})",
            row.scored,
            row.mean,
        )
        for row in rows
        if row.config_hash in configs.get(row.metric_version, ())
    )


def _bins(conn: sa.Connection, names: dict[str, Any]) -> tuple[tuple[Bin, ...], float | None]:
    found = {int(row.place): row for row in conn.execute(_HISTOGRAM, {**names, "bins": _BINS})}
    labels = [f"{place / _BINS:.1f}" for place in range(_BINS + 1)]
    counts = [found[place].number if place in found else 0 for place in range(_BINS + 1)]
    total = sum(counts)
    mean = sum(row.total for row in found.values()) / total if total else None
    return tuple(map(Bin, labels, counts)), mean


def _coverage(conn: sa.Connection, names: dict[str, Any], scored: int) -> Coverage:
    reasons = conn.execute(_REASONS, {**names, "limit": SHOWN_REASONS})
    left_out = conn.execute(_LEFT_OUT, names).one()
    return Coverage(
        scored, tuple(Reason(*row) for row in reasons), _whole(left_out.skipped), _whole(left_out.unsettled)
    )


def _whole(number: Any) -> int | None:
    return None if number is None else int(number)


def _faults(conn: sa.Connection, names: dict[str, Any]) -> StepFaults:
    kinds: dict[str, list[StepCount]] = {}
    for row in conn.execute(_FAULTS, {**names, "limit": SHOWN_STEPS}):
        kinds.setdefault(row.kind, []).append(StepCount(row.expected, row.observed, int(row.number), row.occurrences))
    return StepFaults(**{kind: tuple(counts) for kind, counts in kinds.items()})


def _tasks(conn: sa.Connection, names: dict[str, Any], *, lower_is_better: bool) -> Tasks:
    query = _TASKS.format(order="DESC" if lower_is_better else "ASC", lowest="max" if lower_is_better else "min")
    rows = conn.execute(sa.text(query), {**names, "limit": SHOWN_TASKS}).all()
    worst = tuple(TaskScores(row.task_id, row.scored, row.unscored, row.mean, row.lowest) for row in rows)
    return Tasks(worst, rows[0].total if rows else 0)


def _worst(conn: sa.Connection, names: dict[str, Any], *, lower_is_better: bool) -> tuple[WorstScore, ...]:
    query = _WORST.format(order="DESC" if lower_is_better else "ASC", imperfect="> 0" if lower_is_better else "< 1")
    rows = conn.execute(sa.text(query), {**names, "limit": SHOWN_WORST})
    return tuple(
        WorstScore(
            row.partition_id,
            row.task_id,
            row.window_key,
            row.score,
            row.run_id,
            _measured_against(row),
            row.trace_id,
            row.metadata or {},
        )
        for row in rows
    )


def _measured_against(row: sa.Row[Any]) -> str:
    if row.annotation_id is None:
        return unannotated_words(row.expected_from)
    words = annotation_words(row.annotation_id, row.revision, row.target_type, row.target_id)
    return f"{words} by {row.author}" if row.author else words


def _members(conn: sa.Connection, names: dict[str, Any], evaluator: Evaluator) -> tuple[MemberMean, ...]:
    if len(evaluator.row_names) == 1:
        return ()
    found = {row.name: row for row in conn.execute(_MEMBERS, {**names, "names": list(evaluator.row_names)})}
    return tuple(
        MemberMean(name, found[name].scored, found[name].mean) for name in evaluator.row_names if name in found
    )
