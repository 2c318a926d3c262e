"""Each dialect's span becomes the same canonical span."""

import json
from typing import Any

import pytest

from stepacc_core.conventions.completions import asks_for_tools, calls_in
from stepacc_core.conventions.crewai import task_calls
from stepacc_core.conventions.declared import DeclaredMapping
from stepacc_core.conventions.naming import bare, without_affixes
from stepacc_core.conventions.recognise import TABLE, read_span, recognised, require_recognised
from stepacc_core.conventions.values import flattened, lookup, parsed
from stepacc_core.errors import ConfigError, UnknownConventionError
from stepacc_core.model import CanonicalSpan, RawEvent, RawSpan, ToolCall

ARGUMENTS = {"city": "Paris"}
JSON_ARGUMENTS = json.dumps(ARGUMENTS)
CALLS = (ToolCall("get_weather", "c1", ARGUMENTS), ToolCall("get_time", "c2", {}))


def raw(name: str = "span", events: tuple[RawEvent, ...] = (), scope: str = "", **attributes: Any) -> RawSpan:
    """Make a raw span; `__` in the name of an attribute stands for a dot."""
    dotted = {key.replace("__", "."): value for key, value in attributes.items()}
    return RawSpan("t", "s", name, "root", 1, 2, attributes=dotted, events=events, scope_name=scope)


def of(attributes: dict[str, Any], name: str = "span", events: tuple[RawEvent, ...] = (), scope: str = "") -> RawSpan:
    """Make a raw span with these attributes."""
    return RawSpan("t", "s", name, "root", 1, 2, attributes=attributes, events=events, scope_name=scope)


def read(span: RawSpan, *mappings: DeclaredMapping) -> CanonicalSpan:
    """Read a span, without what had to be assumed."""
    return read_span(span, mappings)[0]


TOOL_SPANS = {
    "gen_ai": of(
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "get_weather",
            "gen_ai.tool.call.arguments": JSON_ARGUMENTS,
            "gen_ai.tool.call.id": "c1",
        }
    ),
    "gen_ai, arguments as an object": of(
        {"gen_ai.tool.name": "get_weather", "gen_ai.tool.call.arguments": ARGUMENTS, "gen_ai.tool.call.id": "c1"}
    ),
    "gen_ai, Strands events": of(
        {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_weather"},
        events=(RawEvent("gen_ai.tool.message", 1, {"role": "tool", "content": JSON_ARGUMENTS, "id": "c1"}),),
    ),
    "OpenInference": of(
        {
            "openinference.span.kind": "TOOL",
            "tool.name": "get_weather",
            "input.value": JSON_ARGUMENTS,
            "tool.parameters": '{"type": "object", "properties": {"city": {"type": "string"}}}',
            "tool.id": "c1",
        }
    ),
    "OpenInference, parameters that are values": of(
        {
            "openinference.span.kind": "TOOL",
            "tool.name": "get_weather",
            "tool.parameters": JSON_ARGUMENTS,
            "tool_call.id": "c1",
        }
    ),
    "OpenInference, smolagents": of(
        {
            "openinference.span.kind": "TOOL",
            "tool.name": "get_weather",
            "input.value": json.dumps({"args": [], "sanitize_inputs_outputs": True, "kwargs": ARGUMENTS}),
            "tool.call_id": "c1",
        },
        name="SimpleTool",
    ),
    "OpenInference, a tool called an agent by LangChain": of(
        {
            "openinference.span.kind": "AGENT",
            "tool.name": "get_weather",
            "input.value": JSON_ARGUMENTS,
            "output.value": '{"type": "tool", "data": {"tool_call_id": "c1"}}',
        }
    ),
    "Traceloop": of(
        {
            "traceloop.span.kind": "tool",
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "get_weather",
            "gen_ai.tool.call.arguments": json.dumps(
                {
                    "input_str": str(ARGUMENTS),
                    "tags": [],
                    "metadata": {},
                    "inputs": ARGUMENTS,
                    "kwargs": {"tool_call_id": "c1"},
                }
            ),
        },
        name="execute_tool get_weather",
    ),
    "Traceloop 0.40": of(
        {
            "traceloop.span.kind": "tool",
            "traceloop.entity.name": "get_weather",
            "traceloop.entity.input": json.dumps(
                {
                    "inputs": None,
                    "input_str": str(ARGUMENTS),
                    "tags": [],
                    "metadata": {},
                    "kwargs": {"tool_call_id": "c1"},
                }
            ),
        },
        name="get_weather.tool",
    ),
    "MLflow": of(
        {"mlflow.spanType": '"TOOL"', "mlflow.spanInputs": JSON_ARGUMENTS, "tool_call_id": '"c1"'}, name="get_weather"
    ),
    "Langfuse": of(
        {
            "langfuse.observation.type": "tool",
            "langfuse.observation.input": json.dumps({"args": [], "kwargs": ARGUMENTS}),
            "langfuse.observation.metadata.tool_call_id": '"c1"',
        },
        name="get_weather",
    ),
    "LangSmith": of(
        {
            "langsmith.span.kind": "tool",
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "get_weather",
            "gen_ai.prompt": JSON_ARGUMENTS,
            "gen_ai.tool.call.id": "c1",
        }
    ),
    "Vercel": of(
        {
            "ai.operationId": "ai.toolCall",
            "ai.toolCall.name": "get_weather",
            "ai.toolCall.args": JSON_ARGUMENTS,
            "ai.toolCall.id": "c1",
        },
        name="ai.toolCall",
    ),
    "Google ADK, first schema": of(
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "get_weather",
            "gen_ai.tool.call.id": "c1",
            "gcp.vertex.agent.tool_call_args": JSON_ARGUMENTS,
        }
    ),
    "Pydantic AI, second format": of(
        {
            "gen_ai.tool.name": "get_weather",
            "gen_ai.tool.call.id": "c1",
            "tool_arguments": JSON_ARGUMENTS,
            "logfire.msg": "running tool",
            "gen_ai.agent.name": "a",
        },
        name="running tool",
    ),
    "MCP server with the GenAI operation": of(
        {
            "mcp.method.name": "tools/call",
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "get_weather",
            "gen_ai.tool.call.arguments": JSON_ARGUMENTS,
            "gen_ai.tool.call.id": "c1",
        }
    ),
    "Claude Code": of(
        {
            "span.type": "claude_code.tool",
            "tool_name": "get_weather",
            "tool_input": JSON_ARGUMENTS,
            "tool_use_id": "c1",
        },
        name="claude_code.tool",
    ),
}


@pytest.mark.parametrize("dialect", TOOL_SPANS)
def test_a_tool_span_gives_name_arguments_and_id(dialect: str) -> None:
    """In every dialect."""
    span = read(TOOL_SPANS[dialect])
    assert (span.kind, span.tool_name, span.tool_arguments, span.tool_call_id) == (
        "TOOL",
        "get_weather",
        ARGUMENTS,
        "c1",
    )


OTEL_MESSAGES = [
    {
        "role": "assistant",
        "parts": [
            {"type": "text", "content": "Let me see."},
            {"type": "tool_call", "id": "c1", "name": "get_weather", "arguments": ARGUMENTS},
            {"type": "server_tool_call", "id": "c2", "name": "get_time", "server_tool_call": {}},
        ],
    }
]
OPENAI_CALLS = [
    {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": JSON_ARGUMENTS}},
    {"id": "c2", "type": "function", "function": {"name": "get_time", "arguments": ""}},
]
BEDROCK = [
    {"toolUse": {"toolUseId": "c1", "name": "get_weather", "input": ARGUMENTS}},
    {"toolUse": {"toolUseId": "c2", "name": "get_time", "input": {}}},
]
LANGCHAIN_CALLS = [
    {"name": "get_weather", "args": ARGUMENTS, "id": "c1", "type": "tool_call"},
    {"name": "get_time", "args": {}, "id": "c2"},
]
GEMINI = {
    "content": {
        "parts": [
            {"function_call": {"id": "c1", "name": "get_weather", "args": ARGUMENTS}},
            {"functionCall": {"id": "c2", "name": "get_time"}},
        ]
    }
}
COMPLETIONS: dict[str, Any] = {
    "OpenTelemetry": OTEL_MESSAGES,
    "OpenAI chat": {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": OPENAI_CALLS}}]},
    "OpenAI responses": {
        "output": [
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]},
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "c1",
                "name": "get_weather",
                "arguments": JSON_ARGUMENTS,
            },
            {"type": "function_call", "call_id": "c2", "name": "get_time", "arguments": "{}"},
        ]
    },
    "Anthropic": {
        "content": [
            {"type": "text", "text": "x"},
            {"type": "tool_use", "id": "c1", "name": "get_weather", "input": ARGUMENTS},
            {"type": "server_tool_use", "id": "c2", "name": "get_time", "input": {}},
        ]
    },
    "Gemini": {"candidates": [GEMINI]},
    "Google ADK": GEMINI,
    "Bedrock": {"output": {"message": {"role": "assistant", "content": BEDROCK}}},
    "Strands": BEDROCK,
    "LangChain message": {"role": "assistant", "content": "", "tool_calls": LANGCHAIN_CALLS},
    "LangChain generations": {"generations": [[{"text": "", "message": {"kwargs": {"tool_calls": LANGCHAIN_CALLS}}}]]},
    "LangChain, only the provider's": {"kwargs": {"content": "", "additional_kwargs": {"tool_calls": OPENAI_CALLS}}},
    "Vercel": [
        {"toolCallId": "c1", "toolName": "get_weather", "input": ARGUMENTS},
        {"toolCallId": "c2", "toolName": "get_time", "args": "{}"},
    ],
}


@pytest.mark.parametrize("shape", COMPLETIONS)
@pytest.mark.parametrize("written", [False, True])
def test_calls_are_found_in_every_shape_of_completion(shape: str, *, written: bool) -> None:
    """As objects and as JSON text."""
    completion = COMPLETIONS[shape]
    assert calls_in(json.dumps(completion) if written else completion) == CALLS


def test_a_completion_recorded_in_two_shapes_has_each_call_once() -> None:
    """The fuller copy counts, at the first place: streams record a call while its arguments grow."""
    growing = [
        {"id": "c1", "function": {"name": "get_weather", "arguments": '{"ci'}},
        {"id": "c2", "function": {"name": "get_time", "arguments": ""}},
        {"id": "c1", "function": {"name": "get_weather", "arguments": JSON_ARGUMENTS}},
    ]
    assert calls_in({"tool_calls": growing}) == CALLS


def test_histories_and_tool_definitions_are_no_calls() -> None:
    """Only what the model put out counts."""
    assert calls_in({"messages": OTEL_MESSAGES, "tools": OPENAI_CALLS, "input": OTEL_MESSAGES}) == ()
    assert calls_in([{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "18C"}]}]) == ()
    assert calls_in("Call [get_weather] for me") == ()


def test_a_legacy_function_call_is_a_call_without_an_id() -> None:
    """The oldest OpenAI form."""
    message = {"role": "assistant", "function_call": {"name": "get_weather", "arguments": JSON_ARGUMENTS}}
    assert calls_in({"choices": [{"message": message}]}) == (ToolCall("get_weather", None, ARGUMENTS),)


@pytest.mark.parametrize(
    "reason", ["tool_calls", "tool_call", "tool-calls", "TOOL_USE", "tool_use", ["stop", "tool_calls"]]
)
def test_finish_reasons_that_ask_for_tools(reason: Any) -> None:
    """In every spelling, alone, in a list or in JSON text of one."""
    assert asks_for_tools(reason)
    assert asks_for_tools(json.dumps(reason))
    assert not asks_for_tools("stop")
    assert not asks_for_tools(None)


FLAT = "llm.output_messages.0.message."
MODEL_SPANS = {
    "gen_ai": of({"gen_ai.operation.name": "chat", "gen_ai.output.messages": json.dumps(OTEL_MESSAGES)}),
    "gen_ai, structured": of({"gen_ai.operation.name": "chat", "gen_ai.output.messages": OTEL_MESSAGES}),
    "gen_ai, no operation": of({"gen_ai.request.model": "m", "gen_ai.output.messages": OTEL_MESSAGES}),
    "gen_ai, choice event of Strands": of(
        {"gen_ai.operation.name": "chat"},
        events=(
            RawEvent("gen_ai.assistant.message", 1, {"content": json.dumps([{"toolUse": {"name": "old"}}])}),
            RawEvent("gen_ai.choice", 2, {"message": json.dumps(BEDROCK)}),
        ),
    ),
    "gen_ai, choice log record": of(
        {"gen_ai.operation.name": "chat"},
        events=(RawEvent("gen_ai.choice", 2, {"body": {"index": 0, "message": {"tool_calls": OPENAI_CALLS}}}),),
    ),
    "gen_ai, details log record": of(
        {"gen_ai.operation.name": "chat"},
        events=(RawEvent("gen_ai.client.inference.operation.details", 2, {"gen_ai.output.messages": OTEL_MESSAGES}),),
    ),
    "OpenInference": of(
        {
            "openinference.span.kind": "LLM",
            f"{FLAT}tool_calls.1.tool_call.function.name": "get_time",
            f"{FLAT}tool_calls.1.tool_call.id": "c2",
            f"{FLAT}tool_calls.0.tool_call.function.name": "get_weather",
            f"{FLAT}tool_calls.0.tool_call.id": "c1",
            f"{FLAT}tool_calls.0.tool_call.function.arguments": JSON_ARGUMENTS,
            "llm.input_messages.0.message.tool_calls.0.tool_call.function.name": "old",
        }
    ),
    "OpenInference, contents as well": of(
        {
            "openinference.span.kind": "LLM",
            f"{FLAT}contents.0.message_content.type": "text",
            f"{FLAT}contents.1.tool_call.function.name": "get_weather",
            f"{FLAT}contents.1.tool_call.id": "c1",
            f"{FLAT}contents.1.tool_call.function.arguments": JSON_ARGUMENTS,
            f"{FLAT}contents.2.tool_call.function.name": "get_time",
            f"{FLAT}contents.2.tool_call.id": "c2",
            f"{FLAT}tool_calls.0.tool_call.function.name": "get_weather",
            f"{FLAT}tool_calls.0.tool_call.id": "c1",
        }
    ),
    "OpenInference, only the response": of(
        {"openinference.span.kind": "LLM", "output.value": json.dumps(COMPLETIONS["OpenAI chat"])}
    ),
    "Traceloop 0.40": of(
        {
            "llm.request.type": "chat",
            "gen_ai.completion.0.tool_calls.0.name": "get_weather",
            "gen_ai.completion.0.tool_calls.0.id": "c1",
            "gen_ai.completion.0.tool_calls.0.arguments": JSON_ARGUMENTS,
            "gen_ai.completion.0.tool_calls.1.name": "get_time",
            "gen_ai.completion.0.tool_calls.1.id": "c2",
            "gen_ai.prompt.1.tool_calls.0.name": "old",
        }
    ),
    "MLflow": of(
        {"mlflow.spanType": "CHAT_MODEL", "mlflow.spanOutputs": json.dumps(COMPLETIONS["LangChain generations"])}
    ),
    "Langfuse": of(
        {
            "langfuse.observation.type": "generation",
            "langfuse.observation.output": json.dumps(COMPLETIONS["LangChain message"]),
            "langfuse.observation.input": json.dumps([{"role": "tool", "content": OPENAI_CALLS[0]}]),
        }
    ),
    "LangSmith": of(
        {
            "langsmith.span.kind": "llm",
            "gen_ai.operation.name": "chat",
            "gen_ai.completion": json.dumps(COMPLETIONS["LangChain generations"]),
        }
    ),
    "Vercel": of(
        {"ai.operationId": "ai.streamText.doStream", "ai.response.toolCalls": json.dumps(COMPLETIONS["Vercel"])}
    ),
    "Google ADK, first schema": of({"gcp.vertex.agent.llm_response": json.dumps(GEMINI)}, name="call_llm"),
    "Pydantic AI, first format": of(
        {
            "gen_ai.operation.name": "chat",
            "model_request_parameters": "{}",
            "events": json.dumps(
                [
                    {"event.name": "gen_ai.assistant.message", "role": "assistant", "tool_calls": [{"id": "old"}]},
                    {"event.name": "gen_ai.choice", "index": 0, "message": {"tool_calls": OPENAI_CALLS}},
                ]
            ),
        }
    ),
}


@pytest.mark.parametrize("dialect", MODEL_SPANS)
def test_a_model_span_gives_its_calls_in_order(dialect: str) -> None:
    """And never those of its input."""
    span = read(MODEL_SPANS[dialect])
    assert (span.kind, span.tool_calls, span.calls_announced) == ("LLM", CALLS, False)


def test_messages_are_ordered_by_number() -> None:
    """10 comes after 9."""
    prefix = "llm.output_messages.0.message.tool_calls"
    attributes = {f"{prefix}.{i}.tool_call.function.name": f"n{i}" for i in (10, 9, 2, 0)}
    span = read(of({"openinference.span.kind": "LLM", **attributes}))
    assert [call.name for call in span.tool_calls] == ["n0", "n2", "n9", "n10"]


@pytest.mark.parametrize(
    "attributes",
    [
        {"gen_ai.operation.name": "chat", "gen_ai.response.finish_reasons": ["tool_calls"]},
        {"openinference.span.kind": "LLM", "llm.finish_reason": "tool_calls"},
        {"llm.request.type": "chat", "gen_ai.completion.0.finish_reason": "tool_calls"},
        {"ai.operationId": "ai.generateText.doGenerate", "ai.response.finishReason": "tool-calls"},
    ],
)
def test_calls_announced_without_being_recorded_are_flagged(attributes: dict[str, Any]) -> None:
    """Content capture is off by default in several producers."""
    assert read(of(attributes)).calls_announced


def test_a_choice_event_without_content_announces_too() -> None:
    """The older form with content off."""
    event = RawEvent("gen_ai.choice", 2, {"body": {"finish_reason": "tool_calls", "message": {"role": "assistant"}}})
    assert read(of({"gen_ai.operation.name": "chat"}, events=(event,))).calls_announced


AGENT_SPANS = {
    "gen_ai": of({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "writer", "gen_ai.tool.name": "x"}),
    "OpenInference": of({"openinference.span.kind": "AGENT", "agent.name": "writer", "graph.node.id": "n"}),
    "OpenInference, only a node": of({"openinference.span.kind": "agent", "graph.node.id": "writer"}),
    "OpenInference, LangChain": of({"openinference.span.kind": "AGENT", "metadata": '{"lc_agent_name": "writer"}'}),
    "Traceloop": of({"traceloop.span.kind": "agent", "traceloop.entity.name": "writer"}, name="writer.agent"),
    "Traceloop, CrewAI": of({"traceloop.span.kind": "agent", "crewai.agent.role": "writer"}),
    "MLflow": of({"mlflow.spanType": "AGENT"}, name="writer"),
    "Langfuse": of({"langfuse.observation.type": "agent"}, name="writer"),
    "Google ADK, first schema": of({}, name="agent_run [writer]", scope="gcp.vertex.agent"),
    "Pydantic AI, second format": of({"agent_name": "writer", "model_name": "m", "logfire.msg": "x"}, name="agent run"),
    "Claude Code": of({"span.type": "claude_code.interaction", "subagent_type": "writer"}),
    "the user's own name": of(
        {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "x", "aip.agent.name": "writer"}
    ),
    "the raw span name": of({"openinference.span.kind": "AGENT"}, name="writer"),
}


@pytest.mark.parametrize("dialect", AGENT_SPANS)
def test_an_agent_span_gives_its_name(dialect: str) -> None:
    """The user's own name, else the convention's identity, else the raw span name, unstripped."""
    span = read(AGENT_SPANS[dialect])
    assert (span.kind, span.agent_name) == ("AGENT", "writer")


@pytest.mark.parametrize(
    ("attributes", "kind"),
    [
        ({"traceloop.span.kind": "workflow", "gen_ai.operation.name": "invoke_agent"}, "CHAIN"),
        ({"traceloop.span.kind": "task", "gen_ai.operation.name": "invoke_agent"}, "CHAIN"),
        ({"crewai.crew.id": "1", "gen_ai.operation.name": "invoke_agent"}, "CHAIN"),
        ({"gen_ai.operation.name": "invoke_workflow", "openinference.span.kind": "UNKNOWN"}, "CHAIN"),
        ({"gen_ai.operation.name": "create_agent"}, "CHAIN"),
        ({"gen_ai.operation.name": "create_agent", "openinference.span.kind": "AGENT"}, "CHAIN"),
        ({"gen_ai.operation.name": "execute_event_loop_cycle"}, "CHAIN"),
        ({"gen_ai.operation.name": "agent_step"}, "CHAIN"),
        ({"gen_ai.operation.name": "embeddings"}, "EMBEDDING"),
        ({"gen_ai.operation.name": "retrieval"}, "RETRIEVER"),
        ({"gen_ai.operation.name": "chat", "gen_ai.tool.name": "defined"}, "LLM"),
        ({"openinference.span.kind": "LLM", "gen_ai.operation.name": "invoke_agent"}, "LLM"),
        ({"openinference.span.kind": "LLM", "tool.name": "defined"}, "LLM"),
        ({"openinference.span.kind": "GUARDRAIL"}, "GUARDRAIL"),
        ({"mcp.method.name": "tools/list"}, "CHAIN"),
        ({"mlflow.spanType": "RETRIEVER"}, "RETRIEVER"),
        ({"langfuse.observation.type": "span"}, "CHAIN"),
        ({"langsmith.span.kind": "chain", "gen_ai.operation.name": "chain"}, "CHAIN"),
        ({"ai.operationId": "ai.generateText", "ai.response.toolCalls": "[]"}, "CHAIN"),
        ({"ai.operationId": "ai.embed.doEmbed"}, "EMBEDDING"),
        ({"span.type": "claude_code.tool.execution"}, "CHAIN"),
        ({"llm.model_name": "m"}, "LLM"),
        ({"http.method": "POST"}, "UNKNOWN"),
    ],
)
def test_kinds_follow_one_order(attributes: dict[str, Any], kind: str) -> None:
    """A tool's name first, then Traceloop, OpenInference, GenAI and the rest; unknown stays unknown."""
    assert read(of(attributes)).kind == kind


class TestNames:
    """Bare names, with the full one kept beside them."""

    def test_the_mcp_prefix_is_taken_off_and_kept(self) -> None:
        """On spans and in completions."""
        span = read(of({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "mcp__gh__list_issues"}))
        assert (span.tool_name, span.tool_full_name) == ("list_issues", "mcp__gh__list_issues")
        (call,) = calls_in([{"type": "tool_call", "name": "mcp__gh__list_issues", "id": "1"}])
        assert (call.name, call.full_name) == ("list_issues", "mcp__gh__list_issues")

    @pytest.mark.parametrize(
        ("name", "short"),
        [
            ("mcp__my_server__get__x", "get__x"),
            ("mcp__a__", "mcp__a__"),
            ("mcp_gh_list", "mcp_gh_list"),
            ("mcp_mcp_x_y", "mcp_mcp_x_y"),
            ("get_weather", "get_weather"),
        ],
    )
    def test_only_the_known_prefix_is_one(self, name: str, short: str) -> None:
        """Other separators may be the tool's own."""
        assert bare(name) == short

    @pytest.mark.parametrize(
        "span_name",
        [
            "execute_tool get_weather",
            "running tool: get_weather",
            "get_weather.tool",
            "get_weather.run",
            "tools/call get_weather",
            "MCP send tools/call get_weather",
            "MCP Client Tool Call: get_weather",
            "mcp__w__get_weather",
        ],
    )
    def test_a_tool_without_a_name_is_named_after_its_span(self, span_name: str) -> None:
        """Without known affixes, and with a gap."""
        span, gaps = read_span(of({"openinference.span.kind": "TOOL"}, name=span_name))
        assert span.tool_name == without_affixes(span_name) == "get_weather"
        assert span.tool_full_name == span_name
        assert [gap.kind for gap in gaps] == ["missing_tool_name"]

    def test_an_mcp_client_span_is_named_by_its_convention(self) -> None:
        """That is no guess, so there is no gap."""
        span, gaps = read_span(of({"mcp.method.name": "tools/call"}, name="MCP send tools/call get_weather"))
        assert (span.kind, span.tool_name, gaps) == ("TOOL", "get_weather", ())

    def test_a_call_without_any_name_is_still_a_call(self) -> None:
        """It really was made."""
        assert [c.name for c in calls_in([{"type": "tool_call", "id": "1"}])] == ["(unnamed)"]
        assert read(of({"openinference.span.kind": "TOOL"}, name="")).tool_name == "(unnamed)"

    @pytest.mark.parametrize("written", ["unknown", "<not specified>", "", "  ", None, 7.5, []])
    def test_words_for_no_id_are_none(self, written: Any) -> None:
        """Two calls with such an id are two calls."""
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "x", "gen_ai.tool.call.id": written}
        assert read(of(attributes)).tool_call_id is None
        assert [c.id for c in calls_in([{"type": "tool_call", "name": "x", "id": written}])] == [None]


class TestArguments:
    """Arguments are an object where that can be told, and kept as they are where not."""

    @pytest.mark.parametrize(
        ("written", "arguments"),
        [
            (JSON_ARGUMENTS, ARGUMENTS),
            (ARGUMENTS, ARGUMENTS),
            ("{'city': 'Paris'}", ARGUMENTS),
            ("{'a': (1, 2), 'b': None}", {"a": [1, 2], "b": None}),
            ("", {}),
            ("   ", {}),
            ("{}", {}),
            (None, None),
            ("Paris", "Paris"),
            ('{"a": NaN, "b": 1e999}', {"a": "NaN", "b": "1e999"}),
            ('{"a": "\\u0000\\ud800"}', {"a": "\ufffd\ufffd"}),
            ("{'a': 1e999, 'b': [-1e999]}", {"a": "inf", "b": ["-inf"]}),
            ({"args": ["Paris"], "kwargs": {}}, {"args": ["Paris"], "kwargs": {}}),
            ({"args": [], "kwargs": {"x": 1}}, {"x": 1}),
            ({"kwargs": {"x": 1}}, {"x": 1}),
            ({"kwargs": "x"}, {"kwargs": "x"}),
            ({"inputs": {"x": 1}}, {"inputs": {"x": 1}}),
        ],
    )
    def test_each_way_of_writing_them(self, written: Any, arguments: Any) -> None:
        """JSON, Python literals, blanks, bare values and wrappers."""
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "x"}
        assert read(of({**attributes, "gen_ai.tool.call.arguments": written})).tool_arguments == arguments

    @pytest.mark.parametrize("written", ['{"city": "Par', "{'a': print(1)}", "[" * 5000])
    def test_unparsable_arguments_are_kept_and_flagged(self, written: str) -> None:
        """Their text may still help."""
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "x"}
        span, gaps = read_span(of({**attributes, "gen_ai.tool.call.arguments": written}))
        assert span.tool_arguments == written
        assert [gap.kind for gap in gaps] == ["unparsable_arguments"]

    def test_an_object_wins_over_text_of_another_dialect(self) -> None:
        """Only an object says which argument is which."""
        both = {"openinference.span.kind": "TOOL", "tool.name": "x", "input.value": "Paris"}
        assert read(of({**both, "gen_ai.tool.call.arguments": JSON_ARGUMENTS})).tool_arguments == ARGUMENTS


class TestDeclaredMapping:
    """A convention that the user declares."""

    def test_a_span_named_after_its_wrapper_gets_the_name_it_wraps(self) -> None:
        """By a path into an attribute that holds JSON."""
        wrapper = DeclaredMapping(
            name="tool manager",
            span_name="ToolManager.handle_call",
            kind="TOOL",
            tool_name="mlflow.spanInputs.tool",
            tool_arguments="mlflow.spanInputs.arguments",
        )
        inputs = json.dumps({"tool": "list_client", "arguments": {"page": 2}})
        span = of({"mlflow.spanType": "TOOL", "mlflow.spanInputs": inputs}, name="ToolManager.handle_call")
        found = read(span, wrapper)
        assert (found.tool_name, found.tool_arguments) == ("list_client", {"page": 2})
        assert read(span).tool_name == "ToolManager.handle_call"

    def test_kinds_are_declared_by_value(self) -> None:
        """Or are the canonical ones already; other spans are left alone."""
        mapping = DeclaredMapping(
            name="ours",
            kind_attribute="our.kind",
            kinds={"action": "TOOL"},
            tool_name="our.tool",
            tool_call_id="our.id",
            agent_name="our.agent",
            tool_calls="our.calls",
            output="our.output",
        )
        tool = read(of({"our.kind": "action", "our.tool": "x", "our.id": 7, "our.output": "[1]"}), mapping)
        assert (tool.kind, tool.tool_name, tool.tool_call_id, tool.output) == ("TOOL", "x", "7", [1])
        agent = read(of({"our.kind": "agent", "our.agent": "writer"}), mapping)
        assert (agent.kind, agent.agent_name) == ("AGENT", "writer")
        assert read(of({"our.kind": "llm", "our.calls": BEDROCK}), mapping).tool_calls == CALLS
        assert read(of({"our.kind": "nonsense"}), mapping).kind == "UNKNOWN"
        assert read(of({"gen_ai.operation.name": "chat"}), mapping).kind == "LLM"

    def test_it_decides_before_every_built_in_rule(self) -> None:
        """Also before a tool's name."""
        mapping = DeclaredMapping(name="no tools", span_name="noise", kind="CHAIN")
        assert read(of({"tool.name": "x", "openinference.span.kind": "TOOL"}, name="noise"), mapping).kind == "CHAIN"

    def test_a_mapping_for_everything_or_of_an_unknown_kind_is_refused(self) -> None:
        """The message names the mapping and what is allowed."""
        with pytest.raises(ConfigError, match="'all' would apply to every span"):
            DeclaredMapping(name="all", tool_name="x")
        with pytest.raises(ConfigError, match="names the kind 'STEP'; allowed are AGENT"):
            DeclaredMapping(name="odd", span_name="x", kinds={"a": "STEP"})  # type: ignore[dict-item]


class TestRecognition:
    """A set of spans that nobody knows is refused with what is known."""

    def test_one_recognised_span_is_enough(self) -> None:
        """Applications add spans of their own."""
        require_recognised([raw(), raw(gen_ai__operation__name="chat")])
        require_recognised([raw(our__kind="x")], [DeclaredMapping(name="ours", kind_attribute="our.kind")])
        assert not recognised(raw(http__method="POST"))

    def test_an_unknown_set_is_refused_with_the_list_of_conventions(self) -> None:
        """And the way out."""
        with pytest.raises(UnknownConventionError, match=r"None of 2 spans .*OpenInference.*declare a mapping"):
            require_recognised([raw(), raw(http__method="GET")])

    def test_every_convention_has_a_name_of_its_own(self) -> None:
        """It stands in messages."""
        assert len({convention.name for convention in TABLE}) == len(TABLE)


class TestCrew:
    """A crew's tasks are kept as the `repr` of objects."""

    def test_quotes_and_brackets_in_texts_do_not_mislead(self) -> None:
        """Only the messages of assistants hold calls."""
        messages = [
            {"role": "user", "content": "It's \"TaskOutput(messages=[{'role': 'assistant'\" ]})"},
            {"role": "assistant", "content": "", "tool_calls": OPENAI_CALLS},
            {"role": "tool", "tool_calls": [{"id": "c9", "function": {"name": "no"}}]},
        ]
        written = (
            f"[TaskOutput(description={'messages=[('!r}, agent='R', format=<F: 'raw'>, messages={messages!r}, x=[])]"
        )
        (task,) = task_calls(written)
        assert (task.role, task.calls) == ("R", CALLS)

    @pytest.mark.parametrize(
        "written", ["", "[]", "[TaskOutput(", "[TaskOutput(agent='R', messages=[{", "'\\'" * 9, None]
    )
    def test_what_cannot_be_read_has_no_calls(self, written: Any) -> None:
        """And is no error."""
        assert [call for task in task_calls(written) for call in task.calls] == []


class TestValues:
    """Values of foreign attributes."""

    def test_paths_go_on_inside_attributes(self) -> None:
        """The longest attribute name first."""
        attributes = {"a.b": '{"c": {"d": 1}}', "a": {"b": {"c": 2}}, "e": 3}
        assert lookup(attributes, "a.b") == '{"c": {"d": 1}}'
        assert lookup(attributes, "a.b.c.d") == 1
        assert lookup(attributes, "e.f") is None
        assert lookup(attributes, "nothing") is None

    @pytest.mark.parametrize(
        "written",
        [
            *("hello", "true story", "1 apple", "{oops", "nullable", '"open', ""),
            "[" * 300 + "]" * 300,
            "[" * 90_000 + "]" * 90_000,
            '{"a": ' * 300 + "1" + "}" * 300,
        ],
    )
    def test_text_that_is_no_value_stays_text(self, written: str) -> None:
        """Exactly as it was."""
        assert parsed(written) == written

    def test_nested_attributes_are_found_by_their_dotted_names(self) -> None:
        """And objects stay readable as such."""
        nested = {"llm": {"output_messages": [{"message": {"role": "x"}}]}, "metadata": {"task_id": 1}}
        found = flattened(nested)
        assert found["llm.output_messages.0.message.role"] == "x"
        assert found["metadata"] == {"task_id": 1}
