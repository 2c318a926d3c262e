"""The rows of an export, read as a stream: neither side holds more of them than a network buffer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from stepacc_core.model import PartitionType
from stepacc_dagster.export.choice import Kind
from stepacc_dagster.export.columns import Column, Row
from stepacc_dagster.storage.copy import copy_out

_STORED = sa.text("""
    SELECT DISTINCT metric, metric_version, config_hash FROM stepacc.scores
    WHERE source = :source AND window_key BETWEEN :first AND :last
""")


@dataclass(frozen=True, slots=True)
class Extent:
    """From where and when scores are exported.

    Attributes:
        source: the source.
        first: key of the first window.
        last: key of the last window, included.
        partition_type: traces or sessions only; None: both.
        history: whether evaluations that are no longer current come too.
    """

    source: str
    first: str
    last: str
    partition_type: PartitionType | None = None
    history: bool = False


def stored_kinds(conn: sa.Connection, extent: Extent) -> list[Kind]:
    """Return the kinds of scores there are in the windows of an extent."""
    names = {"source": extent.source, "first": extent.first, "last": extent.last}
    return [Kind(*row) for row in conn.execute(_STORED, names)]


def score_rows(conn: sa.Connection, extent: Extent, kinds: Sequence[Kind], columns: Sequence[Column]) -> Iterator[Row]:
    """Read the rows of an export, by window, traces before sessions, by id, metric, version, config and evaluation.

    They are those of one moment, whatever is written meanwhile. Whoever may not come to the end closes the iterator
    (`storage.copy.closed`) before the connection is used again.
    """
    if not kinds:
        return iter(())
    parameters: dict[str, str] = {"source": extent.source, "first": extent.first, "last": extent.last}
    tuples = []
    for number, kind in enumerate(kinds):
        own = {f"m{number}": kind.metric, f"v{number}": kind.metric_version, f"c{number}": kind.config_hash}
        parameters |= own
        tuples.append(f"({', '.join(f'{{{name}}}' for name in own)})")
    conditions = [
        "s.source = {source}",
        "s.window_key BETWEEN {first} AND {last}",
        f"(s.metric, s.metric_version, s.config_hash) IN ({', '.join(tuples)})",
    ]
    if extent.partition_type is not None:
        parameters["type"] = extent.partition_type
        conditions.append("s.partition_type = {type}")
    query = f"""
        SELECT {", ".join(column.query for column in columns)}
        {_HISTORY if extent.history else _CURRENT}
        LEFT JOIN stepacc.annotations a ON a.id = s.annotation_id
        LEFT JOIN stepacc.score_metadata m ON m.score_id = s.id
        WHERE {" AND ".join(conditions)}
        ORDER BY s.window_key, s.partition_type DESC, s.partition_id, s.metric, s.metric_version, s.config_hash, s.id
    """
    return copy_out(conn, query, [column.wire_type for column in columns], parameters)


_CURRENT = "FROM stepacc.current_scores s CROSS JOIN (SELECT 'current'::text AS state) l"
_HISTORY = "FROM stepacc.scores s JOIN stepacc.score_lineage l ON l.score_id = s.id"
