"""Cleaning makes one call one step, and tells what it assumed."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stepacc_core.model import CanonicalTrace, RawEvent, RawSpan, Step
from stepacc_core.reading import (
    ReadSettings,
    canonicalise,
    group_by_trace,
    read_traces,
    session_partition,
    trace_partition,
)
from stepacc_core.steps import collect_steps, describe, not_applicable_reason
from tests.fidelity import manifest, raw_spans


def raw(span_id: str, parent: str | None = "root", name: str = "span", **fields: Any) -> RawSpan:
    """Make a raw span that starts at the number of its id and lasts for ten nanoseconds."""
    start = int("".join(filter(str.isdecimal, span_id)) or 1)
    timed = {"trace_id": "t", "start_time_unix_nano": start, "end_time_unix_nano": start + 10}
    return RawSpan(span_id=span_id, name=name, parent_span_id=parent, **{**timed, **fields})


ROOT = raw("root", None, "app")


def tool(span_id: str, name: str, parent: str | None = "root", call_id: str | None = None, **fields: Any) -> RawSpan:
    """Make a tool span in the GenAI convention."""
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.call.arguments": "{}"}
    if call_id is not None:
        attributes["gen_ai.tool.call.id"] = call_id
    attributes.update(fields.pop("attributes", {}))
    return raw(span_id, parent, fields.pop("span_name", f"execute_tool {name}"), attributes=attributes, **fields)


def agent(span_id: str, name: str | None, parent: str | None = "root", **fields: Any) -> RawSpan:
    """Make an agent span in the GenAI convention."""
    attributes = {"gen_ai.operation.name": "invoke_agent"} | ({"gen_ai.agent.name": name} if name else {})
    return raw(span_id, parent, fields.pop("span_name", f"invoke_agent {name}"), attributes=attributes, **fields)


def model(span_id: str, *calls: dict[str, Any], parent: str | None = "root", **fields: Any) -> RawSpan:
    """Make a model span in the GenAI convention with these tool calls."""
    messages = [{"role": "assistant", "parts": [{"type": "tool_call", **call} for call in calls]}]
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": json.dumps(messages)}
    attributes.update(fields.pop("attributes", {}))
    return raw(span_id, parent, "chat m", attributes=attributes, **fields)


def chain(span_id: str, parent: str | None = "root", name: str = "task") -> RawSpan:
    """Make a span of kind CHAIN."""
    return raw(span_id, parent, name, attributes={"openinference.span.kind": "CHAIN"})


def clean(*spans: RawSpan) -> CanonicalTrace:
    """Read these spans as one trace."""
    return canonicalise("t", spans)


def steps(*spans: RawSpan) -> list[Step]:
    """Return the steps of these spans."""
    return list(collect_steps(trace_partition(clean(*spans))))


def names(*spans: RawSpan) -> list[str]:
    """Return the names of the steps of these spans."""
    return [step.name for step in steps(*spans)]


def gaps(*spans: RawSpan) -> dict[str, tuple[str, ...]]:
    """Return the gaps of these spans, with the spans of each kind."""
    found: dict[str, tuple[str, ...]] = {}
    for gap in clean(*spans).gaps:
        found[gap.kind] = found.get(gap.kind, ()) + gap.span_ids
    return found


def test_a_clean_trace_has_no_gaps() -> None:
    """Nothing is assumed where all is told."""
    spans = (ROOT, agent("s1", "writer"), model("s2", {"id": "c", "name": "search", "arguments": {}}, parent="s1"))
    assert gaps(*spans, tool("s3", "search", "s1", "c")) == {}


class TestDeliveries:
    """The same span delivered twice, and spans that only announce another."""

    def test_the_finished_copy_counts_in_whatever_order(self) -> None:
        """Some exporters send a span when it starts and again when it ends."""
        started = raw("s1", end_time_unix_nano=None, attributes={"openinference.span.kind": "TOOL"})
        ended = tool("s1", "search")
        for spans in ((started, ended), (ended, started)):
            assert names(ROOT, *spans) == ["search"]
            assert gaps(ROOT, *spans) == {"delivered_twice": ("s1",)}

    def test_a_placeholder_is_left_out_once_its_span_is_there(self) -> None:
        """Logfire sends one below the span that it announces; alone it is all there is."""
        marked = {"logfire.span_type": "pending_span"}
        placeholder = tool("s2", "search", "s1", attributes=marked)
        assert names(ROOT, tool("s1", "search"), placeholder) == ["search"]
        assert gaps(ROOT, tool("s1", "search"), placeholder) == {"placeholder_spans": ("s2",)}
        assert names(ROOT, placeholder) == ["search"]


class TestNestedTools:
    """A tool span below the tool span of the same call is no second step."""

    @pytest.mark.parametrize("outer_name", ["list", "mcp__srv__list", "List", "srv_list"])
    def test_mcp_client_and_server_spans_fold_into_the_tool_above(self, outer_name: str) -> None:
        """P50: one call under two names is one step, and the outer span counts."""
        call = {"mcp.method.name": "tools/call"}
        client = raw("s2", "s1", "MCP send tools/call list", attributes=call)
        server = tool("s3", "list", "s2", attributes=call)
        (step,) = steps(ROOT, tool("s1", outer_name), client, server)
        assert step.span_id == "s1"
        assert gaps(ROOT, tool("s1", outer_name), client, server) == {"recorded_twice": ("s1", "s2", "s2", "s3")}

    def test_a_wrapper_of_another_library_folds(self) -> None:
        """The library below need not be MCP; chains between do not matter."""
        spans = (ROOT, tool("s1", "list"), chain("s2", "s1"), tool("s3", "list", "s2", scope_name="other"))
        assert names(*spans) == ["list"]
        assert gaps(*spans) == {"recorded_twice": ("s1", "s3")}

    def test_mcp_spans_alone_are_the_step(self) -> None:
        """Client over server is one call."""
        call = {"mcp.method.name": "tools/call"}
        client = raw("s1", "root", "MCP send tools/call list", attributes=call)
        assert names(ROOT, client, tool("s2", "list", "s1", attributes=call)) == ["list"]

    def test_a_call_below_a_root_tool_is_still_a_step(self) -> None:
        """The root is none."""
        assert names(tool("s1", "list", None), tool("s2", "list", "s1", scope_name="other")) == ["list"]

    @pytest.mark.parametrize(
        "inner",
        [
            tool("s2", "list", "s1"),
            tool("s2", "list", "s1", "c2", scope_name="other"),
            tool("s2", "other", "s1", scope_name="other"),
            tool("s2", "sql", "s1", attributes={"mcp.method.name": "tools/call"}),
        ],
    )
    def test_another_call_below_a_tool_is_another_step(self, inner: RawSpan) -> None:
        """The same library calling itself, another call id, another name."""
        assert len(steps(ROOT, tool("s1", "list", call_id="c1"), inner)) == 2

    def test_a_tool_that_an_agent_below_the_tool_calls_is_another_step(self) -> None:
        """P61: the steps of an agent used as a tool are steps."""
        spans = (ROOT, tool("s1", "ask"), agent("s2", "billing", "s1"), tool("s3", "ask", "s2", scope_name="other"))
        assert names(*spans) == ["ask", "billing", "ask"]


class TestSecondInstrumentation:
    """Two libraries that record one run side by side."""

    def test_the_second_recording_of_each_call_is_no_step(self) -> None:
        """By call ids; its agent and models fold as well."""
        one = [agent("s1", "writer", scope_name="a"), tool("s2", "x", "s1", "c1", scope_name="a")]
        two = [agent("s3", "writer", scope_name="b"), tool("s4", "x", "s3", "c1", scope_name="b")]
        assert names(ROOT, *one, *two) == ["writer", "x"]
        assert gaps(ROOT, *one, *two) == {"recorded_twice": ("s3", "s4")}

    def test_without_ids_shared_time_pairs_the_calls(self) -> None:
        """Each with a partner of its own, also where parallel calls start in another order."""
        one = [tool(i, n, scope_name="a") for i, n in (("s10", "w"), ("s11", "w"), ("s12", "t"))]
        two = [tool(i, n, scope_name="b") for i, n in (("s13", "t"), ("s14", "w"), ("s15", "w"))]
        assert names(ROOT, *one, *two) == ["w", "w", "t"]

    def test_the_fuller_recording_counts(self) -> None:
        """A library that knows only some of the tools comes second, even if it began first."""
        one = [tool("s1", "x", scope_name="a")]
        two = [tool("s2", "x", scope_name="b"), tool("s30", "y", scope_name="b")]
        assert [step.span_id for step in steps(ROOT, *one, *two)] == ["s2", "s30"]

    @pytest.mark.parametrize(
        "second",
        [
            tool("s20", "x", scope_name="b"),
            tool("s2", "x", call_id="c2", scope_name="b"),
            tool("s2", "y", scope_name="b"),
        ],
    )
    def test_calls_of_two_libraries_that_are_not_the_same_are_steps(self, second: RawSpan) -> None:
        """Another time, another id, another name."""
        assert len(steps(ROOT, tool("s1", "x", call_id="c1", scope_name="a"), second)) == 2


class TestSameCallId:
    """A second tool span with the same name and call id is no step, wherever it is."""

    def test_the_first_counts(self) -> None:
        """P60: the same call in two places is one step."""
        spans = (ROOT, chain("s1"), tool("s2", "Get-X", "s1", "c"), tool("s30", "get_x", "root", "c"))
        assert [step.span_id for step in steps(*spans)] == ["s2"]
        assert gaps(*spans) == {"recorded_twice": ("s2", "s30")}

    def test_calls_without_an_id_or_of_another_tool_all_count(self) -> None:
        """`unknown` is no id, and two tools cannot be one call."""
        spans = [tool("s1", "x", call_id="unknown"), tool("s2", "x", call_id="unknown"), tool("s3", "x", call_id="c")]
        assert names(ROOT, *spans, tool("s4", "y", call_id="c")) == ["x", "x", "x", "y"]


class TestWrappers:
    """One agent or model recorded by two spans."""

    def test_an_agent_right_inside_an_agent_of_its_name_is_no_step(self) -> None:
        """Through chains, and also below the root."""
        spans = (ROOT, agent("s1", "writer"), chain("s2", "s1"), agent("s3", "writer", "s2"))
        assert names(*spans) == ["writer"]
        assert gaps(*spans) == {"recorded_twice": ("s1", "s3")}
        assert names(agent("s1", "writer", None), agent("s2", "writer", "s1"), tool("s3", "x", "s2")) == ["x"]

    def test_an_agent_that_calls_itself_through_a_tool_is_two_steps(self) -> None:
        """So are agents of two names, and nameless ones that only share a span name."""
        assert names(ROOT, agent("s1", "a"), tool("s2", "again", "s1"), agent("s3", "a", "s2")) == ["a", "again", "a"]
        assert names(ROOT, agent("s1", "a"), agent("s2", "b", "s1")) == ["a", "b"]
        unnamed = agent("s1", None, span_name="run"), chain("s2", "s1"), agent("s3", None, "s2", span_name="run")
        assert names(ROOT, *unnamed) == ["run", "run"]

    def test_a_model_inside_a_model_repeats_its_calls(self) -> None:
        """Without ids too; the outer counts."""
        call = {"name": "x", "arguments": {"a": 1}}
        spans = (ROOT, model("s1", call, call), model("s2", call, call, parent="s1"))
        assert names(*spans) == ["x", "x"]
        assert gaps(*spans) == {"recorded_twice": ("s1", "s2")}

    def test_a_model_inside_a_model_with_calls_of_its_own_keeps_them(self) -> None:
        """It is another completion."""
        spans = (ROOT, model("s1", {"id": "1", "name": "x"}), model("s2", {"id": "2", "name": "x"}, parent="s1"))
        assert names(*spans) == ["x", "x"]

    @pytest.mark.parametrize("hidden", ["outer", "inner"])
    def test_content_recorded_by_one_of_two_nested_models_is_recorded(self, hidden: str) -> None:
        """Whichever of them has content off."""
        off = {"gen_ai.output.messages": None, "gen_ai.response.finish_reasons": ["tool_calls"]}
        call: dict[str, Any] = {"id": "1", "name": "x"}
        outer = model("s1", *[call] * (hidden == "inner"), attributes=off if hidden == "outer" else {})
        inner = model("s2", *[call] * (hidden == "outer"), parent="s1", attributes=off if hidden == "inner" else {})
        trace = clean(ROOT, outer, inner)
        assert not_applicable_reason(trace_partition(trace)) is None
        assert names(ROOT, outer, inner) == ["x"]


class TestPlumbing:
    """Spans and calls that are the framework's own business."""

    def test_the_sum_of_parallel_calls_is_no_step(self) -> None:
        """Google ADK adds one."""
        spans = (ROOT, tool("s1", "x"), tool("s2", "(merged tools)"))
        assert names(*spans) == ["x"]
        assert gaps(*spans) == {"not_a_step": ("s2",)}

    def test_making_an_agent_is_no_run_of_it(self) -> None:
        """A trace of nothing else has nothing to score."""
        attributes = {"gen_ai.operation.name": "create_agent", "gen_ai.agent.name": "writer"}
        trace = clean(raw("s1", None, "create_agent writer", attributes=attributes))
        assert not_applicable_reason(trace_partition(trace)) == "no_required_kinds"

    @staticmethod
    def _node(span_id: str, name: str, attributes: dict[str, Any] | None = None, **metadata: Any) -> RawSpan:
        kind = {"openinference.span.kind": "AGENT", "metadata": json.dumps(metadata)}
        return raw(span_id, "root", name, attributes={**kind, **(attributes or {})})

    def test_a_graph_node_that_is_only_called_an_agent_is_no_step(self) -> None:
        """OpenInference calls every run whose name holds `agent` an agent."""
        spans = (
            self._node("s1", "agent", langgraph_node="agent", lc_agent_name="agent"),
            self._node("s2", "route_agent", langgraph_node="route_agent", lc_agent_name="supervisor"),
        )
        assert names(ROOT, *spans, tool("s3", "x")) == ["x"]
        assert gaps(ROOT, *spans) == {"not_a_step": ("s1", "s2")}

    @pytest.mark.parametrize("prefix", ["langfuse.observation.metadata.", "traceloop.association.properties."])
    def test_so_it_is_where_the_node_is_told_in_another_way(self, prefix: str) -> None:
        """Langfuse quotes it, Traceloop does not."""
        quoted = '"agent"' if "langfuse" in prefix else "agent"
        kind = {"langfuse.observation.type": "agent", "traceloop.span.kind": "agent"}
        spans = (ROOT, raw("s1", "root", "agent", attributes={**kind, f"{prefix}langgraph_node": quoted}))
        assert names(*spans, tool("s2", "x")) == ["x"]

    def test_an_agent_in_a_graph_is_a_step(self) -> None:
        """It has a name of its own, or a node that is not its own."""
        spans = (
            self._node("s1", "billing_agent", langgraph_node="tools", lc_agent_name="billing_agent"),
            self._node("s2", "my_agent", langgraph_node="my_agent", lc_agent_name="my_agent"),
            self._node("s3", "an_agent", {"agent.name": "an_agent"}, langgraph_node="an_agent"),
            self._node("s4", "new_agent", langgraph_node="new_agent", ls_integration="langchain_create_agent"),
        )
        assert names(ROOT, *spans) == ["billing_agent", "my_agent", "an_agent", "new_agent"]

    def test_the_answer_tool_of_smolagents_is_no_step(self) -> None:
        """Neither its span nor its call; told by the scope or by the span's own name."""
        scoped = tool("s1", "final_answer", scope_name="openinference.instrumentation.smolagents")
        assert names(ROOT, scoped, tool("s2", "x")) == ["x"]
        assert gaps(ROOT, scoped) == {"not_a_step": ("s1",)}
        stored = tool("s1", "final_answer", span_name="FinalAnswerTool")
        assert names(ROOT, stored, tool("s2", "x")) == ["x"]
        call = {"id": "1", "name": "final_answer"}
        assert names(ROOT, model("s1", call, {"id": "2", "name": "x"}, scope_name="smolagents")) == ["x"]

    def test_the_output_tool_of_pydantic_ai_is_no_step(self) -> None:
        """By the name that the request lists, else the default one unless it is a function of the user's."""
        calls = {"id": "1", "name": "final_result"}, {"id": "2", "name": "answer"}

        def parameters(**listed: Any) -> dict[str, Any]:
            tools = {key: [{"name": name}] for key, name in listed.items()}
            return {"model_request_parameters": json.dumps(tools)}

        assert names(ROOT, model("s1", *calls, attributes=parameters())) == ["answer"]
        assert names(ROOT, model("s1", *calls, attributes=parameters(output_tools="answer"))) == ["final_result"]
        own = parameters(function_tools="final_result")
        assert names(ROOT, model("s1", *calls, attributes=own)) == ["final_result", "answer"]

    def test_elsewhere_a_tool_of_that_name_is_a_tool(self) -> None:
        """Only the two producers are known to work so."""
        assert names(ROOT, tool("s1", "final_answer"), tool("s2", "final_result")) == ["final_answer", "final_result"]


class TestHandoffs:
    """P63: a hand-off is the call that the model made, whatever the span is called."""

    @staticmethod
    def _handoff(span_id: str, target: str) -> RawSpan:
        attributes = {"openinference.span.kind": "TOOL", "input.value": "Triage", "output.value": target}
        return raw(span_id, "root", f"handoff to {target}", attributes=attributes)

    def test_it_is_named_by_the_call_before_it(self) -> None:
        """With the call's arguments and id; calls that tool spans ran are not it."""
        calls: list[dict[str, Any]] = [
            {"id": "1", "name": "search"},
            {"id": "2", "name": "escalate", "arguments": {"why": "x"}},
            {"id": "3", "name": "transfer_to_billing_agent"},
        ]
        spans = (ROOT, model("s1", *calls), tool("s2", "search"), self._handoff("s3", "Somebody"))
        step = steps(*spans)[-1]
        assert (step.name, step.arguments, step.call_id) == ("escalate", {"why": "x"}, "2")
        assert gaps(*spans) == {"handoff_named": ("s3",), "calls_without_span": ("s1",)}

    def test_the_call_that_names_the_target_is_preferred(self) -> None:
        """Of several in the last completion; an earlier completion's calls are others."""
        early = model("s1", {"id": "0", "name": "transfer_to_billing_agent_before"})
        late = model("s2", {"id": "1", "name": "note"}, {"id": "2", "name": "transfer_to_billing_agent"})
        spans = (ROOT, early, late, self._handoff("s3", "Billing agent"))
        assert names(*spans) == ["transfer_to_billing_agent"]

    def test_two_hand_offs_take_two_calls(self) -> None:
        """Each call once."""
        first = model("s1", {"id": "1", "name": "go_a"}, {"id": "2", "name": "go_b"})
        assert names(ROOT, first, self._handoff("s2", "B"), self._handoff("s3", "A")) == ["go_b", "go_a"]

    def test_without_a_completion_the_usual_name_is_assumed(self) -> None:
        """And said to be assumed."""
        spans = (ROOT, self._handoff("s1", "Billing agent 2"))
        assert names(*spans) == ["transfer_to_billing_agent_2"]
        assert [gap.kind for gap in clean(*spans).gaps] == ["handoff_named", "arguments_not_recorded"]
        assert "was assumed" in clean(*spans).gaps[0].detail

    def test_traceloop_does_not_know_the_target(self) -> None:
        """Then it is the call of the completion, else just a hand-off."""
        attributes = {"traceloop.span.kind": "handoff", "gen_ai.operation.name": "handoff"}
        span = raw("s2", "root", "Triage → unknown.handoff", attributes=attributes)
        assert names(ROOT, span) == ["handoff"]
        assert names(ROOT, model("s1", {"id": "1", "name": "go"}), span) == ["go"]

    def test_mlflow_records_it_as_a_chain(self) -> None:
        """With the agents as inputs and outputs."""
        attributes = {
            "mlflow.spanType": '"CHAIN"',
            "mlflow.spanInputs": '{"from_agent": "Triage"}',
            "mlflow.spanOutputs": '{"to_agent": "Billing"}',
        }
        assert names(ROOT, raw("s1", "root", "Handoff", attributes=attributes)) == ["transfer_to_billing"]


class TestContent:
    """What was not recorded."""

    def test_arguments_without_names_come_from_the_completion(self) -> None:
        """By call id; P55 and P56: each call of a completion has its own."""
        calls: list[dict[str, Any]] = [{"id": str(n), "name": "get", "arguments": {"city": f"c{n}"}} for n in (1, 2)]
        spans = [
            tool(f"s{n + 1}", "get", call_id=str(n), attributes={"gen_ai.tool.call.arguments": written})
            for n, written in ((1, "c1"), (2, '{"city": "c'))
        ]
        found = steps(ROOT, model("s1", *calls), *spans)
        assert [step.arguments for step in found] == [{"city": "c1"}, {"city": "c2"}]
        assert gaps(ROOT, model("s1", *calls), *spans) == {}

    def test_missing_arguments_are_told(self) -> None:
        """They may have been none."""
        missing = tool("s1", "x", attributes={"gen_ai.tool.call.arguments": None})
        assert gaps(ROOT, missing) == {"arguments_not_recorded": ("s1",)}
        kept = tool("s1", "x", attributes={"gen_ai.tool.call.arguments": "{oops"})
        assert gaps(ROOT, kept) == {"unparsable_arguments": ("s1",)}

    def test_content_off_is_told_and_is_not_zero_steps(self) -> None:
        """The finish reason shows that calls were made."""
        off = {"gen_ai.output.messages": None, "gen_ai.response.finish_reasons": ["tool_calls"]}
        spans = (ROOT, model("s1", attributes=off), model("s2"))
        assert gaps(*spans) == {"content_not_recorded": ("s1",)}
        assert describe(trace_partition(clean(*spans)))["reason"] == "content_not_recorded"

    def test_agents_with_tools_and_nothing_recorded_are_told(self) -> None:
        """Which tools they called cannot be known."""
        attributes = {"traceloop.span.kind": "agent", "crewai.agent.role": "R", "crewai.agent.tools": '[{"name": "x"}]'}
        spans = (ROOT, raw("s1", "root", "R.agent", attributes=attributes))
        assert names(*spans) == ["R"]
        assert gaps(*spans) == {"calls_not_recorded": ("s1",)}

    def test_calls_that_a_crew_keeps_in_its_messages_are_steps(self) -> None:
        """Each after the start of its agent, in the order of the messages, though the names sort otherwise."""
        calls = [{"id": n, "function": {"name": n, "arguments": "{}"}} for n in ("z", "a", "m")]
        messages = [{"role": "assistant", "tool_calls": [call]} for call in calls]
        output = f"[TaskOutput(agent='B', messages=[]), TaskOutput(agent='A', messages={messages!r})]"
        crew = {"crewai.crew.id": "1", "crewai.crew.tasks_output": output}
        role = "crewai.agent.role"
        spans = (
            raw("root", None, "crewai.workflow", attributes=crew),
            raw("s1", "root", "A.agent", attributes={"traceloop.span.kind": "agent", role: "A"}),
            raw("s20", "root", "B.agent", attributes={"traceloop.span.kind": "agent", role: "B"}),
        )
        assert [(s.name, s.call_id) for s in steps(*spans)] == [
            *(("A", None), ("z", "z"), ("a", "a"), ("m", "m")),
            ("B", None),
        ]
        assert gaps(*spans) == {"calls_from_messages": ("s1",)}
        assert names(*spans, tool("s2", "x", "s1")) == ["A", "x", "B"]


class TestStructure:
    """The shape of the trace is kept and told."""

    def test_orphans_are_told_and_are_steps(self) -> None:
        """Their parent was not exported, or not yet."""
        assert names(ROOT, tool("s1", "x", "gone")) == ["x"]
        assert gaps(ROOT, tool("s1", "x", "gone")) == {"orphan_spans": ("s1",)}

    def test_a_missing_root_is_told(self) -> None:
        """Two orphans leave no root; one that has all below it is taken for it."""
        spans = agent("s1", "a", "gone"), agent("s2", "b", "lost")
        assert clean(*spans).root_span_id is None
        assert gaps(*spans) == {"missing_root": (), "orphan_spans": ("s1", "s2")}
        cut = agent("s1", "a", "gone"), tool("s2", "x", "s1")
        assert clean(*cut).root_span_id == "s1"
        assert gaps(*cut) == {"assumed_root": ("s1",)}

    def test_cycles_are_told_and_none_of_them_is_a_root(self) -> None:
        """Spans below a cycle are told as well."""
        spans = tool("s1", "x", "s2"), tool("s2", "y", "s1"), tool("s3", "z", "s2")
        assert names(*spans) == ["x", "y", "z"]
        assert gaps(*spans) == {"missing_root": (), "cycle": ("s1", "s2", "s3")}
        assert gaps(ROOT, agent("s4", "a", "s4")) == {"cycle": ("s4",)}

    def test_ends_before_starts_and_missing_starts_are_told(self) -> None:
        """The order goes by the start; without one it is an error of the occurrence."""
        backwards = tool("s5", "x", end_time_unix_nano=1)
        assert names(ROOT, backwards, tool("s2", "y")) == ["y", "x"]
        assert gaps(ROOT, backwards) == {"end_before_start": ("s5",)}
        untimed = tool("s1", "x", start_time_unix_nano=None)
        assert gaps(ROOT, untimed) == {"missing_start_time": ("s1",)}
        assert clean(ROOT, untimed).start_time_unix_nano == 1

    def test_a_call_stamped_at_its_parents_start_has_no_certain_place(self) -> None:
        """P29: hosted calls are recorded as taking no time at the start of the model's span."""
        hosted = tool("s1", "web_search", "s1p", end_time_unix_nano=1)
        spans = (ROOT, agent("s1p", "a"), hosted, tool("s5", "local", "s1p"))
        assert sorted(names(*spans)) == ["a", "local", "web_search"]
        assert gaps(*spans) == {"uncertain_order": ("s1",)}


class TestOrder:
    """Times and ties."""

    def test_steps_that_start_together_keep_one_order(self) -> None:
        """P26: the same every time, in whatever order they arrive."""
        tied = [tool("s1", name, start_time_unix_nano=7) for name in ("a", "b")]
        tied = [tied[0], RawSpan(**{**_fields(tied[1]), "span_id": "s2"})]
        assert names(ROOT, *tied) == names(ROOT, *reversed(tied)) == ["a", "b"]

    def test_one_nanosecond_is_an_order(self) -> None:
        """P28: nothing is rounded to the microseconds or milliseconds that stores use."""
        moment = 1_796_034_572_114_663_583
        later = tool("s1", "a", start_time_unix_nano=moment + 1)
        assert names(ROOT, later, tool("s2", "b", start_time_unix_nano=moment)) == ["b", "a"]


def _fields(span: RawSpan) -> dict[str, Any]:
    return {name: getattr(span, name) for name in RawSpan.__dataclass_fields__}


class TestReports:
    """What went wrong in other tools, as far as reading is concerned."""

    def test_tool_definitions_on_model_spans_are_no_steps(self) -> None:
        """P49: six calls, not nine."""
        definitions = json.dumps([{"type": "function", "name": "x"}])
        models = [model(f"s{n}", attributes={"gen_ai.tool.definitions": definitions}) for n in (1, 2, 3)]
        assert len(steps(ROOT, *models, *(tool(f"s{n}", "x") for n in range(4, 10)))) == 6

    def test_tools_run_in_user_code_are_read_from_the_completions(self) -> None:
        """P54: and marked as such."""
        (step,) = steps(ROOT, model("s1", {"id": "1", "name": "x", "arguments": {"a": 1}}))
        assert (step.name, step.origin, step.arguments) == ("x", "completion", {"a": 1})

    def test_spans_are_told_by_their_attributes_and_not_by_their_names(self) -> None:
        """P57: whatever the span is called."""
        call = model("s1", {"id": "1", "name": "x"}, attributes={"gen_ai.operation.name": "generate_content"})
        assert names(ROOT, RawSpan(**{**_fields(call), "name": "generate_content gemini"})) == ["x"]

    def test_a_call_in_a_completion_that_also_ends_the_turn_counts(self) -> None:
        """P58: whatever the finish reason."""
        final = {"gen_ai.response.finish_reasons": ["stop"]}
        assert names(ROOT, model("s1", {"id": "1", "name": "x"}, attributes=final)) == ["x"]

    def test_a_failed_call_and_its_retry_are_two_steps(self) -> None:
        """With the status of each."""
        spans = tool("s1", "x", call_id="1", status="ERROR"), tool("s20", "x", call_id="2", status="OK")
        assert [(step.name, step.status) for step in steps(ROOT, *spans)] == [("x", "ERROR"), ("x", "OK")]

    def test_exceptions_that_are_control_flow_are_no_failure(self) -> None:
        """The status tells, not an event."""
        event = RawEvent("exception", 2, {"exception.type": "langgraph.errors.ParentCommand"})
        (step,) = steps(ROOT, tool("s1", "x", events=(event,), status="OK"))
        assert step.status == "OK"


class TestAcrossTraces:
    """A completion recorded again as a trace of its own."""

    CALL = {"id": "c1", "name": "x"}  # noqa: RUF012 - a constant of the tests

    def _twice(self, *calls: dict[str, Any], **fields: Any) -> list[list[str]]:
        spans = [ROOT, model("s2", self.CALL), model("s3", *calls, parent=None, trace_id="u", **fields)]
        return [[s.name for s in collect_steps(trace_partition(trace))] for trace in read_traces(spans)]

    def test_its_calls_count_in_the_fuller_trace(self) -> None:
        """The gap says where."""
        assert self._twice(self.CALL) == [["x"], []]
        spans = [ROOT, model("s2", self.CALL), model("s3", self.CALL, parent=None, trace_id="u")]
        assert [[gap.kind for gap in trace.gaps] for trace in read_traces(spans)] == [[], ["recorded_in_other_trace"]]

    def test_a_call_of_its_own_or_another_time_keeps_it(self) -> None:
        """Ids may be numbers that start anew with each run."""
        assert self._twice({"id": "c2", "name": "y"}) == [["x"], ["y"]]
        assert self._twice(self.CALL, {"id": "c2", "name": "y"}) == [["x"], ["x", "y"]]
        assert self._twice(self.CALL, start_time_unix_nano=500, end_time_unix_nano=600) == [["x"], ["x"]]
        assert self._twice({"name": "x"}) == [["x"], ["x"]]


class TestIdentities:
    """Session and task."""

    @pytest.mark.parametrize(
        "attributes",
        [
            {"session.id": "c"},
            {"gen_ai.conversation.id": "c"},
            {"traceloop.association.properties.session_id": "c"},
            {"gcp.vertex.agent.session_id": "c"},
            {"mlflow.trace.session": '"c"'},
            {"langsmith.metadata.thread_id": "c"},
            {"metadata": '{"thread_id": "c"}'},
            {"metadata.session_id": " c "},
        ],
    )
    def test_the_session_is_read_in_every_convention(self, attributes: dict[str, Any]) -> None:
        """From the root first."""
        inner = tool("s1", "x", attributes={"session.id": "inner"})
        assert clean(raw("root", None, attributes=attributes), inner).session_id == "c"

    def test_the_root_decides_then_the_first_span_that_has_one(self) -> None:
        """Sub-agents may have conversations of their own; a transport or a project is no session."""
        other = {"mcp.session.id": "no", "langsmith.trace.session_id": "no"}
        spans = [tool(f"s{n}", "x", attributes={**other, "session.id": s}) for n, s in ((3, "b"), (2, "a"), (1, ""))]
        assert clean(ROOT, *spans).session_id == "a"
        assert clean(ROOT, tool("s1", "x", attributes=other)).session_id is None

    def test_the_task_is_read_in_the_order_of_the_list(self) -> None:
        """Root, then other spans, then resource; JSON text and numbers count."""
        assert clean(raw("root", None, attributes={"task_id": "b", "stepacc.task_id": "a"})).task_id == "a"
        assert clean(raw("root", None, attributes={"metadata": '{"task_id": 7}'})).task_id == "7"
        assert clean(raw("root", None, attributes={"langfuse.trace.metadata.task_id": '"t1"'})).task_id == "t1"
        resource = {"stepacc.task_id": "r"}
        assert clean(raw("root", None, resource=resource), tool("s1", "x", attributes={"task_id": "s"})).task_id == "s"
        assert clean(raw("root", None, resource=resource)).task_id == "r"
        ours = ReadSettings(task_id_attributes=("our.case",))
        assert canonicalise("t", [raw("root", None, attributes={"our.case": "c", "task_id": "x"})], ours).task_id == "c"

    def test_a_session_has_its_traces_in_order_and_the_task_of_the_first(self) -> None:
        """In whatever order they come; an untimed trace is last."""
        late = canonicalise("a", [raw("s9", None, trace_id="a", attributes={"task_id": "late"})])
        early = canonicalise("b", [raw("s2", None, trace_id="b", attributes={"task_id": "early"})])
        untimed = canonicalise("0", [raw("s1", None, trace_id="0", start_time_unix_nano=None)])
        session = session_partition("c", [untimed, late, early])
        assert (session.partition_type, session.partition_id, session.session_id) == ("session", "c", "c")
        assert session.task_id == "early"
        assert [span.trace_id for span in session.spans] == ["b", "a", "0"]
        assert session_partition("c", []).task_id is None


SPANS = [span for entry in manifest()[::3] for span in raw_spans(entry["file"])]
ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=9)
    | st.sampled_from(["\x00", "\ud800", "{", "[1", '{"a": ' * 99, "[" * 9999, "nan", "10" * 9999, "{'a': b''}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def spoilt_spans(draw: st.DrawFn) -> list[RawSpan]:
    """Spans of a real trace, some with attributes dropped, exchanged or replaced, and with other parents."""
    traces = list(group_by_trace(SPANS).values())
    spans = draw(st.sampled_from(traces))
    ids = [span.span_id for span in spans]
    spoilt = []
    for span in spans:
        attributes = dict(span.attributes)
        for key in draw(st.lists(st.sampled_from(sorted(attributes)), max_size=3)) if attributes else ():
            change = draw(st.sampled_from(["drop", "odd", "nest", "exchange"]))
            if change == "drop":
                attributes.pop(key, None)
            elif change == "odd":
                attributes[key] = draw(ODD)
            elif change == "nest":
                attributes[key] = [{"tool_calls": attributes.get(key), "function": {"name": [key]}}]
            else:
                attributes[key] = attributes.get(draw(st.sampled_from(sorted(span.attributes))))
        fields = {**_fields(span), "attributes": attributes}
        if draw(st.integers(0, 9)) == 0:
            fields["parent_span_id"] = draw(st.sampled_from([None, "gone", *ids]))
        if draw(st.integers(0, 19)) == 0:
            fields["start_time_unix_nano"] = None
        spoilt.append(RawSpan(**fields))
    return spoilt


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(spoilt_spans())
def test_spoilt_spans_give_a_result_and_never_a_crash(spans: list[RawSpan]) -> None:
    """Whatever is in the attributes: all spans are there, read alike in any order, and every step has a name."""
    trace = canonicalise(spans[0].trace_id, spans)
    assert {span.span_id for span in trace.spans} >= {span.span_id for span in spans}
    assert "unreadable_span" not in {gap.kind for gap in trace.gaps}
    described = describe(trace_partition(trace))
    assert described["status"] in {"ok", "not_scorable"}
    assert all(isinstance(step["name"], str) and step["name"] for step in described["steps"])
    assert canonicalise(spans[0].trace_id, spans[::-1]) == trace


def test_every_gap_is_explained_in_the_documentation() -> None:
    """Readers of a trace's gaps find each kind there, and no kind that does not exist."""
    package = Path(__file__).parents[2] / "stepacc_core"
    sources = [*(package / "conventions").rglob("*.py"), package / "reading.py", package / "log_records.py"]
    kinds = {kind for source in sources for kind in re.findall(r'Gap\(\s*"(\w+)"', source.read_text("utf-8"))}
    section = (package.parent / "docs" / "reading.md").read_text("utf-8").split("## Gaps")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    assert {kind for row in rows for kind in re.findall(r"`(\w+)`", row)} == kinds
    assert len(kinds) > 15
