"""The reviewed cases of `agent.trajectory_match`: public reports, faults of peers, and the contract's boundaries."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from stepacc_core import Step, trajectory_match
from stepacc_core.model import Member, Result
from stepacc_core.summaries import TaskRuns, statistics

CASES = json.loads((Path(__file__).parents[1] / "cases" / "trajectory_match.json").read_text(encoding="utf-8"))


def steps_of(case: dict[str, Any]) -> list[Step]:
    """The case's observed steps."""
    steps = case["steps"]
    return [Step(**steps["step"])] * steps["times"] if isinstance(steps, dict) else [Step(**step) for step in steps]


def judged(case: dict[str, Any]) -> Result:
    """What the metric says of a case."""
    return trajectory_match(case["reference_trajectories"], steps_of(case), final_answer=case.get("final_answer"))


def rows_of(result: Result) -> dict[str, Member]:
    """The rows by their short names."""
    return {member.name.removeprefix("trajectory_match."): member for member in result.family}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case(case: dict[str, Any]) -> None:
    result = judged(case)
    rows = rows_of(result)

    if case["rows"] == "failed":
        assert {(row.status, row.code, row.score) for row in rows.values()} == {("failed", case["code"], None)}
        assert (len(rows), result.code) == (10, case["code"])
        return
    scores = {name: rows[name].score for name in case["rows"]}
    assert scores == {name: pytest.approx(score, abs=1e-6) for name, score in case["rows"].items()}
    assert result.score == rows["passed"].score
    for name, reason in case.get("reasons", {}).items():
        assert (rows[name].status, rows[name].reason) == ("not_applicable", reason)
    metadata = result.metadata
    json.dumps(metadata)
    for key in ("verdict", "edit_distance", "forbidden", "assumptions"):
        assert metadata[key] == case.get(key, metadata[key])
    assert [entry["op"] for entry in metadata["steps"]] == case.get("ops", [entry["op"] for entry in metadata["steps"]])
    if "checks" in case:
        assert [entry["checks"] for entry in metadata["steps"]] == case["checks"]
    assert metadata["reference"]["name"] == case.get("reference", metadata["reference"]["name"])
    assert [gap["kind"] for gap in metadata["gaps"]] == case.get("gaps", [])
    for key, value in case.get("efficiency", {}).items():
        assert rows["efficiency"].metadata[key] == (pytest.approx(value, abs=1e-6) if key == "ratio" else value)


def test_every_row_is_there_in_the_order_of_the_manifest_and_none_says_nothing() -> None:
    for case in CASES:
        assert len(judged(case).family) == 10
        assert all(row.status != "not_applicable" or row.reason for row in judged(case).family)


def test_nothing_that_is_given_is_changed() -> None:
    for case in CASES:
        before = copy.deepcopy(case)
        judged(case)
        assert case == before


def test_five_runs_of_which_four_pass() -> None:
    """P74: pass@2 is certain, pass^2 is six tenths."""
    passes = [
        bool(trajectory_match(["a", "b"], [Step(name) for name in run]).score) for run in ("ab", "ab", "a", "axb", "ab")
    ]
    runs = TaskRuns(5, n_scored=5, n_failed=0, n_not_applicable=0, passes=sum(passes), mean=sum(passes) / 5)
    found = statistics(runs, [2])
    assert [found.pass_at[2], found.pass_hat[2]] == pytest.approx([1.0, 0.6])
