"""Final answers against what a task says of them."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


ANSWER = "mail [redacted:email:0a1b2c3d4e5f6071]"
HOLDS, FAILS, UNTOLD = {"equals": ANSWER}, {"equals": "a"}, {"contains": "@"}


@given(st.lists(st.sampled_from([HOLDS, FAILS, UNTOLD]), min_size=1, max_size=5), st.randoms())
def test_the_order_of_checks_decides_nothing(several: list[dict[str, Any]], random: Any) -> None:
    shuffled = list(several)
    random.shuffle(shuffled)

    for keyword, decisive in (("any_of", True), ("all_of", False)):
        one, other = (_holds({keyword: checks}) for checks in (several, shuffled))
        found = [_holds(check) for check in several]
        assert one is other
        assert one is (decisive if decisive in found else None if None in found else not decisive)


def _holds(written: dict[str, Any]) -> bool | None:
    check = parse_references({"references": [["a"]], "final_answer": written}).final_answer
    assert check is not None
    return check_answer(check, ANSWER, task=None, reference=None).holds
