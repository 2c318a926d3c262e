"""The Postgres database of Arize Phoenix.

Phoenix turns dotted attribute names into objects in objects, keeps times in microseconds, and numbers spans in the
order in which they arrive; a span that came once never changes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from stepacc_core.annotations import EXPECTED_STEPS_KEY
from stepacc_core.conventions.values import flattened
from stepacc_core.model import RawSpan
from stepacc_dagster.storage.annotations import AnnotationEntry
from stepacc_dagster.stores import values
from stepacc_dagster.stores.base import Changes
from stepacc_dagster.stores.phoenix_tables import TABLES
from stepacc_dagster.stores.projects import named_projects
from stepacc_dagster.stores.read_columns import needed
from stepacc_dagster.stores.serials import SerialCursor, SerialTable, bounds
from stepacc_dagster.stores.settings import PhoenixSettings
from stepacc_dagster.stores.sql import (
    by_trace,
    floored,
    length_in,
    microseconds,
    qualified,
    read_only,
    require_columns,
    stream,
    window_keys,
)
from stepacc_dagster.windows import Window, WindowKind, moment

_ADVICE = (
    "It was read with the tables of Phoenix 20; upgrade Phoenix, or name another schema or database in the settings of "
    "the store."
)
_NEEDED_FOR_EXPECTATIONS = {
    "datasets": ("id", "name"),
    "dataset_examples": ("id", "dataset_id", "span_rowid"),
    "dataset_example_revisions": ("id", "dataset_example_id", "output", "metadata", "revision_kind"),
}
_KIND = "openinference.span.kind"
_MICROSECOND = 1_000


@dataclass(frozen=True, slots=True)
class PhoenixReader:
    """A read-only connection to the database."""

    connection: sa.Connection
    source: str
    settings: PhoenixSettings
    projects: list[int]

    def traces(self, window: Window) -> Iterator[tuple[str, list[RawSpan]]]:
        """Yield, trace by trace in the order of their first arrival, all spans of the traces that start in a window.

        A trace starts with its earliest span: Phoenix moves a trace's start when an earlier one arrives.
        """
        query = f"""
            SELECT trace.trace_id, span.* FROM (
                SELECT id, trace_id FROM {self._table("traces")}
                WHERE project_rowid = ANY(:projects) AND start_time >= :start AND start_time < :end ORDER BY id
            ) trace CROSS JOIN LATERAL (
                SELECT span_id, parent_id, name, span_kind,
                       {microseconds("start_time")}, {microseconds("end_time")},
                       CAST(attributes AS text), CAST(events AS text), status_code, status_message
                FROM {self._table("spans")} WHERE trace_rowid = trace.id ORDER BY id OFFSET 0
            ) span
        """  # noqa: S608 (quoted names)
        limits = {"projects": self.projects, "start": moment(window.start_ns), "end": moment(window.end_ns)}
        for trace_id, rows in by_trace(stream(self.connection, query, limits)):
            yield trace_id, [_span(trace_id, row) for row in rows]

    def changes(self, cursor: str | None, kind: WindowKind) -> Changes:
        """Return the windows of traces that got spans since a cursor, which is a span's serial number."""
        before = SerialCursor.of(cursor)
        serial = SerialTable(self._table("spans"), "id")
        now = serial.now(self.connection, self.settings.reread_ids)
        if now is None:
            return Changes((), cursor or "")
        limits: dict[str, Any] = {"projects": self.projects, "length": length_in(kind, _MICROSECOND)}
        where = ""
        if before is not None:
            where = f" AND id IN ({serial.since('trace_rowid')})"
            limits |= bounds(before, now)
        starts = self.connection.scalars(
            sa.text(f"""
                SELECT DISTINCT {floored(microseconds("start_time"))} FROM {self._table("traces")}
                WHERE project_rowid = ANY(:projects){where}
            """),  # noqa: S608 (quoted names)
            limits,
        )
        return Changes(window_keys(starts, kind, _MICROSECOND), now.written())

    def expectations(self) -> Iterator[AnnotationEntry]:
        """Yield the `expected_steps` in output or metadata of dataset examples that were made from a span.

        Of several examples of one trace the one revised last counts.
        """
        require_columns(self.connection, self.settings.schema, _NEEDED_FOR_EXPECTATIONS, _ADVICE)
        query = f"""
            SELECT DISTINCT ON (trace.trace_id) trace.trace_id, CAST(found.expected AS text), dataset.name, example.id
            FROM {self._table("dataset_examples")} example
            JOIN {self._table("datasets")} dataset ON dataset.id = example.dataset_id
            JOIN {self._table("spans")} span ON span.id = example.span_rowid
            JOIN {self._table("traces")} trace ON trace.id = span.trace_rowid
            CROSS JOIN LATERAL (
                SELECT id, output, metadata, revision_kind FROM {self._table("dataset_example_revisions")}
                WHERE dataset_example_id = example.id ORDER BY id DESC LIMIT 1
            ) revision
            CROSS JOIN LATERAL (
                SELECT coalesce(nullif(revision.output -> :key, 'null'), nullif(revision.metadata -> :key, 'null'))
                    AS expected
            ) found
            WHERE trace.project_rowid = ANY(:projects) AND revision.revision_kind <> 'DELETE'
              AND found.expected IS NOT NULL
            ORDER BY trace.trace_id, revision.id DESC
        """  # noqa: S608 (quoted names)
        limits = {"projects": self.projects, "key": EXPECTED_STEPS_KEY}
        for trace_id, expected, dataset, example in stream(self.connection, query, limits):
            origin = f"Phoenix dataset {dataset!r}, example {example}"
            yield AnnotationEntry(self.source, "trace", trace_id, values.json_value(expected), origin=origin)

    def _table(self, name: str) -> str:
        return qualified(self.settings.schema, name)


@dataclass(frozen=True, slots=True)
class PhoenixStore:
    """The traces of some projects of a Phoenix server."""

    engine: sa.Engine
    source: str
    settings: PhoenixSettings

    @contextmanager
    def open(self) -> Iterator[PhoenixReader]:
        """Open the database for reading."""
        schema = self.settings.schema
        with read_only(self.engine) as connection:
            require_columns(connection, schema, needed(TABLES), _ADVICE)
            known = connection.execute(sa.text(f"SELECT name, id FROM {qualified(schema, 'projects')}"))  # noqa: S608
            projects = named_projects("Phoenix", "project", self.settings.projects, ((n, i) for n, i in known))
            yield PhoenixReader(connection, self.source, self.settings, projects)


def _span(trace_id: str, row: tuple[Any, ...]) -> RawSpan:
    span_id, parent_id, name, kind, start, end, attributes, events, state, message = row
    found = flattened(values.json_object(attributes))
    if kind and kind != "UNKNOWN":
        found.setdefault(_KIND, kind)
    return RawSpan(
        trace_id,
        span_id,
        name or "",
        values.parent(parent_id),
        values.nanoseconds(start),
        values.nanoseconds(end),
        values.status(state),
        message or "",
        found,
        values.events(values.json_value(events)),
    )
