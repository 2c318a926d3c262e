"""What a project says of the assets of a source: keys, lineage, checks, jobs and sensors follow."""

from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest
import sqlalchemy as sa
from dagster.components.testing import create_defs_folder_sandbox

from stepacc_core.errors import ConfigError
from stepacc_dagster import (
    AssetSettings,
    Source,
    StepaccDatabase,
    StepAccuracyComponent,
    build_evaluation_assets,
    build_evaluation_definitions,
    resource_key,
)
from stepacc_dagster.local.evaluation import LocalEvaluation
from tests.integration.evaluation_access import Workshop, support_source
from tests.integration.evaluation_samples import MONDAY, TUESDAY, agent_trace
from tests.integration.test_component import LEAST, TYPE, dagsters_own_warnings

MADE = {"canonical_traces", "step_accuracy_scores", "step_accuracy_metadata", "task_summaries"}
READ = {"agent_traces", "annotations"}
SETTINGS = AssetSettings(
    key_prefix=("evals", "agents"),
    group_name="quality/agents",
    owners=("team:evals", "qa@example.org"),
    tags={"tier": "gold"},
    automation_condition=dg.AutomationCondition.on_cron("0 3 * * *"),
)
IN_YAML: dict[str, Any] = {
    "key_prefix": ["evals", "agents"],
    "group_name": "quality/agents",
    "owners": ["team:evals", "qa@example.org"],
    "tags": {"tier": "gold"},
    "automation_condition": "{{ dg.AutomationCondition.on_cron('0 3 * * *') }}",
}


def by_name(specs: Any) -> dict[str, dg.AssetSpec]:
    return {spec.key.path[-1]: spec for spec in specs}


@pytest.fixture
def definitions() -> Any:
    """The definitions of a source with all settings, by the plain function."""
    return build_evaluation_definitions(Source("support", "2025-11-01", assets=SETTINGS))


def assert_as_set(specs: dict[str, dg.AssetSpec]) -> None:
    assert set(specs) == MADE | READ
    for name, spec in specs.items():
        assert spec.key == dg.AssetKey(["evals", "agents", "support", name])
        assert spec.group_name == "quality/agents"
        assert list(spec.owners) == ["team:evals", "qa@example.org"]
        assert spec.tags["tier"] == "gold"
        assert (spec.automation_condition == SETTINGS.automation_condition) is (name in MADE)
    assert specs["step_accuracy_scores"].tags["stepacc/metric"] == "agent.step_accuracy"


def test_the_plain_function_gives_the_assets_as_they_are_set(definitions: dg.Definitions) -> None:
    assert_as_set(by_name(definitions.resolve_all_asset_specs()))
    dg.Definitions.validate_loadable(definitions)


def test_the_function_for_assets_alone_gives_the_same_keys() -> None:
    source = Source("support", "2025-11-01", assets=SETTINGS)
    assets = build_evaluation_assets(source)
    alone = dg.Definitions(assets=assets, resources={resource_key(source): StepaccDatabase()})
    dg.Definitions.validate_loadable(alone)
    assert_as_set(by_name(alone.resolve_all_asset_specs()))


@dagsters_own_warnings
def test_the_component_gives_the_assets_as_they_are_set() -> None:
    document = {"type": TYPE, "attributes": {**LEAST, "assets": IN_YAML}}
    with create_defs_folder_sandbox() as sandbox:
        path = sandbox.scaffold_component(component_cls=StepAccuracyComponent, defs_yaml_contents=document)
        with sandbox.load_component_and_build_defs(defs_path=path) as (_, definitions):
            assert_as_set(by_name(definitions.resolve_all_asset_specs()))


def keys_in(value: Any) -> Iterator[dg.AssetKey]:
    if isinstance(value, dg.TableColumnLineage):
        for deps in value.deps_by_column.values():
            yield from (dep.asset_key for dep in deps)


def test_dependencies_lineage_checks_job_and_sensors_have_the_prefix(definitions: dg.Definitions) -> None:
    specs = by_name(definitions.resolve_all_asset_specs())
    own = {spec.key for spec in specs.values()}
    for spec in specs.values():
        assert {dep.asset_key for dep in spec.deps} <= own
        assert {key for value in spec.metadata.values() for key in keys_in(value)} <= own
    assert {dep.asset_key.path[-1] for dep in specs["step_accuracy_scores"].deps} == {"canonical_traces", "annotations"}
    graph = definitions.resolve_asset_graph()
    assert {key.asset_key for key in graph.asset_check_keys} == {specs["step_accuracy_scores"].key}
    job = definitions.resolve_job_def("support_evaluation")
    assert job.asset_layer.executable_asset_keys == {specs[name].key for name in MADE}


def test_left_out_they_are_the_sources_name_and_nothing_else() -> None:
    specs = by_name(build_evaluation_definitions(Source("support", "2025-11-01")).resolve_all_asset_specs())
    for name, spec in specs.items():
        assert spec.key == dg.AssetKey(["support", name])
        assert (spec.group_name, list(spec.owners), spec.automation_condition) == ("support", [], None)
    assert dict(specs["annotations"].tags) == {"dagster/kind/postgres": ""}


def test_what_differs_from_asset_to_asset_is_for_dagsters_own_mapping() -> None:
    source = Source("support", "2025-11-01", assets=SETTINGS)

    def owned(spec: dg.AssetSpec) -> dg.AssetSpec:
        return spec.replace_attributes(owners=["team:data"]) if spec.key.path[-1] in READ else spec

    mapped = dg.map_asset_specs(owned, build_evaluation_assets(source))
    definitions = dg.Definitions(assets=mapped, resources={resource_key(source): StepaccDatabase()})
    for name, spec in by_name(definitions.resolve_all_asset_specs()).items():
        assert list(spec.owners) == (["team:data"] if name in READ else list(SETTINGS.owners))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (AssetSettings(owners=["nobody"]), "owners of source `support` is refused by Dagster: Invalid owner 'nobody'"),
        (AssetSettings(group_name="a b"), 'group_name of source `support` is refused by Dagster: "a b" is not a valid'),
        (AssetSettings(tags={"a b!": "c"}), "tags of source `support` is refused by Dagster: Found invalid tag keys"),
    ],
)
def test_what_dagster_refuses_is_told_with_the_setting(settings: AssetSettings, sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        build_evaluation_definitions(Source("support", "2025-11-01", assets=settings))
    assert str(refused.value).startswith(sentence)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("prefix", ["evals", ["evals", ""], [""]])
def test_a_prefix_of_which_no_key_can_be_made_is_refused(prefix: Any) -> None:
    with pytest.raises(ConfigError, match="list texts that are not empty") as refused:
        AssetSettings(key_prefix=prefix)
    assert refused.value.setting == "assets.key_prefix"


def test_a_run_materialises_the_prefixed_assets_and_stores_scores_under_the_sources_name(
    dagster_instance: dg.DagsterInstance, migrated_engine: sa.Engine
) -> None:
    workshop = Workshop(dagster_instance, migrated_engine)
    workshop.land(agent_trace("t1", MONDAY, "search", task="find"), agent_trace("t2", TUESDAY, "search", task="find"))
    workshop.annotate("task", "find", ["search"])
    evaluation = LocalEvaluation(support_source(assets=SETTINGS), dagster_instance, migrated_engine)
    [run] = evaluation.materialize([MONDAY, TUESDAY])
    assert run.success
    for name in MADE:
        key = dg.AssetKey(["evals", "agents", "support", name])
        whole = name == "task_summaries"
        assert set(dagster_instance.get_materialized_partitions(key)) == (set() if whole else {MONDAY, TUESDAY})
        assert dagster_instance.get_latest_materialization_event(key)
    assert {(row.source, row.score) for row in workshop.rows("SELECT * FROM stepacc.scores")} == {("support", 1.0)}
    assert all(check.passed for check in workshop.checks(run).values())
