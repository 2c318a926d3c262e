"""What the catalog says of a store's columns is what the readers make of them."""

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any, get_args

import pytest
import sqlalchemy as sa

from stepacc_core.model import RawSpan
from stepacc_dagster.stores.places import read_columns, store_place
from stepacc_dagster.stores.read_columns import ReadColumn, SpanField
from stepacc_dagster.stores.settings import OtelSpansSettings, StoreSettings, TableColumns, TableSettings
from tests.integration.conftest import Server
from tests.integration.conftest import opened as opened_engine
from tests.integration.store_access import DAY, SETTINGS, StoreName, load, opened, run

TYPES = {
    "varchar": "character varying",
    "timestamptz": "timestamp with time zone",
    "timestamp": "timestamp without time zone",
    "enum": "USER-DEFINED",
}
CHANGES = {
    "character varying": "{column} || '1'",
    "text": "{column} || '1'",
    "timestamp with time zone": "{column} + interval '1 second'",
    "timestamp without time zone": "{column} + interval '1 second'",
    "bigint": "{column} + 1000000000",
    "integer": "{column} + 1",
    "numeric": "coalesce({column}, 0) + 1",
    "jsonb": "CASE jsonb_typeof({column}) WHEN 'array' THEN {column} || CAST('[{{\"name\": \"another\"}}]' AS jsonb) "
    "ELSE jsonb_build_object('another', {column}) END",
}
"""SQL of another value of a type."""
OTHERS = {
    ("observations", "type"): "CASE CAST(type AS text) WHEN 'EVENT' THEN 'SPAN' ELSE 'EVENT' END::kind_of_observation",
    ("observations", "level"): "CASE CAST(level AS text) WHEN 'ERROR' THEN 'DEBUG' ELSE 'ERROR' END"
    "::level_of_observation",
    ("traces", "session_id"): "'another'",
    ("traces", "user_id"): "'another'",
    ("trace_info", "session_id"): "'another'",
    ("spans", "content"): "jsonb_build_object('attributes', jsonb_build_object('another', '1'), "
    "'events', jsonb_build_array(jsonb_build_object('name', 'x')), 'status', jsonb_build_object('message', 'x'))::text",
    ("observations", "status_message"): "'another'",
    ("observations", "end_time"): "start_time + interval '7 seconds'",
}
BEFORE = {
    ("spans", "type"): "UPDATE spans SET content = '{}'",
    ("trace_request_metadata", "key"): "UPDATE trace_request_metadata SET key = 'own.' || key",
    ("trace_request_metadata", "value"): "UPDATE trace_request_metadata SET key = 'own.' || key",
    ("observations", "name"): "UPDATE observations SET output = NULL, metadata = NULL",
    ("observations", "start_time"): "UPDATE observations SET end_time = NULL",
}
"""What makes a column count that only stands in for another, or is one of several signs."""
KEYS: dict[StoreName, set[str]] = {
    "phoenix": {"id", "trace_rowid", "projects.id", "projects.name", "traces.id", "traces.project_rowid"},
    "mlflow": {
        *("trace_id", "experiment_id", "experiments.experiment_id", "experiments.name", "experiments.lifecycle_stage"),
        *("trace_info.request_id", "trace_info.experiment_id"),
        *("trace_tags.request_id", "trace_request_metadata.request_id"),
    },
    "langfuse_v2": {"trace_id", "traces.id"},
}
"""Columns that join rows or choose them: with another value there is another trace, or none."""
COLUMNS = [
    (store, column)
    for store, settings in SETTINGS.items()
    for column in read_columns(settings())
    if column.name not in KEYS[store]
]


@pytest.fixture(scope="module")
def _templates(server: Server) -> Iterator[dict[StoreName, str]]:
    with ExitStack() as stack:
        names: dict[StoreName, str] = {}
        for store in SETTINGS:
            url = stack.enter_context(server.database())
            with opened_engine(url) as engine:
                load(engine, store)
            names[store] = str(sa.make_url(url).database)
        yield names


@pytest.fixture
def engine(server: Server, _templates: dict[StoreName, str], store: StoreName) -> Iterator[sa.Engine]:
    """An engine over a store of the test's own."""
    with server.database(_templates[store]) as url, opened_engine(url) as engine:
        yield engine


def spans(engine: sa.Engine, settings: StoreSettings) -> list[RawSpan]:
    """All spans of the day, in an order that does not hang on what is changed here."""
    with opened(engine, settings) as reader:
        return [span for _, found in reader.traces(DAY) for span in found]


def fields(span: RawSpan) -> Mapping[str, Any]:
    """A span as values by field."""
    return {each.name: getattr(span, each.name) for each in dataclasses.fields(span)}


def place_of(column: ReadColumn, settings: StoreSettings) -> tuple[str, str]:
    """Table and name of a column."""
    table, _, name = column.name.rpartition(".")
    return table or settings.table_name.rpartition(".")[2], name


def test_the_fields_are_those_of_a_raw_span() -> None:
    assert set(get_args(SpanField)) == {each.name for each in dataclasses.fields(RawSpan)}


@pytest.mark.parametrize("store", SETTINGS)
def test_every_column_is_there_with_the_type_it_is_said_to_have(engine: sa.Engine, store: StoreName) -> None:
    query = "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'public'"
    with engine.connect() as connection:
        found = {(table, column): kind for table, column, kind in connection.execute(sa.text(query))}
    settings = SETTINGS[store]()

    said = {place_of(column, settings): TYPES.get(column.type, column.type) for column in read_columns(settings)}

    assert said.items() <= found.items()
    assert {f"public.{table}" for table, _ in said} >= set(store_place(settings).tables)


@pytest.mark.parametrize(("store", "column"), COLUMNS, ids=[f"{store}-{column.name}" for store, column in COLUMNS])
def test_another_value_of_a_column_gives_another_value_of_the_fields_it_is_said_to_become(
    engine: sa.Engine, store: StoreName, column: ReadColumn
) -> None:
    settings = SETTINGS[store]()
    table, name = place_of(column, settings)
    if prepared := BEFORE.get((table, name)):
        run(engine, prepared)
    before = spans(engine, settings)
    other = OTHERS.get((table, name)) or CHANGES[TYPES.get(column.type, column.type)].format(column=name)

    run(engine, f"UPDATE {table} SET {name} = {other}")  # noqa: S608 (as listed)

    after = spans(engine, settings)
    assert len(before) == len(after) > 0
    changed = {
        field
        for old, new in zip(before, after, strict=True)
        for field, value in fields(old).items()
        if fields(new)[field] != value
    }
    assert changed == set(column.fields)


def test_the_columns_of_ones_own_table_are_those_that_the_settings_name() -> None:
    columns = TableColumns("run", "step", "what", "at", attributes="doc", status="what", arrival="no")
    settings = TableSettings("work", columns, attribute_columns={"tool": "what", "kind": "sort"}, project_column="bot")

    read = {column.name: column for column in read_columns(settings)}

    assert {name: set(column.fields) for name, column in read.items()} == {
        "run": {"trace_id"},
        "step": {"span_id"},
        "what": {"name", "status", "attributes"},
        "at": {"start_time_unix_nano"},
        "doc": {"attributes"},
        "no": set(),
        "sort": {"attributes"},
        "bot": set(),
    }
    assert [read[name].type for name in ("run", "at", "doc", "what", "sort")] == ["id", "time", "json", "text", "text"]
    assert read["what"].description == "read as name; read as status; read as the attribute tool"


def test_the_own_table_has_every_field_of_a_raw_span() -> None:
    read = read_columns(OtelSpansSettings())
    assert {column.name for column in read if column.fields} == set(get_args(SpanField))
    assert all(column.fields in ((), (column.name,)) for column in read)
