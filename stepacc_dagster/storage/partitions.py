"""Canonical partitions: what a metric scores, read from the tables with the annotation in force."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import sqlalchemy as sa

from stepacc_core.metrics.manifest import AnnotationKey
from stepacc_core.model import AnnotationRef, CanonicalPartition, CanonicalSpan, Gap, PartitionType
from stepacc_dagster.storage import encode
from stepacc_dagster.storage.copy import ColumnType, closed, copy_out
from stepacc_dagster.storage.settling import CLOSED, CLOSED_DETAIL, Settling, is_open
from stepacc_dagster.storage.span_rows import gaps_of, spans_of, spans_query, spans_types
from stepacc_dagster.windows import Window

# Newest revision of each target; a withdrawn one says nothing, so the task's is next.
_IN_FORCE = """
    LEFT JOIN LATERAL (
        SELECT candidate.id, candidate.revision, candidate.value FROM (
            (
                SELECT 1 AS rank, id, revision, value, withdrawn FROM stepacc.annotations
                WHERE source = {{source}} AND target_type = '{kind}' AND target_id = occurrence.{kind}_id
                  AND partition_type = '{kind}' AND key = {{key}}
                ORDER BY revision DESC LIMIT 1
            )
            UNION ALL
            (
                SELECT 2, id, revision, value, withdrawn FROM stepacc.annotations
                WHERE source = {{source}} AND target_type = 'task' AND target_id = occurrence.task_id
                  AND partition_type = '{kind}' AND key = {{key}}
                ORDER BY revision DESC LIMIT 1
            )
        ) candidate WHERE NOT candidate.withdrawn ORDER BY candidate.rank LIMIT 1
    ) annotation ON true
"""
_OPEN = is_open("{trace}", now="{{now}}", quiet="{{quiet}}", close="{{close}}")
_GAPS = f"""
    CASE WHEN {{trace}}.settled OR {{trace}}.start_time_unix_nano IS NULL THEN {{trace}}.gaps
    ELSE {{trace}}.gaps || jsonb_build_array(
        jsonb_build_object('kind', '{CLOSED}', 'detail', '{CLOSED_DETAIL}', 'span_ids', CAST('[]' AS jsonb))
    ) END AS gaps
"""
# What all spans of a trace share comes with the first of them only. The order of the rows is that of the CTE: it is
# materialised and everything joined to it depends on its row, so nothing but a nested loop can be made of it.
_HEAD = "CASE WHEN coalesce(span.chunk, 0) = 0 THEN occurrence.{name} END"
_HEAD_NAMES = ("task_id", "annotation_id", "revision", "value", "gaps")
_SELECT = f"""
    SELECT occurrence.partition_id, occurrence.session_id, occurrence.trace_id,
           {", ".join(_HEAD.format(name=name) for name in _HEAD_NAMES)}, span.*
    FROM occurrence LEFT JOIN LATERAL ({{spans}}) span ON true
"""  # noqa: S608 (names of this module)
_SPANS_OF = "source = {source} AND trace_id = occurrence.trace_id"
_TRACES = f"""
    WITH occurrence AS MATERIALIZED (
        SELECT occurrence.trace_id AS partition_id, occurrence.session_id, occurrence.trace_id, occurrence.task_id,
               annotation.id AS annotation_id, annotation.revision, annotation.value,
               {_GAPS.format(trace="occurrence")}
        FROM stepacc.traces occurrence {_IN_FORCE.format(kind="trace")}
        WHERE occurrence.source = {{source}} AND occurrence.window_key = {{window}} AND occurrence.erased_at IS NULL
          AND NOT {_OPEN.format(trace="occurrence")}
        ORDER BY occurrence.trace_id
    )
"""  # noqa: S608 (names of this module)
_SESSIONS = f"""
    WITH occurrence AS MATERIALIZED (
        SELECT occurrence.session_id AS partition_id, occurrence.session_id, trace.trace_id, occurrence.task_id,
               annotation.id AS annotation_id, annotation.revision, annotation.value,
               {_GAPS.format(trace="trace")}
        FROM stepacc.sessions occurrence {_IN_FORCE.format(kind="session")}
        JOIN stepacc.traces trace ON trace.source = {{source}} AND trace.session_id = occurrence.session_id
        WHERE occurrence.source = {{source}} AND occurrence.window_key = {{window}} AND occurrence.erased_at IS NULL
          AND NOT EXISTS (
              SELECT 1 FROM stepacc.traces member
              WHERE member.source = {{source}} AND member.session_id = occurrence.session_id
                AND {_OPEN.format(trace="member")}
          )
        ORDER BY occurrence.session_id, trace.start_time_unix_nano NULLS LAST, trace.trace_id
    )
"""  # noqa: S608 (names of this module)
_HEAD_TYPES: tuple[ColumnType, ...] = ("text", "text", "text", "text", "int8", "int4", "jsonb", "jsonb")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What of a partition is wanted.

    Attributes:
        key: the annotation key.
        content: whether the arguments, outputs, tokens and costs of its spans are; they are None otherwise.
    """

    key: AnnotationKey = "expected_steps"
    content: bool = True


ALL = Wanted()
"""Expected steps, and all of each span."""


def load_trace_partitions(
    conn: sa.Connection,
    source: str,
    window: Window,
    settling: Settling,
    wanted: Wanted = ALL,
) -> Iterator[CanonicalPartition]:
    """Yield the traces that start in a window as partitions, in order of their ids, those that have settled.

    Erased ones are left out.

    The column that `wanted.key` names, and `annotation`, are those of the annotation of this key in force: one made for
    this very trace, else one made for its task. The column of any other key is empty. Memory holds one partition at a
    time; the connection is busy until the iterator is exhausted or closed.
    """
    return _load(conn, _TRACES, "trace", source, window, settling, wanted)


def load_session_partitions(
    conn: sa.Connection,
    source: str,
    window: Window,
    settling: Settling,
    wanted: Wanted = ALL,
) -> Iterator[CanonicalPartition]:
    """Yield the sessions whose first trace starts in a window, in order of their ids, with all their spans.

    Only those of which all traces have settled and none was erased. Their traces come in order of their start, in
    whatever window that is; a session's task is that of its first trace.
    Otherwise as `load_trace_partitions`.
    """
    return _load(conn, _SESSIONS, "session", source, window, settling, wanted)


def _load(  # noqa: PLR0913, PLR0917 (what is loaded, and how)
    conn: sa.Connection,
    query: str,
    kind: PartitionType,
    source: str,
    window: Window,
    settling: Settling,
    wanted: Wanted,
) -> Iterator[CanonicalPartition]:
    names = {"source": encode.text(source), "window": window.key, "key": wanted.key, **settling.values}
    select = query + _SELECT.format(spans=spans_query(_SPANS_OF, content=wanted.content))
    rows = copy_out(conn, select, [*_HEAD_TYPES, *spans_types(content=wanted.content)], names)
    with closed(rows):
        for partition_id, group in groupby(rows, key=itemgetter(0)):
            yield _partition(kind, partition_id, group, wanted)


def _partition(
    kind: PartitionType, partition_id: str, rows: Iterator[tuple[Any, ...]], wanted: Wanted
) -> CanonicalPartition:
    head: tuple[Any, ...] = ()
    spans: list[CanonicalSpan] = []
    gaps: list[Gap] = []
    for row in rows:
        head = head or row
        if row[7] is not None:
            gaps += gaps_of(row[7])
        spans += spans_of(row[2], row[len(_HEAD_TYPES) :], content=wanted.content)
    _, session_id, _, task_id, annotation_id, revision, value = head[:7]
    said = None if value is None else encode.decode(value)
    return CanonicalPartition(
        partition_type=kind,
        partition_id=partition_id,
        session_id=session_id,
        task_id=task_id,
        expected_steps=said if wanted.key == "expected_steps" else None,
        reference_trajectories=said if wanted.key == "reference_trajectories" else None,
        annotation=None if annotation_id is None else AnnotationRef(annotation_id, revision),
        spans=tuple(spans),
        gaps=tuple(gaps),
    )
