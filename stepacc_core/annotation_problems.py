"""What pydantic finds wrong in an annotations file, in the words of the file."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from stepacc_core.nearest import meant
from stepacc_core.shown import shown

_WORDS = {
    "missing": "it is missing",
    "too_short": "it is empty; write at least one",
    "string_too_short": "it is empty; write some text, or leave the key out",
    "string_type": "it must be text",
    "list_type": "it must be a list",
    "bool_type": "it must be true or false",
}
_SAID_WHOLE = ("missing", "too_short", "string_too_short")
"""Of these the value given says nothing more."""
_UNKNOWN = re.compile(r"unknown key `([^`]+)`")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        path: keys and places that lead to it.
        said: what is wrong, with the keys and what is allowed; a part of a sentence.
        unknown: the key that is not known, where it is one, though it may stand below the path.
    """

    path: tuple[str | int, ...]
    said: str
    unknown: str | None = None


def problems_of(error: ValidationError, model: type[BaseModel]) -> Iterator[Problem]:
    """Yield what is wrong with an object that a model refuses."""
    for found in error.errors():
        path = found["loc"]
        if found["type"] == "extra_forbidden":
            known = _keys(model, path[:-1])
            below = f" of `{_dotted(path[:-1])}`" if path[:-1] else ""
            said = f"unknown key `{path[-1]}`{below}; known are {', '.join(known)}{meant(str(path[-1]), known)}"
            yield Problem(path, said, str(path[-1]))
            continue
        said = _said(found, model)
        field = f"`{_dotted(path)}`"
        inner = _UNKNOWN.search(said)
        yield Problem(path, said if not path or said.startswith(field[:-1]) else f"{field}: {said}", inner and inner[1])


def _said(found: ErrorDetails, model: type[BaseModel]) -> str:
    kind, given = found["type"], shown(found["input"])
    if kind == "value_error":
        return found["msg"].removeprefix("Value error, ")
    if kind in _SAID_WHOLE:
        return _WORDS[kind]
    if kind == "literal_error":
        return f"it is {given}; write {found['ctx']['expected']}"
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        return f"{given} is no object with the keys {', '.join(_keys(model, found['loc']))}"
    said = _WORDS.get(kind) or f"{found['msg'][:1].lower()}{found['msg'][1:]}"
    return f"{said}, and is {given}"


def _keys(model: type[BaseModel], path: tuple[str | int, ...]) -> list[str]:
    """Return the keys of the object at a path."""
    for part in path:
        below: Any = model.model_fields[str(part)].annotation
        model = below
    return [field.alias or name for name, field in model.model_fields.items()]


def _dotted(path: tuple[str | int, ...]) -> str:
    return ".".join(map(str, path))
