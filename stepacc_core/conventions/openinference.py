"""OpenInference: `openinference.span.kind`, `tool.*`, `llm.*`, `input.value` and `output.value`."""

from collections.abc import Iterator, Mapping
from typing import Any, cast, get_args

from stepacc_core.conventions.arguments import arguments_of, is_schema, named
from stepacc_core.conventions.completions import asks_for_tools, calls_of, tool_call, unique
from stepacc_core.conventions.fields import Fields
from stepacc_core.conventions.naming import real_id
from stepacc_core.conventions.values import grouped, identifier, indexed, integer, mapping, number, parsed, text
from stepacc_core.model import RawSpan, SpanKind, ToolCall

KINDS = frozenset(get_args(SpanKind)) - {"UNKNOWN"}
"""The canonical kinds are this convention's own."""

MARKS = frozenset({"openinference.span.kind", "tool.name", "llm.model_name"})
"""Attributes of this convention; a span with any of them is read by it."""
_MESSAGES = "llm.output_messages."
_AGENT_NAMES = ("agent.name", "gen_ai.agent.name", "graph.node.id")
"""A node of a graph names the agent only where the agent itself is not named."""


def read(span: RawSpan) -> Fields:
    """Read what the span says in this convention."""
    attributes = span.attributes
    kind = _kind(attributes)
    metadata = mapping(attributes.get("metadata"))
    output = parsed(attributes.get("output.value"))
    is_model = kind == "LLM"
    announced = is_model and asks_for_tools(attributes.get("llm.finish_reason"))
    return Fields(
        kind=kind,
        tool_name=text(attributes, "tool.name"),
        arguments=None if is_model else _arguments(attributes),
        call_id=None if is_model else _call_id(attributes, metadata, output),
        agent_name=text(attributes, *_AGENT_NAMES) or text(metadata, "lc_agent_name"),
        tool_calls=_calls(attributes, output, announced=announced) if is_model else (),
        announced=announced,
        output=output,
        input_tokens=integer(attributes, "llm.token_count.prompt"),
        output_tokens=integer(attributes, "llm.token_count.completion"),
        cost_usd=number(attributes, "llm.cost.total"),
    )


def _kind(attributes: Mapping[str, Any]) -> SpanKind | None:
    """Return the kind written; `UNKNOWN` leaves the word to another convention on the same span."""
    written = (text(attributes, "openinference.span.kind") or "").upper()
    return cast("SpanKind", written) if written in KINDS else None


def _arguments(attributes: Mapping[str, Any]) -> Any:
    """Return `input.value`, else `tool.parameters` where it holds values and not the parameters' definition."""
    value = attributes.get("input.value")
    parameters = attributes.get("tool.parameters")
    if value is not None:
        return named(arguments_of(value), parameters)
    return None if parameters is None or is_schema(parameters) else arguments_of(parameters)


def _call_id(attributes: Mapping[str, Any], metadata: Mapping[str, Any], output: Any) -> str | None:
    for key in ("tool.id", "tool_call.id", "tool.call_id"):
        found = real_id(identifier(attributes.get(key)))
        if found is not None:
            return found
    found = real_id(identifier(metadata.get("tool_call_id")))
    if found is None and "tool.name" in attributes and isinstance(output, dict):
        found = _id_in_result(output)
    return found


def _id_in_result(result: Mapping[str, Any]) -> str | None:
    """Return the call id of a LangChain tool message, which may sit in the update of a hand-off command."""
    candidates = [result]
    messages = mapping(result.get("update")).get("messages")
    if isinstance(messages, list):
        candidates += [message for message in messages if isinstance(message, Mapping)]
    for candidate in candidates:
        for holder in (mapping(candidate.get("data")), candidate):
            found = real_id(identifier(holder.get("tool_call_id")))
            if found is not None:
                return found
    return None


def _calls(attributes: Mapping[str, Any], output: Any, *, announced: bool) -> tuple[ToolCall, ...]:
    """Return the calls of the flattened messages, else those of the provider's own response.

    The response is looked into where there are no messages, or calls were announced that the messages leave out, such
    as those whose arguments LangChain cannot parse.
    """
    messages = grouped(indexed(attributes, _MESSAGES))
    if messages:
        found = unique(call for message in messages for call in _message_calls(message))
        return found if found or not announced else calls_of(output)
    legacy = mapping(attributes.get("llm.function_call"))
    if legacy.get("name"):
        return (tool_call(legacy.get("name"), None, legacy.get("arguments")),)
    return calls_of(output)


def _message_calls(message: dict[str, Any]) -> Iterator[ToolCall]:
    for call in grouped(indexed(message, "message.tool_calls.")):
        yield _flat_call(call)
    for part in grouped(indexed(message, "message.contents.")):
        if any(key.startswith("tool_call.") for key in part):
            yield _flat_call(part)
    if text(message, "message.function_call_name"):
        name = message["message.function_call_name"]
        yield tool_call(name, None, message.get("message.function_call_arguments_json"))


def _flat_call(call: dict[str, Any]) -> ToolCall:
    arguments = call.get("tool_call.function.arguments")
    # Left out where there are none, as by the OpenAI Agents instrumentation.
    return tool_call(
        call.get("tool_call.function.name"), call.get("tool_call.id"), {} if arguments is None else arguments
    )
