"""The final answer of a run (contract, section 5): what its root put out, else its last completion without tool calls.

| what was put out | the answer is |
|---|---|
| text, or a JSON value of the agent's own | itself |
| a message: `{role, content}`, `{role, parts}`, LangChain's `{type, content}` and `{type, data}` | its text |
| messages: a list of them, or `{messages}` of a graph's state | the text of the last |
| a response: `{choices}`, `{candidates}`, `{generations}`, `{output}` of OpenAI's Responses API | its message's text |
| a result, known by all its keys: CrewAI's `{raw}`, Pydantic AI's `{output}`, AutoGen's `{content}` | that |

Text in several parts is joined. A message without text, such as one that only asks for tools, is no answer, and neither
is one of somebody else's.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from stepacc_core.conventions.values import parsed
from stepacc_core.model import CanonicalPartition, CanonicalSpan
from stepacc_core.steps import TraceSpans, traces_of

_DEEPEST = 12
_FROM_AGENT = {"assistant", "ai", "model", "AIMessage", "AIMessageChunk", "agent"}
_FROM_OTHERS = {"user", "human", "system", "developer", "tool", "function"}
_RESULTS = (
    (frozenset({"raw", "pydantic", "json_dict"}), "raw"),
    (frozenset({"output", "_output_tool_name"}), "output"),
    (frozenset({"content", "finish_reason", "usage", "cached"}), "content"),
)
"""Results of frameworks: the keys by which one is known, and that of its answer."""

_HOLDS_TEXT = {"content", "parts", "data"}
_TEXT_PARTS = {"text", "output_text"}


def final_answer(partition: CanonicalPartition) -> Any:
    """Return the answer of a trace, or of the last trace of a session; None where none was recorded."""
    trace = _last_trace(partition)
    return None if trace is None else _of_trace(trace)


def ended_with_error(partition: CanonicalPartition) -> bool:
    """Tell whether a root of a trace, or of the last trace of a session, has error status."""
    trace = _last_trace(partition)
    return trace is not None and any(span.status == "ERROR" for span in trace.spans if span.span_id in trace.roots)


def _last_trace(partition: CanonicalPartition) -> TraceSpans | None:
    return max(traces_of(partition.spans), key=_start_of_trace, default=None)


def _of_trace(trace: TraceSpans) -> Any:
    ordered = sorted(trace.spans, key=_start, reverse=True)
    for span in ordered:
        if span.span_id in trace.roots and not span.tool_calls and (found := answer_in(span.output)) is not None:
            return found
    for span in ordered:
        if span.kind == "LLM" and not span.tool_calls and (found := answer_in(span.output)) is not None:
            return found
    return None


def _start_of_trace(trace: TraceSpans) -> tuple[int, str]:
    return min(span.start_time_unix_nano or 0 for span in trace.spans), trace.trace_id


def _start(span: CanonicalSpan) -> tuple[int, str, str]:
    return span.start_time_unix_nano or 0, span.name, span.span_id


def answer_in(output: Any) -> Any:
    """Return the answer in what a span put out, None where there is none.

    Blanks around text are no part of it, since some producers add a line break; blank text is none.
    """
    found = _text(output, _DEEPEST)
    found = output if found is _NO_MESSAGE else found
    return (found.strip() or None) if isinstance(found, str) else found


class _NoMessage:
    """What is no message but a value of the agent's own."""


_NO_MESSAGE = _NoMessage()


def _text(value: Any, depth: int) -> Any:
    """Return the text of a message or of the last of several, None for a message without, else `_NO_MESSAGE`."""
    if depth and isinstance(value, Mapping):
        return _text_of_mapping(value, depth)
    if depth and isinstance(value, list) and value:
        inner = _text(value[-1], depth - 1)
        return _joined(value) if inner is _NO_MESSAGE and _are_parts(value) else inner
    return _NO_MESSAGE


def _text_of_mapping(value: Mapping[str, Any], depth: int) -> Any:
    for keys, part in _RESULTS:
        if keys <= value.keys():
            return value[part]
    inner = _wrapped(value)
    if inner is not _NO_MESSAGE:
        return inner if isinstance(inner, str) else _text(inner, depth - 1) if inner else None
    role = _word(value.get("role", value.get("type")))
    if role in _FROM_OTHERS and not _HOLDS_TEXT.isdisjoint(value):
        return None
    if role in _FROM_AGENT and isinstance(value.get("data"), Mapping):
        return _content(value["data"])
    if role in _FROM_AGENT or (role == "message" and "content" in value):
        return _content(value)
    return _NO_MESSAGE


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _wrapped(value: Mapping[str, Any]) -> Any:
    """Return what a response or a state holds its messages in, `_NO_MESSAGE` where it is neither."""
    for key in ("messages", "choices", "candidates", "generations"):
        inner = value.get(key)
        if isinstance(inner, list) and inner and isinstance(inner[0], list | Mapping):
            return inner if key == "messages" else inner[0]
    if value.get("object") == "response" and isinstance(value.get("output"), list):
        return [item for item in value["output"] if isinstance(item, Mapping) and item.get("type") == "message"]
    if isinstance(value.get("message"), Mapping):  # a choice; LangChain's generation has its text beside the message
        return value["text"] if isinstance(value.get("text"), str) else value["message"]
    if isinstance(value.get("content"), Mapping) and "parts" in value["content"]:  # Gemini's candidate
        return {"role": "model", **value["content"]}
    return _NO_MESSAGE


def _content(message: Mapping[str, Any]) -> Any:
    content = message.get("content", message.get("parts"))
    if isinstance(content, list):
        return _joined(content)
    return parsed(content) if isinstance(content, str) and content[:1] in {"{", "["} else content


def _are_parts(value: Sequence[Any]) -> bool:
    return all(isinstance(part, Mapping) and ("text" in part or "toolUse" in part) for part in value)


def _joined(parts: Sequence[Any]) -> str | None:
    """Join the text parts of a message."""
    texts = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, Mapping) and _word(part.get("type", "text")) in _TEXT_PARTS:
            said = part.get("text", part.get("content"))
            texts += [said] if isinstance(said, str) else []
    return "".join(texts) or None
