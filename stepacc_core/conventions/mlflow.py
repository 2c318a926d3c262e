"""MLflow: `mlflow.spanType`, `mlflow.spanInputs`, `mlflow.spanOutputs`; values may be JSON text twice over."""

from stepacc_core.conventions.arguments import arguments_of
from stepacc_core.conventions.completions import calls_in
from stepacc_core.conventions.fields import Fields
from stepacc_core.conventions.naming import real_id
from stepacc_core.conventions.values import identifier, integer, mapping, parsed, text
from stepacc_core.model import RawSpan, SpanKind

KINDS: dict[str, SpanKind] = {
    "TOOL": "TOOL",
    "AGENT": "AGENT",
    "LLM": "LLM",
    "CHAT_MODEL": "LLM",
    "CHAIN": "CHAIN",
    "WORKFLOW": "CHAIN",
    "TASK": "CHAIN",
    "PARSER": "CHAIN",
    "MEMORY": "CHAIN",
    "RETRIEVER": "RETRIEVER",
    "EMBEDDING": "EMBEDDING",
    "RERANKER": "RERANKER",
    "GUARDRAIL": "GUARDRAIL",
    "EVALUATOR": "EVALUATOR",
}

MARKS = frozenset({"mlflow.spanType"})
"""Attributes of this convention; a span with any of them is read by it."""


def read(span: RawSpan) -> Fields:
    """Read what the span says in this convention; the span's name is the tool's or agent's."""
    attributes = span.attributes
    kind = "TOOL" if is_handoff(span) else KINDS.get((identifier(attributes.get("mlflow.spanType")) or "").upper())
    outputs = attributes.get("mlflow.spanOutputs")
    usage = mapping(attributes.get("mlflow.chat.tokenUsage"))
    return Fields(
        kind=kind,
        tool_name=span.name.strip() or None if kind == "TOOL" else None,
        arguments=arguments_of(attributes.get("mlflow.spanInputs")) if kind == "TOOL" else None,
        call_id=real_id(identifier(attributes.get("tool_call_id"))),
        agent_name=span.name.strip() or None if kind == "AGENT" else None,
        tool_calls=calls_in(outputs) if kind == "LLM" else (),
        output=parsed(outputs),
        input_tokens=integer(usage, "input_tokens"),
        output_tokens=integer(usage, "output_tokens"),
    )


def is_handoff(span: RawSpan) -> bool:
    """Tell whether the span is the hand-off of an OpenAI agent, which MLflow records as a chain."""
    return span.name == "Handoff" and "from_agent" in mapping(span.attributes.get("mlflow.spanInputs"))


def handoff_target(span: RawSpan) -> str | None:
    """Return the agent that takes over."""
    return text(mapping(span.attributes.get("mlflow.spanOutputs")), "to_agent")
