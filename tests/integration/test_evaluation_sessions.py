"""Sessions: one score over all their traces, in the window of the first."""

from collections.abc import Sequence
from typing import Any

import dagster as dg
import pytest
import sqlalchemy as sa

from tests.integration.evaluation_access import Workshop, values
from tests.integration.evaluation_samples import MONDAY, TUESDAY, WEDNESDAY, agent_trace

BOTH: dict[str, Any] = {"partition_types": {"trace": "skip", "session": "fail"}}


@pytest.fixture
def workshop(dagster_instance: dg.DagsterInstance, migrated_engine: sa.Engine) -> Workshop:
    """A session of three traces, two on Monday and one on Tuesday, and a trace of no session."""
    workshop = Workshop(dagster_instance, migrated_engine)
    workshop.land(
        agent_trace("a", MONDAY, "search", session="s"),
        agent_trace("b", MONDAY, "open", session="s", hour=23),
        agent_trace("c", TUESDAY, "close", session="s", hour=1),
        agent_trace("alone", TUESDAY, "search"),
    )
    workshop.annotate("session", "s", ["search", "open", "close"], "session")
    return workshop


def sessions(workshop: Workshop) -> list[Any]:
    return [row for row in workshop.current() if row.partition_type == "session"]


def test_a_session_is_scored_once_and_in_the_window_of_its_first_trace(workshop: Workshop) -> None:
    run = workshop.run(MONDAY, TUESDAY, **BOTH)
    [row] = sessions(workshop)
    assert (row.partition_id, row.window_key, row.status, row.score) == ("s", MONDAY, "scored", 1.0)
    assert workshop.metadata("step_accuracy_scores", MONDAY)["scored"] == 1
    assert workshop.metadata("step_accuracy_scores", TUESDAY)["scored"] == 0
    coverage = values(workshop.checks(run)["coverage"])
    assert (coverage["occurrences"], coverage["skipped_unannotated"]) == (5, 4)


@pytest.mark.parametrize("order", [[MONDAY, TUESDAY], [TUESDAY, MONDAY]], ids=["in order", "last day first"])
def test_a_session_over_two_windows_is_whole_whatever_is_evaluated_first(
    workshop: Workshop, order: Sequence[str]
) -> None:
    evaluation = workshop.evaluation(**BOTH)
    runs = [run for key in order for run in evaluation.materialize([key])]
    assert all(run.success for run in runs)
    [row] = sessions(workshop)
    assert (row.window_key, row.score, row.dagster_run_id) == (MONDAY, 1.0, runs[-1].run_id)


def test_evaluating_a_later_window_scores_the_home_windows_outside_the_range_again(workshop: Workshop) -> None:
    evaluation = workshop.evaluation(**BOTH)
    list(evaluation.materialize([MONDAY]))
    [before] = sessions(workshop)
    runs = list(evaluation.materialize([TUESDAY]))
    [after] = sessions(workshop)
    assert [(run.first, run.last) for run in runs] == [(TUESDAY, TUESDAY), (MONDAY, MONDAY)]
    assert (before.score, after.score) == (pytest.approx(2 / 3), 1.0)
    assert workshop.metadata("canonical_traces", TUESDAY)["windows_to_score_again"] == [MONDAY]


def test_a_range_longer_than_a_run_is_ingested_whole_before_any_of_it_is_scored(workshop: Workshop) -> None:
    evaluation = workshop.evaluation(**BOTH, max_partitions_per_run=1)
    runs = list(evaluation.materialize([MONDAY, TUESDAY, WEDNESDAY]))
    assert [run.first for run in runs] == [MONDAY, TUESDAY, WEDNESDAY] * 2
    assert [row.score for row in workshop.scores() if row.partition_type == "session"] == [1.0]


def test_a_session_whose_first_trace_arrives_late_moves_home_and_keeps_one_current_score(workshop: Workshop) -> None:
    evaluation = workshop.evaluation(**BOTH)
    list(evaluation.materialize([TUESDAY]))
    [early] = sessions(workshop)
    list(evaluation.materialize([MONDAY]))
    [whole] = sessions(workshop)
    assert (early.window_key, whole.window_key) == (TUESDAY, MONDAY)
    assert (early.score, whole.score) == (pytest.approx(1 / 3), 1.0)


def test_what_nobody_annotated_is_skipped_or_fails_by_type(workshop: Workshop) -> None:
    workshop.land(agent_trace("d", MONDAY, "search", session="other"))
    workshop.run(MONDAY, partition_types={"trace": "fail", "session": "skip"})
    found = {(row.partition_type, row.partition_id): row.status for row in workshop.scores()}
    assert found == {
        ("session", "s"): "scored",
        ("trace", "a"): "failed",
        ("trace", "b"): "failed",
        ("trace", "d"): "failed",
    }


def test_an_annotation_of_a_task_counts_for_the_type_it_was_made_for(workshop: Workshop) -> None:
    workshop.land(
        agent_trace("e", WEDNESDAY, "search", task="t", session="with task"),
        agent_trace("f", WEDNESDAY, "open", hour=10, session="with task"),
    )
    of_trace = workshop.annotate("task", "t", ["search"])
    of_session = workshop.annotate("task", "t", ["search", "open"], "session")
    workshop.run(WEDNESDAY, partition_types={"trace": "skip", "session": "skip"})
    found = {row.partition_type: (row.partition_id, row.annotation_id, row.score) for row in workshop.scores()}
    assert found == {"trace": ("e", of_trace.id, 1.0), "session": ("with task", of_session.id, 1.0)}
