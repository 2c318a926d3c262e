"""OpenTelemetry GenAI semantic conventions, the current form: `gen_ai.*` attributes on the span."""

from stepacc_core.conventions.arguments import arguments_of
from stepacc_core.conventions.completions import asks_for_tools, calls_of
from stepacc_core.conventions.fields import Fields
from stepacc_core.conventions.naming import real_id
from stepacc_core.conventions.values import identifier, integer, number, parsed, text
from stepacc_core.model import RawSpan, SpanKind

KINDS: dict[str, SpanKind] = {
    "execute_tool": "TOOL",
    "invoke_agent": "AGENT",
    "chat": "LLM",
    "generate_content": "LLM",
    "text_completion": "LLM",
    "embeddings": "EMBEDDING",
    "retrieval": "RETRIEVER",
}
"""Kinds of operations; any other operation (workflows, planning, creating an agent, a vendor's own) is a CHAIN."""

MARKS = frozenset(
    {
        "gen_ai.operation.name",
        "gen_ai.tool.name",
        "gen_ai.tool.call.arguments",
        "gen_ai.agent.name",
        "gen_ai.output.messages",
        "gen_ai.request.model",
        "gen_ai.provider.name",
        "gen_ai.system",
    }
)
"""Attributes of this convention; a span with any of them is read by it."""


FINISH_REASONS = ("gen_ai.response.finish_reasons", "anthropic.message.stop_reason")
"""Why a completion ended; the second is of Anthropic's own client, which records no content."""


def read(span: RawSpan) -> Fields:
    """Read what the span says in this convention."""
    attributes = span.attributes
    operation = text(attributes, "gen_ai.operation.name")
    messages = parsed(attributes.get("gen_ai.output.messages"))
    return Fields(
        kind=None if operation is None else KINDS.get(operation.lower(), "CHAIN"),
        tool_name=text(attributes, "gen_ai.tool.name"),
        arguments=arguments_of(attributes.get("gen_ai.tool.call.arguments")),
        call_id=real_id(identifier(attributes.get("gen_ai.tool.call.id"))),
        agent_name=text(attributes, "gen_ai.agent.name"),
        tool_calls=calls_of(messages),
        announced=any(asks_for_tools(attributes.get(key)) for key in FINISH_REASONS),
        output=parsed(attributes.get("gen_ai.tool.call.result")) if operation == "execute_tool" else messages,
        input_tokens=integer(attributes, "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
        output_tokens=integer(attributes, "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
        cost_usd=number(attributes, "gen_ai.usage.cost"),
    )
