"""What one dialect says about one span: every field optional, first dialect that says something wins."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeVar

from stepacc_core.model import SpanKind, ToolCall


@dataclass(frozen=True, slots=True)
class Fields:
    """Part of a canonical span, as far as one dialect tells it.

    `tool_name` is as written. `arguments` is parsed and unwrapped where possible. `announced` tells that the
    completion ended by asking for tools, whether or not the calls are there.
    """

    kind: SpanKind | None = None
    tool_name: str | None = None
    arguments: Any = None
    call_id: str | None = None
    agent_name: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    announced: bool = False
    output: Any = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


NOTHING = Fields()

_T = TypeVar("_T")


def merge(readings: Sequence[Fields]) -> Fields:
    """Combine what several dialects say of one span, the first that says something winning, field by field.

    Arguments are the exception: an object wins over text, since only an object says which argument is which.
    """
    return reduce(_filled, readings) if readings else NOTHING


def _filled(one: Fields, other: Fields) -> Fields:
    """Return what one says, and where it says nothing what the other does."""
    return Fields(
        kind=_first(one.kind, other.kind),
        tool_name=_first(one.tool_name, other.tool_name),
        arguments=_better_arguments(one.arguments, other.arguments),
        call_id=_first(one.call_id, other.call_id),
        agent_name=_first(one.agent_name, other.agent_name),
        tool_calls=one.tool_calls or other.tool_calls,
        announced=one.announced or other.announced,
        output=_first(one.output, other.output),
        input_tokens=_first(one.input_tokens, other.input_tokens),
        output_tokens=_first(one.output_tokens, other.output_tokens),
        cost_usd=_first(one.cost_usd, other.cost_usd),
    )


def _first(one: _T | None, other: _T | None) -> _T | None:
    return other if one is None else one


def _better_arguments(one: Any, other: Any) -> Any:
    is_better = one is None or (isinstance(other, dict) and not isinstance(one, dict))
    return other if is_better else one
