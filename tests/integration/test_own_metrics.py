"""A metric that needs no expected steps: what its manifest says decides assets, checks, rows and what is shown."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import dagster as dg
import pytest
import sqlalchemy as sa

from stepacc_core import CanonicalPartition, Result, get_metric, register
from stepacc_core.metrics import Manifest, registry
from stepacc_core.model import Failure
from stepacc_dagster import build_evaluation_definitions
from stepacc_dagster.sources import MetricChoice
from tests.integration.evaluation_access import Workshop, support_source, values
from tests.integration.evaluation_samples import MONDAY, ToyConfig, agent_trace

NAME = "acme.effort"


class Effort:
    """A metric of somebody's own: it reads spans alone, and less of it is better."""

    config_model = ToyConfig

    def __init__(self, scorer: Callable[[CanonicalPartition], Result], **facts: Any) -> None:
        pattern = get_metric("agent.step_accuracy").manifest.model_dump(mode="json")
        own = {"name": NAME, "version": "1.0.0", "required_columns": [], "direction": "lower_is_better"}
        schema = ToyConfig.model_json_schema()
        self.manifest = Manifest.model_validate({**pattern, **own, **facts, "config_schema": schema})
        self._scorer = scorer

    def reference(self, partition: CanonicalPartition, config: ToyConfig) -> None:
        """Return no expectation."""

    def score(self, partition: CanonicalPartition, config: ToyConfig) -> Result:  # noqa: ARG002 (protocol)
        """Score by the function."""
        return self._scorer(partition)


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget at the end what a test registered."""
    monkeypatch.setattr(registry, "_METRICS", dict(registry._METRICS))


@pytest.fixture
def workshop(dagster_instance: dg.DagsterInstance, migrated_engine: sa.Engine) -> Workshop:
    """Two traces, of one and of three steps."""
    workshop = Workshop(dagster_instance, migrated_engine)
    workshop.land(agent_trace("short", MONDAY, "search"), agent_trace("long", MONDAY, "search", "open", "write"))
    return workshop


def by_length(partition: CanonicalPartition) -> Result:
    """Score by the number of spans, and call the metadata what the score table's columns are called."""
    odd = {"total_steps": "three", "correct_steps": 2**40, "edit_distance": 1.5, "steps": {"not": "a list"}}
    return Result("scored", len(partition.spans) / 10, {**odd, "spans": len(partition.spans)})


def test_its_assets_hang_on_the_traces_alone_and_its_check_does_not_speak_of_expected_steps() -> None:
    register(Effort(by_length))
    definitions = build_evaluation_definitions(support_source(metric=MetricChoice(NAME)))
    specs = {spec.key.path[-1]: spec for spec in definitions.resolve_all_asset_specs()}
    made = {"canonical_traces", "effort_scores", "effort_metadata", "task_summaries"}
    assert set(specs) == {"agent_traces", "annotations"} | made
    for name in ("effort_scores", "effort_metadata"):
        assert {dep.asset_key.path[-1] for dep in specs[name].deps} == {"canonical_traces"}
    lineage = specs["effort_scores"].metadata["dagster/column_lineage"]
    assert isinstance(lineage, dg.TableColumnLineage)
    assert {dep.asset_key.path[-1] for deps in lineage.deps_by_column.values() for dep in deps} == {"canonical_traces"}
    checks = {key.name for key in definitions.resolve_asset_graph().asset_check_keys}
    assert checks == {"no_occurrence_failed", "scores_between_0_and_1", "coverage"}


def test_it_scores_what_nobody_annotated_also_where_the_source_skips_that(workshop: Workshop) -> None:
    register(Effort(by_length))
    assert workshop.run(MONDAY, name=NAME, partition_types={"trace": "skip"}).success
    rows = {row.partition_id: row for row in workshop.rows("SELECT * FROM stepacc.scores")}
    assert {ident: row.score for ident, row in rows.items()} == {"short": 0.2, "long": 0.4}


def test_metadata_that_is_called_like_a_column_costs_no_row(workshop: Workshop) -> None:
    register(Effort(by_length))
    assert workshop.run(MONDAY, name=NAME).success
    joined = workshop.rows("SELECT * FROM stepacc.scores JOIN stepacc.score_metadata ON id = score_id")
    assert {(row.total_steps, row.correct_steps, row.edit_distance) for row in joined} == {(None, None, None)}
    assert {row.metadata["total_steps"] for row in joined} == {"three"}
    assert {row.metadata["correct_steps"] for row in joined} == {2**40}


@pytest.mark.parametrize(("direction", "first"), [("lower_is_better", "long"), ("higher_is_better", "short")])
def test_the_worst_are_those_that_are_worst_in_its_direction(workshop: Workshop, direction: str, first: str) -> None:
    register(Effort(by_length, direction=direction))
    assert workshop.run(MONDAY, name=NAME).success
    worst = workshop.metadata("effort_scores", MONDAY)["worst"].splitlines()[2:]
    assert len(worst) == 2
    assert f"`{first}`" in worst[0]


def test_codes_and_reasons_of_its_own_are_stored_and_counted(workshop: Workshop) -> None:
    def judge(partition: CanonicalPartition) -> Result:
        if partition.partition_id == "long":
            return Result("failed", error=Failure("no_budget", "Nobody gave a budget."))
        return Result("not_applicable", reason="paused")

    register(Effort(judge))
    run = workshop.run(MONDAY, name=NAME)
    assert run.success
    rows = {
        row.partition_id: (row.status, row.code, row.reason) for row in workshop.rows("SELECT * FROM stepacc.scores")
    }
    assert rows == {"long": ("failed", "no_budget", None), "short": ("not_applicable", None, "paused")}
    check = workshop.checks(run)["no_occurrence_failed"]
    assert not check.passed
    assert values(check)["failed"] == 1
    assert "missing_expected_steps" not in values(check)


def test_a_trace_is_scored_anew_when_something_changed_that_is_no_step(workshop: Workshop) -> None:
    register(Effort(by_length))
    assert workshop.run(MONDAY, name=NAME).success
    call = agent_trace("short", MONDAY, "search")[1]
    workshop.land([replace(call, span_id="extra", attributes={"openinference.span.kind": "CHAIN"})])
    assert workshop.run(MONDAY, name=NAME).success
    rows = workshop.rows("SELECT score FROM stepacc.scores WHERE partition_id = 'short' ORDER BY id")
    assert [row.score for row in rows] == [0.2, 0.3]
    [current] = [row for row in workshop.current() if row.partition_id == "short"]
    assert current.score == 0.3
    assert len(workshop.rows("SELECT 1 FROM stepacc.scores WHERE partition_id = 'long'")) == 1


def test_a_result_that_says_two_things_fails_its_partition_with_the_sentence(workshop: Workshop) -> None:
    register(Effort(lambda _: Result("scored", reason="no_budget")))
    run = workshop.run(MONDAY, name=NAME)
    assert not run.success
    assert run.error is not None
    assert "Metric `acme.effort` raised ResultError on trace `" in run.error
    assert "give `scored` a score" in run.error
