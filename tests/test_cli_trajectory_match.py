"""`stepacc score` by `agent.trajectory_match`: the example of docs/trajectory_match.md, and what a line holds."""

import re
from pathlib import Path
from typing import Any

import pytest

from stepacc_core import Step, trajectory_match
from tests.cli_access import stepacc
from tests.fidelity import TRACES

DOC = (Path(__file__).parents[1] / "docs" / "trajectory_match.md").read_text(encoding="utf-8")
TRACE = str(TRACES / "openinference-langgraph" / "sequential.otlp.jsonl")
METRIC = ("--metric", "agent.trajectory_match")


def block(language: str) -> str:
    """The first block of the page in a language."""
    found = re.search(rf"```{language}\n(.*?)```", DOC, re.DOTALL)
    assert found
    return found.group(1)


@pytest.fixture
def annotations(tmp_path: Path) -> str:
    """The annotations of the page, in a file."""
    path = tmp_path / "refunds.yaml"
    path.write_text(block("yaml"), encoding="utf-8")
    return str(path)


def scores(line: dict[str, Any]) -> dict[str, Any]:
    """The rows of a line by their short names."""
    return {row["metric"].removeprefix("trajectory_match."): row["score"] for row in line["family"]}


def test_the_example_of_the_page(annotations: str) -> None:
    assert stepacc("annotations", "check", annotations).code == 0

    said = stepacc("score", TRACE, "--annotations", annotations, *METRIC)

    [line] = said.rows
    path = ("exact", "in_order", "any_order", "passed", "precision", "recall", "f1", "efficiency")
    assert scores(line) == {**dict.fromkeys(path, 1.0), "arguments": 0.5, "final_answer": 1.0}
    assert (line["score"], line["metadata"]["verdict"], line["annotation"]) == (1.0, "pass", {"id": 1, "revision": 1})
    [efficiency] = [row for row in line["family"] if row["metric"] == "trajectory_match.efficiency"]
    assert efficiency["metadata"]["budget_breaches"] == [{"limit": "max_steps", "allowed": 2, "observed": 3}]


def test_the_python_of_the_page() -> None:
    names = {"Step": Step, "trajectory_match": trajectory_match}
    exec(block("python"), names)  # noqa: S102 (the page's own code)
    assert names["result"].score == 1  # type: ignore[attr-defined]


def test_references_may_come_from_the_config() -> None:
    said = stepacc("score", TRACE, *METRIC, "--config", 'reference_trajectories=["lookup_order", "x"]')

    assert scores(said.rows[0])["recall"] == 0.5


def test_an_occurrence_without_references_fails_in_every_row_of_its_line() -> None:
    said = stepacc("score", TRACE, *METRIC)

    assert said.code == 1
    [line] = said.rows
    assert {(row["status"], row["code"], row["score"]) for row in line["family"]} == {
        ("failed", "missing_references", None)
    }
    assert "reference_trajectories" in line["reason"]


def test_expected_steps_are_no_references(tmp_path: Path) -> None:
    path = tmp_path / "steps.yaml"
    path.write_text(
        "annotations:\n- target: {type: trace, id: 5c8e34d5079c3b924e0e59e2ec69c1c3}\n  expected_steps: [x]\n",
        encoding="utf-8",
    )

    assert stepacc("score", TRACE, "--annotations", str(path), *METRIC).rows[0]["code"] == "missing_references"


def test_the_manifest_names_the_family() -> None:
    [manifest] = stepacc("manifest", "agent.trajectory_match", "--json").rows

    assert len(manifest["family"]) == 10
    assert manifest["headline"] == "trajectory_match.passed"
    assert all(f"| `{name}` |" in DOC for name in manifest["family"])
