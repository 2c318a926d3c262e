"""Langfuse SDK 3 and later, over OpenTelemetry: `langfuse.observation.*`; values are JSON text."""

from stepacc_core.conventions.arguments import arguments_of
from stepacc_core.conventions.completions import calls_in
from stepacc_core.conventions.fields import Fields
from stepacc_core.conventions.naming import real_id
from stepacc_core.conventions.values import identifier, integer, mapping, number, parsed, text
from stepacc_core.model import RawSpan, SpanKind

KINDS: dict[str, SpanKind] = {
    "tool": "TOOL",
    "agent": "AGENT",
    "generation": "LLM",
    "chain": "CHAIN",
    "span": "CHAIN",
    "event": "CHAIN",
    "retriever": "RETRIEVER",
    "embedding": "EMBEDDING",
    "guardrail": "GUARDRAIL",
    "evaluator": "EVALUATOR",
}

MARKS = frozenset({"langfuse.observation.type"})
"""Attributes of this convention; a span with any of them is read by it."""


def read(span: RawSpan) -> Fields:
    """Read what the span says in this convention; the span's name is the tool's or agent's."""
    attributes = span.attributes
    kind = KINDS.get((text(attributes, "langfuse.observation.type") or "").lower())
    usage = mapping(attributes.get("langfuse.observation.usage_details"))
    output = attributes.get("langfuse.observation.output")
    return Fields(
        kind=kind,
        tool_name=span.name.strip() or None if kind == "TOOL" else None,
        arguments=arguments_of(attributes.get("langfuse.observation.input")) if kind == "TOOL" else None,
        call_id=real_id(identifier(attributes.get("langfuse.observation.metadata.tool_call_id"))),
        agent_name=span.name.strip() or None if kind == "AGENT" else None,
        tool_calls=calls_in(output) if kind == "LLM" else (),
        output=parsed(output),
        input_tokens=integer(usage, "input"),
        output_tokens=integer(usage, "output"),
        cost_usd=number(mapping(attributes.get("langfuse.observation.cost_details")), "total"),
    )
