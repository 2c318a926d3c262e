"""References: what people write, what it becomes, and what is refused."""

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from stepacc_core.errors import FailureCode, ScoringError
from stepacc_core.references import (
    Budget,
    ReferenceGroup,
    ReferenceStep,
    ReferenceTrajectory,
    TaskReferences,
    parse_references,
)
from stepacc_core.references.answers import AnswerContains, AnswerRegex, AnyOf
from stepacc_core.references.comparators import Near, Plain
from stepacc_core.references.text_comparators import Day

CASES = Path(__file__).parents[1] / "cases"
REFUSED = json.loads((CASES / "refused_references.json").read_text(encoding="utf-8"))
WRITTEN = r"""
match: any_order
references:
  - name: by_order_id
    confirmed: false
    steps:
      - {tool: lookup_order, args: {order_id: "A-17"}}
      - any_order:
          - {tool: fetch_policy}
          - {tool: fetch_history, optional: true}
      - {agent: refund_specialist}
      - tool: issue_refund
        args:
          amount: {number: 25, tolerance: 0.01}
          "on": {date: 2026-01-02}
        args_exact: true
        count_as: once
  - [lookup_order, [fetch_policy, fetch_history], issue_refund]
forbidden: [delete_order, [cancel, charge]]
ignore: [transfer_to_agent]
budget: {max_steps: 12, max_tokens: 20000, max_cost_usd: 0.25}
final_answer: {any_of: [{contains: "refunded"}, {regex: "25(\\.00)? ?USD"}]}
"""
MEANT = TaskReferences(
    match="any_order",
    references=(
        ReferenceTrajectory(
            "by_order_id",
            (
                ReferenceStep("lookup_order", "TOOL", {"order_id": Plain("A-17")}),
                ReferenceGroup(
                    (ReferenceStep("fetch_policy", "TOOL"), ReferenceStep("fetch_history", "TOOL", optional=True))
                ),
                ReferenceStep("refund_specialist", "AGENT"),
                ReferenceStep(
                    "issue_refund",
                    "TOOL",
                    {"amount": Near(25, 0.01), "on": Day("2026-01-02")},
                    args_exact=True,
                    count_once=True,
                ),
            ),
            confirmed=False,
        ),
        ReferenceTrajectory(
            "reference 2",
            (
                ReferenceStep("lookup_order"),
                ReferenceGroup((ReferenceStep("fetch_policy"), ReferenceStep("fetch_history"))),
                ReferenceStep("issue_refund"),
            ),
        ),
    ),
    forbidden=(("delete_order",), ("cancel", "charge")),
    ignore=("transfer_to_agent",),
    budget=Budget(12, 20_000, 0.25),
    final_answer=AnyOf((AnswerContains("refunded"), AnswerRegex(r"25(\.00)? ?USD"))),
)


def only(*steps: ReferenceStep | ReferenceGroup, name: str = "reference 1") -> TaskReferences:
    """References of one reference."""
    return TaskReferences("in_order", (ReferenceTrajectory(name, steps),))


def test_everything_that_can_be_written_means_what_it_says() -> None:
    document = yaml.safe_load(WRITTEN)
    assert isinstance(document["references"][0]["steps"][3]["args"]["on"]["date"], dt.date)

    assert parse_references(document) == MEANT
    assert parse_references(json.dumps(document, default=str)) == MEANT


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (["a", ["b", "c"]], only(ReferenceStep("a"), ReferenceGroup((ReferenceStep("b"), ReferenceStep("c"))))),
        (("a",), only(ReferenceStep("a"))),
        (["a", {"tool": "b"}], only(ReferenceStep("a"), ReferenceStep("b", "TOOL"))),
        ([{"steps": ["a"], "name": "x"}], only(ReferenceStep("a"), name="x")),
        ({"references": [["a"]]}, only(ReferenceStep("a"))),
        ({"references": [{"steps": []}]}, only()),
        ({"references": [{"steps": [{"any_order": []}]}]}, only(ReferenceGroup(()))),
    ],
)
def test_the_short_forms_are_references_too(written: Any, meant: TaskReferences) -> None:
    assert parse_references(written) == meant


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: json.dumps(case["written"])[-60:])
def test_what_is_refused_names_reference_and_key(case: dict[str, Any]) -> None:
    with pytest.raises(ScoringError, match=r"^`reference_trajectories` cannot be used: .*\.$") as caught:
        parse_references(case["written"])

    assert caught.value.code == FailureCode.INVALID_REFERENCES
    assert [part for part in case["said"] if part not in caught.value.message] == []
    assert [part for part in case.get("not_said", []) if part in caught.value.message] == []


def test_all_problems_are_said_at_once_but_never_endlessly() -> None:
    with pytest.raises(ScoringError, match=r"reference 1.*reference `y`.*`final_answer`"):
        parse_references({"references": [[""], {"name": "y", "steps": [1]}], "final_answer": 1})
    with pytest.raises(ScoringError, match="and 95 more") as caught:
        parse_references([3] * 100)
    assert len(caught.value.message) < 2_000


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"references": [[{"tool": "t", "args": {"n": float("nan")}}]]}, "finite"),
        ({"references": [[{"tool": "t", "args": {"n": 1 << 16_000}}]]}, "16,001 bits is too long"),
        ({"references": [[{"tool": "t", "args": {True: 1}}]]}, "quotes"),
        ({"references": [[{"tool": "t", "args": {"n": {1, 2}}}]]}, "set is no JSON value"),
        ([{"tool": "t", "args": {"n": list(range(100_001))}}], "100,000 values"),
    ],
)
def test_what_is_no_json_or_too_much_of_it_is_refused(written: Any, said: str) -> None:
    with pytest.raises(ScoringError, match=said):
        parse_references(written)


def test_values_and_checks_that_nest_without_end_are_refused_and_not_followed() -> None:
    check: Any = {"contains": "a"}
    deep: Any = 1
    for _ in range(5_000):
        check, deep = {"not": check}, [deep]
    for written in (
        {"references": [["a"]], "final_answer": check},
        [{"tool": "t", "args": {"n": deep}}],
        '{"references": ' * 10_000,
    ):
        with pytest.raises(ScoringError):
            parse_references(written)


names = st.text(min_size=1, max_size=5)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=5,
)
comparators = st.one_of(
    values.map(lambda value: {"equals": value}),
    st.builds(lambda n, t: {"number": n, "tolerance": t}, st.integers(), st.integers(1, 9)),
    st.dates().map(lambda day: {"date": day.isoformat()}),
    st.datetimes(timezones=st.just(dt.UTC)).map(lambda at: {"datetime": at.isoformat()}),
    names.map(lambda text: {"text": text}),
    values.map(lambda value: {"contains": value}),
    st.sampled_from([{"regex": "a+"}, {"any": True}, {"absent": True}, {"id": "A-17"}, {"id": 17}]),
    st.lists(names, min_size=1, max_size=3).map(lambda options: {"one_of": options}),
)


@given(st.dictionaries(names, comparators, max_size=4))
def test_comparators_are_given_back_as_they_were_written(args: dict[str, Any]) -> None:
    [step] = parse_references([{"tool": "t", "args": args}]).references[0].elements

    assert isinstance(step, ReferenceStep)
    assert {name: comparator.written() for name, comparator in step.args.items()} == args


checks = st.recursive(
    st.one_of(
        values.map(lambda value: {"equals": value}),
        names.map(lambda text: {"contains": text}),
        st.integers().map(lambda number: {"number": number}),
        st.dictionaries(names, values, max_size=2).map(lambda value: {"json": value}),
        st.sampled_from([{"regex": "a+"}, {"callable": "a.b:c"}]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda several: {"any_of": several}),
        st.lists(inner, min_size=1, max_size=3).map(lambda several: {"all_of": several}),
        inner.map(lambda one: {"not": one}),
    ),
    max_leaves=5,
)


@given(checks)
def test_checks_of_the_answer_are_given_back_as_they_were_written(check: dict[str, Any]) -> None:
    found = parse_references({"references": [["a"]], "final_answer": check}).final_answer

    assert found is not None
    assert found.written() == check
    assert found.words()
