"""The Postgres database of Langfuse 2, the last version that kept traces in Postgres.

Times there are milliseconds in UTC without a zone. `updated_at` has no index, so changes are looked for among the rows
created in a look-back, which has one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from stepacc_core.model import RawSpan
from stepacc_dagster.storage.annotations import AnnotationEntry
from stepacc_dagster.stores import cursors, stamps
from stepacc_dagster.stores.base import Changes
from stepacc_dagster.stores.langfuse_v2_rows import COLUMNS_OF_OBSERVATION, COLUMNS_OF_TRACE, spans_of
from stepacc_dagster.stores.langfuse_v2_tables import TABLES
from stepacc_dagster.stores.read_columns import needed
from stepacc_dagster.stores.settings import LangfuseV2Settings
from stepacc_dagster.stores.sql import by_trace, microseconds, qualified, read_only, require_columns, stream
from stepacc_dagster.windows import Window, WindowKind, moment

_ADVICE = (
    "It was read with the tables of Langfuse 2.95; versions 3 and later keep traces in ClickHouse, which is not read. "
    "Name another schema or database in the settings of the store."
)


@dataclass(frozen=True, slots=True)
class LangfuseV2Reader:
    """A read-only connection to the database."""

    connection: sa.Connection
    source: str
    settings: LangfuseV2Settings

    def traces(self, window: Window) -> Iterator[tuple[str, list[RawSpan]]]:
        """Yield, trace by trace in order of their ids, the spans of the traces that start in a window.

        A trace starts with its row's time or its earliest observation, whichever is earlier. The trace's row is the
        root span, and observations without a parent are its children.
        """
        traces, observations, own = self._traces, self._observations, self._own
        query = f"""
            SELECT trace.id, row.* FROM (
                SELECT id FROM (
                    SELECT id FROM {traces} WHERE {own} AND "timestamp" >= :start AND "timestamp" < :end
                    UNION
                    SELECT trace_id FROM {observations} WHERE {own} AND start_time >= :start AND start_time < :end
                ) candidate WHERE id IS NOT NULL AND NOT EXISTS (
                    SELECT 1 FROM {traces} WHERE id = candidate.id AND {own} AND "timestamp" < :start OFFSET 0
                ) AND NOT EXISTS (
                    SELECT 1 FROM {observations}
                    WHERE trace_id = candidate.id AND {own} AND start_time < :start OFFSET 0
                ) ORDER BY id
            ) trace CROSS JOIN LATERAL (
                SELECT {COLUMNS_OF_TRACE} FROM {traces} WHERE id = trace.id AND {own}
                UNION ALL
                (SELECT {COLUMNS_OF_OBSERVATION} FROM {observations} WHERE trace_id = trace.id AND {own}
                 ORDER BY start_time, created_at, id)
                OFFSET 0
            ) row
        """  # noqa: S608 (quoted names)
        limits = self._limits | {"start": _naive(window.start_ns), "end": _naive(window.end_ns)}
        for trace_id, rows in by_trace(stream(self.connection, query, limits)):
            yield trace_id, spans_of(trace_id, rows)

    def changes(self, cursor: str | None, kind: WindowKind) -> Changes:
        """Return the windows of traces of which something was written since a cursor, which is a time."""
        own = self._own
        if cursors.content(cursor, stamps.KIND) is not None:
            own += f" AND created_at > {self._oldest}"
        newest = f"""
            SELECT max(stamp) FROM (
                SELECT {microseconds("max(updated_at)")} AS stamp FROM {self._traces} WHERE {own}
                UNION ALL
                SELECT {microseconds("max(updated_at)")} FROM {self._observations} WHERE {own}
            ) each
        """  # noqa: S608 (quoted names)
        rows = " UNION ALL ".join(
            f"""
                SELECT {trace} AS trace, id, {microseconds("updated_at")} AS stamp FROM {table}
                WHERE {own} AND {microseconds("updated_at")} > :from AND {microseconds("updated_at")} <= :last
            """  # noqa: S608 (quoted names)
            for table, trace in ((self._traces, "id"), (self._observations, "trace_id"))
        )
        stamped = stamps.StampedRows(
            newest,
            rows,
            f"""(
                SELECT {microseconds("min(earliest)")} FROM (
                    SELECT "timestamp" AS earliest FROM {self._traces} WHERE id = traced.trace AND {self._own}
                    UNION ALL
                    SELECT min(start_time) FROM {self._observations} WHERE trace_id = traced.trace AND {self._own}
                ) each
            )""",  # noqa: S608 (quoted names)
            1_000,
        )
        limits = self._limits | {"days": self.settings.look_back_days}
        return stamped.changes(self.connection, cursor, kind, self.settings.reread_seconds, limits)

    def expectations(self) -> Iterator[AnnotationEntry]:
        """Yield nothing: Langfuse 2 has no place for the steps that a trace should take."""
        yield from ()

    @property
    def _oldest(self) -> str:
        """The SQL of the start of the look-back; in a store that has come to rest it rests too."""
        newest = f"(SELECT max(created_at) FROM {self._traces})"  # noqa: S608 (quoted names)
        return f"least(now() AT TIME ZONE 'UTC', {newest}) - make_interval(days => :days)"

    @property
    def _own(self) -> str:
        """The SQL that leaves only rows of the projects that are read."""
        return "project_id = ANY(:projects)" if self.settings.project_ids else "TRUE"

    @property
    def _limits(self) -> dict[str, Any]:
        return {"projects": list(self.settings.project_ids)} if self.settings.project_ids else {}

    @property
    def _traces(self) -> str:
        return qualified(self.settings.schema, "traces")

    @property
    def _observations(self) -> str:
        return qualified(self.settings.schema, "observations")


@dataclass(frozen=True, slots=True)
class LangfuseV2Store:
    """The traces of some projects of a Langfuse 2 server."""

    engine: sa.Engine
    source: str
    settings: LangfuseV2Settings

    @contextmanager
    def open(self) -> Iterator[LangfuseV2Reader]:
        """Open the database for reading."""
        with read_only(self.engine) as connection:
            require_columns(connection, self.settings.schema, needed(TABLES), _ADVICE)
            yield LangfuseV2Reader(connection, self.source, self.settings)


def _naive(ns: int) -> object:
    """Return a moment as Langfuse stores it: in UTC, without saying so."""
    return moment(ns).replace(tzinfo=None)
