"""Expected steps: what is a trajectory, and what each wrong one is told."""

import pytest

from stepacc_core.errors import ScoringError
from stepacc_core.trajectory import Group, parse_trajectory


def test_names_and_groups_keep_their_order_and_authored_form() -> None:
    trajectory = parse_trajectory(["login", ["a", "b", "a"], [], "done"])

    assert trajectory.elements == ("login", Group(("a", "b", "a")), Group(()), "done")
    assert trajectory.total_steps == 5
    assert trajectory.has_groups
    assert trajectory.authored() == ["login", ["a", "b", "a"], [], "done"]


def test_json_text_is_read_like_a_list() -> None:
    assert parse_trajectory('["a", ["b"]]') == parse_trajectory(["a", ["b"]])


@pytest.mark.parametrize(
    ("value", "code", "said"),
    [
        ([], "invalid_expected_steps", "hold no step"),
        ([[], []], "invalid_expected_steps", "hold no step"),
        (["a", ""], "invalid_expected_steps", "expected_steps[1] is ''"),
        (["a", 3], "invalid_expected_steps", "expected_steps[1] is 3"),
        (["a", None], "invalid_expected_steps", "expected_steps[1] is None"),
        ([["a", ""]], "invalid_expected_steps", "expected_steps[0][1] is ''"),
        ([["a", ["b"]]], "nested_group", "group inside a group"),
        ("[not json", "invalid_annotation_json", "not valid JSON"),
        ("", "invalid_annotation_json", "not valid JSON"),
        ('"search"', "invalid_expected_steps", "must be a list"),
        ("null", "invalid_expected_steps", "must be a list"),
        ({"a": 1}, "invalid_expected_steps", "must be a list"),
        ("[" * 100_000, "invalid_annotation_json", "not valid JSON"),
    ],
)
def test_what_is_no_trajectory_is_refused_with_its_code_and_the_value(value: object, code: str, said: str) -> None:
    with pytest.raises(ScoringError) as caught:
        parse_trajectory(value)

    assert caught.value.code == code
    assert said in str(caught.value)
