"""What one dialect says about one span: every field optional, first dialect that says something wins."""

from collections.abc import Sequence
from dataclasses import dataclass
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
    if not readings:
        return NOTHING
    if len(readings) == 1:
        return readings[0]
    return Fields(
        kind=_first([r.kind for r in readings]),
        tool_name=_first([r.tool_name for r in readings]),
        arguments=_best_arguments([r.arguments for r in readings]),
        call_id=_first([r.call_id for r in readings]),
        agent_name=_first([r.agent_name for r in readings]),
        tool_calls=next((r.tool_calls for r in readings if r.tool_calls), ()),
        announced=any(r.announced for r in readings),
        output=_first([r.output for r in readings]),
        input_tokens=_first([r.input_tokens for r in readings]),
        output_tokens=_first([r.output_tokens for r in readings]),
        cost_usd=_first([r.cost_usd for r in readings]),
    )


def _first(values: list[_T | None]) -> _T | None:
    return next((value for value in values if value is not None), None)


def _best_arguments(values: list[Any]) -> Any:
    return next((value for value in values if isinstance(value, dict)), _first(values))
