"""The gates of a source as asset checks: run with the scores, by the decision of `stepacc gate`."""

import json
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from stepacc_core.errors import ConfigError
from stepacc_dagster import StepAccuracyComponent
from stepacc_dagster.component import build_evaluation_definitions
from stepacc_dagster.definitions import load_sources
from stepacc_dagster.gate_settings import GateSettings
from stepacc_dagster.sources import MetricChoice
from tests.integration.conftest import Server
from tests.integration.evaluation_access import Workshop, open_workshop, support_source, values
from tests.integration.evaluation_samples import MONDAY, TUESDAY, agent_trace

LEAST = {"source": "support", "start_date": "2025-11-01"}


@pytest.fixture(scope="module")
def shop(server: Server, _migrated_template: str, _dagster_template: str) -> Iterator[Workshop]:
    """A good trace on Monday and a bad one on Tuesday."""
    with open_workshop(server, _migrated_template, _dagster_template) as workshop:
        workshop.land(
            agent_trace("good", MONDAY, "search", task="refund"), agent_trace("bad", TUESDAY, "hello", task="refund")
        )
        workshop.annotate("task", "refund", ["search"])
        yield workshop


@pytest.fixture
def workshop(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """The workshop of all tests here, whose database the environment names."""
    monkeypatch.setenv("STEPACC_DATABASE_URL", shop.engine.url.render_as_string(hide_password=False))
    return shop


def test_a_gate_is_told_with_each_scoring_and_a_failing_one_ends_no_run(workshop: Workshop) -> None:
    gates = (GateSettings(min_mean=0.9, min_coverage=1.0),)

    first = workshop.run(MONDAY, gates=gates)
    passed = workshop.checks(first)["gate"]
    assert (first.success, passed.passed) == (True, True)
    assert passed.description == (
        "The gate passed: 1 trace scored; the mean 1.000 is at least 0.9; the coverage 1.000 is at least 1."
    )

    second = workshop.run(TUESDAY, gates=gates)
    failed = workshop.checks(second)["gate"]
    assert (second.success, failed.passed) == (True, False)
    assert failed.description == "The gate failed: the mean 0.500 is below 0.9."
    shown = values(failed)
    assert (shown["mean"], shown["coverage"], shown["scored"]) == (0.5, 1.0, 2)
    assert shown["decision"]["passed"] is False


def test_a_blocking_gate_that_fails_ends_the_run_before_what_is_made_of_the_scores(workshop: Workshop) -> None:
    blocked = workshop.run(TUESDAY, gates=(GateSettings(newest=1, min_mean=0.9, blocking=True),))

    assert (blocked.success, workshop.checks(blocked)["gate"].passed) == (False, False)
    logs = workshop.instance.all_logs(blocked.run_id, of_type=dg.DagsterEventType.STEP_SUCCESS)
    assert {log.step_key for log in logs} == {"support__ingest", "support__step_accuracy"}


def test_a_gate_runs_by_itself_and_what_cannot_be_decided_does_not_pass(workshop: Workshop) -> None:
    definitions = build_evaluation_definitions(support_source(gates=(GateSettings(baseline="none of that name"),)))
    key = dg.AssetCheckKey(dg.AssetKey(["support", "step_accuracy_scores"]), "gate")
    job = definitions.resolve_implicit_global_asset_job_def()
    alone = job.get_subset(asset_selection=set(), asset_check_selection={key})

    result = alone.execute_in_process(instance=workshop.instance)

    [told] = result.get_asset_check_evaluations()
    assert (result.success, told.passed) == (True, False)
    assert told.description is not None
    assert told.description.startswith(
        "The gate cannot be decided: Source `support` has no baseline `none of that name`"
    )


def test_a_gate_is_written_in_the_settings_of_a_source() -> None:
    gates = [{"min_mean": 0.9, "newest": 7, "blocking": True}]
    component = StepAccuracyComponent.from_attributes_dict(attributes={**LEAST, "gates": gates})
    assert isinstance(component, StepAccuracyComponent)
    source = component.to_source()
    assert source.gates == (GateSettings(min_mean=0.9, newest=7, blocking=True),)

    definitions = build_evaluation_definitions(source)
    key = dg.AssetCheckKey(dg.AssetKey(["support", "step_accuracy_scores"]), "gate")
    spec = definitions.resolve_asset_graph().get_check_spec(key)
    assert spec.blocking
    assert spec.description is not None
    assert "their mean is at least 0.9. It speaks of the newest 7 windows" in spec.description


def test_each_metric_and_member_has_a_gate_of_its_own() -> None:
    source = support_source(
        metrics=(MetricChoice(), MetricChoice("agent.trajectory_match")),
        gates=(
            GateSettings("agent.step_accuracy", min_mean=0.5),
            GateSettings("agent.trajectory_match", no_forbidden=True),
            GateSettings("trajectory_match.f1", min_mean=0.5),
        ),
    )
    checks = build_evaluation_definitions(source).resolve_asset_graph().asset_check_keys
    assert {(key.asset_key.path[-1], key.name) for key in checks if key.name.startswith("gate")} == {
        ("step_accuracy_scores", "gate"),
        ("trajectory_match_scores", "gate"),
        ("trajectory_match_scores", "gate_f1"),
    }


@pytest.mark.parametrize(
    ("gates", "setting", "said"),
    [
        ([{"min_mean": 2}], "gates.0.min_mean", "`min_mean` is 2.0; use 0 to 1."),
        ([{}], "gates.0", "asks for nothing; give one or more of `min_mean`"),
        ([{"min_mean": 0.5}, {"min_mean": 0.6}], "gates.1.metric", "two gates for `agent.step_accuracy`"),
        ([{"min_mean": 0.5, "metric": "agent.charm"}], "gates.0.metric", "is not scored by `agent.charm`"),
    ],
)
def test_a_gate_that_cannot_be_is_refused_with_file_and_place(
    gates: list[dict[str, object]], setting: str, said: str, tmp_path: Path
) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    document = {"type": "stepacc_dagster.StepAccuracyComponent", "attributes": {**LEAST, "gates": gates}}
    (folder / "defs.yaml").write_text(json.dumps(document))
    with pytest.raises(ConfigError, match=r"defs\.yaml:1") as refused:
        [build_evaluation_definitions(source) for source in load_sources(tmp_path)]
    assert refused.value.setting == setting
    assert said in refused.value.message
