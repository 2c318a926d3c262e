"""The asset graph of a source as Dagster sees it: keys, dependencies, catalog metadata, policies and pool."""

import os
import re
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dagster as dg
import pytest
from dagster._core.storage.event_log.schema import ConcurrencyLimitsTable
from sqlalchemy import Connection, NullPool, create_engine, text

from stepacc_core import get_metric
from stepacc_core.errors import ConfigError, UnknownMetricError
from stepacc_dagster import build_evaluation_assets, build_evaluation_definitions
from stepacc_dagster.database import DAGSTER_URL_VARIABLE
from stepacc_dagster.evaluators import evaluator_of
from stepacc_dagster.pools import ensure_pool_limit, pool_of
from stepacc_dagster.resources import StepaccDatabase, resource_key
from stepacc_dagster.sources import MetricChoice
from stepacc_dagster.storage import tables
from stepacc_dagster.storage.summary_tables import task_summaries
from stepacc_dagster.stores.settings import (
    LangfuseV2Settings,
    MlflowSettings,
    OtelSpansSettings,
    PhoenixSettings,
    StoreSettings,
    TableColumns,
    TableSettings,
)
from tests.integration.evaluation_access import support_source
from tests.integration.evaluation_samples import SOURCE

MANIFEST = get_metric("agent.step_accuracy").manifest
PARTITIONED = ("agent_traces", "annotations", "canonical_traces", "step_accuracy_scores", "step_accuracy_metadata")
NAMES = (*PARTITIONED, "task_summaries")
TABLES = {
    "agent_traces": [tables.otel_spans],
    "annotations": [tables.annotations],
    "canonical_traces": [tables.spans, tables.traces, tables.sessions],
    "step_accuracy_scores": [tables.scores],
    "step_accuracy_metadata": [tables.score_metadata],
    "task_summaries": [task_summaries],
}
"""The tables of each asset, the one it is named by first."""
STORES: dict[str, StoreSettings] = {
    "own": OtelSpansSettings(),
    "phoenix": PhoenixSettings(projects=("support", "billing")),
    "mlflow": MlflowSettings(schema="tracking"),
    "langfuse": LangfuseV2Settings(),
    "table": TableSettings(
        "work",
        TableColumns("run", "step", "what", "at", attributes="doc"),
        schema="telemetry",
        project_column="bot",
        projects=("refunds",),
    ),
}


def key(name: str, source: str = SOURCE) -> dg.AssetKey:
    return dg.AssetKey([source, name])


def specs(**settings: Any) -> dict[str, dg.AssetSpec]:
    definitions = build_evaluation_definitions(support_source(**settings))
    return {spec.key.path[-1]: spec for spec in definitions.resolve_all_asset_specs()}


def test_a_source_has_these_assets_and_dependencies() -> None:
    graph = build_evaluation_definitions(support_source()).resolve_asset_graph()
    parents = {node.key: set(node.parent_keys) for node in graph.asset_nodes}
    assert parents == {
        key("agent_traces"): set(),
        key("annotations"): set(),
        key("canonical_traces"): {key("agent_traces")},
        key("step_accuracy_scores"): {key("canonical_traces"), key("annotations")},
        key("step_accuracy_metadata"): {key("canonical_traces"), key("annotations")},
        key("task_summaries"): {key("step_accuracy_scores"), key("step_accuracy_metadata")},
    }
    assert graph.external_asset_keys == {key("agent_traces"), key("annotations")}


def test_what_others_write_is_external_and_every_asset_is_described_grouped_and_of_a_kind() -> None:
    for name, spec in specs().items():
        assert spec.group_name == SOURCE
        assert spec.description
        assert spec.kinds == ({"postgres"} if name in ("agent_traces", "annotations") else {"postgres", "python"})


def test_every_description_tells_the_command_that_leads_on_from_what_it_describes() -> None:
    told = {name: spec.description or "" for name, spec in specs().items()}
    commands = {name: re.findall(r"`stepacc (lineage \w+) ID`", text) for name, text in told.items()}
    assert commands == {name: ["lineage annotation" if name == "annotations" else "lineage trace"] for name in NAMES}
    assert {name for name in NAMES if "`stepacc.annotation_scores`" in told[name]} == {
        "annotations",
        "step_accuracy_scores",
    }
    assert "`stepacc.score_lineage`" in told["step_accuracy_scores"]


@pytest.mark.parametrize(("kind", "expected"), [("daily", "2025-11-01"), ("hourly", "2025-11-01-00:00")])
def test_all_assets_but_the_summaries_share_one_partitions_definition(kind: str, expected: str) -> None:
    found = {spec.partitions_def for name, spec in specs(partitions=kind).items() if name in PARTITIONED}
    assert len(found) == 1
    [definition] = found
    assert definition is not None
    assert definition.get_first_partition_key() == expected


@pytest.mark.parametrize("name", NAMES)
def test_catalog_metadata_names_the_table_and_describes_its_columns(name: str) -> None:
    metadata, (table, *beside) = specs()[name].metadata, TABLES[name]
    assert metadata["dagster/table_name"] == f"stepacc.{table.name}"
    schema: dg.TableSchema = metadata["dagster/column_schema"]
    columns = [(column.name, column) for column in table.columns]
    columns += [(f"{other.name}.{column.name}", column) for other in beside for column in other.columns]
    assert [column.name for column in schema.columns] == [name for name, _ in columns]
    for shown, (_, column) in zip(schema.columns, columns, strict=True):
        assert shown.description == column.comment
        assert shown.constraints.nullable == column.nullable
        assert shown.type


@pytest.mark.parametrize(
    ("store", "expected"),
    [
        (
            "phoenix",
            {
                "dagster/table_name": "public.spans",
                "tables": "public.traces, public.spans",
                "trace_ids_in": "public.traces.trace_id",
                "projects": "support, billing",
                "kinds": {"postgres", "phoenix"},
            },
        ),
        (
            "mlflow",
            {
                "dagster/table_name": "tracking.spans",
                "tables": "tracking.trace_info, tracking.spans",
                "trace_ids_in": "tracking.trace_info.request_id",
                "projects": "all",
                "kinds": {"postgres", "mlflow"},
            },
        ),
        (
            "langfuse",
            {
                "dagster/table_name": "public.observations",
                "tables": "public.traces, public.observations",
                "trace_ids_in": "public.traces.id",
                "projects": "all",
                "kinds": {"postgres", "langfuse"},
            },
        ),
        (
            "table",
            {
                "dagster/table_name": "telemetry.work",
                "tables": "telemetry.work",
                "trace_ids_in": "telemetry.work.run",
                "projects": "refunds",
                "kinds": {"postgres", "table"},
            },
        ),
    ],
)
def test_traces_in_the_store_of_another_tool_show_where_they_are(store: str, expected: dict[str, Any]) -> None:
    spec = specs(store=STORES[store], store_url_env="THEIR_URL")["agent_traces"]
    assert {"kinds": spec.kinds, **{name: spec.metadata.get(name) for name in expected if name != "kinds"}} == expected
    assert spec.metadata["database_url_env"] == "THEIR_URL"
    shown: dg.TableSchema = spec.metadata["dagster/column_schema"]
    assert all(column.type and column.description for column in shown.columns)


@pytest.mark.parametrize("store", STORES)
def test_column_lineage_leads_from_columns_that_are_to_columns_that_are(store: str) -> None:
    found = specs(store=STORES[store], partition_types={"trace": "fail", "session": "skip"})
    columns = {
        name: {column.name for column in spec.metadata["dagster/column_schema"].columns} for name, spec in found.items()
    }
    for name in NAMES[2:]:
        lineage: dg.TableColumnLineage = found[name].metadata["dagster/column_lineage"]
        assert lineage.deps_by_column
        for column, deps in lineage.deps_by_column.items():
            assert column in columns[name]
            assert deps
            assert len(deps) == len(set(deps))
            for dep in deps:
                assert dep.column_name in columns[dep.asset_key.path[-1]]


FOUND_IN_SETTINGS = {
    "task_summaries": {"source", "pass_threshold"},
    "canonical_traces": {"source", *(f"{table}.source" for table in ("traces", "sessions"))},
    "step_accuracy_scores": {"source", "partition_type", "metric", "metric_version", "config_hash"},
    "step_accuracy_metadata": set[str](),
}
MADE_BY_WRITING = {
    "task_summaries": {"id", "changed_at"},
    "canonical_traces": {
        *("traces.spans_hash", "traces.first_ingested_at", "traces.changed_at", "traces.gone_upstream_at"),
        *("traces.erased_at", "sessions.changed_at", "sessions.erased_at"),
    },
    "step_accuracy_scores": {"id", "dagster_run_id", "evaluated_at", "confirmed_at", "retired_at"},
    "step_accuracy_metadata": set[str](),
}


@pytest.mark.parametrize("name", NAMES[2:])
def test_every_column_has_lineage_but_what_comes_from_settings_or_is_made_when_it_is_written(name: str) -> None:
    metadata = specs()[name].metadata
    columns = {column.name for column in metadata["dagster/column_schema"].columns}
    lineage: dg.TableColumnLineage = metadata["dagster/column_lineage"]
    assert columns - lineage.deps_by_column.keys() == FOUND_IN_SETTINGS[name] | MADE_BY_WRITING[name]


@pytest.mark.parametrize(
    ("store", "column", "expected"),
    [
        ("own", "trace_id", {"trace_id"}),
        ("own", "input_tokens", {"attributes", "events"}),
        ("phoenix", "trace_id", {"traces.trace_id"}),
        ("phoenix", "tool_name", {"name", "span_kind", "attributes", "events"}),
        ("mlflow", "tool_arguments", {"type", "content", "trace_info.session_id", *(
            f"{table}.{name}" for table in ("trace_tags", "trace_request_metadata") for name in ("key", "value")
        )}),
        ("langfuse", "parent_span_id", {"parent_observation_id", "traces.id"}),
        ("table", "position", {"at", "what", "step"}),
    ],
)  # fmt: skip
def test_canonical_columns_lead_to_the_columns_of_the_store(store: str, column: str, expected: set[str]) -> None:
    lineage: dg.TableColumnLineage = specs(store=STORES[store])["canonical_traces"].metadata["dagster/column_lineage"]
    assert {dep.column_name for dep in lineage.deps_by_column[column]} == expected


def test_what_is_scored_decides_where_ids_and_windows_come_from() -> None:
    lineages = [
        specs(partition_types=types)["step_accuracy_scores"].metadata["dagster/column_lineage"].deps_by_column
        for types in ({"trace": "fail"}, {"session": "skip"}, {"trace": "fail", "session": "skip"})
    ]
    found = [
        [{dep.column_name for dep in lineage[column]} for column in ("partition_id", "window_key")]
        for lineage in lineages
    ]
    traces, sessions = [{"traces.trace_id"}, {"traces.window_key"}], [{"sessions.session_id"}, {"sessions.window_key"}]
    assert found == [traces, sessions, [traces[0] | sessions[0], traces[1] | sessions[1]]]


def test_a_source_with_the_address_of_its_traces_links_to_the_ui_of_their_store() -> None:
    linked, plain = specs(trace_url="https://phoenix.example.org/t/{trace_id}"), specs()
    assert linked["agent_traces"].metadata["trace_url"] == "https://phoenix.example.org/t/{trace_id}"
    assert linked["agent_traces"].metadata["store_ui"] == dg.MetadataValue.url("https://phoenix.example.org")
    assert not {"trace_url", "store_ui"} & plain["agent_traces"].metadata.keys()


def test_a_score_leads_back_to_traces_and_to_the_value_of_its_annotation() -> None:
    lineage: dg.TableColumnLineage = specs()["step_accuracy_scores"].metadata["dagster/column_lineage"]
    sources = {(dep.asset_key.path[-1], dep.column_name) for dep in lineage.deps_by_column["score"]}
    assert ("annotations", "value") in sources
    assert ("canonical_traces", "tool_name") in sources
    assert [dep.column_name for dep in lineage.deps_by_column["annotation_id"]] == ["id"]


def test_the_code_version_is_that_of_the_manifest_and_the_hash_of_the_config() -> None:
    plain, strict = specs(), specs(metric=MetricChoice(config={"scoring_method": "strict_position"}))
    first = specs(metric=MetricChoice(version="1.0.0"))
    found = [each["step_accuracy_scores"].code_version or "" for each in (plain, strict, first)]
    assert len(set(found)) == 3
    assert [version.partition("-")[0] for version in found] == [MANIFEST.version, MANIFEST.version, "1.0.0"]
    evaluator = evaluator_of(support_source())
    assert found[0] == f"{MANIFEST.version}-{evaluator.config_hash[:12]}"
    assert plain["step_accuracy_scores"].metadata["config_hash"] == evaluator.config_hash
    assert plain["canonical_traces"].code_version == strict["canonical_traces"].code_version


def test_op_pool_and_batches_come_from_manifest_and_source() -> None:
    source = support_source(max_partitions_per_run=3)
    definitions = build_evaluation_definitions(source)
    scoring = definitions.resolve_assets_def(key("step_accuracy_scores"))
    ingest = definitions.resolve_assets_def(key("canonical_traces"))
    assert scoring.keys == {key("step_accuracy_scores"), key("step_accuracy_metadata")}
    assert (scoring.op.name, ingest.op.name) == (f"{SOURCE}__step_accuracy", f"{SOURCE}__ingest")
    assert (scoring.op.pool, ingest.op.pool) == ("stepacc_step_accuracy", None)
    for assets in (scoring, ingest):
        assert assets.backfill_policy == dg.BackfillPolicy.multi_run(3)
        assert assets.op.retry_policy is None  # by which Dagster would go on with a run that was terminated
    assert {check.name for check in scoring.check_specs} == {
        "every_occurrence_has_expected_steps",
        "scores_between_0_and_1",
        "coverage",
    }
    assert not any(check.blocking for check in scoring.check_specs)


def test_a_pool_without_a_limit_gets_that_of_the_manifest_and_one_with_a_limit_keeps_it(
    dagster_instance: dg.DagsterInstance,
) -> None:
    storage, pool = dagster_instance.event_log_storage, pool_of(MANIFEST)
    ensure_pool_limit(dagster_instance, MANIFEST)
    assert {limit.name: limit.limit for limit in storage.get_pool_limits()} == {
        pool: MANIFEST.execution.max_concurrency
    }
    storage.set_concurrency_slots(pool, 1)
    ensure_pool_limit(dagster_instance, MANIFEST)
    assert {limit.name: limit.limit for limit in storage.get_pool_limits()} == {pool: 1}


def test_a_limit_that_another_process_sets_at_the_same_moment_is_no_error(dagster_instance: dg.DagsterInstance) -> None:
    """Dagster looks for the row and then inserts it; here another one is inserted, and committed, between the two."""
    storage, pool = dagster_instance.event_log_storage, pool_of(MANIFEST)
    insert = ConcurrencyLimitsTable.insert().values(concurrency_key=pool, limit=7, using_default_limit=False)
    engine = create_engine(os.environ[DAGSTER_URL_VARIABLE], poolclass=NullPool)
    with ThreadPoolExecutor(1) as threads, engine.begin() as connection:
        connection.execute(insert)
        waiting = threads.submit(ensure_pool_limit, dagster_instance, MANIFEST)
        waits_for_a_lock(connection)
        connection.commit()
        waiting.result(timeout=60)
    assert {limit.name: limit.limit for limit in storage.get_pool_limits()} == {pool: 7}


def waits_for_a_lock(connection: Connection) -> None:
    """Return once some session waits for a transaction to end."""
    for _ in range(600):
        if connection.execute(text("SELECT count(*) FROM pg_locks WHERE NOT granted")).scalar():
            return
        time.sleep(0.05)
    pytest.fail("Nobody came to wait for the lock.")


def test_an_instance_without_pools_is_left_as_it_is() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        ensure_pool_limit(instance, MANIFEST)
        assert not instance.event_log_storage.supports_global_concurrency_limits


def test_several_sources_stand_side_by_side_in_one_definitions() -> None:
    definitions = dg.Definitions.merge(
        *(build_evaluation_definitions(support_source(name=name, start_date=start))
          for name, start in (("one", "2025-11-01"), ("two", "2025-11-02")))
    )  # fmt: skip
    dg.Definitions.validate_loadable(definitions)
    assert set(definitions.resolve_asset_graph().get_all_asset_keys()) == {
        key(name, source) for name in NAMES for source in ("one", "two")
    }
    assert {job.name for job in definitions.jobs or []} == {"one_evaluation", "two_evaluation"}
    assert {"stepacc_database_one", "stepacc_database_two"} <= set(definitions.resources or {})


def test_a_project_without_components_adds_the_assets_and_a_resource_by_itself() -> None:
    source = support_source()
    definitions = dg.Definitions(
        assets=build_evaluation_assets(source, [evaluator_of(source)]),
        resources={resource_key(source): StepaccDatabase(url_env="OUR_URL")},
    )
    dg.Definitions.validate_loadable(definitions)


def test_users_see_no_warning_of_ours_when_definitions_are_built() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        build_evaluation_definitions(support_source(partitions="hourly")).resolve_asset_graph()
    assert [str(warning.message) for warning in seen] == []


def test_a_metric_nobody_registered_or_a_config_it_refuses_is_an_error_before_anything_runs() -> None:
    with pytest.raises(UnknownMetricError, match=r"There is no metric `acme.none`; registered are"):
        build_evaluation_definitions(support_source(metric=MetricChoice("acme.none")))
    with pytest.raises(UnknownMetricError, match=r"has no version `9.9.9`"):
        build_evaluation_definitions(support_source(metric=MetricChoice(version="9.9.9")))
    with pytest.raises(ConfigError, match=r"field `scoring_method`"):
        build_evaluation_definitions(support_source(metric=MetricChoice(config={"scoring_method": "x"})))
