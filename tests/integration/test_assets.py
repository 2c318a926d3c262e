"""The asset graph of a source as Dagster sees it: keys, dependencies, catalog metadata, policies and pool."""

import os
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dagster as dg
import pytest
from dagster._core.storage.event_log.schema import ConcurrencyLimitsTable
from sqlalchemy import Connection, NullPool, Table, create_engine, text

from stepacc_core import get_metric
from stepacc_core.errors import ConfigError, UnknownMetricError
from stepacc_dagster import build_evaluation_assets, build_evaluation_definitions
from stepacc_dagster.database import DAGSTER_URL_VARIABLE
from stepacc_dagster.pools import ensure_pool_limit, pool_of
from stepacc_dagster.resources import StepaccDatabase, resource_key
from stepacc_dagster.sources import MetricChoice, RetrySettings, evaluator_of
from stepacc_dagster.storage import tables
from tests.integration.evaluation_access import support_source
from tests.integration.evaluation_samples import SOURCE

MANIFEST = get_metric("agent.step_accuracy").manifest
NAMES = ("agent_traces", "annotations", "canonical_traces", "step_accuracy_scores", "step_accuracy_metadata")
TABLES = {
    "agent_traces": tables.otel_spans,
    "annotations": tables.annotations,
    "canonical_traces": tables.spans,
    "step_accuracy_scores": tables.scores,
    "step_accuracy_metadata": tables.score_metadata,
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
    }
    assert graph.external_asset_keys == {key("agent_traces"), key("annotations")}


def test_what_others_write_is_external_and_every_asset_is_described_grouped_and_of_a_kind() -> None:
    for name, spec in specs().items():
        assert spec.group_name == SOURCE
        assert spec.description
        assert spec.kinds == ({"postgres"} if name in ("agent_traces", "annotations") else {"postgres", "python"})


@pytest.mark.parametrize(("kind", "expected"), [("daily", "2025-11-01"), ("hourly", "2025-11-01-00:00")])
def test_all_assets_share_one_partitions_definition_of_the_sources_kind(kind: str, expected: str) -> None:
    found = {spec.partitions_def for spec in specs(partitions=kind).values()}
    assert len(found) == 1
    [definition] = found
    assert definition is not None
    assert definition.get_first_partition_key() == expected


@pytest.mark.parametrize("name", NAMES)
def test_catalog_metadata_names_the_table_and_describes_its_columns(name: str) -> None:
    metadata, table = specs()[name].metadata, TABLES[name]
    assert metadata["dagster/table_name"] == f"stepacc.{table.name}"
    schema: dg.TableSchema = metadata["dagster/column_schema"]
    assert [column.name for column in schema.columns] == [column.name for column in table.columns]
    for shown, column in zip(schema.columns, table.columns, strict=True):
        assert shown.description == column.comment
        assert shown.constraints.nullable == column.nullable
        assert shown.type


@pytest.mark.parametrize("name", NAMES[2:])
def test_column_lineage_leads_from_columns_that_are_to_columns_that_are(name: str) -> None:
    lineage: dg.TableColumnLineage = specs()[name].metadata["dagster/column_lineage"]
    assert lineage.deps_by_column
    for column, deps in lineage.deps_by_column.items():
        assert column in TABLES[name].columns
        assert deps
        for dep in deps:
            upstream: Table = TABLES[dep.asset_key.path[-1]]
            assert dep.column_name in upstream.columns


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


def test_op_pool_retries_and_batches_come_from_manifest_and_source() -> None:
    source = support_source(retry=RetrySettings(5, 7.5), max_partitions_per_run=3)
    definitions = build_evaluation_definitions(source)
    scoring = definitions.resolve_assets_def(key("step_accuracy_scores"))
    ingest = definitions.resolve_assets_def(key("canonical_traces"))
    assert scoring.keys == {key("step_accuracy_scores"), key("step_accuracy_metadata")}
    assert (scoring.op.name, ingest.op.name) == (f"{SOURCE}__step_accuracy", f"{SOURCE}__ingest")
    assert (scoring.op.pool, ingest.op.pool) == ("stepacc_step_accuracy", None)
    for assets in (scoring, ingest):
        assert assets.backfill_policy == dg.BackfillPolicy.multi_run(3)
        assert assets.op.retry_policy == dg.RetryPolicy(
            5, 7.5, backoff=dg.Backoff.EXPONENTIAL, jitter=dg.Jitter.PLUS_MINUS
        )
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
        assets=build_evaluation_assets(source, evaluator_of(source)),
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
