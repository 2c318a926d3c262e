"""Traces of other people's stores are ingested and scored by the assets, and their expectations are taken over."""

import json
from typing import Any

import dagster as dg
import pytest
import sqlalchemy as sa

from stepacc_core.errors import ConfigError
from stepacc_dagster.component import StepAccuracyComponent, build_evaluation_definitions
from stepacc_dagster.sources import Source
from stepacc_dagster.stores.settings import MlflowSettings, OtelSpansSettings, TableColumns, TableSettings
from tests.integration.evaluation_access import Workshop
from tests.integration.following_access import Follower
from tests.integration.store_access import DAY, SETTINGS, TRUE_CALLS, StoreName, load, run
from tests.integration.test_store_changes import STORES, add_late_span

FROM: dict[str, Any] = {"start_date": "2026-11-01", "partition_types": {"trace": "skip"}}


@pytest.fixture
def workshop(dagster_instance: dg.DagsterInstance, migrated_engine: sa.Engine) -> Workshop:
    """A workshop over databases of the test's own."""
    return Workshop(dagster_instance, migrated_engine)


def expected(turns: list[list[Any]]) -> list[Any]:
    """Return true calls as expected steps: calls of one completion are a group, passes to agents are left out."""

    def bare(name: str) -> str:
        return name.removesuffix("(error)")

    calls = [call for turn in turns for call in turn]
    return [
        [bare(name) for name in call] if isinstance(call, list) else bare(call)
        for call in calls
        if not (isinstance(call, str) and call.startswith("@"))
    ]


@pytest.mark.parametrize("store", STORES)
def test_every_true_call_is_matched_and_a_late_span_changes_one_score(workshop: Workshop, store: StoreName) -> None:
    load(workshop.engine, store)
    tasks = {trace_id: expected(turns) for trace_id, turns in TRUE_CALLS[store].items() if expected(turns)}
    for trace_id, steps in tasks.items():
        workshop.annotate("trace", trace_id, steps)

    outcome = workshop.run(DAY.key, store=SETTINGS[store](), **FROM)
    before = {row.partition_id: row for row in workshop.current() if row.partition_id in tasks}
    late = min(tasks)
    add_late_span(workshop.engine, store, late)
    again = workshop.run(DAY.key, store=SETTINGS[store](), **FROM)
    after = {row.partition_id: row for row in workshop.current() if row.partition_id in tasks}

    assert (outcome.error, again.error) == (None, None)
    assert {ident: (row.correct_steps, row.total_steps) for ident, row in before.items()} == {
        ident: (count, count) for ident, count in ((i, len(_flat(steps))) for i, steps in tasks.items())
    }
    assert {ident for ident, row in after.items() if row.steps_hash != before[ident].steps_hash} == {late}


def test_what_mlflow_expects_is_taken_over_and_a_correction_here_is_not_overruled(workshop: Workshop) -> None:
    load(workshop.engine, "mlflow")

    workshop.run(DAY.key, store=MlflowSettings(), **FROM)
    (told,) = workshop.rows("SELECT * FROM stepacc.annotations")
    corrected = workshop.annotate("trace", told.target_id, ["lookup_order"])
    workshop.run(DAY.key, store=MlflowSettings(), **FROM)

    assert [row.id for row in workshop.rows("SELECT * FROM stepacc.annotations ORDER BY id")] == [told.id, corrected.id]
    scored = [row for row in workshop.scores("score_id") if row.partition_id == told.target_id]
    assert [row.annotation_id for row in scored] == [told.id, corrected.id]

    other = json.dumps(["check_order", "issue_refund"])
    run(workshop.engine, "UPDATE assessments SET value = :v WHERE name = 'expected_steps'", v=other)
    workshop.run(DAY.key, store=MlflowSettings(), **FROM)

    assert [row.value for row in workshop.rows("SELECT * FROM stepacc.annotations ORDER BY id")][2:] == [
        ["check_order", "issue_refund"]
    ]


def test_a_store_of_an_unknown_shape_fails_in_a_sentence_and_is_not_retried(workshop: Workshop) -> None:
    load(workshop.engine, "phoenix")
    run(workshop.engine, "ALTER TABLE spans RENAME COLUMN parent_id TO parent")

    outcome = workshop.run(DAY.key, store=SETTINGS["phoenix"](), **FROM)

    assert not outcome.success
    assert "no column public.spans.parent_id" in str(outcome.error)
    assert workshop.events(outcome, dg.DagsterEventType.STEP_UP_FOR_RETRY) == 0


def test_a_store_in_another_database_is_named_by_its_own_variable(
    workshop: Workshop, engine: sa.Engine, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(engine, "phoenix")
    monkeypatch.setenv("PHOENIX_DATABASE_URL", postgres_url)
    settings = {"store": SETTINGS["phoenix"](), "store_url_env": "PHOENIX_DATABASE_URL", **FROM}

    outcome = workshop.run(DAY.key, **settings)

    assert outcome.error is None
    assert workshop.metadata("canonical_traces", DAY.key)["traces"] == len(TRUE_CALLS["phoenix"])

    monkeypatch.delenv("PHOENIX_DATABASE_URL")
    assert "`PHOENIX_DATABASE_URL` is not set" in str(workshop.run(DAY.key, **settings).error)


@pytest.mark.parametrize(
    ("attributes", "store"),
    [
        ({}, OtelSpansSettings()),
        ({"kind": "phoenix", "projects": ["a"], "schema": "px"}, SETTINGS["phoenix"](projects=("a",), schema="px")),
        ({"kind": "mlflow", "experiments": ["a"]}, MlflowSettings(experiments=("a",))),
        ({"kind": "langfuse_v2", "project_ids": ["p"]}, SETTINGS["langfuse_v2"](project_ids=("p",))),
        (
            {
                "kind": "table",
                "table": "agent_spans",
                "columns": {"trace_id": "t", "span_id": "s", "name": "n", "start_time": "at"},
                "attribute_columns": {"gen_ai.tool.name": "tool"},
            },
            TableSettings(
                "agent_spans", TableColumns("t", "s", "n", "at"), attribute_columns={"gen_ai.tool.name": "tool"}
            ),
        ),
    ],
    ids=lambda value: value.get("kind", "default") if isinstance(value, dict) else "",
)
def test_yaml_names_the_store_and_the_catalog_its_table(attributes: dict[str, Any], store: Any) -> None:
    given = {"store": attributes} if attributes else {}
    source = StepAccuracyComponent.from_attributes_dict(
        attributes={"source": "support", "start_date": "2026-11-01", **given}
    ).to_source()

    assert source.store == store
    (spec,) = [
        spec
        for spec in build_evaluation_definitions(source).resolve_all_asset_specs()
        if spec.key.path[-1] == "agent_traces"
    ]
    assert spec.metadata["dagster/table_name"] == store.table_name


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"kind": "redis"}, "'otel_spans', 'phoenix', 'mlflow', 'langfuse_v2', 'table'"),
        ({}, "`store`"),
        ({"kind": "phoenix", "project": "a"}, "`store.phoenix.project`"),
        ({"kind": "table", "table": "t"}, "`store.table.columns`"),
        ({"kind": "mlflow", "look_back_days": 0}, "look_back_days of the trace store is 0"),
    ],
)
def test_a_wrong_store_setting_is_named(attributes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        StepAccuracyComponent.from_attributes_dict(
            attributes={"source": "support", "start_date": "2026-11-01", "store": attributes}
        )

    assert said in str(caught.value)


def test_the_step_policy_and_mappings_of_a_component_reach_its_source() -> None:
    source = StepAccuracyComponent.from_attributes_dict(
        attributes={
            "source": "support",
            "start_date": "2026-11-01",
            "step_policy": {"entry_agent": "root", "ignore": ["transfer_to_agent"]},
            "mappings": [{"name": "ours", "kind_attribute": "step.type", "kinds": {"function": "TOOL"}}],
        }
    ).to_source()
    literal = Source("support", "2026-11-01")

    assert source.step_policy.settings() == {"entry_agent": "root", "ignore": ["transfer_to_agent"]}
    assert [mapping.name for mapping in source.read_settings.mappings] == ["ours"]
    versions = [_code_versions(each) for each in (source, literal)]
    same = {name for name in versions[0] if versions[0][name] == versions[1][name]}
    assert same == {"task_summaries"}  # made of whatever scores there are


def _code_versions(source: Source) -> dict[str, str]:
    specs = build_evaluation_definitions(source).resolve_all_asset_specs()
    return {spec.key.path[-1]: spec.code_version for spec in specs if spec.code_version}


def _flat(steps: list[Any]) -> list[str]:
    return [name for step in steps for name in (step if isinstance(step, list) else [step])]


@pytest.mark.parametrize("store", STORES)
def test_a_late_span_of_a_followed_store_changes_its_trace_after_the_next_look_and_nothing_else(
    workshop: Workshop, store: StoreName
) -> None:
    load(workshop.engine, store)
    late = min(TRUE_CALLS[store])
    follower = Follower(workshop, store=SETTINGS[store](), start_date="2026-11-01")
    assert DAY.key in {key for run in follower.settle() for key in run.keys}
    before = {row.partition_id: row for row in workshop.current()}
    assert follower.look() == []
    add_late_span(workshop.engine, store, late)
    assert [(run.keys, run.ingest) for run in follower.settle()] == [((DAY.key,), True)]
    after = {row.partition_id: row for row in workshop.current()}
    assert {ident for ident, row in after.items() if row.steps_hash != before[ident].steps_hash} == {late}
    assert {ident for ident, row in after.items() if row.id != before[ident].id} == {late}


def test_a_table_that_tells_nothing_of_changes_is_ingested_all_the_same(workshop: Workshop) -> None:
    run(workshop.engine, "CREATE TABLE agent_spans (t text, s text, n text, at bigint, tool text)")
    run(workshop.engine, "INSERT INTO agent_spans VALUES ('t', 'a', 'execute_tool x', :at, 'x')", at=DAY.start_ns + 1)
    columns = TableColumns("t", "s", "n", "at")
    store = TableSettings("agent_spans", columns, attribute_columns={"gen_ai.tool.name": "tool"})
    assert workshop.run(DAY.key, store=store, start_date="2026-11-01").success
    assert [row.partition_id for row in workshop.current()] == ["t"]
    follower = Follower(workshop, store=store, start_date="2026-11-01")
    assert follower.look() == []
    workshop.annotate("trace", "t", ["x"])
    assert [(run.keys, run.ingest) for run in follower.settle()] == [((DAY.key,), False)]
