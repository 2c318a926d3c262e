"""Trace stores of other people for the tests: their tables, rows that their servers wrote, and what changes in them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import sqlalchemy as sa
from psycopg import sql

from stepacc_core.model import CanonicalTrace, Step
from stepacc_core.reading import canonicalise, trace_partition
from stepacc_core.steps import collect_steps
from stepacc_dagster.stores.base import TraceReader
from stepacc_dagster.stores.factory import build_store
from stepacc_dagster.stores.settings import LangfuseV2Settings, MlflowSettings, PhoenixSettings, StoreSettings
from stepacc_dagster.windows import Window, window_of

StoreName = Literal["phoenix", "mlflow", "langfuse_v2"]

DATA = Path(__file__).parents[1] / "data" / "stores"
TRUE_CALLS: dict[StoreName, dict[str, list[list[Any]]]] = json.loads((DATA / "true_calls.json").read_text("utf-8"))
SETTINGS: dict[StoreName, type[Any]] = {
    "phoenix": PhoenixSettings,
    "mlflow": MlflowSettings,
    "langfuse_v2": LangfuseV2Settings,
}
DAY = window_of("2026-11-30", "daily")
DAY_BEFORE = window_of("2026-11-29", "daily")
SOURCE = "support"

TABLES: dict[StoreName, str] = {
    "phoenix": """
        CREATE TABLE projects (id serial PRIMARY KEY, name varchar UNIQUE NOT NULL);
        CREATE TABLE traces (
            id serial PRIMARY KEY, project_rowid int REFERENCES projects, trace_id varchar UNIQUE NOT NULL,
            start_time timestamptz NOT NULL
        );
        CREATE INDEX ON traces (project_rowid, start_time DESC);
        CREATE TABLE spans (
            id serial PRIMARY KEY, trace_rowid int NOT NULL REFERENCES traces, span_id varchar UNIQUE NOT NULL,
            parent_id varchar, name varchar NOT NULL, span_kind varchar NOT NULL, start_time timestamptz NOT NULL,
            end_time timestamptz NOT NULL, attributes jsonb NOT NULL, events jsonb NOT NULL,
            status_code varchar NOT NULL, status_message varchar NOT NULL
        );
        CREATE INDEX ON spans (trace_rowid);
        CREATE TABLE datasets (id serial PRIMARY KEY, name varchar UNIQUE NOT NULL);
        CREATE TABLE dataset_examples (
            id serial PRIMARY KEY, dataset_id int REFERENCES datasets, span_rowid int REFERENCES spans
        );
        CREATE TABLE dataset_example_revisions (
            id serial PRIMARY KEY, dataset_example_id int REFERENCES dataset_examples, output jsonb NOT NULL,
            metadata jsonb NOT NULL, revision_kind varchar NOT NULL
        );
    """,
    "mlflow": """
        CREATE TABLE experiments (experiment_id serial PRIMARY KEY, name varchar(256), lifecycle_stage varchar(32));
        CREATE TABLE trace_info (
            request_id varchar(50) PRIMARY KEY, experiment_id int NOT NULL REFERENCES experiments,
            timestamp_ms bigint NOT NULL, status varchar(50) NOT NULL, db_payload_generation int NOT NULL DEFAULT 0,
            session_id varchar(250)
        );
        CREATE INDEX ON trace_info (experiment_id, timestamp_ms);
        CREATE TABLE spans (
            trace_id varchar(50) REFERENCES trace_info, experiment_id int NOT NULL, span_id varchar(50),
            parent_span_id varchar(50), name text, type varchar(500), status varchar(50) NOT NULL,
            start_time_unix_nano bigint NOT NULL, end_time_unix_nano bigint, content text NOT NULL,
            PRIMARY KEY (trace_id, span_id)
        );
        CREATE INDEX ON spans (experiment_id, start_time_unix_nano);
        CREATE TABLE trace_tags (
            request_id varchar(50) REFERENCES trace_info, key varchar(250), value varchar(8000),
            PRIMARY KEY (key, request_id)
        );
        CREATE TABLE trace_request_metadata (LIKE trace_tags INCLUDING ALL);
        CREATE TABLE assessments (
            assessment_id varchar(50) PRIMARY KEY, trace_id varchar(50) NOT NULL REFERENCES trace_info,
            name varchar(250) NOT NULL, assessment_type varchar(20) NOT NULL, value text NOT NULL,
            last_updated_timestamp bigint NOT NULL, source_id varchar(250), rationale text, valid boolean NOT NULL
        );
    """,
    "langfuse_v2": """
        CREATE TYPE kind_of_observation AS ENUM ('SPAN', 'EVENT', 'GENERATION');
        CREATE TYPE level_of_observation AS ENUM ('DEBUG', 'DEFAULT', 'WARNING', 'ERROR');
        CREATE TABLE traces (
            id text PRIMARY KEY, timestamp timestamp(3) NOT NULL, name text, project_id text NOT NULL, metadata jsonb,
            input jsonb, output jsonb, session_id text, user_id text, created_at timestamp(3) NOT NULL,
            updated_at timestamp(3) NOT NULL
        );
        CREATE INDEX ON traces (project_id, timestamp);
        CREATE INDEX ON traces (created_at);
        CREATE TABLE observations (
            id text PRIMARY KEY, name text, start_time timestamp(3) NOT NULL, end_time timestamp(3),
            parent_observation_id text, type kind_of_observation NOT NULL, trace_id text, metadata jsonb, model text,
            input jsonb, output jsonb, level level_of_observation NOT NULL DEFAULT 'DEFAULT', status_message text,
            completion_tokens int NOT NULL DEFAULT 0, prompt_tokens int NOT NULL DEFAULT 0, project_id text NOT NULL,
            created_at timestamp(3) NOT NULL, updated_at timestamp(3) NOT NULL,
            calculated_total_cost numeric(65, 30)
        );
        CREATE INDEX ON observations (project_id, start_time);
        CREATE INDEX ON observations (trace_id, project_id, start_time);
        CREATE INDEX ON observations (created_at);
    """,
}
"""The tables as far as they are read, with the indexes that the queries rely on."""


def load(engine: sa.Engine, store: StoreName, schema: str = "public") -> None:
    """Create a store's tables in a schema, and fill them with what its server wrote."""
    lines = (DATA / f"{store}.jsonl").read_text("utf-8").splitlines()
    with engine.begin() as connection:
        cursor = connection.connection.cursor()
        cursor.execute(
            sql.SQL("CREATE SCHEMA IF NOT EXISTS {0}; SET search_path TO {0}").format(sql.Identifier(schema))
        )
        cursor.execute(TABLES[store])
        for entry in map(json.loads, lines):
            table = entry["table"]
            insert = f"INSERT INTO {table} SELECT * FROM jsonb_populate_record(NULL::{table}, CAST(:row AS jsonb))"  # noqa: S608
            connection.execute(sa.text(insert), {"row": json.dumps(entry["row"])})
        cursor.execute("SET search_path TO DEFAULT")


@contextmanager
def opened(engine: sa.Engine, settings: StoreSettings) -> Iterator[TraceReader]:
    """Open a store for reading."""
    with build_store(settings, engine, SOURCE).open() as reader:
        yield reader


def read(engine: sa.Engine, settings: StoreSettings, window: Window = DAY) -> dict[str, CanonicalTrace]:
    """Return the canonical traces that start in a window."""
    with opened(engine, settings) as reader:
        return {trace_id: canonicalise(trace_id, spans) for trace_id, spans in reader.traces(window)}


def tool_steps(trace: CanonicalTrace) -> list[Step]:
    """Return the tool steps of a trace."""
    return [step for step in collect_steps(trace_partition(trace)) if step.kind == "TOOL"]


def run(engine: sa.Engine, statement: str, **values: Any) -> None:
    """Change a store, as its server would."""
    with engine.begin() as connection:
        connection.execute(sa.text(statement), values)


_STARTS: dict[StoreName, str] = {
    "phoenix": "SELECT CAST(extract(epoch FROM start_time) * 1000000 AS bigint) FROM traces WHERE trace_id = :id",
    "mlflow": "SELECT min(start_time_unix_nano) / 1000 FROM spans WHERE trace_id = :id",
    "langfuse_v2": "SELECT CAST(extract(epoch FROM timestamp) * 1000000 AS bigint) FROM traces WHERE id = :id",
}
_MOVES: dict[StoreName, tuple[str, ...]] = {
    "phoenix": (
        "UPDATE traces SET start_time = start_time + :shift WHERE trace_id = :id",
        """UPDATE spans SET start_time = start_time + :shift, end_time = end_time + :shift
           WHERE trace_rowid = (SELECT id FROM traces WHERE trace_id = :id)""",
    ),
    "mlflow": (
        """UPDATE trace_info SET timestamp_ms = timestamp_ms + CAST(extract(epoch FROM :shift) * 1000 AS bigint)
           WHERE request_id = :id""",
        """UPDATE spans
           SET start_time_unix_nano = start_time_unix_nano + shift, end_time_unix_nano = end_time_unix_nano + shift
           FROM (SELECT CAST(extract(epoch FROM :shift) * 1000000 AS bigint) * 1000 AS shift) by
           WHERE trace_id = :id""",
    ),
    "langfuse_v2": (
        "UPDATE traces SET timestamp = timestamp + :shift WHERE id = :id",
        "UPDATE observations SET start_time = start_time + :shift, end_time = end_time + :shift WHERE trace_id = :id",
    ),
}


def move(engine: sa.Engine, store: StoreName, trace_id: str, start_ns: int) -> None:
    """Move a whole trace in time, so that it starts at a moment; to the microsecond."""
    with engine.connect() as connection:
        start = connection.execute(sa.text(_STARTS[store]), {"id": trace_id}).scalar_one()
    for statement in _MOVES[store]:
        run(engine, statement, id=trace_id, shift=timedelta(microseconds=start_ns // 1_000 - start))
