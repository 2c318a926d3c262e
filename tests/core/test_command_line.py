"""`python -m stepacc_core`: two lists in, their alignment out."""

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepacc_core import Step, step_accuracy
from stepacc_core.__main__ import main
from stepacc_core.errors import ConfigError
from stepacc_core.picture import picture
from stepacc_core.step_lists import parse_expected, parse_observed

PLAIN = st.text(st.characters(exclude_characters="[],", exclude_categories=["Cs", "Cc"]), min_size=1).filter(
    lambda name: name == name.strip()
)
TRAJECTORY = st.lists(PLAIN | st.lists(PLAIN, min_size=1, max_size=3), min_size=1, max_size=5)


def compact(elements: list[Any]) -> str:
    """Steps as a person writes them."""
    return ", ".join(e if isinstance(e, str) else f"[{','.join(e)}]" for e in elements)


@given(TRAJECTORY.filter(lambda elements: not compact(elements).startswith("[")))
def test_names_between_commas_and_groups_in_brackets_are_read_as_written(elements: list[Any]) -> None:
    assert parse_expected(compact(elements)) == elements


@given(TRAJECTORY)
def test_json_is_read_as_json(elements: list[Any]) -> None:
    assert parse_expected(json.dumps(elements)) == elements


def test_a_group_at_the_front_is_one_and_a_json_list_is_the_whole() -> None:
    assert parse_expected("[a,b],c") == [["a", "b"], "c"]
    assert parse_expected("[a,b]") == [["a", "b"]]
    assert parse_expected('["a","b"]') == ["a", "b"]
    assert parse_expected("") == []


@pytest.mark.parametrize(
    "text", ["a,,b", ",a", "a,", "a,[b", "a]", "[a,[b]]", "a[b]", "[a]b", "[a,],b", "[,a]", "[a,b"]
)
def test_what_is_no_list_is_refused_with_where_it_stops_being_one(text: str) -> None:
    with pytest.raises(ConfigError, match="cannot be read at"):
        parse_expected(text)


def test_observed_steps_say_which_are_agents() -> None:
    observed = [Step("search"), Step("Billing agent", kind="AGENT")]

    assert parse_observed("search, agent:Billing agent") == observed
    assert parse_observed('[{"tool": "search"}, {"agent": "Billing agent"}]') == observed
    assert parse_observed('[{"tool": "search", "arguments": {"q": 1}}]') == [Step("search", arguments={"q": 1})]


@pytest.mark.parametrize("text", ["a,[b,c]", "agent:", '[""]', "[1]", '[{"name": "a"}]', '[["a"]]'])
def test_an_element_that_is_no_observed_step_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is no observed step; write a name"):
        parse_observed(text)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "stepacc_core", *arguments], capture_output=True, text=True, check=False
    )


def test_without_lists_the_worked_example_is_shown() -> None:
    assert run().stdout.splitlines() == [
        "expected  ·              search  open_document",
        "          + extra        =       =",
        "observed  preamble_call  search  open_document",
        "2 of 2 expected steps match, 1 extra, edit distance 1",
        "score 0.667",
    ]


def test_two_lists_are_shown_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    main(["search,[open_a,open_b],answer", "search,open_b,open_a"])
    result = step_accuracy(["search", ["open_a", "open_b"], "answer"], [*map(Step, ["search", "open_b", "open_a"])])

    assert capsys.readouterr().out == f"{picture(result)}\nscore 0.750\n"


@pytest.mark.parametrize(
    ("words", "same"),
    [
        (["a", "b", "--", "a", "c"], ["a,b", "a,c"]),
        (["a", "[b,c]", "--", "a"], ["a,[b,c]", "a"]),
        (["a", "--"], ["a", ""]),
        (["a", "b", "--", "a", "b", "--strict-position"], ["a,b", "a,b", "--strict-position"]),
        (["--", "-a", "-a"], ["--", "-a", "-a"]),
    ],
)
def test_words_on_either_side_of_two_dashes_are_lists_too(
    words: list[str], same: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    main([*words])
    written = capsys.readouterr().out
    main(same)
    assert written == capsys.readouterr().out


def test_json_has_the_score_and_the_metadata(capsys: pytest.CaptureFixture[str]) -> None:
    main(["a,b", "a,x", "--strict-position", "--json"])

    expected = step_accuracy(["a", "b"], [Step("a"), Step("x")], scoring_method="strict_position")
    assert json.loads(capsys.readouterr().out) == {"score": 0.5, "metadata": expected.metadata}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a"], "give both lists"),
        (["a,[b", "a"], "cannot be read at its end"),
        (["a", "[b,c]"], "is no observed step"),
        (["", "a"], "hold no step"),
        (["[a,b]", "a", "--strict-position"], "does not allow"),
    ],
)
def test_a_bad_list_ends_in_a_sentence_and_exit_code_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)

    assert said in capsys.readouterr().err.replace("\n", " ")


def test_it_waits_for_neither_rich_nor_the_readers_of_traces() -> None:
    code = "import sys; from stepacc_core.__main__ import main; main(['a', 'b']); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    assert {"rich", "scipy", "stepacc_core.reading", "stepacc_core.partition_json"} & set(loaded) == set()
