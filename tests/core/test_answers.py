"""Final answers against what a task says of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from stepacc_core.references import ReferenceTrajectory, check_answer, parse_references

CASES = json.loads((Path(__file__).parents[1] / "cases" / "answers.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case_of_an_answer(case: dict[str, Any]) -> None:
    check = parse_references({"references": [["a"]], "final_answer": case["check"]}).final_answer
    assert check is not None

    found = check_answer(check, case["answer"], task="refund", reference=ReferenceTrajectory("by_order_id", ()))

    assert (found.holds, found.reason, found.score) == (case["holds"], case.get("reason"), case.get("score"))
    assert (found.error is not None) is ("error" in case)
    assert [part for part in case.get("error", []) if part not in (found.error or "")] == []


def test_a_judge_is_looked_up_when_an_answer_is_checked_and_not_before() -> None:
    references = parse_references({"references": [["a"]], "final_answer": {"callable": "no.such.module:judge"}})

    assert references.final_answer is not None
