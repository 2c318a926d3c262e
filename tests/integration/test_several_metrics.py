"""A source scored by two metrics, one of them a family: its rows, what Dagster shows of them, lineage and summaries."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from click.testing import CliRunner

from stepacc_core.metrics import registry
from stepacc_core.model import Member, Result
from stepacc_dagster.cli import main
from stepacc_dagster.errors import ScorerError
from stepacc_dagster.evaluators import evaluator_of
from stepacc_dagster.local.evaluation import LocalEvaluation
from stepacc_dagster.scoring import score_window
from stepacc_dagster.sources import MetricChoice, Source
from stepacc_dagster.storage.annotations import Added, AnnotationEntry, add_annotations, withdraw
from stepacc_dagster.storage.summaries import TaskSummary, task_summaries_of
from tests.integration.conftest import Server
from tests.integration.evaluation_access import Workshop, open_workshop, support_source, values
from tests.integration.evaluation_samples import MONDAY, SOURCE, TUESDAY, WEDNESDAY, ToyMetric, agent_trace, day
from tests.integration.following_access import Follower

STEPS, MATCH = "agent.step_accuracy", "agent.trajectory_match"
BOTH = (MetricChoice(STEPS), MetricChoice(MATCH))
MEMBERS = ("exact", "in_order", "any_order", "passed", "precision", "recall", "f1", "arguments", "efficiency")
MEMBER_ROWS = {f"trajectory_match.{name}" for name in (*MEMBERS, "final_answer")}
GUESSED = {
    "references": [{"name": "usual", "confirmed": False, "steps": ["lookup", "refund"]}],
    "forbidden": ["delete"],
}
CONFIRMED = {**GUESSED, "references": [{"name": "usual", "steps": ["lookup", "refund"]}]}
RUNS = [
    agent_trace("r1", MONDAY, "lookup", "refund", task="refund"),
    agent_trace("r2", MONDAY, "lookup", "refund", task="refund"),
    agent_trace("r3", MONDAY, "lookup", "search", "refund", task="refund"),
    agent_trace("r4", TUESDAY, "lookup", "refund", task="refund"),
    agent_trace("r5", TUESDAY, "lookup", "delete", "refund", task="refund"),
]
"""Five runs of one task over two days; the last one does what is forbidden."""


def both_metrics(**settings: Any) -> Source:
    return support_source(metrics=BOTH, **settings)


def refer(workshop: Workshop, references: Any, task: str = "refund") -> Added:
    entry = AnnotationEntry(SOURCE, "task", task, references, key="reference_trajectories", author="qa@example.org")
    with workshop.engine.begin() as connection:
        [added] = add_annotations(connection, [entry])
    return added


def summaries(workshop: Workshop, metric: str) -> list[TaskSummary]:
    with workshop.engine.connect() as connection:
        return [row for row in task_summaries_of(connection, SOURCE) if row.metric == metric]


@pytest.fixture(scope="module")
def opened(server: Server, _migrated_template: str, _dagster_template: str) -> Iterator[Workshop]:
    with open_workshop(server, _migrated_template, _dagster_template) as workshop:
        workshop.land(*RUNS)
        workshop.annotate("task", "refund", ["lookup", "refund"])
        refer(workshop, GUESSED)
        [run] = LocalEvaluation(both_metrics(), workshop.instance, workshop.engine).materialize([MONDAY, TUESDAY])
        assert run.success, run.error
        yield workshop


@pytest.fixture
def scored(opened: Workshop, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """The five runs scored by both metrics in one Dagster run, and what the tests before did to them."""
    monkeypatch.setenv("STEPACC_DATABASE_URL", opened.engine.url.render_as_string(hide_password=False))
    return opened


def test_each_metric_has_its_assets_and_all_are_made_in_one_run(scored: Workshop) -> None:
    for metric in ("step_accuracy", "trajectory_match"):
        for kind in ("scores", "metadata"):
            key = dg.AssetKey([SOURCE, f"{metric}_{kind}"])
            assert set(scored.instance.get_materialized_partitions(key)) == {MONDAY, TUESDAY}
    record = scored.instance.get_latest_materialization_event(dg.AssetKey([SOURCE, "task_summaries"]))
    assert record is not None


def test_a_family_has_a_row_for_each_member_and_the_whole_metadata_with_its_headline(scored: Workshop) -> None:
    rows = scored.rows(
        "SELECT s.metric, s.status, s.score, s.reason, s.annotation_id, m.metadata FROM stepacc.current_scores s "
        "JOIN stepacc.score_metadata m ON m.score_id = s.id WHERE s.partition_id = 'r5' AND s.metric <> :steps",
        steps=STEPS,
    )
    found = {row.metric.removeprefix("trajectory_match."): row for row in rows}
    assert set(found) == {*MEMBERS, "final_answer"}
    scores = {name: row.score for name, row in found.items()}
    assert (scores["passed"], scores["in_order"], scores["exact"]) == (0, 1, 0)
    assert (scores["recall"], scores["arguments"]) == (1, None)
    assert (found["arguments"].status, found["arguments"].reason) == ("not_applicable", "no_argument_checks")
    assert found["passed"].metadata["forbidden"] == ["delete"]
    assert found["passed"].metadata["verdict"] == "fail"
    assert "steps" not in found["f1"].metadata
    assert len({row.annotation_id for row in rows}) == 1


def test_each_metric_is_measured_against_the_annotation_of_its_own_key(scored: Workshop) -> None:
    rows = scored.rows(
        "SELECT DISTINCT metric = :steps AS steps, annotation_key, annotation_in_force FROM stepacc.score_lineage",
        steps=STEPS,
    )
    assert {tuple(row) for row in rows} == {(True, "expected_steps", True), (False, "reference_trajectories", True)}


def test_dagster_shows_means_of_the_members_verdicts_and_what_is_not_confirmed(scored: Workshop) -> None:
    shown = scored.metadata("trajectory_match_scores", TUESDAY)
    assert shown["verdicts"] == {"pass": 1, "fail": 1}
    assert shown["unconfirmed_references"] == {"usual": 2}
    assert shown["forbidden_seen"] == 1
    assert "| trajectory_match.passed | 0.5000 | 2 | 0 | 0 |" in shown["members"].replace("\\_", "_")
    assert shown["dagster/partition_row_count"] == shown["rows_new"] == 20
    assert scored.metadata("trajectory_match_metadata", TUESDAY)["dagster/partition_row_count"] == 20


def test_the_checks_find_the_forbidden_step_and_the_guess(scored: Workshop) -> None:
    run = scored.instance.get_runs(dg.RunsFilter(tags={"stepacc/trigger": "command"}))[0]
    entries = scored.instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION)
    found = {
        (each.asset_key.path[-1], each.check_name): each
        for each in (entry.get_dagster_event().asset_check_evaluation_data for entry in entries)
    }
    forbidden = found["trajectory_match_scores", "no_forbidden_step"]
    assert (forbidden.passed, forbidden.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert values(forbidden)["which"] == [f"{TUESDAY}: trace r5: delete"]
    guess = found["trajectory_match_scores", "references_confirmed"]
    assert (guess.passed, guess.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert values(guess)["references"] == {"usual": 5}
    assert found["trajectory_match_scores", "every_occurrence_has_references"].passed
    assert found["trajectory_match_scores", "coverage"].passed
    assert ("step_accuracy_scores", "no_forbidden_step") not in found


def test_the_runs_of_the_task_are_summarised_by_each_row(scored: Workshop) -> None:
    [passed] = summaries(scored, "trajectory_match.passed")
    assert (passed.task_id, passed.n, passed.n_scored, passed.passes, passed.pass_rate) == ("refund", 5, 5, 4, 0.8)
    assert (round(passed.pass_rate_low or 0, 3), round(passed.pass_rate_high or 0, 3)) == (0.376, 0.964)
    assert (passed.pass_at_k["2"], passed.pass_hat_k["2"], passed.pass_hat_k["5"]) == (1.0, 0.6, 0.0)
    assert (passed.verdicts, passed.unconfirmed_references) == ({"pass": 4, "fail": 1}, ["usual"])
    [arguments] = summaries(scored, "trajectory_match.arguments")
    assert (arguments.n, arguments.n_scored, arguments.n_not_applicable, arguments.pass_rate) == (5, 0, 5, None)
    assert arguments.unconfirmed_references == ["usual"]
    [steps] = summaries(scored, STEPS)
    assert (steps.n_scored, steps.passes) == (5, 3)
    assert (steps.annotation_id, steps.unconfirmed_references) != (passed.annotation_id, ["usual"])


def test_scoring_again_confirms_every_row_and_changes_no_summary(scored: Workshop) -> None:
    query = "SELECT id, metric, score, annotation_id, reference_hash, steps_hash FROM stepacc.scores ORDER BY id"
    before, told = scored.rows(query), scored.rows("SELECT * FROM stepacc.task_summaries ORDER BY id")
    [run] = LocalEvaluation(both_metrics(), scored.instance, scored.engine).materialize([MONDAY, TUESDAY])
    assert run.success
    assert scored.rows(query) == before
    assert scored.rows("SELECT * FROM stepacc.task_summaries ORDER BY id") == told
    assert scored.metadata("trajectory_match_scores", TUESDAY)["rows_confirmed"] == 20


def test_changed_references_score_anew_by_the_metric_that_reads_them_alone(scored: Workshop) -> None:
    follower = Follower(scored)
    follower_of_both = _follower(scored)
    assert follower_of_both.settle() == []
    refer(scored, CONFIRMED)
    asked = follower_of_both.look()
    selected = {key.path[-1] for run in asked for key in run.request.asset_selection or []}
    assert selected == {"trajectory_match_scores", "trajectory_match_metadata", "task_summaries"}
    assert {key for run in asked for key in run.keys} == {MONDAY, TUESDAY}
    assert {run.request.tags["stepacc/metric"] for run in asked} == {MATCH}
    for run in asked:
        assert follower_of_both.run(run).success
    assert follower_of_both.look() == []
    assert follower.look() == []
    [passed] = summaries(scored, "trajectory_match.passed")
    assert (passed.annotation_revision, passed.passes, passed.unconfirmed_references) == (2, 4, [])


def test_new_traces_are_ingested_once_and_scored_by_all_metrics(scored: Workshop) -> None:
    scored.land(agent_trace("r6", WEDNESDAY, "lookup", "refund", task="refund"))
    [asked] = _follower(scored).tick()
    assert (asked.keys, asked.ingest) == ((WEDNESDAY,), True)
    assert asked.request.tags["stepacc/metric"] == f"{STEPS},{MATCH}"
    rows = scored.rows("SELECT count(*) AS n FROM stepacc.current_scores WHERE partition_id = 'r6'")
    assert rows[0].n == 11


def _follower(workshop: Workshop) -> Follower:
    return Follower(workshop, metrics=BOTH)


@pytest.mark.usefixtures("scored")
def test_the_commands_show_the_members_together_and_each_metric_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attributes = {"source": SOURCE, "start_date": "2025-11-01", "metrics": [{"name": STEPS}, {"name": MATCH}]}
    document = {"type": "stepacc_dagster.StepAccuracyComponent", "attributes": attributes}
    (tmp_path / "defs.yaml").write_text(json.dumps(document))
    monkeypatch.setenv("STEPACC_DEFS", str(tmp_path))
    lineage = CliRunner().invoke(main, ["lineage", "trace", "r5"]).output
    assert lineage.count("agent.trajectory_match 1.0.0, config") == 1
    assert "passed 0.000, current" in lineage
    assert "in_order 1.000" in lineage
    assert "arguments not applicable: no_argument_checks" in lineage
    told = CliRunner().invoke(main, ["lineage", "trace", "r5", "--json"]).stdout
    evaluations = json.loads(told)["evaluations"]
    assert {each["metric"] for each in evaluations} >= {STEPS, "trajectory_match.f1", "trajectory_match.passed"}
    assert all(each["config"] is not None for each in evaluations if each["state"] == "current")
    rows = [json.loads(line) for line in CliRunner().invoke(main, ["scores", "--json"]).stdout.splitlines()]
    assert {row["metric"] for row in rows if row["partition_id"] == "r1"} == {STEPS, *MEMBER_ROWS}
    shown = CliRunner().invoke(main, ["scores", "--metric", "trajectory_match.f1"]).output
    assert "trajectory_match.f1 1.0.0" in shown
    assert re.search(r"(\d) of \1 traces scored, ", shown)


def test_withdrawn_references_retire_every_member_where_the_unannotated_are_skipped(scored: Workshop) -> None:
    follower = Follower(scored, metrics=BOTH, partition_types={"trace": "skip"})
    follower.settle()
    with scored.engine.begin() as connection:
        withdraw(connection, SOURCE, "task", "refund", key="reference_trajectories")
    asked = follower.settle()
    assert {run.request.tags["stepacc/metric"] for run in asked} == {MATCH}
    current = scored.rows("SELECT DISTINCT metric FROM stepacc.current_scores")
    assert [row.metric for row in current] == [STEPS]
    assert summaries(scored, "trajectory_match.passed") == []
    assert len(summaries(scored, STEPS)) == 1


@pytest.mark.parametrize("given", [("toy.one",), ("toy.two", "toy.one"), ("toy.one", "toy.two", "toy.three")])
def test_members_that_the_manifest_does_not_name_are_refused_and_nothing_is_stored(
    scored: Workshop, monkeypatch: pytest.MonkeyPatch, given: tuple[str, ...]
) -> None:
    name = f"toy.of_{len(given)}"
    metric = ToyMetric(
        name, lambda _: Result("scored", 1.0, family=tuple(Member(each, "scored", 1.0) for each in given))
    )
    family = {"family": ("toy.one", "toy.two"), "headline": "toy.two"}
    metric.manifest = metric.manifest.model_copy(update=family)
    monkeypatch.setitem(registry._METRICS, (name, "0.1.0"), metric)
    source = support_source(metric=MetricChoice(name))
    with pytest.raises(ScorerError, match=r"give those of the manifest's family, \['toy.one', 'toy.two'\], in order"):
        score_window(scored.engine, source, evaluator_of(source), day(MONDAY), "a run")
    assert scored.rows("SELECT 1 FROM stepacc.scores WHERE metric LIKE 'toy.%'") == []
