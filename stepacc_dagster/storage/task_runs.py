"""The runs of a task: its traces, whatever their windows, as `stepacc suggest` learns from them."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter

import sqlalchemy as sa

from stepacc_core.model import CanonicalPartition
from stepacc_dagster.storage import encode
from stepacc_dagster.storage.copy import ArrayType, ColumnType, closed, copy_out
from stepacc_dagster.storage.span_rows import spans_of, spans_query, spans_types

_RUNS = sa.text("""
    SELECT trace_id, session_id, task_id FROM stepacc.traces
    WHERE source = :source AND settled AND erased_at IS NULL
      AND (CAST(:task_id AS text) IS NULL OR task_id = :task_id)
      AND (CAST(:trace_ids AS text[]) IS NULL OR trace_id = ANY (:trace_ids))
    ORDER BY start_time_unix_nano DESC NULLS LAST, trace_id LIMIT :limit
""")
_SPANS = f"""
    SELECT occurrence.trace_id, span.*
    FROM unnest(CAST({{trace_ids}} AS text[])) WITH ORDINALITY occurrence (trace_id, place)
    JOIN LATERAL ({spans_query("source = {source} AND trace_id = occurrence.trace_id", content=True)}) span ON true
    ORDER BY place, chunk
"""  # noqa: S608 (names of this package)
_TYPES: list[ColumnType | ArrayType] = ["text", *spans_types(content=True)]


def load_task_runs(
    conn: sa.Connection, source: str, task_id: str | None, trace_ids: Sequence[str] | None, limit: int
) -> Iterator[CanonicalPartition]:
    """Yield whole traces of a source as partitions, without annotations, in order of their ids.

    Args:
        conn: where from; busy until the iterator is exhausted or closed.
        source: the source.
        task_id: of these traces; None for any.
        trace_ids: the traces to look among; None for all.
        limit: how many at most, those that started last.
    """
    given = {
        "source": encode.text(source),
        "task_id": None if task_id is None else encode.stored_id(task_id),
        "trace_ids": None if trace_ids is None else [encode.stored_id(trace_id) for trace_id in trace_ids],
        "limit": limit,
    }
    known = {row.trace_id: row for row in conn.execute(_RUNS, given)}
    if not known:
        return
    rows = copy_out(conn, _SPANS, _TYPES, {"source": given["source"], "trace_ids": sorted(known)})
    with closed(rows):
        for trace_id, group in groupby(rows, key=itemgetter(0)):
            yield CanonicalPartition(
                partition_type="trace",
                partition_id=trace_id,
                session_id=known[trace_id].session_id,
                task_id=known[trace_id].task_id,
                spans=tuple(span for row in group for span in spans_of(trace_id, row[1:], content=True)),
            )
