"""Vercel AI SDK, the form of versions up to 6 and of the later legacy exporter: `ai.*` attributes."""

from stepacc_core.conventions.arguments import arguments_of
from stepacc_core.conventions.completions import asks_for_tools, calls_in
from stepacc_core.conventions.fields import Fields
from stepacc_core.conventions.naming import real_id
from stepacc_core.conventions.values import identifier, integer, parsed, text
from stepacc_core.model import RawSpan, SpanKind

MARKS = frozenset({"ai.operationId", "ai.toolCall.name"})
"""Attributes of this convention; a span with any of them is read by it."""


def read(span: RawSpan) -> Fields:
    """Read what the span says in this convention.

    The outer span of a generation repeats the calls of the inner `doGenerate` or `doStream`; only the inner is a
    completion.
    """
    attributes = span.attributes
    kind = _kind(text(attributes, "ai.operationId") or "")
    written = attributes.get("ai.toolCall.args", attributes.get("ai.toolCall.input"))
    return Fields(
        kind=kind,
        tool_name=text(attributes, "ai.toolCall.name"),
        arguments=arguments_of(written),
        call_id=real_id(identifier(attributes.get("ai.toolCall.id"))),
        agent_name=text(attributes, "ai.telemetry.functionId"),
        tool_calls=calls_in(attributes.get("ai.response.toolCalls")) if kind == "LLM" else (),
        announced=asks_for_tools(attributes.get("ai.response.finishReason")),
        output=parsed(attributes.get("ai.toolCall.result", attributes.get("ai.response.text"))),
        input_tokens=integer(attributes, "ai.usage.inputTokens", "ai.usage.promptTokens"),
        output_tokens=integer(attributes, "ai.usage.outputTokens", "ai.usage.completionTokens"),
    )


def _kind(operation: str) -> SpanKind | None:
    if operation == "ai.toolCall":
        return "TOOL"
    if operation.endswith(".doEmbed"):
        return "EMBEDDING"
    if operation.endswith((".doGenerate", ".doStream")):
        return "LLM"
    return "CHAIN" if operation else None
