"""`align_reference` against its slow oracle, and what it promises: optional steps, checks, groups, bounds."""

import itertools
import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepacc_core.alignment import (
    Agreement,
    Operation,
    ReferenceAlignment,
    ReferenceElement,
    ReferenceStep,
    align,
    align_reference,
)
from stepacc_core.alignment.relation import patterns
from stepacc_core.errors import FailureCode, ScoringError
from stepacc_core.model import Step
from tests.core.test_alignment_oracle import steps, trajectories
from tests.reference_oracle import reference_oracle

MOST = 3

Problem = tuple[list[ReferenceElement], int, Agreement]


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Few names or any relation at all, plain steps and groups, each step optional or with checks or neither."""
    size = draw(st.integers(0, 6))
    names = draw(st.lists(st.sampled_from("aab"), min_size=size, max_size=size))
    of_names = [sum(1 << at for at, name in enumerate(names) if name == wanted) for wanted in "abc"]
    masks = st.sampled_from(of_names) if draw(st.booleans()) else st.integers(0, (1 << size) - 1)
    checks = st.integers(0, MOST) if draw(st.booleans()) else st.just(0)
    optional = st.booleans() if draw(st.booleans()) else st.just(value=False)
    step = st.builds(ReferenceStep, masks, optional, checks)
    elements = draw(st.lists(step | st.lists(step, max_size=4).map(tuple), max_size=5))
    holding = draw(st.lists(st.integers(0, MOST), min_size=7, max_size=7))

    def agreement(element: int, member: int, observed: int) -> int:
        asked = of(elements, element, member)
        assert asked.checks
        assert asked.mask >> observed & 1
        return min(asked.checks, holding[(element + 2 * member + 3 * observed) % len(holding)])

    return elements, size, agreement


def of(elements: Sequence[ReferenceElement], element: int, member: int) -> ReferenceStep:
    """The step of a reference at an index."""
    found = elements[element]
    return found[member] if isinstance(found, tuple) else found


def places(elements: Sequence[ReferenceElement]) -> list[tuple[int, int]]:
    """The indices of all steps of a reference."""
    return [
        (at, member)
        for at, element in enumerate(elements)
        for member in range(len(element) if isinstance(element, tuple) else 1)
    ]


def matched_required(elements: Sequence[ReferenceElement], operation: Operation) -> bool:
    """Whether the operation is the match of a required step."""
    if operation.op != "match" or operation.element is None or operation.member is None:
        return False
    return not of(elements, operation.element, operation.member).optional


def scores(found: ReferenceAlignment) -> tuple[int, int, int, int]:
    """What a metric scores."""
    return found.distance, found.matches, found.holding, found.checks


@given(problems())
def test_every_alignment_with_a_reference_is_the_oracles(problem: Problem) -> None:
    elements, size, agreement = problem

    found, want = align_reference(elements, size, agreement), reference_oracle(elements, size, agreement)

    required = sum([not of(elements, *place).optional for place in places(elements)])
    missing = required - sum([matched_required(elements, each) for each in found.operations])
    assert (found.distance, found.matches, missing, found.holding) == want[:4]
    for group, (start, end) in zip(
        [at for at, element in enumerate(elements) if isinstance(element, tuple) and element], want.windows, strict=True
    ):
        taken = [each.observed for each in found.operations if each.group == group and each.observed is not None]
        assert taken == list(range(start, end))


@given(problems())
def test_operations_spell_out_both_sides_at_the_cost_that_is_claimed(problem: Problem) -> None:
    elements, size, agreement = problem

    found = align_reference(elements, size, agreement)

    matched = [each for each in found.operations if each.op == "match"]
    assert len(found.operations) == found.distance + found.matches
    assert len(matched) == found.matches
    assert [each.observed for each in found.operations if each.op != "delete"] == list(range(size))
    named = [each.element for each in found.operations if each.element is not None]
    assert named == sorted(named)
    taken = {(each.element, each.member) for each in found.operations if each.element is not None}
    assert len(taken) == len(named)
    absent = set(places(elements)) - taken
    assert all(of(elements, element, member).optional for element, member in absent)
    holding = checks = 0
    for each in found.operations:
        assert (each.element is None) == (each.member is None) == (each.op == "insert")
        assert (each.observed is None) == (each.op == "delete")
        if each.element is None or each.member is None:
            continue
        step = of(elements, each.element, each.member)
        assert each.group == (each.element if isinstance(elements[each.element], tuple) else None)
        assert each.op == "match" or not step.optional
        if each.op == "match" and each.observed is not None:
            assert step.mask >> each.observed & 1
            checks += step.checks
            holding += agreement(each.element, each.member, each.observed) if step.checks else 0
    assert (holding, checks) == (found.holding, found.checks)


@given(problems(), st.randoms(use_true_random=False))
def test_the_order_of_members_changes_nothing_that_is_scored(problem: Problem, rng: random.Random) -> None:
    elements, size, agreement = problem
    orders = [rng.sample(range(len(e)), len(e)) if isinstance(e, tuple) else [0] for e in elements]
    shuffled = [
        tuple([element[at] for at in order]) if isinstance(element, tuple) else element
        for element, order in zip(elements, orders, strict=True)
    ]

    found = align_reference(
        shuffled, size, lambda element, member, seen: agreement(element, orders[element][member], seen)
    )

    assert scores(found)[:3] == scores(align_reference(elements, size, agreement))[:3]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2)), max_size=6), st.data())
def test_the_order_of_calls_changes_nothing_where_all_is_one_group(calls: list[Any], data: st.DataObject) -> None:
    wanted = data.draw(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2), st.booleans()), max_size=5))

    def scored(order: list[Any]) -> tuple[int, int, int, int]:
        group = tuple(
            [ReferenceStep(sum(1 << at for at, call in enumerate(order) if call[0] == name), optional, 1)
             for name, _, optional in wanted]
        )  # fmt: skip
        return scores(align_reference([group], len(order), lambda _, member, seen: wanted[member][1] == order[seen][1]))

    assert scored(data.draw(st.permutations(calls)))[:3] == scored(calls)[:3]


@given(trajectories, steps)
def test_names_alone_are_aligned_as_step_accuracy_aligns_them(trajectory: Any, observed: list[Step]) -> None:
    elements = [
        tuple([ReferenceStep(mask) for mask in pattern]) if isinstance(pattern, tuple) else ReferenceStep(pattern)
        for pattern in patterns(trajectory, observed)
    ]

    found, want = align_reference(elements, len(observed)), align(trajectory, observed)

    assert (found.distance, found.matches) == (want.distance, want.matches)
    assert [(each.op, each.element, each.observed, each.group) for each in found.operations] == [
        (entry["op"], entry["expected_index"], entry["actual_index"], entry.get("group")) for entry in want.entries
    ]


def plain(names: str, observed: str) -> list[ReferenceElement]:
    """Plain steps of one letter each; one followed by `?` is optional."""
    made: list[ReferenceElement] = []
    for name in names:
        if name == "?":
            last = made[-1]
            assert isinstance(last, ReferenceStep)
            made[-1] = replace(last, optional=True)
        else:
            made.append(ReferenceStep(sum(1 << at for at, seen in enumerate(observed) if seen == name)))
    return made


def picture(names: str, observed: str) -> str:
    """The operations, a letter each."""
    return "".join(each.op[0] for each in align_reference(plain(names, observed), len(observed)).operations)


def test_an_optional_step_costs_nothing_when_absent_and_is_a_match_when_present() -> None:
    assert align_reference(plain("ab?c", "ac"), 2).distance == 0
    assert picture("ab?c", "ac") == "mm"
    assert picture("ab?c", "abc") == "mmm"


def test_no_other_step_stands_in_for_an_optional_one() -> None:
    assert align_reference(plain("ab?c", "axc"), 3).operations[1] == Operation("insert", None, None, 1)


def test_nothing_wanted_and_nothing_seen_is_no_distance() -> None:
    assert align_reference([], 0) == ReferenceAlignment(0, 0, 0, 0, [])
    assert align_reference([()], 2).distance == 2
    assert align_reference(plain("a?b?", ""), 0).operations == []


def test_two_optional_steps_may_be_worth_a_required_one() -> None:
    """The case that the module's text gives: whether the required steps are there in order is another question."""
    assert picture("a?b?c", "cab") == "immd"
    assert picture("c", "cab") == "mii"


def test_missing_optional_members_are_not_missing_and_extra_steps_replace_required_ones_only() -> None:
    group = (
        ReferenceStep(0b001, optional=True),
        ReferenceStep(0, optional=True),
        ReferenceStep(0),
        ReferenceStep(0b100),
    )

    found = align_reference([group], 3)

    assert [(each.op, each.member) for each in found.operations] == [("match", 0), ("substitute", 2), ("match", 3)]
    assert found.distance == 1


def test_checks_decide_between_equal_names_but_never_against_a_match() -> None:
    step = ReferenceStep(0b111, checks=2)
    assert align_reference([step], 3, lambda _element, _member, seen: seen).operations[2].op == "match"

    longer = align_reference([step, ReferenceStep(0b100)], 3, lambda _element, _member, seen: seen)
    assert (longer.matches, longer.holding, longer.checks) == (2, 1, 2)


def test_without_an_agreement_no_check_holds() -> None:
    assert scores(align_reference([ReferenceStep(1, checks=2)], 1)) == (0, 1, 0, 2)


@pytest.mark.parametrize("extra", [0, 20])
def test_two_hundred_equal_members_take_their_own_arguments(extra: int) -> None:
    calls = list(range(200 + extra))
    random.Random(4).shuffle(calls)  # noqa: S311 -- seeded on purpose
    members = tuple([ReferenceStep((1 << len(calls)) - 1, checks=1) for _ in range(200)])

    found = align_reference([members], len(calls), lambda _, member, seen: calls[seen] == member)

    assert scores(found) == (extra, 200, 200, 200)


def test_the_shortest_window_that_holds_as_much_is_taken() -> None:
    """The window is found by halving: against trying every window."""
    rng = random.Random(6)  # noqa: S311 -- seeded on purpose
    for _ in range(20):
        size, count = rng.randint(5, 16), rng.randint(1, 3)
        held = [[rng.random() < 0.15 for _ in range(size)] for _ in range(count)]
        members = tuple([ReferenceStep((1 << size) - 1, checks=1) for _ in range(count)])

        found = align_reference([members], size, partial(holds, held))

        windows = {
            (end - start, start): most_held(held, range(start, end))
            for start, end in itertools.combinations(range(size + 1), 2)
            if end - start >= min(count, size)
        }
        most = max(windows.values())
        length, start = min(window for window, holding in windows.items() if holding == most)
        places = [each.observed for each in found.operations if each.group == 0]
        assert (found.holding, places) == (most, list(range(start, start + length)))


def holds(held: list[list[bool]], _element: int, member: int, observed: int) -> int:
    """An agreement from a table of one group."""
    return held[member][observed]


def most_held(held: list[list[bool]], window: range) -> int:
    """The most that hold, each member with a step of its own."""
    return max(
        sum(row[step] for row, step in zip(held, order, strict=True))
        for order in itertools.permutations(window, len(held))
    )


def test_an_assignment_beyond_all_bounds_says_so() -> None:
    members = tuple([ReferenceStep((1 << 5_000) - 1, checks=1) for _ in range(5_000)])

    with pytest.raises(ScoringError, match="so unlike") as caught:
        align_reference([members], 5_000, lambda *_: 1)

    assert caught.value.code is FailureCode.TOO_LARGE
