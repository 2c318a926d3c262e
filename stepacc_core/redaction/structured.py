"""Text that is JSON, or a Python literal, is redacted value by value, and stays what it is.

Only the values that change are written anew, so that spacing, numbers and the order of keys stay as they were. They are
the values that a reader gets, whatever was escaped: so an argument has the same mark inside text and outside.
"""

import ast
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

_LONGEST_LITERAL = 100_000
"""Characters of a Python literal that are read, as by the readers of traces."""
_DEEPEST_LITERAL = 50
"""Levels of one; Python's parser may break on more."""
_UNREADABLE = (ValueError, SyntaxError, RecursionError, MemoryError)

_JSON_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|-?[0-9][0-9.eE+-]*', re.DOTALL)
_PYTHON_TOKENS = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[{}\[\]():,]|-?[0-9][0-9.eE+-]*""", re.DOTALL)
_OPENING, _CLOSING = "{[(", "}])"

RedactValue = Callable[[Any, str | None], Any]
"""Redacts a text or a number, given the key it stands under."""
RedactKey = Callable[[str], str]


@dataclass(slots=True)
class _Place:
    """Where the walk is: whether in an object, and under which key."""

    in_object: bool
    key: str | None = None
    at_key: bool = field(init=False)

    def __post_init__(self) -> None:
        self.at_key = self.in_object


def redacted_structure(text: str, value: RedactValue, key: RedactKey) -> str | None:
    """Redact the texts and numbers in JSON, or in a Python literal; None where the text is neither.

    Args:
        text: the text.
        value: what redacts a value.
        key: what redacts a key.
    """
    stripped = text.strip()
    if len(stripped) < 2 or (stripped[0], stripped[-1]) not in (("{", "}"), ("[", "]"), ('"', '"')):  # noqa: PLR2004
        return None
    try:
        json.loads(stripped)
    except _UNREADABLE:
        return _literal(text, stripped, value, key)
    return _walked(text, _JSON_TOKENS, json.loads, json.dumps, value, key)


def _literal(text: str, stripped: str, value: RedactValue, key: RedactKey) -> str | None:
    if stripped[0] == '"' or len(stripped) > _LONGEST_LITERAL or _depth(stripped) > _DEEPEST_LITERAL:
        return None
    try:
        ast.literal_eval(stripped)
    except _UNREADABLE:
        return None
    return _walked(text, _PYTHON_TOKENS, ast.literal_eval, repr, value, key)


def _depth(text: str) -> int:
    deepest = depth = 0
    for found in _PYTHON_TOKENS.finditer(text):
        depth += (found[0] in _OPENING) - (found[0] in _CLOSING)
        deepest = max(deepest, depth)
    return deepest


def _walked(  # noqa: PLR0913, PLR0917 (a syntax is its tokens, its reader and its writer)
    text: str,
    tokens: re.Pattern[str],
    read: Callable[[str], Any],
    write: Callable[[Any], str],
    value: RedactValue,
    key: RedactKey,
) -> str:
    places = [_Place(in_object=False)]
    written: list[str] = []
    done = 0
    for found in tokens.finditer(text):
        written_as, place = found[0], places[-1]
        if written_as in _OPENING:
            # The members of a list stand under the key of the list.
            places.append(_Place(written_as == "{", None if written_as == "{" else place.key))
        elif written_as in _CLOSING:
            if len(places) > 1:
                places.pop()
        elif written_as == ":":
            place.at_key = False
        elif written_as == ",":
            place.at_key = place.in_object
        else:
            try:
                given = read(written_as)
            except _UNREADABLE:  # a part of a number such as 1_000
                continue
            if place.at_key and isinstance(given, str):
                place.key = given
                kept: Any = key(given)
            else:
                kept = value(given, place.key)
            if kept != given:
                written += (text[done : found.start()], write(kept))
                done = found.end()
    return "".join((*written, text[done:])) if written else text
