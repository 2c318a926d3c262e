"""The picture of an alignment: its text to the letter, and what holds of every face whatever the names are."""

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from stepacc_core import Step, step_accuracy
from stepacc_core.errors import ResultError
from stepacc_core.metrics.trajectory_match import trajectory_match
from stepacc_core.picture import PICTURE_CSS, Picture, has_alignment, picture, picture_html

CASES = Path(__file__).parents[1] / "cases" / "pictures.txt"

NAMES = st.text(max_size=12) | st.sampled_from(
    ["a", "b", "検索", "</script>", "\u202eevil", "\x1b[31m", "a\nb", "&lt;"]
)
TRAJECTORIES = st.lists(
    st.text("abc", min_size=1, max_size=9) | st.lists(NAMES.filter(bool), max_size=4), min_size=1, max_size=12
).filter(any)
OBSERVED = st.lists(NAMES, max_size=30)


def cases() -> Iterator[tuple[str, dict[str, Any], int, str]]:
    """Name, what is drawn, its width and the picture of each case."""
    for block in CASES.read_text(encoding="utf-8").split("\n# ")[1:]:
        name, _, rest = block.partition("\n")
        case, end = json.JSONDecoder().raw_decode(rest)
        yield name, case, case.pop("width", 100), rest[end:].strip("\n")


def metadata_of(case: dict[str, Any]) -> dict[str, Any]:
    """The metadata of a case: written down, or of names against names."""
    if "steps" in case:
        return case
    expected, observed = case.pop("expected"), case.pop("observed")
    method = case.pop("method", "edit_distance")
    if isinstance(expected, dict):
        return trajectory_match(expected, [Step(**step) for step in observed]).metadata
    return step_accuracy(expected, [Step(name) for name in observed], scoring_method=method).metadata | case


@pytest.mark.parametrize(("case", "width", "drawn"), [case[1:] for case in cases()], ids=[case[0] for case in cases()])
def test_the_text_is_this_to_the_letter(case: dict[str, Any], width: int, drawn: str) -> None:
    assert picture(metadata_of(case)).text(width) == drawn


@given(expected=TRAJECTORIES, observed=OBSERVED, width=st.integers(20, 130))
def test_no_line_is_wider_than_allowed_or_steers_the_terminal(
    expected: list[Any], observed: list[str], width: int
) -> None:
    text = picture(step_accuracy(expected, [Step(name) for name in observed])).text(width)

    assert all(line.isprintable() for line in text.split("\n"))
    assert max(map(cell_len, text.split("\n"))) <= width


def drawn_by(expected: list[Any], *observed: str) -> Picture:
    """The picture of names against names."""
    return picture(step_accuracy(expected, [Step(name) for name in observed]))


def printed(what: object, **settings: Any) -> list[str]:
    """What a console of 100 columns with these settings prints, line by line, without blanks at the ends."""
    file = StringIO()
    Console(file=file, width=100, **settings).print(what)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_a_terminal_gets_colours_and_a_pipe_the_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = drawn_by(["a", ["b", "c"], "d"], "a", "c", "b", "x", "y")
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured = printed(drawn, force_terminal=True, color_system="standard")
    monkeypatch.setenv("NO_COLOR", "1")

    assert {"\x1b[32m", "\x1b[33m", "\x1b[36m"} <= set(re.findall(r"\x1b\[\d+m", "".join(coloured)))
    assert [re.sub(r"\x1b\[\d+m", "", line).rstrip() for line in coloured] == str(drawn).splitlines()
    assert printed(drawn, force_terminal=True, color_system="standard") == str(drawn).splitlines()
    assert printed(drawn) == str(drawn).splitlines()


def test_a_terminal_narrower_than_the_picture_breaks_it_at_entries() -> None:
    drawn = drawn_by(["first_of_all", "second_of_all"] * 4, *["first_of_all", "second_of_all"] * 4)
    file = StringIO()
    Console(file=file, width=70).print(drawn)

    assert [line.rstrip() for line in file.getvalue().splitlines()] == drawn.text(70).splitlines()


def test_the_metric_tells_the_traces_of_a_session_in_stretches() -> None:
    steps = [Step(name, trace_id=trace) for name, trace in zip("abcd", "1121", strict=True)]
    result = step_accuracy(["a", "b", "c", "d"], steps)
    stretches = [("1", 2), ("2", 1), ("1", 1)]

    assert result.metadata["traces"] == [{"trace_id": trace, "steps": count} for trace, count in stretches]
    assert re.findall(r"^trace .*", str(picture(result)), flags=re.MULTILINE) == ["trace 1", "trace 2", "trace 1"]
    assert "traces" not in step_accuracy(["a", "b"], steps[:2]).metadata


def test_a_group_that_runs_over_two_traces_is_one_bracket() -> None:
    steps = [Step(name, trace_id=trace) for name, trace in zip("abc", "122", strict=True)]
    drawn = picture(step_accuracy([["a", "b"]], steps))

    assert drawn.text(100).splitlines()[:8] == [
        "trace 1",
        "expected  [a",
        "           =",
        "observed  [a",
        "trace 2",
        "expected  b]  ·",
        "          =   + extra",
        "observed  b]  c",
    ]
    assert re.findall(r'class="(sa-group[^"]*)"', drawn.html()) == ["sa-group sa-on", "sa-group sa-from"]


def test_repr_is_the_picture() -> None:
    drawn = drawn_by(["a"], "b")

    assert repr(drawn) == str(drawn) == drawn.text(100)


class Fragment(HTMLParser):
    """Tags, attributes and text of a fragment; a tag that is closed out of turn is a fault."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag, its attributes and that it is open."""
        self.open.append(tag)
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        """Close the tag that was opened last."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Note text."""
        self.text.append(data)


@given(expected=TRAJECTORIES, observed=OBSERVED)
def test_in_html_names_are_text_and_nothing_more(expected: list[Any], observed: list[str]) -> None:
    metadata = step_accuracy(expected, [Step(name) for name in observed]).metadata
    fragment = Fragment(picture_html(metadata))

    assert fragment.tags <= {"div", "p", "ol", "li", "span", "bdi"}
    assert fragment.attributes <= {"class", "title"}
    assert "".join(fragment.text).isprintable()


def test_html_says_what_the_text_says() -> None:
    metadata = step_accuracy(["a", ["b", "c"], "<d>"], [Step(name) for name in ["a", "c", "x"]]).metadata

    assert Fragment(picture_html(metadata)).text == [
        *("expected", "observed", "a", "= ", "a", "c", "= ", "c", "b", "- missing", "·", "<d>", "~ other", "x"),
        "2 of 4 expected steps match, 1 other, 1 missing, edit distance 2",
    ]
    assert '<li class="sa-group" title="in any order">' in picture_html(metadata)


def test_every_class_in_html_has_a_style_below_its_own_name() -> None:
    used = {name for found in re.findall(r'class="([^"]*)"', everything()) for name in found.split()}
    styled = set(re.findall(r"\.(sa-[a-z]+)", PICTURE_CSS))
    rules = re.sub(r"@media[^{]*\{", "", PICTURE_CSS)

    assert used - styled == {"sa-expected", "sa-observed"}
    assert all(rule.strip().startswith(".sa-picture") for rule in re.findall(r"([^{}]+)\{", rules))


def everything() -> str:
    """Every kind of entry in HTML."""
    return "".join(picture_html(metadata_of(case)) for _, case, *_ in cases())


def test_what_has_no_alignment_is_refused_in_words_and_empty_in_html() -> None:
    failed = step_accuracy([], [Step("a")])

    assert not has_alignment(failed.metadata)
    assert not has_alignment({"steps": 3})
    assert picture_html({"steps": ["a"]}) == ""
    with pytest.raises(ResultError, match="There is no alignment to draw"):
        picture(failed)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("a\x1b<", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "tool", "x"]), inner),
    max_leaves=4,
)
KEYS = ["attempts", "expected", "actual", "actual_index", "group", "checks", "optional"]
ENTRIES = st.lists(
    st.builds(
        dict.__or__,
        st.dictionaries(st.sampled_from(KEYS), JSON),
        st.fixed_dictionaries({"op": st.sampled_from(["match", "insert", "delete", "\x1b"])}),
    ),
    max_size=5,
)
OTHERS = st.dictionaries(
    st.sampled_from(
        ["correct_steps", "total_steps", "edit_distance", "extra_steps", "traces", "forbidden", "verdict", "reference"]
    ),
    JSON,
)


@given(entries=ENTRIES, others=OTHERS, width=st.integers(0, 100))
def test_metadata_of_whatever_metric_are_drawn_or_refused(
    entries: list[dict[str, Any]], others: dict[str, Any], width: int
) -> None:
    metadata = others | {"steps": entries}

    assert has_alignment(metadata)
    assert picture(metadata).text(width).replace("\n", "").isprintable()
    Fragment(picture_html(metadata))


def test_a_long_alignment_is_shown_in_part() -> None:
    metadata = step_accuracy(["a"], [Step(name) for name in ["x", "y"] * 5_000]).metadata
    metadata["steps"] = [entry | {"group": index} for index, entry in enumerate(metadata["steps"])]
    text = str(picture(metadata))

    assert "… 9600 more not shown" in text
    assert len(text) < 40_000
    assert len(picture_html(metadata, longest=10)) < 4_000
