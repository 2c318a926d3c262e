"""The Postgres backend database of an MLflow tracking server.

A span's row holds a JSON document (`content`) whose attributes are JSON text again. Rows may be written anew, and none
says when; but each trace counts the writes to its spans (`db_payload_generation`) and has a status that ends when its
root arrives. Spans that MLflow has moved to its archive keep their rows, without content.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from stepacc_core.annotations import EXPECTED_STEPS_KEY
from stepacc_core.model import RawSpan
from stepacc_dagster.storage.annotations import AnnotationEntry
from stepacc_dagster.stores import cursors, digests, values
from stepacc_dagster.stores.base import Changes
from stepacc_dagster.stores.mlflow_tables import TABLES
from stepacc_dagster.stores.projects import named_projects
from stepacc_dagster.stores.read_columns import needed
from stepacc_dagster.stores.settings import MlflowSettings
from stepacc_dagster.stores.sql import (
    by_trace,
    floored,
    length_in,
    qualified,
    read_only,
    require_columns,
    stream,
    window_keys,
)
from stepacc_dagster.windows import Window, WindowKind

_ADVICE = (
    "It was read with the tables of MLflow 3.17; upgrade MLflow and run `mlflow db upgrade`, or name another schema or "
    "database in the settings of the store."
)
_NEEDED_FOR_EXPECTATIONS = {
    "assessments": (
        "assessment_id",
        "trace_id",
        "name",
        "assessment_type",
        "value",
        "last_updated_timestamp",
        "source_id",
        "rationale",
        "valid",
    )
}
_TYPE = "mlflow.spanType"
_SESSION, _USER = "mlflow.trace.session", "mlflow.trace.user"


@dataclass(frozen=True, slots=True)
class MlflowReader:
    """A read-only connection to the database."""

    connection: sa.Connection
    source: str
    settings: MlflowSettings
    experiments: list[int]

    def traces(self, window: Window) -> Iterator[tuple[str, list[RawSpan]]]:
        """Yield, trace by trace in order of their ids, all spans of the traces that start in a window.

        A trace starts with its earliest span. Its session, tags and metadata become attributes of its root.
        """
        spans, info = self._table("spans"), self._table("trace_info")
        query = f"""
            SELECT trace.trace_id, span.*, info.session_id, {self._pairs("trace_tags")},
                   {self._pairs("trace_request_metadata")}
            FROM (
                SELECT trace_id FROM (
                    SELECT DISTINCT trace_id FROM {spans} WHERE experiment_id = ANY(:experiments)
                    AND start_time_unix_nano >= :start AND start_time_unix_nano < :end
                ) candidate WHERE NOT EXISTS (
                    SELECT 1 FROM {spans} earlier
                    WHERE earlier.trace_id = candidate.trace_id AND earlier.start_time_unix_nano < :start OFFSET 0
                ) ORDER BY trace_id
            ) trace
            CROSS JOIN LATERAL (SELECT session_id FROM {info} WHERE request_id = trace.trace_id OFFSET 0) info
            CROSS JOIN LATERAL (
                SELECT span_id, parent_span_id, name, type, status, start_time_unix_nano, end_time_unix_nano, content
                FROM {spans} WHERE trace_id = trace.trace_id ORDER BY start_time_unix_nano, span_id OFFSET 0
            ) span
        """  # noqa: S608 (quoted names)
        limits = {"experiments": self.experiments, "start": window.start_ns, "end": window.end_ns}
        for trace_id, rows in by_trace(stream(self.connection, query, limits)):
            *_, session, tags, metadata = rows[0]
            about = {**values.json_object(metadata), **values.json_object(tags)}
            if session:
                about[_SESSION] = session
            yield trace_id, [_span(trace_id, row[:-3], about) for row in rows]

    def changes(self, cursor: str | None, kind: WindowKind) -> Changes:
        """Return the windows of traces whose count of writes or status changed since a cursor."""
        length = length_in(kind, 1_000_000)
        oldest = self._oldest(length)
        knows = cursors.content(cursor, digests.KIND) is not None
        limits: dict[str, Any] = {"experiments": self.experiments, "length": length}
        found = digests.changed_places(
            self.connection,
            cursor,
            f"""
                SELECT {floored("timestamp_ms")}, count(*),
                       sum(hashtextextended(concat_ws('/', request_id, db_payload_generation, status), 0))
                FROM {self._table("trace_info")} WHERE experiment_id = ANY(:experiments) AND timestamp_ms >= :oldest
                GROUP BY 1
            """,  # noqa: S608 (quoted names)
            limits | {"oldest": oldest if knows else 0},
            forgotten_before=oldest,
        )
        starts = self.connection.scalars(
            sa.text(f"""
                SELECT DISTINCT {floored("start")} FROM {self._table("trace_info")} info
                JOIN unnest(CAST(:places AS bigint[])) place
                  ON info.timestamp_ms >= place AND info.timestamp_ms < place + CAST(:length AS bigint)
                CROSS JOIN LATERAL (
                    SELECT min(start_time_unix_nano) / 1000000 AS start FROM {self._table("spans")}
                    WHERE trace_id = info.request_id OFFSET 0
                ) span
                WHERE info.experiment_id = ANY(:experiments) AND start IS NOT NULL
            """),  # noqa: S608 (quoted names)
            limits | {"places": found.changed},
        )
        # What was told of before is told of again, also where its last trace was deleted.
        return Changes(window_keys([*starts, *found.known_before], kind, 1_000_000), found.cursor)

    def expectations(self) -> Iterator[AnnotationEntry]:
        """Yield the valid assessments named `expected_steps` of type expectation, the newest of each trace."""
        require_columns(self.connection, self.settings.schema, _NEEDED_FOR_EXPECTATIONS, _ADVICE)
        query = f"""
            SELECT DISTINCT ON (said.trace_id) said.trace_id, said.value, said.source_id, said.rationale,
                   said.assessment_id
            FROM {self._table("assessments")} said
            JOIN {self._table("trace_info")} info ON info.request_id = said.trace_id
            WHERE info.experiment_id = ANY(:experiments) AND said.name = :key
              AND said.assessment_type = 'expectation' AND said.valid
            ORDER BY said.trace_id, said.last_updated_timestamp DESC, said.assessment_id
        """  # noqa: S608 (quoted names)
        limits = {"experiments": self.experiments, "key": EXPECTED_STEPS_KEY}
        for trace_id, written, author, note, ident in stream(self.connection, query, limits):
            value = values.json_value(written)
            if value is not None:
                yield AnnotationEntry(
                    self.source,
                    "trace",
                    trace_id,
                    value,
                    author=author or "",
                    note=note or "",
                    origin=f"MLflow assessment {ident}",
                )

    def _oldest(self, length: int) -> int:
        """Return the start of the look-back, in milliseconds; in a store that has come to rest it rests too."""
        now = self.connection.scalar(
            sa.text(f"""
                SELECT least(CAST(extract(epoch FROM now()) * 1000 AS bigint), max(timestamp_ms))
                FROM {self._table("trace_info")} WHERE experiment_id = ANY(:experiments)
            """),  # noqa: S608 (quoted names)
            {"experiments": self.experiments},
        )
        oldest = (now or 0) - self.settings.look_back_days * 86_400_000
        return int(oldest - oldest % length)

    def _pairs(self, table: str) -> str:
        """Return the SQL of a trace's tags or metadata as text of one JSON object, of MLflow's own only two."""
        return f"""(
            SELECT CAST(jsonb_object_agg(key, value) AS text) FROM {self._table(table)}
            WHERE request_id = trace.trace_id AND (key NOT LIKE 'mlflow.%' OR key IN ('{_SESSION}', '{_USER}'))
        )"""  # noqa: S608 (quoted names)

    def _table(self, name: str) -> str:
        return qualified(self.settings.schema, name)


@dataclass(frozen=True, slots=True)
class MlflowStore:
    """The traces of some experiments of an MLflow server."""

    engine: sa.Engine
    source: str
    settings: MlflowSettings

    @contextmanager
    def open(self) -> Iterator[MlflowReader]:
        """Open the database for reading."""
        schema, wanted = self.settings.schema, self.settings.experiments
        with read_only(self.engine) as connection:
            require_columns(connection, schema, needed(TABLES), _ADVICE)
            query = f"""
                SELECT name, experiment_id FROM {qualified(schema, "experiments")}
                WHERE :deleted_too OR lifecycle_stage IS DISTINCT FROM 'deleted'
            """  # noqa: S608 (quoted names)
            known = connection.execute(sa.text(query), {"deleted_too": bool(wanted)})
            experiments = named_projects("MLflow", "experiment", wanted, ((name, ident) for name, ident in known))
            yield MlflowReader(connection, self.source, self.settings, experiments)


def _span(trace_id: str, row: tuple[Any, ...], about_trace: dict[str, Any]) -> RawSpan:
    span_id, parent_id, name, kind, state, start, end, written = row
    content = values.json_object(written)
    stored = content.get("attributes")
    attributes = {key: _decoded(value) for key, value in stored.items()} if isinstance(stored, dict) else {}
    if kind:
        attributes.setdefault(_TYPE, kind)
    parent = values.parent(parent_id)
    if parent is None:
        attributes = {**about_trace, **attributes}
    said = content.get("status")
    return RawSpan(
        trace_id,
        span_id,
        name or "",
        parent,
        start or None,
        end or None,
        values.status(state),
        str(said.get("message") or "") if isinstance(said, dict) else "",
        attributes,
        values.events(content.get("events")),
    )


def _decoded(value: Any) -> Any:
    return values.json_value(value) if isinstance(value, str) else value
