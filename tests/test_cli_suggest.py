"""`stepacc suggest` on files: expected steps that a person confirms."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from stepacc_core import CanonicalPartition, CanonicalSpan, dump_partition
from stepacc_core.annotation_files import parse_annotations
from stepacc_core.annotations import REFERENCES_KEY
from stepacc_core.picture.characters import printable
from stepacc_core.suggest import suggest
from stepacc_core.suggest.document import TaskSuggestion, annotation_document
from tests.cli_access import RECORDED, RECORDED_STEPS, stepacc
from tests.core.test_suggest import runs

RETURNS = ["abc"] * 6, ["acb"] * 5, ["axbc"] * 4


def partition(ident: str, steps: str, task_id: str | None = "returns", status: Any = "OK") -> CanonicalPartition:
    """A trace whose steps are letters."""
    return named(ident, list(steps), task_id, status)


def named(ident: str, steps: list[str], task_id: str | None = "return_order", status: Any = "OK") -> CanonicalPartition:
    """A trace of these steps."""
    root = CanonicalSpan(ident, "r", "AGENT", "root", None, 1, 99, status)
    tools = [CanonicalSpan(ident, f"{at}", "TOOL", name, "r", at, at) for at, name in enumerate(steps, start=2)]
    return CanonicalPartition("trace", ident, task_id=task_id, spans=(root, *tools))


def file(tmp_path: Path, *partitions: CanonicalPartition) -> Path:
    """A file of canonical partitions."""
    path = tmp_path / "runs.jsonl"
    path.write_text("\n".join(map(dump_partition, partitions)))
    return path


@pytest.fixture
def returns(tmp_path: Path) -> Path:
    """Fifteen runs of one task."""
    names = [steps for group in RETURNS for steps in group]
    return file(tmp_path, *(partition(f"t{number}", steps) for number, steps in enumerate(names)))


def test_the_file_is_an_annotations_file_with_the_support_of_each_step_in_comments(returns: Path) -> None:
    said = stepacc("suggest", returns, "--key", "expected_steps", "--key", "reference_trajectories", "--source", "shop")

    assert said.code == 0
    assert (
        said.out
        == """\
# Suggested from runs, and confirmed by nobody. Read it, correct it, then:
# stepacc annotations import THIS_FILE --confirm
source: shop
annotations:
# task returns: 11 of 15 runs take exactly the expected steps
#   15 of 15  a
#    4 of 15  x (optional)
#   in any order, since their order varies:
#     15 of 15  b
#     15 of 15  c
- target: {type: task, id: returns}
  confirmed: false
  expected_steps:
  - a
  - [b, c]
  reference_trajectories:
    match: in_order
    references:
    - name: suggested
      steps:
      - {tool: a}
      - {tool: x, optional: true}
      - any_order:
        - {tool: b}
        - {tool: c}
  note: 'suggested, runs: 15'
"""
    )
    assert [(one.key, one.confirmed) for one in parse_annotations(said.out, "yaml", name="x")] == [
        ("expected_steps", False),
        ("reference_trajectories", False),
    ]


def test_nothing_of_it_is_stored_without_a_person(returns: Path, tmp_path: Path) -> None:
    """The refusal comes before any database is opened."""
    out = tmp_path / "suggested.yaml"
    assert stepacc("suggest", returns, "--out", out).code == 0

    refused = stepacc("annotations", "import", out, "--source", "shop")
    assert refused.code == 1
    assert refused.complaint == (
        "Nothing is stored, since nobody has confirmed a suggestion (suggested.yaml, task `returns` (trace "
        "partitions)). Read what it says (`stepacc annotations check`), correct it, and import it with --confirm."
    )
    assert "This is a suggestion that nobody has confirmed" in stepacc("annotations", "check", out).out


def test_it_can_be_tried_before_it_is_confirmed(returns: Path, tmp_path: Path) -> None:
    out = tmp_path / "suggested.yaml"
    stepacc("suggest", returns, "--out", out)

    scores = [row["score"] for row in stepacc("score", returns, "--annotations", out).rows]
    assert (scores.count(1.0), len(scores)) == (11, 15)


def test_out_tells_the_support_and_overwrites_nothing(returns: Path, tmp_path: Path) -> None:
    out = tmp_path / "suggested.yaml"
    said = stepacc("suggest", returns, "--out", out)
    assert (said.code, said.out) == (0, "")
    assert "   4 of 15  x (optional)" in said.err

    written = out.read_text()
    again = stepacc("suggest", returns, "--out", out)
    assert (again.code, out.read_text()) == (2, written)
    assert "may hold what somebody wrote" in again.err


def test_json_has_the_support(returns: Path) -> None:
    [row] = stepacc("suggest", returns, "--json", "--share", "0.2").rows

    assert (row["task_id"], row["runs"], row["fitting"]) == ("returns", 15, 4)
    assert row["expected_steps"] == ["a", "x", ["b", "c"]]
    assert [(step["name"], step["support"], step["element"], step["any_order"]) for step in row["steps"]] == [
        ("a", 15, 0, None),
        ("x", 4, 1, None),
        ("b", 15, 2, "their order varies"),
        ("c", 15, 2, "their order varies"),
    ]


def called(ident: str, **arguments: Any) -> CanonicalPartition:
    """A trace with one call of a tool."""
    run = partition(ident, "a")
    root, call = run.spans
    return replace(run, spans=(root, replace(call, tool_arguments=arguments)))


def test_arguments_that_are_the_same_in_every_run_are_proposed_where_that_is_asked(tmp_path: Path) -> None:
    like = {"currency": "EUR", "filter": {"number": 1}, "day": "2026-01-02", "none": None}
    path = file(tmp_path, called("1", id=1, **like), called("2", id=2, **like), called("3", id=1.0, **like, more=True))
    words = ("suggest", path, "--key", "reference_trajectories")

    plain, asked = stepacc(*words).out, stepacc(*words, "--arguments").out
    [steps] = [each["references"][0]["steps"] for each in [yaml.safe_load(plain)["annotations"][0][REFERENCES_KEY]]]
    assert steps == [{"tool": "a"}]
    [annotation] = parse_annotations(asked, "yaml", name="x")
    assert annotation.value["references"][0]["steps"] == [
        {"tool": "a", "args": {**like, "filter": {"equals": {"number": 1}}}}
    ]
    [row] = stepacc(*words, "--json").rows
    assert row["steps"][0]["arguments"].keys() == like.keys()
    assert stepacc("suggest", file(tmp_path, called("1", id=1)), *words[2:], "--arguments").out.count("args") == 0
    refused = stepacc("suggest", path, "--arguments")
    assert refused.code == 2
    assert "add `--key reference_trajectories`" in refused.complaint


def test_each_task_has_an_entry_and_one_can_be_named(tmp_path: Path) -> None:
    path = file(tmp_path, partition("1", "ab"), partition("2", "cd", "orders"), partition("3", "zz", None))

    both = stepacc("suggest", path)
    assert [(e["target"]["id"], e["expected_steps"]) for e in yaml.safe_load(both.out)["annotations"]] == [
        ("orders", ["c", "d"]),
        ("returns", ["a", "b"]),
    ]
    assert both.err.startswith("1 trace without a task left out")
    assert [row["task_id"] for row in stepacc("suggest", path, "--task", "orders", "--json").rows] == ["orders"]
    assert [row["runs"] for row in stepacc("suggest", path, "--trace", "2", "--json").rows] == [1]


def test_files_that_name_no_task_are_runs_of_the_one_that_is_named() -> None:
    [row] = stepacc("suggest", RECORDED, "--task", "refund", "--json").rows

    assert (row["task_id"], row["expected_steps"]) == ("refund", RECORDED_STEPS)
    assert stepacc("suggest", RECORDED).code == 1


def test_runs_that_say_nothing_or_failed_are_left_out(tmp_path: Path) -> None:
    silent = CanonicalPartition("trace", "3", task_id="returns", spans=(CanonicalSpan("3", "r", "CHAIN", "x"),))
    said = stepacc(
        "suggest", file(tmp_path, partition("1", "ab"), partition("2", "z", status="ERROR"), silent), "--json"
    )

    assert said.rows[0]["expected_steps"] == ["a", "b"]
    assert said.err.splitlines() == [
        "trace 2 left out: its root ended with an error",
        "trace 3 left out: no_required_kinds",
    ]


def test_a_task_of_which_nothing_can_be_suggested_costs_no_other_one(tmp_path: Path) -> None:
    said = stepacc(
        "suggest",
        file(
            tmp_path, partition("1", "a", "x"), partition("2", "b", "x"), partition("3", "c", "x"), partition("4", "d")
        ),
        "--json",
    )

    assert said.code == 1
    assert [row["expected_steps"] for row in said.rows] == [["d"]]
    assert said.err.splitlines() == ["task x: No step is in 50% of the 3 runs, so there is nothing to suggest."]


def test_shares_that_make_no_sense_are_refused(returns: Path) -> None:
    assert "above `share`" in stepacc("suggest", returns, "--share", "0.1").err
    assert stepacc("suggest", returns, "--share", "0").code == 2


@pytest.mark.parametrize("name", ["no", "1", "a: b", "a # b", "\u202e", "検索", "'", "a\nb", "a\x85b", "[x]"])
def test_names_come_through_the_file_as_they_are(name: str) -> None:
    named = annotation_document([TaskSuggestion(name, suggest(runs([name])))], None)  # type: ignore[arg-type]

    (steps, _) = parse_annotations(named, "yaml", name="x")
    assert (steps.target.id, steps.value) == (name, [name])
    assert printable(name) in named
    assert json.dumps(steps.value)


def test_the_page_shows_what_is_written(tmp_path: Path) -> None:
    page = (Path(__file__).parents[1] / "docs" / "suggest.md").read_text()
    orders = [["fetch_policy", "fetch_history"], ["fetch_history", "fetch_policy"]]
    made = [
        named(f"t{number}", ["lookup_order", *orders[number % 3 == 0], *["ask_manager"] * (number < 7), "issue_refund"])
        for number in range(20)
    ]
    keys = ("--key", "expected_steps", "--key", "reference_trajectories")
    written = stepacc("suggest", file(tmp_path, *made), "--source", "support_agent", *keys).out

    assert f"```yaml\n{written}```" in page
