"""GenAI content in span events and log records: the older OpenTelemetry form, and that of Strands.

A completion is an event `gen_ai.choice`; a log record of the same name, joined to its span, has its content under
`body`. Histories (`gen_ai.assistant.message` and the like) are never read: they repeat earlier calls.
"""

from collections.abc import Iterator
from typing import Any

from stepacc_core.conventions.arguments import arguments_of
from stepacc_core.conventions.completions import asks_for_tools, calls_in, unique
from stepacc_core.conventions.fields import Fields
from stepacc_core.conventions.naming import real_id
from stepacc_core.conventions.values import identifier, mapping, parsed
from stepacc_core.model import RawEvent, RawSpan, ToolCall

_CHOICE = "gen_ai.choice"
_DETAILS = "gen_ai.client.inference.operation.details"
_COMPLETION = "gen_ai.content.completion"
_TOOL = "gen_ai.tool.message"


def recognises(span: RawSpan) -> bool:
    """Tell whether the span has GenAI events."""
    return any(event.name.startswith("gen_ai.") for event in span.events)


def read(span: RawSpan) -> Fields:
    """Read the completion, the arguments and the call id that the span's events hold."""
    tool = next((_content(event) for event in span.events if event.name == _TOOL), {})
    completions = [value for event in span.events for value in _completions(event)]
    return Fields(
        arguments=arguments_of(tool.get("content")),
        call_id=real_id(identifier(tool.get("id"))),
        tool_calls=_calls(completions),
        announced=any(_announces(event) for event in span.events),
        output=parsed(completions[-1]) if completions else None,
    )


def _calls(completions: list[Any]) -> tuple[ToolCall, ...]:
    return unique(call for completion in completions for call in calls_in(completion))


def _content(event: RawEvent) -> dict[str, Any]:
    """Return attributes and body of an event as one object; the body wins."""
    body = mapping(event.attributes.get("body"))
    return {**event.attributes, **mapping(event.attributes.get("gen_ai.event.content")), **body}


def _completions(event: RawEvent) -> Iterator[Any]:
    if event.name == _CHOICE:
        yield _content(event).get("message")
    elif event.name == _DETAILS:
        yield _content(event).get("gen_ai.output.messages")
    elif event.name == _COMPLETION:
        yield _content(event).get("gen_ai.completion")


def _announces(event: RawEvent) -> bool:
    content = _content(event)
    if event.name == _CHOICE:
        return asks_for_tools(content.get("finish_reason"))
    return event.name == _DETAILS and asks_for_tools(content.get("gen_ai.response.finish_reasons"))
