"""Traceloop (OpenLLMetry): `traceloop.span.kind` beside GenAI attributes, and the flattened form up to 0.40."""

from collections.abc import Mapping
from typing import Any

from stepacc_core.conventions.arguments import arguments_of
from stepacc_core.conventions.completions import asks_for_tools, tool_call, unique
from stepacc_core.conventions.fields import Fields
from stepacc_core.conventions.naming import real_id
from stepacc_core.conventions.values import grouped, identifier, indexed, integer, mapping, parsed, text
from stepacc_core.model import RawSpan, SpanKind, ToolCall

KINDS: dict[str, SpanKind] = {
    "workflow": "CHAIN",
    "task": "CHAIN",
    "agent": "AGENT",
    "tool": "TOOL",
    "handoff": "TOOL",
}
_REQUESTS: dict[str, SpanKind] = {
    "chat": "LLM",
    "completion": "LLM",
    "embedding": "EMBEDDING",
    "rerank": "RERANKER",
}
_CREW = "crewai.crew.id"
MARKS = frozenset({"traceloop.span.kind", "traceloop.entity.name", "llm.request.type", _CREW})
"""Attributes of this convention; a span with any of them is read by it."""


def read(span: RawSpan) -> Fields:
    """Read what the span says in this convention."""
    attributes = span.attributes
    kind = _kind(attributes)
    entity = text(attributes, "traceloop.entity.name")
    completions = grouped(indexed(attributes, "gen_ai.completion."))
    return Fields(
        kind=kind,
        tool_name=(text(attributes, "gen_ai.tool.name") or entity) if kind == "TOOL" else None,
        arguments=arguments_of(attributes.get("traceloop.entity.input")) if kind == "TOOL" else None,
        call_id=_call_id(attributes) if kind == "TOOL" else None,
        agent_name=(text(attributes, "gen_ai.agent.name", "crewai.agent.role") or entity) if kind == "AGENT" else None,
        tool_calls=_calls(completions),
        announced=any(asks_for_tools(completion.get("finish_reason")) for completion in completions),
        output=parsed(attributes.get("traceloop.entity.output", attributes.get("crewai.crew.result")))
        or next((completion.get("content") for completion in completions), None),
        input_tokens=integer(attributes, "gen_ai.usage.prompt_tokens"),
        output_tokens=integer(attributes, "gen_ai.usage.completion_tokens"),
    )


def _kind(attributes: Mapping[str, Any]) -> SpanKind | None:
    """Return the kind; a crew calls its whole run an agent invocation, which it is not."""
    kind = KINDS.get((text(attributes, "traceloop.span.kind") or "").lower())
    if kind is None and _CREW in attributes:
        return "CHAIN"
    return kind or _REQUESTS.get((text(attributes, "llm.request.type") or "").lower())


def _call_id(attributes: Mapping[str, Any]) -> str | None:
    for key in ("gen_ai.tool.call.arguments", "traceloop.entity.input"):
        wrapper = mapping(attributes.get(key))
        found = real_id(identifier(mapping(wrapper.get("kwargs")).get("tool_call_id")))
        if found is not None and "inputs" in wrapper:
            return found
    return None


def _calls(completions: list[dict[str, Any]]) -> tuple[ToolCall, ...]:
    calls = [
        tool_call(call.get("name"), call.get("id"), call.get("arguments", {}))
        for completion in completions
        for call in grouped(indexed(completion, "tool_calls."))
    ]
    return unique(calls)
