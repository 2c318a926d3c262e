"""The columns of an export: the same in every format, in this order, each with one type."""

from dataclasses import dataclass
from typing import Any, Literal

from stepacc_dagster.storage.copy import ColumnType

ColumnKind = Literal["text", "integer", "number", "moment", "json"]
"""What a value is in Python: str, int, float, microseconds since the Unix epoch as int, JSON text; or None."""

Row = tuple[Any, ...]
"""One value per column."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of an export.

    Attributes:
        name: its name.
        kind: what its values are.
        query: SQL of a value; `s` is the score, `a` its annotation, `l` its lineage, `m` its metadata.
        about: what it says, in one line.
        required: whether every row has a value.
    """

    name: str
    kind: ColumnKind
    query: str
    about: str
    required: bool = False

    @property
    def wire_type(self) -> ColumnType:
        """The type in which Postgres sends it."""
        return _WIRE[self.kind]


_WIRE: dict[ColumnKind, ColumnType] = {
    "text": "text",
    "integer": "int8",
    "number": "float8",
    "moment": "int8",
    "json": "text",
}


def _text(name: str, about: str, query: str | None = None, *, required: bool = False) -> Column:
    return Column(name, "text", query or f"s.{name}", about, required)


def _integer(name: str, about: str, query: str | None = None, *, required: bool = False) -> Column:
    return Column(name, "integer", f"({query or f's.{name}'})::int8", about, required)


def _moment(name: str, about: str) -> Column:
    return Column(name, "moment", f"(extract(epoch FROM s.{name}) * 1000000)::int8", about, required=True)


COLUMNS = (
    _text("source", "name of the source", required=True),
    _text("window_key", "day or hour in which the trace or session starts, UTC", required=True),
    _text("partition_type", "trace or session", required=True),
    _text("partition_id", "id of the trace or session", required=True),
    _text("session_id", "session of the trace, or the session itself"),
    _text("task_id", "task it worked on"),
    _text("metric", "name of the metric, or of the member of its family", required=True),
    _text("metric_version", "version of the metric; scores of two versions do not compare", required=True),
    _text("config_hash", "hash of the config; scores by two configs do not compare", required=True),
    _text("status", "scored, failed or not_applicable", required=True),
    Column("score", "number", "s.score", "the score; only of a row whose status is scored"),
    _text("code", "why it failed"),
    _text("reason", "why the metric does not apply"),
    _text("message", "the failure as a sentence"),
    _integer("total_steps", "expected steps"),
    _integer("correct_steps", "expected steps that were observed where they were due"),
    _integer("edit_distance", "insertions, deletions and substitutions"),
    _text("expected_from", "annotations, column or config"),
    _text("reference_hash", "hash of what it was measured against"),
    _text("steps_hash", "hash of the observed steps"),
    _integer("annotation_id", "annotation revision that set the expectation"),
    _integer("annotation_revision", "number of that revision", "a.revision"),
    _text("annotation_author", "who wrote it", "a.author"),
    _text("dagster_run_id", "run that last confirmed the evaluation"),
    _moment("evaluated_at", "when the result was written"),
    _moment("confirmed_at", "when the same evaluation was last made"),
    _text("state", "current; with `--history` also superseded or retired", "l.state", required=True),
    _integer("score_id", "id of the evaluation, unique in its database", "s.id", required=True),
)
"""The columns of every export."""

METADATA = Column("metadata", "json", "m.metadata::text", "what the metric says of the score, with `--with-metadata`")
"""The last column, where it is asked for."""


def columns(*, with_metadata: bool) -> tuple[Column, ...]:
    """Return the columns of an export."""
    return (*COLUMNS, METADATA) if with_metadata else COLUMNS


def position(name: str) -> int:
    """Return the place of a column in a row."""
    return _POSITIONS[name]


_POSITIONS = {column.name: place for place, column in enumerate((*COLUMNS, METADATA))}
