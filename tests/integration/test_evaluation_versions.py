"""Metric versions, configs and annotation revisions side by side: nothing is lost, nothing counts twice."""

from typing import Any

import dagster as dg
import pytest
import sqlalchemy as sa

from tests.integration.evaluation_access import Workshop
from tests.integration.evaluation_samples import MONDAY, TUESDAY, agent_trace


@pytest.fixture
def workshop(dagster_instance: dg.DagsterInstance, migrated_engine: sa.Engine) -> Workshop:
    """One trace a day: that of Monday takes a step too many at its front."""
    workshop = Workshop(dagster_instance, migrated_engine)
    workshop.land(agent_trace("mon", MONDAY, "hello", "search"), agent_trace("tue", TUESDAY, "search"))
    return workshop


def test_a_version_bump_keeps_both_versions_and_each_is_current_for_itself(workshop: Workshop) -> None:
    workshop.annotate("trace", "mon", ["search"])
    workshop.annotate("trace", "tue", ["search"])
    first = workshop.run(MONDAY, TUESDAY, version="1.0.0")
    old_rows = workshop.rows("SELECT * FROM stepacc.scores ORDER BY id")
    second = workshop.run(MONDAY, TUESDAY, version="2.0.0")
    assert (first.success, second.success) == (True, True)
    assert workshop.rows("SELECT * FROM stepacc.scores WHERE metric_version = '1.0.0' ORDER BY id") == old_rows
    current = {(row.partition_id, row.metric_version): row.score for row in workshop.current()}
    assert current == {
        ("mon", "1.0.0"): 0.0,
        ("mon", "2.0.0"): 0.5,
        ("tue", "1.0.0"): 1.0,
        ("tue", "2.0.0"): 1.0,
    }
    tags = [workshop.materialization("step_accuracy_scores", key).tags or {} for key in (MONDAY, TUESDAY)]
    assert all(tag["dagster/code_version"].startswith("2.0.0-") for tag in tags)


def test_running_again_adds_no_row_and_moves_only_the_confirmation(workshop: Workshop) -> None:
    workshop.annotate("trace", "mon", ["search"])
    workshop.run(MONDAY, TUESDAY)
    before = {row.id: row._asdict() for row in workshop.rows("SELECT * FROM stepacc.scores")}
    canonical = workshop.rows("SELECT ctid::text, s::text FROM stepacc.spans s ORDER BY 2")
    again = workshop.run(MONDAY, TUESDAY)
    after = {row.id: row._asdict() for row in workshop.rows("SELECT * FROM stepacc.scores")}
    assert before.keys() == after.keys()
    assert len(before) == 2
    for ident, row in after.items():
        changed = {name for name, value in row.items() if value != before[ident][name]}
        assert changed == {"confirmed_at", "dagster_run_id"}
        assert row["dagster_run_id"] == again.run_id
    assert workshop.rows("SELECT ctid::text, s::text FROM stepacc.spans s ORDER BY 2") == canonical
    metadata = workshop.metadata("step_accuracy_scores", MONDAY)
    assert (metadata["rows_new"], metadata["rows_confirmed"]) == (0, 1)
    versions = {
        (m.tags or {})["dagster/data_version"]
        for m in (workshop.materialization("step_accuracy_scores", key) for key in (MONDAY, TUESDAY))
    }
    assert len(versions) == 1


def test_the_same_data_gives_the_same_data_version_and_other_data_another(workshop: Workshop) -> None:
    workshop.annotate("trace", "mon", ["search"])
    seen = []
    for _ in range(2):
        workshop.run(MONDAY)
        seen.append((workshop.materialization("step_accuracy_scores", MONDAY).tags or {})["dagster/data_version"])
    workshop.annotate("trace", "mon", ["hello"])
    workshop.run(MONDAY)
    seen.append((workshop.materialization("step_accuracy_scores", MONDAY).tags or {})["dagster/data_version"])
    assert seen[0] == seen[1]
    assert seen[0] != seen[2]


def test_a_revised_annotation_gives_a_row_of_its_own_and_back_again_makes_the_first_current(workshop: Workshop) -> None:
    steps: list[tuple[list[str], float]] = [(["hello", "search"], 1.0), (["search"], 0.5), (["hello", "search"], 1.0)]
    revisions = []
    for place, (value, score) in enumerate(steps, 1):
        added = workshop.annotate("trace", "mon", value)
        workshop.run(MONDAY)
        [current] = workshop.current()
        assert (current.score, current.annotation_id) == (score, added.id)
        assert added.revision == place
        revisions.append(added.id)
    rows = workshop.scores(order="score_id")
    assert [row.annotation_id for row in rows] == revisions
    assert [row.annotation_value for row in rows] == [value for value, _ in steps]
    assert [row.score for row in rows] == [1.0, 0.5, 1.0]


def test_steps_that_change_and_change_back_leave_two_rows_and_the_first_current(workshop: Workshop) -> None:
    workshop.annotate("trace", "mon", ["hello", "search"])
    scores = []
    for tools in (("hello", "search"), ("hello", "open"), ("hello", "search")):
        workshop.land(agent_trace("mon", MONDAY, *tools))
        workshop.run(MONDAY)
        [current] = workshop.current()
        scores.append((current.id, current.score))
    assert scores[0] == scores[2]
    assert scores[1][1] == 0.5
    assert len(workshop.scores()) == 2


def test_a_withdrawn_annotation_leaves_its_score_and_the_occurrence_fails_from_then_on(workshop: Workshop) -> None:
    workshop.annotate("trace", "mon", ["search"])
    workshop.run(MONDAY)
    workshop.withdraw("trace", "mon")
    workshop.run(MONDAY)
    scored, failed = workshop.scores(order="score_id")
    assert (scored.status, scored.score, failed.code) == ("scored", 0.5, "missing_expected_steps")
    assert [row.status for row in workshop.current()] == ["failed"]


@pytest.mark.parametrize(
    ("config", "is_new"),
    [
        ({"scoring_method": "strict_position"}, True),
        ({"expected_steps": ["open"]}, False),
        ({"metric_name": "ours"}, False),
    ],
)
def test_a_config_that_changes_what_a_score_means_gives_rows_of_its_own(
    workshop: Workshop, config: dict[str, Any], *, is_new: bool
) -> None:
    workshop.annotate("trace", "mon", ["search"])
    workshop.run(MONDAY)
    workshop.run(MONDAY, config=config)
    rows = workshop.scores()
    assert len({row.config_hash for row in rows}) == len(rows) == (2 if is_new else 1)
    assert len(workshop.current()) == len(rows)


def test_the_fallback_of_the_config_scores_what_nobody_annotated_and_names_no_annotation(workshop: Workshop) -> None:
    workshop.annotate("trace", "mon", ["search"])
    workshop.run(MONDAY, TUESDAY, config={"expected_steps": ["search"]})
    rows = {row.partition_id: row for row in workshop.scores()}
    assert (rows["mon"].expected_from, rows["tue"].expected_from) == ("column", "config")
    assert (rows["tue"].annotation_id, rows["tue"].score) == (None, 1.0)
