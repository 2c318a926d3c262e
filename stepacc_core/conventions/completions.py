"""Tool calls inside a completion, in the shapes of the model providers and frameworks.

| shape | a call is |
|---|---|
| OpenAI chat, LiteLLM | `choices[].message.tool_calls[].{id, function: {name, arguments}}` |
| OpenAI responses | `output[]` of type `function_call`: `{call_id, name, arguments}` |
| Anthropic | `content[]` of type `tool_use`: `{id, name, input}` |
| Gemini | `content.parts[].function_call.{id, name, args}`, camel case too |
| Bedrock, Strands | `toolUse: {toolUseId, name, input}` |
| LangChain | `tool_calls[].{id, name, args}`, also in `generations[][].message.kwargs` |
| LangChain, arguments that are no JSON | `invalid_tool_calls[].{id, name, args}` |
| OpenTelemetry | `parts[]` of type `tool_call` or `server_tool_call`: `{id, name, arguments}` |
| Vercel | `{toolCallId, toolName, input}` |
"""

from collections.abc import Iterable
from typing import Any

from stepacc_core.conventions.arguments import arguments_of
from stepacc_core.conventions.naming import UNNAMED, bare, real_id
from stepacc_core.conventions.values import identifier, parsed
from stepacc_core.model import ToolCall

_DEEPEST = 12
_CALL_TYPES = {
    "tool_call",
    "server_tool_call",
    "tool_use",
    "server_tool_use",
    "function_call",
    "tool-call",
    "invalid_tool_call",
}
_CONTAINERS = (
    "choices",
    "candidates",
    "generations",
    "output",
    "message",
    "kwargs",
    "content",
    "parts",
    "tool_calls",
    "invalid_tool_calls",
)
_ASKS_FOR_TOOLS = {"toolcall", "toolcalls", "tooluse", "functioncall"}
_ID_KEYS = ("call_id", "toolCallId", "tool_call_id", "toolUseId", "id")
_ARGUMENT_KEYS = ("arguments", "args", "input", "parameters", "server_tool_call")


def asks_for_tools(reasons: Any) -> bool:
    """Tell whether a finish reason, or one of several, says that the model asked for tools."""
    found = parsed(reasons)
    listed = found if isinstance(found, list | tuple) else [found]
    return any(
        isinstance(reason, str) and reason.lower().translate(_NO_SEPARATORS) in _ASKS_FOR_TOOLS for reason in listed
    )


_NO_SEPARATORS = str.maketrans("", "", "-_ ")


def tool_call(name: Any, call_id: Any, arguments: Any) -> ToolCall:
    """Make a call out of recorded values; arguments of None were not recorded, which is not to say there were none."""
    written = name.strip() if isinstance(name, str) else ""
    written = written or UNNAMED
    short = bare(written)
    return ToolCall(
        name=short,
        id=real_id(identifier(call_id)),
        arguments=arguments_of(arguments),
        full_name=written if written != short else None,
    )


def calls_in(completion: Any) -> tuple[ToolCall, ...]:
    """Return the tool calls of a completion, in its order, each once.

    Only what the model put out counts: conversation histories are not descended into.
    """
    return calls_of(parsed(completion))


def calls_of(completion: Any) -> tuple[ToolCall, ...]:
    """Return the tool calls of a completion that is parsed already, as `calls_in` does."""
    found: list[ToolCall] = []
    _walk(completion, _DEEPEST, found)
    return unique(found)


def unique(calls: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
    """Keep each call id once, at its first place and with its fullest arguments.

    Streams record a call while its arguments still grow, and some producers record a completion in two shapes.
    """
    kept: list[ToolCall] = []
    places: dict[str, int] = {}
    for call in calls:
        place = places.get(call.id) if call.id is not None else None
        if place is None:
            if call.id is not None:
                places[call.id] = len(kept)
            kept.append(call)
        elif _weight(call) > _weight(kept[place]):
            kept[place] = call
    return tuple(kept)


def _weight(call: ToolCall) -> tuple[bool, bool, int]:
    """Order copies of one call: a named one first, then one whose arguments parsed, then the longer."""
    return (call.name != UNNAMED, isinstance(call.arguments, dict), len(str(call.arguments)))


def _walk(value: Any, depth: int, found: list[ToolCall]) -> None:
    """Add the calls in a value to those found; a list to add to, since generators within generators are slow."""
    if depth <= 0:
        return
    if isinstance(value, list | tuple):
        for item in value:
            if isinstance(item, dict | list):
                _walk(item, depth - 1, found)
    elif isinstance(value, dict):
        call = _as_call(value)
        if call is not None:
            found.append(call)
        else:
            _walk_inside(value, depth, found)


def _walk_inside(holder: dict[str, Any], depth: int, found: list[ToolCall]) -> None:
    for key in _CONTAINERS:
        inner = holder.get(key)
        if isinstance(inner, dict | list):
            _walk(inner, depth - 1, found)
    if not holder.get("tool_calls"):
        extra = holder.get("additional_kwargs")
        if isinstance(extra, dict):
            _walk(extra, depth - 1, found)
        legacy = holder.get("function_call")
        if isinstance(legacy, dict) and legacy.get("name"):
            found.append(tool_call(legacy.get("name"), None, legacy.get("arguments")))


def _as_call(item: dict[str, Any]) -> ToolCall | None:
    for key in ("function_call", "functionCall", "toolUse"):
        inner = item.get(key)
        if isinstance(inner, dict) and "name" in inner and "role" not in item:
            arguments = _first(inner, _ARGUMENT_KEYS)  # Gemini leaves out empty ones
            return tool_call(inner.get("name"), _first(inner, _ID_KEYS), {} if arguments is None else arguments)
    function = item.get("function")
    if isinstance(function, dict):
        return tool_call(function.get("name"), _first(item, _ID_KEYS), function.get("arguments"))
    if "toolName" in item:
        return tool_call(item["toolName"], _first(item, _ID_KEYS), _first(item, _ARGUMENT_KEYS))
    named = isinstance(item.get("name"), str)
    written = item.get("type")
    if (isinstance(written, str) and written in _CALL_TYPES) or (named and "args" in item and "id" in item):
        return tool_call(item.get("name"), _first(item, _ID_KEYS), _first(item, _ARGUMENT_KEYS))
    return None


def _first(item: dict[str, Any], keys: tuple[str, ...]) -> Any:
    for key in keys:
        value = item.get(key)
        if value is not None:
            return value
    return None
