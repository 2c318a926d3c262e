"""A table of one's own, one row a span, read by a mapping of its columns."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from stepacc_core.conventions.values import flattened
from stepacc_core.model import RawSpan
from stepacc_dagster.storage.annotations import AnnotationEntry
from stepacc_dagster.stores import values
from stepacc_dagster.stores.base import Changes
from stepacc_dagster.stores.errors import UnfollowableError
from stepacc_dagster.stores.serials import SerialCursor, SerialTable, bounds
from stepacc_dagster.stores.settings import TableSettings
from stepacc_dagster.stores.sql import by_trace, floored, length_in, qualified, quoted, read_only, stream, window_keys
from stepacc_dagster.stores.stamps import StampedRows
from stepacc_dagster.stores.table_columns import CheckedColumns, checked_columns
from stepacc_dagster.windows import Window, WindowKind

_TEXTS = ("parent_span_id", "name", "status", "status_message", "scope_name")
_JSON = ("attributes", "events", "resource")


@dataclass(frozen=True, slots=True)
class TableReader:
    """A read-only connection to the table."""

    connection: sa.Connection
    source: str
    settings: TableSettings
    checked: CheckedColumns

    def traces(self, window: Window) -> Iterator[tuple[str, list[RawSpan]]]:
        """Yield, trace by trace in order of their ids, all spans of the traces that start in a window.

        A trace starts with its earliest timed span; one without any time is in no window.
        """
        column, table, own = self.checked, self._table, self._own
        trace, start = column.quoted("trace_id"), column.quoted("start_time")
        single = (f"CAST({quoted(name)} AS text)" for name in self.settings.attribute_columns.values())
        whole = (column.as_text(name) for name in (*_TEXTS, *_JSON))
        read = [column.as_text("span_id"), column.time("start_time"), column.time("end_time"), *whole, *single]
        query = f"""
            SELECT {column.as_text("trace_id", "trace.id")}, span.* FROM (
                SELECT id FROM (
                    SELECT DISTINCT {trace} AS id FROM {table} WHERE {own} AND {start} >= :start AND {start} < :end
                ) candidate WHERE id IS NOT NULL AND NOT EXISTS (
                    SELECT 1 FROM {table} WHERE {own} AND {trace} = candidate.id AND {start} < :start OFFSET 0
                ) ORDER BY id
            ) trace CROSS JOIN LATERAL (
                SELECT {", ".join(read)} FROM {table} AS own_row WHERE {own} AND {trace} = trace.id
                ORDER BY own_row.{start}, own_row.{column.quoted("span_id")} OFFSET 0
            ) span
        """  # noqa: S608 (quoted names)
        limits = self._limits | {"start": column.bound(window.start_ns), "end": column.bound(window.end_ns)}
        for trace_id, rows in by_trace(stream(self.connection, query, limits)):
            yield trace_id, [self._span(trace_id, row) for row in rows]

    def changes(self, cursor: str | None, kind: WindowKind) -> Changes:
        """Return the windows of traces with rows that arrived since a cursor.

        Raises:
            UnfollowableError: the mapping names no column `arrival`.
        """
        if self.settings.columns.arrival is None:
            msg = (
                f"What changed in {self._name} cannot be told: name under columns.arrival the column that tells new "
                "rows, a number from a sequence or the time of the last write."
            )
            raise UnfollowableError(msg)
        if self.checked.is_time("arrival"):
            return self._changes_by_time(cursor, kind)
        return self._changes_by_number(cursor, kind)

    def expectations(self) -> Iterator[AnnotationEntry]:
        """Yield nothing: the table holds spans only."""
        yield from ()

    def _changes_by_number(self, cursor: str | None, kind: WindowKind) -> Changes:
        before = SerialCursor.of(cursor)
        serial = SerialTable(self._table, self.checked.quoted("arrival"))
        now = serial.now(self.connection, self.settings.reread_ids)
        if now is None:
            return Changes((), cursor or "")
        trace, unit_ns = self.checked.quoted("trace_id"), self.checked.unit_ns("start_time")
        limits: dict[str, Any] = self._limits | {"length": length_in(kind, unit_ns)}
        changed = f"SELECT {trace} AS trace FROM {self._table}"  # noqa: S608 (quoted names)
        if before is not None:
            changed = serial.since(f"{trace} AS trace")
            limits |= bounds(before, now)
        query = f"""
            SELECT DISTINCT {floored("start")} FROM (SELECT DISTINCT trace FROM ({changed}) each) traced
            CROSS JOIN LATERAL (SELECT {self._start} AS start) span WHERE start IS NOT NULL
        """  # noqa: S608 (quoted names)
        starts = self.connection.scalars(sa.text(query), limits)
        return Changes(window_keys(starts, kind, unit_ns), now.written())

    def _changes_by_time(self, cursor: str | None, kind: WindowKind) -> Changes:
        trace, span, written = (self.checked.quoted(name) for name in ("trace_id", "span_id", "arrival"))
        bound = {name: self.checked.moment("arrival", name) for name in ("from", "last")}
        stamped = StampedRows(
            f"SELECT {self.checked.time('arrival', f'max({written})')} FROM {self._table} WHERE {self._own}",  # noqa: S608
            f"""
                SELECT {trace} AS trace, concat_ws('/', {trace}, {span}) AS id, {self.checked.time("arrival")} AS stamp
                FROM {self._table}
                WHERE {self._own} AND {written} > {bound["from"]} AND {written} <= {bound["last"]}
            """,  # noqa: S608 (quoted names)
            self._start,
            self.checked.unit_ns("start_time"),
        )
        return stamped.changes(self.connection, cursor, kind, self.settings.reread_seconds, self._limits)

    def _span(self, trace_id: str, row: tuple[Any, ...]) -> RawSpan:
        span_id, start, end, parent_id, name, state, message, scope, attributes, events, resource, *single = row
        found = values.json_object(attributes)
        if self.settings.nested_attributes:
            found = flattened(found)
        found |= values.present(zip(self.settings.attribute_columns, single, strict=True))
        return RawSpan(
            trace_id,
            span_id or "",
            name or "",
            values.parent(parent_id),
            self.checked.nanoseconds(start),
            self.checked.nanoseconds(end),
            values.status(state),
            message or "",
            found,
            values.events(values.json_value(events)),
            values.json_object(resource),
            scope or "",
        )

    @property
    def _start(self) -> str:
        """The SQL of the start of `traced.trace`, in the unit of the column."""
        start = self.checked.time("start_time", f"min({self.checked.quoted('start_time')})")
        trace = self.checked.quoted("trace_id")
        return f"(SELECT {start} FROM {self._table} WHERE {self._own} AND {trace} = traced.trace)"  # noqa: S608

    @property
    def _own(self) -> str:
        """The SQL that leaves only rows of the projects that are read."""
        column = self.settings.project_column
        return f"CAST({quoted(column)} AS text) = ANY(:projects)" if column and self.settings.projects else "TRUE"

    @property
    def _limits(self) -> dict[str, Any]:
        return {"projects": list(self.settings.projects)} if self.settings.projects else {}

    @property
    def _table(self) -> str:
        return qualified(self.settings.schema, self.settings.table)

    @property
    def _name(self) -> str:
        return f"{self.settings.schema}.{self.settings.table}"


@dataclass(frozen=True, slots=True)
class TableStore:
    """The spans in a table of one's own."""

    engine: sa.Engine
    source: str
    settings: TableSettings

    @contextmanager
    def open(self) -> Iterator[TableReader]:
        """Open the table for reading, once every column of the mapping is found to be of a type that can be read."""
        with read_only(self.engine) as connection:
            yield TableReader(connection, self.source, self.settings, checked_columns(connection, self.settings))
