"""Text from traces in the tables that Dagster shows: read by a Markdown parser, it is text and nothing more."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from stepacc_dagster import markdown
from stepacc_dagster.trace_links import TraceUrl

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
MARKUP = st.sampled_from(
    ["[a](http://evil.example)", "`", "``", "|", "\\", "\\|", "](", "<img src=x>", "*", "_", "~~", "\n", "&lt;", "![",
     ")", "www.evil.example", "HTTPS://evil.example", "a@evil.example", "<http://evil.example>", "&#124;", "{", "$"]
)  # fmt: skip
STORED = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
"""What Postgres can hold, where the text comes from."""
TEXT = st.lists(MARKUP | st.text(STORED, max_size=5) | st.sampled_from(["a", "b_c", " "]), max_size=8).map("".join)
LINKED = re.compile(r"https?://|www\.|[\w.+-]@[\w-]", re.IGNORECASE)
"""What the UI makes a link of by itself."""


def cells(text: str) -> list[list[Token]]:
    """The cells of the one table that a Markdown text is, in order, each as what it is made of."""
    tokens = PARSER.parse(text)
    assert (tokens[0].type, tokens[-1].type) == ("table_open", "table_close")
    assert sum(token.type == "table_open" for token in tokens) == 1
    return [token.children or [] for token in tokens if token.type == "inline"]


def squeezed(text: str) -> str:
    """Text without white space, as far as it does not count, and without what parts addresses."""
    return "".join(text.replace("\u200b", "").split())


@given(first=TEXT, second=TEXT)
@example("a|b", "\\")
@example("`x", "y`")
@example("[a", "](http://evil.example)")
def test_a_cell_holds_its_text_and_nothing_that_is_more_than_text(first: str, second: str) -> None:
    found = cells(markdown.table(("one", "two"), [(markdown.cell(first, 1_000), markdown.cell(second, 1_000))]))
    assert len(found) == 4
    for text, inside in zip((first, second), found[2:], strict=True):
        assert {token.type for token in inside} <= {"text", "text_special"}
        shown = "".join(token.content for token in inside)
        assert squeezed(shown) == squeezed(text)
        assert not LINKED.search(shown)


@given(ident=TEXT, trace_id=TEXT.filter(lambda text: text not in ("", ".", "..")))
@example("c39b5254cd91a0ee96c96491dc225d36", "c39b5254cd91a0ee96c96491dc225d36")
@example("a](http://evil.example) [b", "x)>|")
def test_a_link_leads_where_it_should_and_nowhere_else(ident: str, trace_id: str) -> None:
    url = TraceUrl("https://x.example.org/t/{trace_id}?a=1&copy;=(b)").of(trace_id)
    assert url is not None
    linked = markdown.link(markdown.ident(ident or "x", 8, 80), url)
    *_, cell = cells(markdown.table(("one", "two"), [("", linked)]))
    opened = [token for token in cell if token.type == "link_open"]
    assert [token.attrs["href"] for token in opened] == [url]
    assert (cell[0].type, cell[-1].type) == ("link_open", "link_close")
    assert {token.type for token in cell[1:-1]} <= {"text", "text_special", "code_inline"}


@pytest.mark.parametrize(
    ("ident", "shown"),
    [
        ("c39b5254cd91a0ee96c96491dc225d36", "`c39b5254…`"),
        ("conv-42", "`conv-42`"),
        ("a b", "a b"),
        ("x" * 100, "x" * 80 + "…"),
        ("https://evil.example/x", "`https://…`"),
    ],
)
def test_plain_ids_are_code_cut_as_the_commands_cut_them(ident: str, shown: str) -> None:
    assert markdown.ident(ident, 8, 80) == shown


def test_long_text_is_cut() -> None:
    assert markdown.cell("ab" * 10, 3) == "aba…"


@given(text=st.lists(TEXT.map(lambda text: "".join(filter(str.isprintable, text)))).map("\n".join))
@example("```\nhttp://evil.example")
def test_a_block_of_code_is_not_ended_by_what_it_shows(text: str) -> None:
    (block,) = PARSER.parse(markdown.code_block(text))
    assert (block.type, block.content) == ("fence", f"{text}\n")
