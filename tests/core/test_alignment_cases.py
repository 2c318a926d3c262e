"""The reviewed cases: expected and observed steps with what the contract makes of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from stepacc_core.alignment import align, align_by_position
from stepacc_core.model import Step
from stepacc_core.trajectory import parse_trajectory
from tests.oracle import oracle

CASES = Path(__file__).parents[1] / "cases"
EDIT_DISTANCE = json.loads((CASES / "edit_distance.json").read_text(encoding="utf-8"))
REPORTS = json.loads((CASES / "reports.json").read_text(encoding="utf-8"))
METRIC = "agent.step_accuracy"
SCORED = [case for case in REPORTS if case[METRIC]]


def observed(case: dict[str, Any]) -> list[Step]:
    """The case's observed steps."""
    return [Step(step["name"], step["kind"]) for step in case["observed"]]


@pytest.mark.parametrize("case", EDIT_DISTANCE, ids=lambda case: case["name"])
def test_case_of_edit_distance(case: dict[str, Any]) -> None:
    trajectory, steps = parse_trajectory(case["expected_steps"]), observed(case)

    found = align(trajectory, steps)

    assert (found.distance, found.matches) == (case["edit_distance"], case["correct_steps"])
    assert trajectory.total_steps == case["total_steps"]
    assert 1 - found.distance / max(trajectory.total_steps, len(steps)) == case["score"]
    assert found.entries == oracle(trajectory, steps).entries


@pytest.mark.parametrize("case", SCORED, ids=lambda case: case["id"])
def test_case_from_a_public_report(case: dict[str, Any]) -> None:
    trajectory, steps, want = parse_trajectory(case["expected_steps"]), observed(case), case[METRIC]

    if case["scoring_method"] == "strict_position":
        by_position = align_by_position(trajectory, steps)
        assert by_position.matches == want["correct_steps"]
        assert by_position.matches / trajectory.total_steps == want["score"]
        assert by_position.extra_steps == want["extra_steps"]
        return
    found = align(trajectory, steps)
    assert (found.distance, found.matches) == (want["edit_distance"], want["correct_steps"])
    assert 1 - found.distance / max(trajectory.total_steps, len(steps)) == want["score"]
    assert [entry["op"] for entry in found.entries] == want.get("ops", [entry["op"] for entry in found.entries])


def test_a_report_without_values_says_why() -> None:
    assert all(case["note"] for case in REPORTS if case[METRIC] is None)
