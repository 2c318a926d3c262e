"""Google ADK, its own attributes: `gcp.vertex.agent.*` of the first telemetry schema, beside `gen_ai.*`."""

import re

from stepacc_core.conventions.arguments import arguments_of
from stepacc_core.conventions.completions import calls_in
from stepacc_core.conventions.fields import Fields
from stepacc_core.conventions.values import parsed, text
from stepacc_core.model import RawSpan, SpanKind

_AGENT_NAME = re.compile(r"agent_run \[(.+)\]", re.DOTALL)
MARKS = frozenset(
    {
        "gcp.vertex.agent.event_id",
        "gcp.vertex.agent.invocation_id",
        "gcp.vertex.agent.llm_response",
        "gcp.vertex.agent.tool_call_args",
    }
)
"""Attributes of this convention; a span with any of them is read by it."""


def recognises(span: RawSpan) -> bool:
    """Tell whether a span without such attributes is named in this convention's way under its scope."""
    return span.scope_name == "gcp.vertex.agent" and _kind(span) is not None


def read(span: RawSpan) -> Fields:
    """Read what the span says in this convention."""
    attributes = span.attributes
    response = attributes.get("gcp.vertex.agent.llm_response")
    named = _AGENT_NAME.fullmatch(span.name)
    return Fields(
        kind=_kind(span),
        arguments=arguments_of(attributes.get("gcp.vertex.agent.tool_call_args")),
        agent_name=named.group(1) if named else None,
        tool_calls=calls_in(response) if response is not None else (),
        output=parsed(attributes.get("gcp.vertex.agent.tool_response", response)),
    )


def _kind(span: RawSpan) -> SpanKind | None:
    """Return the kind of a span that has no operation name, as in the first schema."""
    if text(span.attributes, "gen_ai.operation.name"):
        return None
    if span.name == "call_llm" or "gcp.vertex.agent.llm_response" in span.attributes:
        return "LLM"
    if _AGENT_NAME.fullmatch(span.name):
        return "AGENT"
    return "CHAIN" if span.name == "invocation" else None
