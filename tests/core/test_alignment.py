"""What `align` promises beyond the reviewed cases: each tie rule on its own, names, groups, bounds."""

import copy
import json
from typing import Any

import pytest

from stepacc_core.alignment import MAX_CELLS, MAX_STEPS, align
from stepacc_core.errors import FailureCode, ScoringError
from stepacc_core.model import Step
from stepacc_core.trajectory import Trajectory, parse_trajectory


def tools(names: str) -> list[Step]:
    """Tool steps from names with spaces between."""
    return [Step(name) for name in names.split()]


def picture(expected: list[Any], steps: list[Step]) -> list[str]:
    """The entries of the alignment, one short text each: `a=a`, `a/x`, `+x`, `-a`; `a group's index:` before it."""
    texts = []
    for entry in align(parse_trajectory(expected), steps).entries:
        sign = {"match": "=", "substitute": "/", "insert": "+", "delete": "-"}[entry["op"]]
        group = f"{entry['group']}:" if "group" in entry else ""
        between = sign if sign in "=/" else ""
        before = "" if between else sign
        texts.append(f"{group}{before}{entry['expected'] or ''}{between}{entry['actual'] or ''}")
    return texts


def test_most_matches_decide_between_equal_distances() -> None:
    assert picture(["a", "b"], tools("b x")) == ["-a", "b=b", "+x"]


def test_a_stray_step_beside_a_group_is_not_blamed_on_the_group() -> None:
    assert picture(["s", ["a", "b"], "e"], tools("s a b x e")) == ["s=s", "1:a=a", "1:b=b", "+x", "e=e"]
    assert picture(["s", ["a", "b"], "e"], tools("s x a b e")) == ["s=s", "+x", "1:a=a", "1:b=b", "e=e"]


def test_the_earliest_windows_decide_next() -> None:
    assert picture([["a", "b"]], tools("a b x a b")) == ["0:a=a", "0:b=b", "+x", "+a", "+b"]
    # The last plain step may take the only observed one, so that the group's window may begin before it.
    assert picture(["a", ["b", "c"], "a"], tools("a")) == ["-a", "1:-b", "1:-c", "a=a"]


def test_last_the_moves_decide_from_left_to_right() -> None:
    assert picture(["a"], tools("a a")) == ["a=a", "+a"]
    assert picture(["a", "b"], tools("x")) == ["a/x", "-b"]
    assert picture(["a", "a"], tools("a")) == ["a=a", "-a"]


def test_missing_members_follow_the_window_in_authored_order() -> None:
    assert picture(["s", ["c", "a", "b"], "e"], tools("s a e")) == ["s=s", "1:a=a", "1:-c", "1:-b", "e=e"]
    assert picture(["s", ["c", "a"], "e"], tools("s e")) == ["s=s", "1:-c", "1:-a", "e=e"]


def test_unclaimed_window_steps_substitute_missing_members_then_are_extra() -> None:
    expected = [["a", "b", "c", "d"], ["e"]]
    assert picture(expected, tools("a x d b e")) == ["0:a=a", "0:c/x", "0:d=d", "0:b=b", "1:e=e"]
    assert picture([["a", "b", "c"]], tools("a x y c z b")) == ["0:a=a", "0:+x", "0:+y", "0:c=c", "0:+z", "0:b=b"]


def test_entries_of_a_group_carry_its_index_and_extra_steps_no_expected_index() -> None:
    found = align(parse_trajectory(["s", [], ["a", "b"]]), tools("s b x a y"))

    assert found.entries == [
        {"op": "match", "expected": "s", "actual": "s", "expected_index": 0, "actual_index": 0},
        {"op": "match", "expected": "b", "actual": "b", "expected_index": 2, "actual_index": 1, "group": 2},
        {"op": "insert", "expected": None, "actual": "x", "expected_index": None, "actual_index": 2, "group": 2},
        {"op": "match", "expected": "a", "actual": "a", "expected_index": 2, "actual_index": 3, "group": 2},
        {"op": "insert", "expected": None, "actual": "y", "expected_index": None, "actual_index": 4},
    ]


def test_the_observed_step_decides_how_names_compare() -> None:
    assert picture(["Get-Weather"], tools("get_weather")) == ["Get-Weather=get_weather"]
    assert picture(["Get-Weather"], [Step("get_weather", kind="AGENT")]) == ["Get-Weather/get_weather"]
    both = [Step("get_weather"), Step("get_weather", kind="AGENT")]
    assert picture([["get_weather", "Get-Weather"]], both) == [
        "0:Get-Weather=get_weather",
        "0:get_weather=get_weather",
    ]


def test_nothing_observed_is_all_missing() -> None:
    found = align(parse_trajectory(["a", ["b", "c"]]), [])

    assert (found.distance, found.matches) == (3, 0)
    assert [entry["op"] for entry in found.entries] == ["delete"] * 3


def test_inputs_are_left_as_they_were_and_equal_inputs_give_equal_bytes() -> None:
    trajectory = parse_trajectory(["a", ["b", "B", "c"], "a"])
    steps = [*tools("c a b b"), Step("B", kind="AGENT", arguments={"k": [1]})]
    before = copy.deepcopy((trajectory, steps))

    first, second = align(trajectory, steps), align(trajectory, steps)

    assert (trajectory, steps) == before
    assert json.dumps(first.entries) == json.dumps(second.entries)


def test_what_is_too_large_says_so() -> None:
    trajectory = Trajectory(("a",) * 20_000, 20_000, has_groups=False)

    with pytest.raises(ScoringError, match=f"20000 expected against 20000 observed .* {MAX_CELLS} pairs") as caught:
        align(trajectory, [Step("b")] * 20_000)

    assert caught.value.code is FailureCode.TOO_LARGE


def test_too_many_steps_on_one_side_say_so() -> None:
    with pytest.raises(ScoringError, match=f"1 expected against 1000001 observed .* {MAX_STEPS} on one side") as caught:
        align(parse_trajectory(["a"]), [Step("b")] * 1_000_001)

    assert caught.value.code is FailureCode.TOO_LARGE


def test_too_many_equally_good_ways_say_so() -> None:
    """Where nothing matches, every place between the two diagonals lies on a best alignment."""
    trajectory = Trajectory(("a",) * 5_000, 5_000, has_groups=False)

    with pytest.raises(ScoringError, match="so unlike") as caught:
        align(trajectory, [Step("b")] * 10_000)

    assert caught.value.code is FailureCode.TOO_LARGE


@pytest.mark.parametrize("last", ["A", "x"], ids=["all right", "one wrong"])
def test_a_large_group_of_mixed_names_says_so(last: str) -> None:
    trajectory = parse_trajectory([["a", "A"] * 2_500])
    observed = [*[Step("a")] * 2_500, *[Step("a", kind="AGENT")] * 2_499, Step(last)]

    with pytest.raises(ScoringError, match="so unlike") as caught:
        align(trajectory, observed)

    assert caught.value.code is FailureCode.TOO_LARGE


def test_a_large_group_in_another_order_is_no_trouble() -> None:
    names = [f"t{number}" for number in range(2_000)]

    found = align(parse_trajectory(["s", names, "e"]), [Step(name) for name in ["s", *reversed(names), "e"]])

    assert (found.distance, found.matches) == (0, 2_002)
