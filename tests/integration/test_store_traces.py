"""Traces of Phoenix, MLflow and Langfuse 2 are read out of their own tables, with the steps that were truly taken."""

import json
from typing import Any

import pytest
import sqlalchemy as sa

from stepacc_core.model import RawSpan
from stepacc_core.partition_json import dump_partition
from stepacc_core.reading import canonicalise, trace_partition
from stepacc_dagster.stores.errors import StoreSchemaError, UnknownProjectError
from stepacc_dagster.stores.factory import build_store
from stepacc_dagster.stores.settings import LangfuseV2Settings, MlflowSettings, OtelSpansSettings, PhoenixSettings
from stepacc_dagster.windows import window_of
from tests.fidelity import difference
from tests.integration.store_access import (
    DAY,
    DAY_BEFORE,
    SETTINGS,
    SOURCE,
    TRUE_CALLS,
    StoreName,
    load,
    move,
    opened,
    read,
    run,
    tool_steps,
)

STORES: tuple[StoreName, ...] = ("phoenix", "mlflow", "langfuse_v2")
ARGUMENTS: dict[str, list[Any]] = {
    "lookup_order": [{"order_id": "A-1001"}],
    "check_refund_policy": [{"order_id": "A-1001", "reason": "damaged"}],
    "issue_refund": [{"order_id": "A-1001", "amount": 42.5}],
    "get_weather": [{"city": "Paris"}, {"city": "London"}],
    "get_time": [{"tz": "Europe/Paris"}],
    "lookup_invoice": [{"invoice_id": "INV-77"}],
    "flaky_search": [{"query": "invoice 77"}],
    "ask_billing": [{"question": "Is invoice INV-77 paid?"}],
    "transfer_to_billing_agent": [{}, {"question": "Is invoice INV-77 paid?"}],
}


@pytest.mark.parametrize("store", STORES)
def test_every_trace_gives_its_true_steps(engine: sa.Engine, store: StoreName) -> None:
    load(engine, store)

    traces = read(engine, SETTINGS[store]())

    assert sorted(traces) == sorted(TRUE_CALLS[store])
    differences = {
        trace_id: difference(calls, tool_steps(traces[trace_id])) for trace_id, calls in TRUE_CALLS[store].items()
    }
    assert differences == dict.fromkeys(TRUE_CALLS[store])
    for trace in traces.values():
        for step in tool_steps(trace):
            assert step.arguments in ARGUMENTS[step.name]


@pytest.mark.parametrize("store", STORES)
def test_ids_are_those_of_the_store_and_sessions_hold_their_traces(engine: sa.Engine, store: StoreName) -> None:
    load(engine, store)

    traces = read(engine, SETTINGS[store]())

    column = {"phoenix": "span_id", "mlflow": "span_id", "langfuse_v2": "id"}[store]
    table = "observations" if store == "langfuse_v2" else "spans"
    with engine.connect() as connection:
        known = set(connection.scalars(sa.text(f"SELECT {column} FROM {table}")))  # noqa: S608
    assert {span.span_id for trace in traces.values() for span in trace.spans} - set(traces) <= known
    in_session = {trace_id for trace_id, trace in traces.items() if trace.session_id == "conv-42"}
    one_call = {
        trace_id for trace_id, calls in TRUE_CALLS[store].items() if calls in ([["lookup_order"]], [["issue_refund"]])
    }
    assert in_session >= one_call


@pytest.mark.parametrize("store", STORES)
def test_a_store_in_another_schema_is_read(engine: sa.Engine, store: StoreName) -> None:
    load(engine, store, 'tr"aces: eu')

    assert sorted(read(engine, SETTINGS[store](schema='tr"aces: eu'))) == sorted(TRUE_CALLS[store])
    with opened(engine, SETTINGS[store](schema='tr"aces: eu')) as reader:
        assert reader.changes(None, "daily").windows == (DAY.key,)
        assert len(list(reader.expectations())) == (1 if store == "mlflow" else 0)


def test_only_the_chosen_projects_are_read(engine: sa.Engine) -> None:
    load(engine, "phoenix")

    one = read(engine, PhoenixSettings(projects=("adk",)))
    two = read(engine, PhoenixSettings(projects=("adk", "langgraph")))

    assert (len(one), len(two)) == (1, 5)
    assert set(one) < set(two)
    with opened(engine, PhoenixSettings(projects=("default",))) as reader:
        assert reader.changes(None, "daily").windows == ()


def test_only_the_chosen_experiments_are_read(engine: sa.Engine) -> None:
    load(engine, "mlflow")

    assert len(read(engine, MlflowSettings(experiments=("manual-spans", "otlp-strands")))) == 3
    run(engine, "UPDATE experiments SET lifecycle_stage = 'deleted' WHERE name = 'manual-spans'")
    assert len(read(engine, MlflowSettings())) == 12
    assert len(read(engine, MlflowSettings(experiments=("manual-spans",)))) == 2


def test_only_the_chosen_langfuse_projects_are_read(engine: sa.Engine) -> None:
    load(engine, "langfuse_v2")
    moved = "1414b93f-8c5a-472c-be71-ed3dbc9de15c"
    run(engine, "UPDATE traces SET project_id = 'other' WHERE id = :id", id=moved)
    run(engine, "UPDATE observations SET project_id = 'other' WHERE trace_id = :id", id=moved)

    assert list(read(engine, LangfuseV2Settings(project_ids=("other",)))) == [moved]
    assert len(read(engine, LangfuseV2Settings(project_ids=("proj-1",)))) == 4
    assert len(read(engine, LangfuseV2Settings(project_ids=("proj-1", "other")))) == 5


@pytest.mark.parametrize(
    ("store", "settings", "message"),
    [
        ("phoenix", PhoenixSettings(projects=("adk", "adkk")), r"Phoenix has no project 'adkk'; it has adk, default, "),
        ("mlflow", MlflowSettings(experiments=("x", "y")), r"MLflow has no experiment 'x' and no 'y'; it has Default"),
    ],
)
def test_a_name_that_is_not_there_is_an_error_with_those_that_are(
    engine: sa.Engine, store: StoreName, settings: Any, message: str
) -> None:
    load(engine, store)

    with pytest.raises(UnknownProjectError, match=message), opened(engine, settings):
        pass


@pytest.mark.parametrize(
    ("store", "table", "column"),
    [
        ("phoenix", "spans", "parent_id"),
        ("phoenix", "traces", "project_rowid"),
        ("mlflow", "trace_info", "db_payload_generation"),
        ("mlflow", "spans", "content"),
        ("langfuse_v2", "observations", "updated_at"),
        ("langfuse_v2", "traces", "session_id"),
    ],
)
def test_a_column_that_is_missing_is_one_error_that_names_it_and_the_versions(
    engine: sa.Engine, store: StoreName, table: str, column: str
) -> None:
    load(engine, store)
    run(engine, f"ALTER TABLE {table} DROP COLUMN {column}")

    product = {"phoenix": "Phoenix 20", "mlflow": "MLflow 3.17", "langfuse_v2": "Langfuse 2.95"}[store]
    with (
        pytest.raises(StoreSchemaError, match=rf"has no column public\.{table}\.{column}\. .*{product}"),
        opened(engine, SETTINGS[store]()),
    ):
        pass


@pytest.mark.parametrize("store", STORES)
def test_a_schema_without_the_tables_is_one_error_that_names_them(engine: sa.Engine, store: StoreName) -> None:
    load(engine, store)

    settings = SETTINGS[store](schema="elsewhere")
    with pytest.raises(StoreSchemaError, match=r"has no table elsewhere\.\w+ and no table"), opened(engine, settings):
        pass


@pytest.mark.parametrize("settings", [*(SETTINGS[store]() for store in STORES), OtelSpansSettings()])
def test_nothing_can_be_written_through_a_reader(migrated_engine: sa.Engine, settings: Any) -> None:
    if not isinstance(settings, OtelSpansSettings):
        load(migrated_engine, settings.kind)
    store = build_store(settings, migrated_engine, SOURCE)

    with store.open() as reader:
        connection: sa.Connection = reader.connection  # type: ignore[attr-defined]
        with pytest.raises(sa.exc.InternalError, match="read-only transaction"):
            connection.execute(sa.text(f"DELETE FROM {settings.table_name}"))  # noqa: S608


@pytest.mark.parametrize("store", STORES)
def test_a_trace_across_midnight_is_in_the_window_of_its_start(engine: sa.Engine, store: StoreName) -> None:
    """The start of its earliest span; all of it is there, and in no other window."""
    load(engine, store)
    moved = next(iter(TRUE_CALLS[store]))
    before = read(engine, SETTINGS[store]())[moved]
    move(engine, store, moved, DAY.start_ns - 1_000_000)

    on_the_day = read(engine, SETTINGS[store]())
    day_before = read(engine, SETTINGS[store](), DAY_BEFORE)

    assert moved not in on_the_day
    assert list(day_before) == [moved]
    assert len(day_before[moved].spans) == len(before.spans)
    assert (day_before[moved].start_time_unix_nano or 0) // 1_000 == (DAY.start_ns - 1_000_000) // 1_000
    assert difference(TRUE_CALLS[store][moved], tool_steps(day_before[moved])) is None
    assert read(engine, SETTINGS[store](), window_of("2026-11-30-10:00", "hourly")).keys() == on_the_day.keys()


def test_microseconds_become_nanoseconds_exactly(engine: sa.Engine) -> None:
    """Where a float of seconds would be off by some hundred nanoseconds."""
    load(engine, "phoenix")
    run(
        engine,
        "UPDATE spans SET start_time = '2026-11-30 10:15:59.000001+00', end_time = '2026-11-30 10:15:59.999999Z'",
    )

    with opened(engine, PhoenixSettings(projects=("adk",))) as reader:
        [(_, spans)] = reader.traces(DAY)

    assert {span.start_time_unix_nano for span in spans} == {1796033759000001000}
    assert {span.end_time_unix_nano for span in spans} == {1796033759999999000}


def test_nested_attributes_are_flat_again(engine: sa.Engine) -> None:
    load(engine, "phoenix")

    with opened(engine, PhoenixSettings(projects=("openai-agents",))) as reader:
        spans = {span.span_id: span for _, group in reader.traces(DAY) for span in group}

    tool = spans["c51cb0841d807aaf"]
    assert (tool.attributes["openinference.span.kind"], tool.attributes["tool.name"]) == ("TOOL", "lookup_order")
    model = spans["84ee97332f5360c8"]
    assert (
        model.attributes["llm.output_messages.0.message.tool_calls.0.tool_call.function.name"] == "lookup_order"
        or model.attributes["llm.output_messages.0.message.contents.0.message_content.type"] is not None
    )


def test_attributes_written_twice_are_decoded_twice_and_otlp_spans_keep_their_own(engine: sa.Engine) -> None:
    load(engine, "mlflow")

    with opened(engine, MlflowSettings(experiments=("otlp-strands", "langgraph-autolog"))) as reader:
        spans = [span for _, group in reader.traces(DAY) for span in group]

    [by_otlp] = [span for span in spans if span.name == "execute_tool get_time"]
    assert by_otlp.attributes["mlflow.spanType"] == "TOOL"
    assert by_otlp.attributes["gen_ai.tool.call.id"] == "call_fakepar_0_2"
    assert [event.name for event in by_otlp.events] == ["gen_ai.tool.message", "gen_ai.choice"]
    assert by_otlp.events[0].time_unix_nano == 1796034637484629758
    [by_sdk] = [span for span in spans if span.name == "lookup_order"]
    assert by_sdk.attributes["mlflow.spanInputs"] == {"order_id": "A-1001"}


def test_tags_and_metadata_of_a_trace_are_attributes_of_its_root(engine: sa.Engine) -> None:
    load(engine, "mlflow")
    trace_id = "tr-94aa67e330be2bbcc0d612b85d487db6"
    run(engine, "INSERT INTO trace_tags VALUES (:id, 'task_id', 'orders-7')", id=trace_id)

    trace = read(engine, MlflowSettings())[trace_id]

    assert (trace.task_id, trace.session_id) == ("orders-7", "conv-42")


def test_spans_moved_to_an_archive_keep_their_kinds_and_names(engine: sa.Engine) -> None:
    """MLflow blanks their content; type and name stay in columns."""
    load(engine, "mlflow")
    trace_id = "tr-1fa477a289cba4687df1b69b6cd61d5b"
    run(engine, "UPDATE spans SET content = '' WHERE trace_id = :id", id=trace_id)

    steps = tool_steps(read(engine, MlflowSettings())[trace_id])

    assert [step.name for step in steps] == ["lookup_order", "check_refund_policy", "issue_refund"]
    assert {step.arguments for step in steps} == {None}


def test_the_trace_of_langfuse_is_the_root(engine: sa.Engine) -> None:
    load(engine, "langfuse_v2")
    trace_id = "1414b93f-8c5a-472c-be71-ed3dbc9de15c"
    run(engine, "UPDATE traces SET metadata = :metadata WHERE id = :id", metadata='{"task_id": 12}', id=trace_id)

    with opened(engine, LangfuseV2Settings()) as reader:
        spans = dict(reader.traces(DAY))[trace_id]
    trace = canonicalise(trace_id, spans)

    assert (trace.root_span_id, trace.task_id) == (trace_id, "12")
    assert [span.parent_span_id for span in spans] == [None, trace_id, trace_id]
    assert spans[0].name == "handle_request"
    assert spans[0].start_time_unix_nano == min(span.start_time_unix_nano or 0 for span in spans[1:])


def test_an_observation_named_like_its_trace_stays_another_span(engine: sa.Engine) -> None:
    load(engine, "langfuse_v2")
    trace_id = "01a22c0c-81e9-7226-a480-8957acefffc2"
    run(engine, "UPDATE observations SET id = :id WHERE trace_id = :id AND parent_observation_id IS NULL", id=trace_id)

    trace = read(engine, LangfuseV2Settings())[trace_id]

    assert len(trace.spans) == 16
    assert trace.root_span_id == f"{trace_id}:trace"


def test_observations_of_a_trace_without_a_row_are_read(engine: sa.Engine) -> None:
    load(engine, "langfuse_v2")
    trace_id = "01a22c0c-7c02-71ae-94bd-c29457315fe7"
    run(engine, "DELETE FROM traces WHERE id = :id", id=trace_id)

    trace = read(engine, LangfuseV2Settings())[trace_id]

    assert difference(TRUE_CALLS["langfuse_v2"][trace_id], tool_steps(trace)) is None


@pytest.mark.parametrize(
    ("given", "returned", "metadata", "parent", "is_tool"),
    [
        ("{'a': 1}", "boom", {}, "tools", True),
        ("{'a': 1}", None, {}, "tools", True),
        ({"messages": []}, "__end__", {}, "tools", False),
        ({"messages": []}, {"type": "tool", "tool_call_id": "c1"}, {}, "agent", True),
        ("{'a': 1}", "done", {"inputs": {"a": 1}}, "agent", True),
        ("{'a': 1}", {"update": {"messages": [{"type": "tool", "tool_call_id": "c1"}]}}, {}, "agent", True),
        ({"a": 1}, {"update": {"messages": [{"type": "tool", "tool_call_id": "c1"}]}}, {}, "agent", False),
        ("a question", ["a document"], {}, "agent", False),
        ({"a": 1}, {"type": "ai"}, {}, "agent", False),
    ],
)
def test_a_tool_of_langfuse_is_told_by_what_langchain_leaves(  # noqa: PLR0913 (a case has five parts)
    engine: sa.Engine, given: object, returned: object, metadata: object, parent: str, *, is_tool: bool
) -> None:
    load(engine, "langfuse_v2")
    run(
        engine,
        "UPDATE observations SET input = :given, output = :returned, metadata = :metadata WHERE name = 'issue_refund'",
        given=json.dumps(given),
        returned=json.dumps(returned),
        metadata=json.dumps(metadata),
    )
    run(engine, "UPDATE observations SET name = :name WHERE name = 'tools'", name=parent)

    with opened(engine, LangfuseV2Settings()) as reader:
        spans = [span for _, group in reader.traces(DAY) for span in group if span.name == "issue_refund"]

    kinds = {span.attributes["langfuse.observation.type"] for span in spans}
    assert kinds == {"tool" if is_tool else "span"}


@pytest.mark.parametrize(
    ("store", "damage"),
    [
        ("phoenix", "UPDATE spans SET attributes = '[1]', events = '{{}}' WHERE id = 2"),
        ("phoenix", "UPDATE spans SET attributes = CAST(repeat('[', 5000) || repeat(']', 5000) AS jsonb) WHERE id = 2"),
        ("phoenix", "UPDATE spans SET end_time = 'infinity' WHERE id = 2"),
        ("mlflow", "UPDATE spans SET content = '{{' WHERE span_id = '691a28a675600e5e'"),
        ("mlflow", "UPDATE spans SET content = '{{\"attributes\": 3}}' WHERE span_id = '691a28a675600e5e'"),
        ("langfuse_v2", "UPDATE observations SET metadata = '3', output = '[[]]' WHERE name = 'lookup_order'"),
        ("langfuse_v2", "UPDATE observations SET name = NULL, input = NULL WHERE name = 'lookup_order'"),
    ],
)  # fmt: skip
def test_an_odd_row_costs_no_other(engine: sa.Engine, store: StoreName, damage: str) -> None:
    load(engine, store)
    whole = read(engine, SETTINGS[store]())
    run(engine, damage.replace("{{", "{").replace("}}", "}"))

    damaged = read(engine, SETTINGS[store]())

    assert damaged.keys() == whole.keys()
    assert {k: len(trace.spans) for k, trace in damaged.items()} == {k: len(trace.spans) for k, trace in whole.items()}
    assert sum(damaged[trace_id] != whole[trace_id] for trace_id in whole) in (1, 2)
    for trace in damaged.values():
        dump_partition(trace_partition(trace))


def test_traces_come_one_at_a_time(engine: sa.Engine) -> None:
    """Leaving off early closes the cursor, and the reader goes on working."""
    load(engine, "phoenix")

    with opened(engine, PhoenixSettings()) as reader:
        first: tuple[str, list[RawSpan]] = next(iter(reader.traces(DAY)))
        assert len(first[1]) == 14
        assert len(dict(reader.traces(DAY))) == 19
        assert reader.changes(None, "hourly").windows == ("2026-11-30-10:00",)
