"""Text from traces in Markdown: it never breaks out of its cell, becomes markup, or leads to an address of its own."""

import re
from collections.abc import Iterable, Sequence

_PLAIN = re.compile(r"[\w.:/-]{1,80}")
_MARKUP = re.compile(r"[\\|`*~\[\]]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
"""What Markdown reads as more than text; an underscore within a word is none of it."""
_ADDRESS = re.compile(r":(?=//)|www(?=\.)|(?=@)", re.IGNORECASE)
"""Places in what the UI would make a link of by itself, however it is escaped."""
_TICKS = re.compile("`+")
_NOTHING = "\u200b"
"""A space of no width, which parts what must not be read as one."""


def cell(text: str, longest: int) -> str:
    """Return text as a table's cell, cut to so many characters."""
    text = text if len(text) <= longest else f"{text[:longest]}…"
    escaped = _MARKUP.sub(r"\\\g<0>", " ".join(text.split())).replace("&", "&amp;").replace("<", "&lt;")
    return _ADDRESS.sub(rf"\g<0>{_NOTHING}", escaped)


def ident(value: str, shown: int, longest: int) -> str:
    """Return an id as code, as a rule its first `shown` characters; one that is not plain as a cell up to `longest`."""
    short = value if len(value) <= 2 * shown else f"{value[:shown]}…"
    return f"`{short}`" if _PLAIN.fullmatch(value) else cell(value, longest)


def link(text: str, url: str) -> str:
    """Return Markdown text as a link to a URL of the characters that RFC 3986 allows."""
    return f"[{text}](<{url.replace('&', '&amp;')}>)"


def code_block(text: str) -> str:
    """Return printable text as a block of code, which it cannot end: the fence is longer than any row of its ticks."""
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are Markdown already."""
    lines = [f"| {' | '.join(row)} |" for row in (heads, *rows)]
    return "\n".join([lines[0], "|---" * len(heads) + "|", *lines[1:]])
