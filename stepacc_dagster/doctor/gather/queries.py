"""What is read of a source's tables. Nothing here reads all of spans, traces or scores: each query has an end."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from stepacc_core.model import PartitionType
from stepacc_dagster.doctor.coverage import Annotated, Coverage
from stepacc_dagster.evaluators import Evaluator
from stepacc_dagster.sources import Source
from stepacc_dagster.storage.settling import Settling, is_open
from stepacc_dagster.tally import entry_agent_hint, unexpected_first_step
from stepacc_dagster.windows import moment

NEWEST_TRACES = 20_000
NEWEST_SCORES = 500
COUNTED_SCORES = 20_000
"""Scores of a source up to which they are counted one by one."""
_MOST_SOURCES = 100

_CHECKED = sa.text("SELECT checked_at FROM stepacc.feeds WHERE source = :source")
_LANDED = sa.text("SELECT EXISTS (SELECT 1 FROM stepacc.otel_spans WHERE source = :source)")
_OUTSIDE = sa.text("""
    SELECT window_key FROM stepacc.windows WHERE source = :source AND NOT window_key BETWEEN :first AND :last
    ORDER BY window_key
""")
_COVERAGE = sa.text("""
    SELECT metric, metric_version AS version, config_hash, count(*) AS windows, coalesce(sum(scored), 0) AS scored,
           coalesce(sum(failed), 0) AS failed, coalesce(sum(not_applicable), 0) AS not_applicable,
           coalesce(sum(skipped), 0) AS skipped, coalesce(sum(unsettled), 0) AS unsettled
    FROM stepacc.window_scores WHERE source = :source AND scored_at IS NOT NULL
    GROUP BY metric, metric_version, config_hash ORDER BY max(scored_at) DESC
""")
_ROWS = sa.text("""
    SELECT count(*) AS rows, count(*) FILTER (
        WHERE EXISTS (
            SELECT 1 FROM stepacc.traces trace WHERE s.partition_type = 'trace' AND trace.source = s.source
                AND trace.trace_id = s.partition_id AND trace.erased_at IS NOT NULL
        ) OR EXISTS (
            SELECT 1 FROM stepacc.sessions chat WHERE s.partition_type = 'session' AND chat.source = s.source
                AND chat.session_id = s.partition_id AND chat.erased_at IS NOT NULL
        )
    ) AS erased
    FROM stepacc.current_scores s
    WHERE source = :source AND metric = :metric AND metric_version = :version AND config_hash = :config_hash
""")
_IDENTITY = ("metric", "version", "config_hash")
_TRACES = sa.text("""
    SELECT count(*), count(gone_upstream_at) FROM (
        SELECT gone_upstream_at FROM stepacc.traces WHERE source = :source
        ORDER BY window_key DESC, trace_id DESC LIMIT :limit
    ) newest
""")
_OLDEST_OPEN = sa.text(f"""
    SELECT trace_id, start_time_unix_nano FROM stepacc.traces trace
    WHERE source = :source AND window_key = :window AND {is_open("trace")}
    ORDER BY start_time_unix_nano, trace_id LIMIT 1
""")  # noqa: S608 (parts of another module)
_ANNOTATED = """(
    SELECT NOT withdrawn FROM stepacc.annotations
    WHERE source = :source AND target_type = '{target}' AND target_id = {ident} AND partition_type = '{kind}'
      AND key = :key
    ORDER BY revision DESC LIMIT 1
) IS TRUE"""
_ANNOTATED_BY_TASK = """
    WITH newest AS MATERIALIZED (
        SELECT {kind}_id AS id, task_id FROM stepacc.{kind}s WHERE source = :source
        ORDER BY window_key DESC, {kind}_id DESC LIMIT :limit
    ),
    task AS MATERIALIZED (
        SELECT task_id, {task} AS annotated
        FROM (SELECT DISTINCT task_id FROM newest WHERE task_id IS NOT NULL) named
    )
    SELECT newest.task_id, count(*), count(*) FILTER (WHERE task.annotated IS NOT TRUE AND NOT {own})
    FROM newest LEFT JOIN task ON task.task_id = newest.task_id
    GROUP BY newest.task_id ORDER BY 3 DESC, 1
"""
_NEWEST = sa.text("""
    SELECT s.partition_type, s.partition_id, s.status, coalesce(s.code, s.reason) AS why,
           m.metadata -> 'steps' -> 0 AS first_step
    FROM (
        SELECT id, window_key, partition_type, partition_id, status, code, reason FROM stepacc.current_scores
        WHERE source = :source AND metric = :metric AND metric_version = :version AND config_hash = :config_hash
        ORDER BY window_key DESC LIMIT :limit
    ) s
    LEFT JOIN stepacc.score_metadata m ON m.score_id = s.id
""")
_AGENTS = sa.text("""
    SELECT occurrence.kind, occurrence.id, coalesce(nullif(span.agent_name, ''), span.name)
    FROM unnest(CAST(:kinds AS text[]), CAST(:ids AS text[])) occurrence (kind, id)
    CROSS JOIN LATERAL (
        SELECT occurrence.id AS trace_id WHERE occurrence.kind = 'trace'
        UNION ALL
        SELECT trace_id FROM stepacc.traces
        WHERE occurrence.kind = 'session' AND source = :source AND session_id = occurrence.id
    ) trace
    JOIN stepacc.spans span ON span.source = :source AND span.trace_id = trace.trace_id AND span.kind = 'AGENT'
""")
_SOURCES = """
    WITH RECURSIVE found AS (
        (SELECT min(source) AS source FROM stepacc.{table})
        UNION ALL
        SELECT (SELECT min(source) FROM stepacc.{table} WHERE source > found.source) FROM found
        WHERE found.source IS NOT NULL
    )
    SELECT source FROM found WHERE source IS NOT NULL LIMIT :limit
"""
"""A step through the index a source, however many rows each has."""


def checked_at(conn: sa.Connection, source: str) -> datetime | None:
    """Return when the store of a source was last asked for changes."""
    checked: datetime | None = conn.scalar(_CHECKED, {"source": source})
    return checked


def has_landed(conn: sa.Connection, source: str) -> bool:
    """Whether any span of a source is in stepacc's own table."""
    return bool(conn.scalar(_LANDED, {"source": source}))


def windows_outside(conn: sa.Connection, source: str, first: str, last: str) -> list[str]:
    """Return the windows of a source before its first and after its last partition, in order."""
    return list(conn.scalars(_OUTSIDE, {"source": source, "first": first, "last": last}))


def coverage_of(
    conn: sa.Connection, source: str, evaluator: Evaluator, others: Collection[str] | None
) -> list[Coverage]:
    """Return what is scored by each metric, version and config, from the counts of the windows; the newest first.

    Args:
        conn: where from.
        source: the source.
        evaluator: the metric and config that the source has now.
        others: metrics that are left out; None leaves out all but that one.
    """
    manifest = evaluator.metric.manifest
    now = (manifest.name, manifest.version, evaluator.config_hash)
    rows = conn.execute(_COVERAGE, {"source": source}).mappings().all()
    return [
        Coverage(**row, present=tuple(row[name] for name in _IDENTITY) == now)
        for row in rows
        if (row["metric"] == manifest.name if others is None else row["metric"] not in others)
    ]


def with_rows(
    conn: sa.Connection, source: str, evaluator: Evaluator, found: Iterable[Coverage]
) -> tuple[Coverage, ...]:
    """Return coverage with the rows that `stepacc scores` shows by what the source has now, unless they are many."""
    names = {"source": source, "metric": evaluator.headline, "version": evaluator.metric.manifest.version}
    return tuple(
        replace(each, **conn.execute(_ROWS, {**names, "config_hash": each.config_hash}).mappings().one())
        if each.present and each.occurrences <= COUNTED_SCORES
        else each
        for each in found
    )


def count_traces(conn: sa.Connection, source: str) -> tuple[int, int]:
    """Return how many traces the newest are, and how many of them their store has no longer."""
    traces, gone = conn.execute(_TRACES, {"source": source, "limit": NEWEST_TRACES}).one()
    return traces, gone


def oldest_open(
    conn: sa.Connection, source: str, window: str, settling: Settling
) -> tuple[str, datetime | None] | None:
    """Return id and start of the oldest trace of a window that has not settled."""
    row = conn.execute(_OLDEST_OPEN, {"source": source, "window": window, **settling.values}).first()
    return None if row is None else (row[0], None if row[1] is None else moment(row[1]))


def annotated_of(conn: sa.Connection, source: str, kind: PartitionType, key: str) -> list[Annotated]:
    """Return by task how many of the newest traces or sessions have no annotation of a key, the most first."""
    own = _ANNOTATED.format(target=kind, ident="newest.id", kind=kind)
    task = _ANNOTATED.format(target="task", ident="named.task_id", kind=kind)
    statement = _ANNOTATED_BY_TASK.format(kind=kind, own=own, task=task)
    names = {"source": source, "key": key, "limit": NEWEST_TRACES}
    return [Annotated(*row) for row in conn.execute(sa.text(statement), names)]


def newest_scores(
    conn: sa.Connection, source: Source, evaluator: Evaluator
) -> tuple[list[tuple[str, int]], str | None]:
    """Return why the newest occurrences without a score have none, by code, and the hint of the entry agent."""
    manifest = evaluator.metric.manifest
    names = {
        "source": source.name,
        "metric": evaluator.headline,
        "version": manifest.version,
        "config_hash": evaluator.config_hash,
        "limit": NEWEST_SCORES,
    }
    rows = list(conn.execute(_NEWEST, names))
    reasons = Counter(row.why for row in rows if row.why)
    begun = {(row.partition_type, row.partition_id): _first(row.first_step) for row in rows if row.status == "scored"}
    strays = {occurrence: name for occurrence, name in begun.items() if name}
    agents = set(_agents(conn, source.name, list(strays)))
    counted = Counter(name for occurrence, name in strays.items() if (*occurrence, name) in agents)
    return reasons.most_common(), entry_agent_hint(counted, len(begun), source.step_policy)


def sources_in(conn: sa.Connection) -> set[str]:
    """Return the names of the sources that have landed spans or windows, as far as they are few."""
    found: set[str] = set()
    for table in ("otel_spans", "windows"):
        found |= set(conn.scalars(sa.text(_SOURCES.format(table=table)), {"limit": _MOST_SOURCES}))
    return found


def _first(step: Any) -> str | None:
    return unexpected_first_step({"steps": [step]})


def _agents(conn: sa.Connection, source: str, occurrences: list[tuple[str, str]]) -> Iterator[tuple[str, str, str]]:
    if not occurrences:
        return
    names = {"source": source, "kinds": [kind for kind, _ in occurrences], "ids": [ident for _, ident in occurrences]}
    yield from ((kind, ident, name) for kind, ident, name in conn.execute(_AGENTS, names))
