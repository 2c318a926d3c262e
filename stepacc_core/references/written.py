"""Objects told apart by the one keyword that each has: comparators as well as checks of the final answer.

Their fields are the keys of such an object, the first of them its keyword.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, PlainValidator, with_config

from stepacc_core.marks import is_mark
from stepacc_core.shown import shown

AS_WRITTEN = with_config(ConfigDict(extra="forbid"))
"""How pydantic loads them; of their types below none converts anything."""


def _is_number(value: Any) -> Any:
    if is_mark(value):
        return value
    whole = isinstance(value, int) and not isinstance(value, bool)  # which may be too large for a float
    if not whole and not (isinstance(value, float) and math.isfinite(value)):
        msg = f"{shown(value)} is no number"
        raise ValueError(msg)
    return value


def _is_tolerance(value: Any) -> Any:
    if is_mark(value) or _is_number(value) < 0:
        msg = f"{value!r} is no tolerance; write 0 or more"
        raise ValueError(msg)
    return value


def _is_id(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | str):
        msg = f"{shown(value)} is no id; write text, or a whole number"
        raise ValueError(msg)  # noqa: TRY004 (pydantic takes ValueError as a refusal)
    return value


def _is_true(value: Any) -> Any:
    if value is not True:
        msg = f"{shown(value)} says nothing; write true, or leave it out"
        raise ValueError(msg)
    return value


Number = Annotated[int | float | str, PlainValidator(_is_number, json_schema_input_type=float)]
"""A number; once it was redacted, its mark."""
Tolerance = Annotated[
    int | float, PlainValidator(_is_tolerance, json_schema_input_type=float), Field(json_schema_extra={"minimum": 0})
]
IdText = Annotated[str | int, PlainValidator(_is_id, json_schema_input_type=str | int)]
Yes = Annotated[Literal[True], PlainValidator(_is_true, json_schema_input_type=Literal[True])]


class Written:
    """Base of what is written as an object of its fields."""

    __slots__ = ()

    def written(self) -> Any:
        """Return it as JSON, without what was left out."""
        found = {key: getattr(self, key if hasattr(self, key) else f"{key}_") for key in keys_of(type(self))}
        return {key: _json(value) for key, value in found.items() if (key, value) != ("tolerance", 0)}


def keys_of(kind: type) -> tuple[str, ...]:
    """Return the keys of an object of this kind, its keyword first."""
    return tuple(field.name.rstrip("_") for field in fields(kind) if field.init)


def tag(keyword: str) -> str:
    """Return the tag of a keyword in a union, which no path of authored keys has in it."""
    return f"<{keyword}>"


def is_tag(part: object) -> bool:
    """Tell whether a part of a path is a tag, and so nothing that the author wrote."""
    return isinstance(part, str) and part.startswith("<") and part.endswith(">")


def by_keyword(
    kinds: Mapping[str, tuple[str, ...]], *, otherwise: Callable[[Any], str | None], error: str
) -> tuple[Discriminator, BeforeValidator]:
    """Tell objects apart by their keyword, and refuse keys that do not go with it.

    Args:
        kinds: the keys of an object, by its keyword.
        otherwise: the tag of anything else, or None where it is refused.
        error: what is allowed, for a message.
    """

    def check(value: Any) -> Any:
        found = [keyword for keyword in kinds if isinstance(value, Mapping) and keyword in value]
        if len(found) > 1:
            msg = f"{_listed(found)} stand in one object; {error}"
            raise ValueError(msg)
        if found and (unknown := [str(key) for key in value if key not in kinds[found[0]]]):
            msg = f"unknown key {_listed(unknown)} beside `{found[0]}`; {error}"
            raise ValueError(msg)
        return value

    def choose(value: Any) -> str | None:
        found = next((keyword for keyword in kinds if isinstance(value, Mapping) and keyword in value), None)
        return tag(found) if found else otherwise(value)

    told_apart = Discriminator(choose, custom_error_type="unknown_object", custom_error_message=error)
    return told_apart, BeforeValidator(check)


def _listed(keys: list[str]) -> str:
    return " and ".join(f"`{key}`" for key in keys)


def _json(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_json(item) for item in value]
    return value.written() if isinstance(value, Written) else value
