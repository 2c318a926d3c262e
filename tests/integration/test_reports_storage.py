"""Public bug reports about storage, versions and references (rows P76 to P91 of the collection), as small cases."""

import dagster as dg
import pytest
import sqlalchemy as sa

from stepacc_core import CanonicalPartition, Result, Step, register, step_accuracy
from stepacc_core.metrics import registry
from tests.integration.evaluation_access import Workshop
from tests.integration.evaluation_samples import MONDAY, TUESDAY, ToyMetric, agent_trace, tool_span
from tests.integration.following_access import Follower


@pytest.fixture
def workshop(
    dagster_instance: dg.DagsterInstance, migrated_engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> Workshop:
    """Two annotated traces on two days."""
    monkeypatch.setattr(registry, "_METRICS", dict(registry._METRICS))
    workshop = Workshop(dagster_instance, migrated_engine)
    workshop.land(agent_trace("a", MONDAY, "hello", "search"), agent_trace("b", TUESDAY, "search"))
    workshop.annotate("trace", "a", ["search"])
    workshop.annotate("trace", "b", ["search"])
    return workshop


def test_p76_p77_versions_lie_side_by_side_and_a_bump_writes_history_anew(workshop: Workshop) -> None:
    Follower(workshop, version="1.0.0").settle()
    old = workshop.rows("SELECT * FROM stepacc.scores ORDER BY id")
    Follower(workshop, version="2.0.0").settle()
    assert workshop.rows("SELECT * FROM stepacc.scores WHERE metric_version = '1.0.0' ORDER BY id") == old
    assert {(row.partition_id, row.metric_version) for row in workshop.current()} == {
        (ident, version) for ident in "ab" for version in ("1.0.0", "2.0.0")
    }


def test_p80_scoring_one_metric_again_leaves_the_rows_of_others(workshop: Workshop) -> None:
    register(ToyMetric("acme.one", lambda _: Result("scored", 0.1)))
    register(ToyMetric("acme.two", lambda _: Result("scored", 0.2)))
    for name in ("acme.one", "acme.two", "agent.step_accuracy"):
        Follower(workshop, name=name).settle()
    others = "SELECT * FROM stepacc.scores WHERE metric <> 'agent.step_accuracy' ORDER BY id"
    before = workshop.rows(others)
    assert len(before) == 4
    workshop.annotate("trace", "a", ["hello", "search"])
    Follower(workshop).settle()
    assert workshop.rows(others) == before


def test_p81_an_attempt_that_fails_leaves_the_score_and_is_on_record(workshop: Workshop) -> None:
    works = [True]

    def score(partition: CanonicalPartition) -> Result:
        if not works[0]:
            msg = f"no answer for {partition.partition_id}"
            raise ValueError(msg)
        return Result("scored", 0.4)

    register(ToyMetric("acme.moody", score))
    Follower(workshop, name="acme.moody").settle()
    works[0] = False
    run = workshop.run(MONDAY, TUESDAY, name="acme.moody")
    assert not run.success
    assert [(row.status, row.score) for row in workshop.current()] == [("scored", 0.4)] * 2
    problems = workshop.rows("SELECT problem FROM stepacc.window_scores ORDER BY window_key")
    assert ["no answer for a" in problems[0].problem, "no answer for b" in problems[1].problem] == [True, True]


def test_p82_a_lost_row_is_written_again_with_its_window(workshop: Workshop) -> None:
    workshop.land(agent_trace("c", MONDAY, "search"), agent_trace("d", MONDAY, "search"))
    workshop.annotate("trace", "c", ["search"])
    workshop.annotate("trace", "d", ["search"])
    workshop.run(MONDAY)
    rows = {row.partition_id: row.score for row in workshop.current()}
    workshop.execute("DELETE FROM stepacc.scores WHERE partition_id = 'c'")
    workshop.run(MONDAY)
    assert {row.partition_id: row.score for row in workshop.current()} == rows


def test_p87_a_copy_of_the_expected_steps_without_times_fails_its_trace_and_is_not_scored(workshop: Workshop) -> None:
    """What was replayed into a trace has no times of its own, and a step without a start has no place in the order."""
    workshop.land([tool_span("a", "copy", "search", None)])
    Follower(workshop).settle()
    [row] = [row for row in workshop.current() if row.partition_id == "a"]
    assert (row.status, row.score) == ("failed", None)
    assert "no start time" in row.message


def test_p88_an_expected_step_that_is_none_fails_loudly_and_is_not_dropped(workshop: Workshop) -> None:
    workshop.annotate("trace", "a", ["search", {"not": "a step"}])
    Follower(workshop).settle()
    [row] = [row for row in workshop.current() if row.partition_id == "a"]
    assert (row.status, row.code, row.score) == ("failed", "invalid_expected_steps", None)


def test_p89_scores_say_which_expectation_they_were_measured_against(workshop: Workshop) -> None:
    Follower(workshop).settle()
    workshop.annotate("trace", "a", ["hello"])
    stale = Follower(workshop).look()
    assert [run.keys for run in stale] == [(MONDAY,)]
    hashes = workshop.rows("SELECT reference_hash, annotation_id FROM stepacc.scores WHERE partition_id = 'a'")
    workshop.run(MONDAY)
    after = workshop.rows("SELECT reference_hash, annotation_id FROM stepacc.scores WHERE partition_id = 'a'")
    assert len(set(after) - set(hashes)) == 1
    assert set(hashes) < set(after)


def test_p91_calls_are_not_merged_into_one_expected_step() -> None:
    result = step_accuracy(["tvdi"], [Step("tvdi"), Step("tvdi")])
    assert (result.score, result.metadata["edit_distance"]) == (0.5, 1)
