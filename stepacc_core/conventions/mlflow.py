"""MLflow: `mlflow.spanType`, `mlflow.spanInputs`, `mlflow.spanOutputs`; values may be JSON text twice over."""

from collections.abc import Mapping
from typing import Any

from stepacc_core.conventions.arguments import arguments_of
from stepacc_core.conventions.completions import calls_in, tool_call, unique
from stepacc_core.conventions.fields import Fields
from stepacc_core.conventions.naming import real_id
from stepacc_core.conventions.values import identifier, integer, mapping, parsed, sequence, text
from stepacc_core.model import RawSpan, SpanKind, ToolCall

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

_RUNNER = "AgentRunner.run"
"""The span around each run of OpenAI agents, which is no agent of its own."""
_CALLED = ".__call__"
"""What follows the class in the name of a smolagents tool's span; the tool's own name is not recorded."""
_NAMED_AFTER_METHODS = frozenset({"root_capability", "end_strategy", "final_answer_checks"})
"""Attributes of agents of Pydantic AI and smolagents, whose fields MLflow records one by one."""
_CHUNK = "mlflow.chunk.item."

MARKS = frozenset({"mlflow.spanType"})
"""Attributes of this convention; a span with any of them is read by it."""


def read(span: RawSpan) -> Fields:
    """Read what the span says in this convention; its name is the tool's or agent's, unless the agent has its own."""
    attributes = span.attributes
    kind = _kind(span)
    outputs = attributes.get("mlflow.spanOutputs")
    usage = mapping(attributes.get("mlflow.chat.tokenUsage"))
    return Fields(
        kind=kind,
        tool_name=span.name.strip().removesuffix(_CALLED) or None if kind == "TOOL" else None,
        arguments=arguments_of(attributes.get("mlflow.spanInputs")) if kind == "TOOL" else None,
        call_id=real_id(identifier(attributes.get("tool_call_id"))),
        agent_name=_agent_name(span) if kind == "AGENT" else None,
        tool_calls=(calls_in(outputs) or _streamed(span)) if kind == "LLM" else (),
        output=parsed(outputs),
        input_tokens=integer(usage, "input_tokens"),
        output_tokens=integer(usage, "output_tokens"),
    )


def _kind(span: RawSpan) -> SpanKind | None:
    if is_handoff(span):
        return "TOOL"
    if span.name == _RUNNER:
        return "CHAIN"
    return KINDS.get((identifier(span.attributes.get("mlflow.spanType")) or "").upper())


def _agent_name(span: RawSpan) -> str | None:
    """Return the agent's own name where spans are named after a method, as for Pydantic AI and smolagents."""
    if not _NAMED_AFTER_METHODS.isdisjoint(span.attributes):
        named = identifier(span.attributes.get("name"))
        if named is not None:
            return named
    return span.name.strip() or None


def _streamed(span: RawSpan) -> tuple[ToolCall, ...]:
    """Return the calls of a streamed chat completion, whose outputs leave them out: its chunks are span events."""
    calls: dict[int, dict[str, str]] = {}
    for event in span.events:
        if event.name.startswith(_CHUNK):
            chunk = mapping(event.attributes.get("mlflow.chunk.value"))
            for choice in sequence(chunk.get("choices")):
                for delta in sequence(mapping(mapping(choice).get("delta")).get("tool_calls")):
                    _add(calls, mapping(delta))
    return unique(tool_call(call.get("name"), call.get("id"), call.get("arguments", "")) for call in calls.values())


def _add(calls: dict[int, dict[str, str]], delta: Mapping[str, Any]) -> None:
    call = calls.setdefault(integer(delta, "index") or 0, {})
    function = mapping(delta.get("function"))
    for key, value in (
        ("id", delta.get("id")),
        ("name", function.get("name")),
        ("arguments", function.get("arguments")),
    ):
        if isinstance(value, str):
            call[key] = call.get(key, "") + value


def is_handoff(span: RawSpan) -> bool:
    """Tell whether the span is the hand-off of an OpenAI agent, which MLflow records as a chain."""
    return span.name == "Handoff" and "from_agent" in mapping(span.attributes.get("mlflow.spanInputs"))


def handoff_target(span: RawSpan) -> str | None:
    """Return the agent that takes over."""
    return text(mapping(span.attributes.get("mlflow.spanOutputs")), "to_agent")
