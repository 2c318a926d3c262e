"""Position against position (contract of `agent.step_accuracy`, section 6)."""

import json
from pathlib import Path
from typing import Any

import pytest

from stepacc_core.alignment import align_by_position
from stepacc_core.model import Step
from stepacc_core.trajectory import parse_trajectory

CASES = Path(__file__).parents[1] / "cases"
STRICT_POSITION = json.loads((CASES / "strict_position.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", STRICT_POSITION, ids=lambda case: case["name"])
def test_case_of_strict_position(case: dict[str, Any]) -> None:
    trajectory = parse_trajectory(case["expected_steps"])

    found = align_by_position(trajectory, [Step(step["name"], step["kind"]) for step in case["observed"]])

    assert found.matches == case["correct_steps"]
    assert trajectory.total_steps == case["total_steps"]
    assert found.matches / trajectory.total_steps == case["score"]
    assert found.extra_steps == case["extra_steps"]
    assert len(found.entries) == trajectory.total_steps


def test_each_expected_position_has_one_entry_with_what_was_observed_there() -> None:
    found = align_by_position(parse_trajectory(["Get-A", "b", "c"]), [Step("get_a"), Step("x", kind="AGENT")])

    assert found.entries == [
        {"op": "match", "expected": "Get-A", "actual": "get_a", "expected_index": 0, "actual_index": 0},
        {"op": "substitute", "expected": "b", "actual": "x", "expected_index": 1, "actual_index": 1},
        {"op": "delete", "expected": "c", "actual": None, "expected_index": 2, "actual_index": None},
    ]


def test_a_group_has_no_position() -> None:
    with pytest.raises(ValueError, match=r"expected_steps\[1\] is a group"):
        align_by_position(parse_trajectory(["a", ["b", "c"]]), [Step("a")])
