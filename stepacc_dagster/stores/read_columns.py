"""Columns that readers read in a store: what has to be there, what it means, and what of a span is made of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

SpanField = Literal[
    "trace_id",
    "span_id",
    "name",
    "parent_span_id",
    "start_time_unix_nano",
    "end_time_unix_nano",
    "status",
    "status_message",
    "attributes",
    "events",
    "resource",
    "scope_name",
    "scope_version",
]
"""A field of `stepacc_core.model.RawSpan`."""


@dataclass(frozen=True, slots=True)
class ReadColumn:
    """A column that is read.

    Attributes:
        name: its name in the table.
        type: its type there, as Postgres shows it.
        description: what it holds, and what it is read for.
        fields: the fields of a raw span that are made of it; none where it only chooses which spans are read, or tells
            that they changed.
    """

    name: str
    type: str
    description: str
    fields: tuple[SpanField, ...] = ()


ReadTables = Mapping[str, Sequence[ReadColumn]]
"""Columns by the table, without schema, that has them."""


def needed(tables: ReadTables) -> dict[str, tuple[str, ...]]:
    """Return the names of the columns by table, as `sql.require_columns` takes them."""
    return {table: tuple(column.name for column in columns) for table, columns in tables.items()}


def side_by_side(tables: ReadTables, spans: str) -> tuple[ReadColumn, ...]:
    """Return the columns of several tables in one list.

    Those of the table `spans` keep their names and come first; the others' names begin with their table's, as in
    `traces.trace_id`.
    """
    others = (
        replace(column, name=f"{table}.{column.name}")
        for table, columns in tables.items()
        if table != spans
        for column in columns
    )
    return (*tables[spans], *others)
