"""The picture of an alignment, to the letter."""

import subprocess
import sys

from stepacc_core import Step, step_accuracy
from stepacc_core.picture import picture


def drawn(expected: list[str | list[str]], *observed: str, method: str = "edit_distance") -> str:
    """The picture of names against names."""
    result = step_accuracy(expected, [Step(name) for name in observed], scoring_method=method)  # type: ignore[arg-type]
    return picture(result.metadata)


def test_every_kind_of_entry_has_its_mark_and_word() -> None:
    assert (
        drawn(["a", ["b", "c"], "d", "e"], "a", "c", "b", "x", "e", "f")
        == """\
     expected  observed
 =   a         a
 = { c         c
 = { b         b
 ~   d         x         another step
 =   e         e
 +   ·         f         extra
4 of 5 expected steps match, edit distance 2"""
    )


def test_a_missing_step_stands_where_it_was_due() -> None:
    assert drawn(["login", "search"], "search").splitlines()[1:3] == [
        " -   login     ·         missing",
        " =   search    search",
    ]


def test_by_position_the_rest_is_extra() -> None:
    assert (
        drawn(["a"], "b", "c", method="strict_position")
        == """\
     expected  observed
 ~   a         b         another step
 +   ·         c         extra
0 of 1 expected steps match by position"""
    )


def test_wide_and_control_characters_keep_the_columns_and_the_terminal_whole() -> None:
    lines = drawn(["検索", "a"], "検索", "\x1b[31mred\n").splitlines()

    assert lines[1] == " =   検索      検索"
    assert lines[2] == " ~   a         \\x1b[31mred\\n  another step"


def test_the_core_draws_its_worked_example() -> None:
    printed = subprocess.run([sys.executable, "-m", "stepacc_core"], capture_output=True, text=True, check=True).stdout

    assert printed.splitlines()[-1] == "score 0.667"
