"""Text from traces in a terminal: nothing steers it, and columns stay columns."""

import unicodedata
from collections.abc import Iterator

_NO_WIDTH = frozenset({"Mn", "Me"})
_JAMO = range(0x1160, 0x1200)
"""Vowels and final consonants of Hangul, which join the syllable before them."""


def printable(text: str) -> str:
    """Return text with control characters, marks that turn its direction and lone surrogates escaped."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def width(text: str) -> int:
    """Return the columns that printable text takes: wide characters two, combining marks none."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def padded(text: str, columns: int) -> str:
    """Return text with blanks behind it up to a width."""
    return text + " " * (columns - width(text))


def cut(text: str, columns: int) -> str:
    """Return text cut to a width, with `…` in the place of what is left out."""
    if width(text) <= columns:
        return text
    kept, taken = [], 1
    for char in text:
        taken += _columns(char)
        if taken > columns:
            break
        kept.append(char)
    return "".join(kept) + "…"


def wrapped(text: str, columns: int) -> Iterator[str]:
    """Yield text as lines of at most so many columns, broken at blanks; a word that is longer is cut."""
    line = ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else cut(word, columns)
        if line and width(longer) > columns:
            yield line
            longer = cut(word, columns)
        line = longer
    yield line


def _columns(char: str) -> int:
    if unicodedata.category(char) in _NO_WIDTH or ord(char) in _JAMO:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
