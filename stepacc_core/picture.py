"""The picture of an alignment, for terminals and logs: expected beside observed, one entry a line."""

import unicodedata
from collections.abc import Mapping
from typing import Any

_MARKS = {"match": "=", "substitute": "~", "insert": "+", "delete": "-"}
_WORDS = {"match": "", "substitute": "another step", "insert": "extra", "delete": "missing"}
_NOTHING = "·"


def picture(metadata: Mapping[str, Any]) -> str:
    """Draw the alignment in a result's metadata.

    The first column is `=` for a match, `~` for another step than expected, `+` for an extra step and `-` for a missing
    one; `{` beside it marks the entries of an unordered group. Control characters in names are shown escaped.

    Args:
        metadata: metadata of a scored result of `agent.step_accuracy`, any version.

    Returns:
        Lines without a trailing newline; the last line counts.
    """
    rows = [_row(entry) for entry in metadata["steps"]]
    rows += [("+", " ", _NOTHING, _printable(name), _WORDS["insert"]) for name in metadata.get("extra_steps", ())]
    left = max([len("expected"), *(_width(row[2]) for row in rows)])
    right = max([len("observed"), *(_width(row[3]) for row in rows)])
    lines = [f"     {_pad('expected', left)}  {_pad('observed', right)}".rstrip()]
    lines += [
        f" {mark} {brace} {_pad(expected, left)}  {_pad(observed, right)}  {word}".rstrip()
        for mark, brace, expected, observed, word in rows
    ]
    lines.append(_count(metadata))
    return "\n".join(lines)


def _row(entry: Mapping[str, Any]) -> tuple[str, str, str, str, str]:
    operation = entry["op"]
    brace = "{" if "group" in entry else " "
    return _MARKS[operation], brace, _name(entry["expected"]), _name(entry["actual"]), _WORDS[operation]


def _count(metadata: Mapping[str, Any]) -> str:
    counted = f"{metadata['correct_steps']} of {metadata['total_steps']} expected steps match"
    if "edit_distance" in metadata:
        return f"{counted}, edit distance {metadata['edit_distance']}"
    return f"{counted} by position"


def _name(name: str | None) -> str:
    return _NOTHING if name is None else _printable(name)


def _printable(name: str) -> str:
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in name)


def _width(text: str) -> int:
    """Columns in a terminal: East Asian wide characters take two, combining marks none."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def _pad(text: str, width: int) -> str:
    return text + " " * (width - _width(text))
