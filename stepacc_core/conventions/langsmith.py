"""LangSmith's OpenTelemetry export: `langsmith.span.kind`, whole inputs and outputs as one JSON text."""

from stepacc_core.conventions.arguments import arguments_of
from stepacc_core.conventions.completions import calls_in
from stepacc_core.conventions.fields import Fields
from stepacc_core.conventions.values import parsed, text
from stepacc_core.model import RawSpan, SpanKind

KINDS: dict[str, SpanKind] = {
    "tool": "TOOL",
    "llm": "LLM",
    "chain": "CHAIN",
    "retriever": "RETRIEVER",
    "embedding": "EMBEDDING",
    "prompt": "PROMPT",
    "parser": "CHAIN",
}

MARKS = frozenset({"langsmith.span.kind"})
"""Attributes of this convention; a span with any of them is read by it."""


def read(span: RawSpan) -> Fields:
    """Read what the span says in this convention; the run's name is the tool's."""
    attributes = span.attributes
    kind = KINDS.get((text(attributes, "langsmith.span.kind") or "").lower())
    output = attributes.get("gen_ai.completion")
    return Fields(
        kind=kind,
        tool_name=(text(attributes, "gen_ai.tool.name") or span.name.strip() or None) if kind == "TOOL" else None,
        arguments=arguments_of(attributes.get("gen_ai.prompt")) if kind == "TOOL" else None,
        tool_calls=calls_in(output) if kind == "LLM" else (),
        output=parsed(output),
    )
