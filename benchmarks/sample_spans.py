"""Raw spans like those that agents leave: two conventions, twenty spans a trace, about 2 KB of attributes a span.

The shapes are those of the traces in `tests/data`: an OpenTelemetry GenAI agent whose content is in attributes, and an
OpenInference agent under LangGraph. What is long in practice is long here: histories, tool definitions and the results
of tools. Equal seeds give equal spans.
"""

import json
import random
from collections.abc import Iterator
from typing import Any

from stepacc_core.model import RawSpan

SPANS_PER_TRACE = 20
TURNS = 6
TASKS = 50
"""Tasks the traces work on, each by its number."""

TOOLS = ("lookup_order", "check_refund_policy", "issue_refund", "search_articles", "get_weather", "send_message")

_ATTRIBUTE_BYTES = 2_000
_WORDS = [
    "".join(random.Random(number).choices("etaoinshrdlucmfwypvbgk", k=2 + number % 9))  # noqa: S311 -- seeded on purpose
    for number in range(1_500)
]
_RESOURCE = {"service.name": "support-bot", "telemetry.sdk.language": "python", "telemetry.sdk.version": "1.45.2"}
_DEFINITIONS = [
    {
        "type": "function",
        "name": tool,
        "description": f"Use it to {tool.replace('_', ' ')}.",
        "parameters": {"type": "object", "properties": {"id": {"type": "string"}, "reason": {"type": "string"}}},
    }
    for tool in TOOLS[:3]
]


def sample_spans(count: int, start_ns: int, length_ns: int) -> Iterator[RawSpan]:
    """Yield spans of whole traces that start, evenly spread, in a stretch of time.

    Args:
        count: spans, rounded up to whole traces.
        start_ns: when the first trace starts, ns since 1970.
        length_ns: the stretch.
    """
    rng = random.Random(1)  # noqa: S311 -- seeded on purpose
    traces = -(-count // SPANS_PER_TRACE)
    for number in range(traces):
        make = _genai_trace if number % 2 else _openinference_trace
        yield from make(_Trace(rng, start_ns + number * length_ns // traces, number))


class _Trace:
    """Ids, times and contents of one trace in the making."""

    def __init__(self, rng: random.Random, start_ns: int, number: int) -> None:
        self.rng = rng
        self.trace_id = f"{rng.getrandbits(128):032x}"
        self.identity = {"stepacc.task_id": f"task-{number % TASKS}", "session.id": f"session-{number // 5}"}
        self.scope = ""
        self._start_ns = start_ns
        self._number = 0

    def span(self, name: str, parent: str | None, attributes: dict[str, Any]) -> RawSpan:
        """Return the next span, a second after the one before it."""
        self._number += 1
        start = self._start_ns + self._number * 1_000_000_000
        return RawSpan(
            self.trace_id,
            f"{self.rng.getrandbits(64):016x}",
            name,
            parent,
            start,
            start + 900_000_000,
            "OK",
            attributes=attributes,
            resource=_RESOURCE,
            scope_name=self.scope,
            scope_version="1.3.0",
        )

    def words(self, size: int) -> str:
        """Return text of about so many characters."""
        return " ".join(self.rng.choices(_WORDS, k=max(1, size // 7)))

    def filled(self, attributes: dict[str, Any], make: Any) -> dict[str, Any]:
        """Add what `make` makes of the text that is missing for the size of a span's attributes."""
        missing = _ATTRIBUTE_BYTES - len(json.dumps({**attributes, **make("")}))
        return {**attributes, **make(self.words(missing))}


def _genai_trace(trace: _Trace) -> Iterator[RawSpan]:
    trace.scope = "opentelemetry.instrumentation.genai"
    shared = {"gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-5"}
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support", **shared, **trace.identity}
    root = trace.span("invoke_agent support", None, trace.filled(agent, _genai_request))
    yield root
    for turn in range(TURNS):
        tools = trace.rng.sample(TOOLS, k=2)
        calls = [{"type": "tool_call", "id": f"call_{turn}_{tool}", "name": tool, "arguments": {"id": f"A-{turn}"}}
                 for tool in tools]  # fmt: skip
        yield _genai_chat(trace, root.span_id, shared, calls, "tool_calls")
        for call in calls:
            yield _genai_tool(trace, root.span_id, call)
    yield _genai_chat(trace, root.span_id, shared, [{"type": "text", "content": trace.words(200)}], "stop")


def _genai_chat(
    trace: _Trace, parent: str, shared: dict[str, Any], parts: list[dict[str, Any]], reason: str
) -> RawSpan:
    attributes = {
        "gen_ai.operation.name": "chat",
        **shared,
        "gen_ai.response.finish_reasons": [reason],
        "gen_ai.usage.input_tokens": 900,
        "gen_ai.usage.output_tokens": 60,
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts, "finish_reason": reason}]),
        "gen_ai.tool.definitions": json.dumps(_DEFINITIONS),
    }
    return trace.span("chat gpt-5", parent, trace.filled(attributes, _genai_request))


def _genai_request(text: str) -> dict[str, Any]:
    messages = [{"role": "user", "parts": [{"type": "text", "content": text}]}]
    return {"gen_ai.input.messages": json.dumps(messages)}


def _genai_tool(trace: _Trace, parent: str, call: dict[str, Any]) -> RawSpan:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call["name"],
        "gen_ai.tool.call.id": call["id"],
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.arguments": json.dumps(call["arguments"]),
    }
    filled = trace.filled(attributes, lambda text: {"gen_ai.tool.call.result": json.dumps({"found": text})})
    return trace.span(f"execute_tool {call['name']}", parent, filled)


def _openinference_trace(trace: _Trace) -> Iterator[RawSpan]:
    trace.scope = "openinference.instrumentation.langchain"
    chain = {"openinference.span.kind": "CHAIN", "input.mime_type": "application/json", **trace.identity}
    root = trace.span("LangGraph", None, trace.filled(chain, _openinference_content))
    agent = {"openinference.span.kind": "AGENT", "agent.name": "support", **trace.identity}
    below = trace.span("support", root.span_id, trace.filled(agent, _openinference_content))
    yield from (root, below)
    for turn in range(TURNS):
        tool = trace.rng.choice(TOOLS)
        node = trace.span("model", below.span_id, trace.filled(chain, _openinference_content))
        yield node
        yield _openinference_model(trace, node.span_id, tool, f"call_{turn}")
        yield _openinference_tool(trace, below.span_id, tool, f"call_{turn}")


def _openinference_content(text: str) -> dict[str, Any]:
    half = len(text) // 2
    return {
        "input.value": json.dumps({"messages": [{"type": "human", "content": text[:half]}]}),
        "output.value": json.dumps({"messages": [{"type": "ai", "content": text[half:]}]}),
    }


def _openinference_model(trace: _Trace, parent: str, tool: str, call_id: str) -> RawSpan:
    call = "llm.output_messages.0.message.tool_calls.0.tool_call"
    message = {"content": "", "type": "ai", "tool_calls": [{"name": tool, "args": {"id": "A-1"}, "id": call_id}]}
    attributes = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "gpt-5",
        "llm.token_count.prompt": 900,
        "llm.token_count.completion": 60,
        "llm.output_messages.0.message.role": "assistant",
        f"{call}.id": call_id,
        f"{call}.function.name": tool,
        f"{call}.function.arguments": '{"id": "A-1"}',
        "llm.input_messages.0.message.role": "user",
        "output.value": json.dumps({"generations": [[{"text": "", "message": {"kwargs": message}}]]}),
        "llm.tools.0.tool.json_schema": json.dumps(_DEFINITIONS[0]),
        "metadata": json.dumps({"langgraph_step": 1, "langgraph_node": "model", "ls_provider": "openai"}),
        **trace.identity,
    }
    filled = trace.filled(attributes, lambda text: {"llm.input_messages.0.message.content": text})
    return trace.span("ChatOpenAI", parent, filled)


def _openinference_tool(trace: _Trace, parent: str, tool: str, call_id: str) -> RawSpan:
    attributes = {
        "openinference.span.kind": "TOOL",
        "tool.name": tool,
        "tool.description": f"Use it to {tool.replace('_', ' ')}.",
        "input.value": "{'id': 'A-1'}",
        "metadata": json.dumps({"langgraph_step": 2, "langgraph_node": "tools"}),
        **trace.identity,
    }
    return trace.span(
        tool,
        parent,
        trace.filled(
            attributes,
            lambda text: {"output.value": json.dumps({"type": "tool", "content": text, "tool_call_id": call_id})},
        ),
    )
