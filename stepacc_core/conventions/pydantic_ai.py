"""Pydantic AI and Logfire, where they go beyond `gen_ai.*`: the attributes of the older data formats."""

from stepacc_core.conventions.arguments import arguments_of
from stepacc_core.conventions.completions import calls_in
from stepacc_core.conventions.fields import Fields
from stepacc_core.conventions.values import parsed, sequence, text
from stepacc_core.model import RawSpan, SpanKind

MARKS = frozenset({"logfire.msg", "logfire.json_schema", "model_request_parameters", "tool_arguments"})
"""Attributes of this convention; a span with any of them is read by it."""


def read(span: RawSpan) -> Fields:
    """Read what the span says in this convention.

    The oldest format writes a chat span's messages as a list of events, of which the last is the completion.
    """
    attributes = span.attributes
    events = sequence(attributes.get("events"))
    return Fields(
        kind=_kind(span),
        arguments=arguments_of(attributes.get("tool_arguments")),
        agent_name=text(attributes, "agent_name"),
        tool_calls=calls_in(events[-1]) if events else (),
        output=parsed(attributes.get("final_result", attributes.get("tool_response"))),
    )


def _kind(span: RawSpan) -> SpanKind | None:
    if text(span.attributes, "gen_ai.operation.name"):
        return None
    if span.name == "agent run" or ("agent_name" in span.attributes and "model_name" in span.attributes):
        return "AGENT"
    return "CHAIN" if span.name.startswith("running ") and "gen_ai.tool.name" not in span.attributes else None
