"""What the benchmarks lean on: cases with the edits they claim, exponents, and the page that they write into."""

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.alignment import common_length, times_line
from benchmarks.alignment_cases import mixed, sample
from benchmarks.measure import exponent, write_part
from stepacc_core import step_accuracy


@pytest.mark.parametrize("groups", [0, 5])
def test_a_sample_has_the_edits_it_claims(groups: int) -> None:
    expected, steps = sample(200, groups, 0.0)
    assert step_accuracy(expected, steps).score == 1
    assert sum(isinstance(element, list) for element in expected) == groups

    distance = step_accuracy(*sample(200, groups, 0.1)).metadata["edit_distance"]
    assert 10 <= distance <= 20


def test_a_mixed_sample_has_agents_and_tools_of_one_name() -> None:
    expected, steps = mixed(200, 5, 0)

    assert Counter(len(element) for element in expected if isinstance(element, list)) == {12: 5}
    assert {step.kind for step in steps if step.name == "Get-Weather"} == {"TOOL", "AGENT"}


def test_the_table_finds_the_common_length() -> None:
    assert common_length(list("abcbdab"), list("bdcaba")) == 4


def test_the_exponent_of_squares_is_two() -> None:
    assert exponent([1, 2, 4, 8], [3, 12, 48, 192]) == pytest.approx(2)


def test_a_line_of_the_table_has_a_cell_for_each_column() -> None:
    assert len(times_line(5, 0, 0.0)) == 10


def test_a_script_writes_its_part_of_the_page_only(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- a: written by a script -->\nold\n<!-- a: end -->\nafter\n", encoding="utf-8")

    write_part("a", "new\n", page)

    assert page.read_text(encoding="utf-8") == (
        "before\n<!-- a: written by a script -->\nnew\n<!-- a: end -->\nafter\n"
    )
    with pytest.raises(ValueError, match="no part between"):
        write_part("b", "new", page)
