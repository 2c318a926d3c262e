"""Which steps a canonical partition holds, sentence by sentence of section 3 of the contract."""

import sys
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepacc_core.errors import FailureCode, ScoringError
from stepacc_core.model import CanonicalPartition, CanonicalSpan, Gap, SpanKind, ToolCall
from stepacc_core.steps import collect_steps, describe, find_roots, not_applicable_reason, required_kinds_present


def span(span_id: str, kind: SpanKind = "TOOL", parent: str | None = "root", **fields: Any) -> CanonicalSpan:
    """Make a span that starts at the number of its id, so that `s2` comes after `s1`."""
    start = int("".join(filter(str.isdecimal, span_id)) or 1)
    given_fields = {"trace_id": "t", "name": span_id, "start_time_unix_nano": start, **fields}
    if kind == "TOOL":
        given_fields.setdefault("tool_name", given_fields["name"])
    return CanonicalSpan(span_id=span_id, kind=kind, parent_span_id=parent, **given_fields)


ROOT = span("root", "CHAIN", None)


def partition(*spans: CanonicalSpan, **fields: Any) -> CanonicalPartition:
    """Make a trace partition of hand-written spans."""
    return CanonicalPartition(**{"partition_type": "trace", "partition_id": "t", "spans": spans, **fields})


def names(*spans: CanonicalSpan) -> list[str]:
    """Return the names of the steps of these spans."""
    return [step.name for step in collect_steps(partition(*spans))]


def llm(span_id: str, *calls: ToolCall | str, parent: str | None = "root", **fields: Any) -> CanonicalSpan:
    """Make a model span with calls; a call written as text has no id."""
    made = tuple(ToolCall(call) if isinstance(call, str) else call for call in calls)
    return span(span_id, "LLM", parent, tool_calls=made, **fields)


class TestWhichSpansAreSteps:
    """A step is a non-root span of kind TOOL or AGENT."""

    def test_tools_and_agents_below_the_root_are_steps_and_nothing_else_is(self) -> None:
        """Models, chains and retrievers are no steps."""
        agent = span("s2", "AGENT", agent_name="writer")
        other: list[SpanKind] = ["LLM", "CHAIN", "RETRIEVER", "EMBEDDING", "GUARDRAIL", "UNKNOWN"]
        rest = [span(f"s{number}", kind) for number, kind in enumerate(other, start=5)]
        steps = collect_steps(partition(ROOT, span("s3"), agent, *rest))
        assert [(step.name, step.kind, step.origin) for step in steps] == [
            ("writer", "AGENT", "span"),
            ("s3", "TOOL", "span"),
        ]

    def test_an_entry_agent_below_the_root_is_a_step(self) -> None:
        """The literal reading: only the root itself is no step."""
        assert names(ROOT, span("s1", "AGENT", agent_name="entry"), span("s2", parent="s1")) == ["entry", "s2"]

    @pytest.mark.parametrize("parent", [None, "", "0000000000000000"])
    def test_a_span_without_a_parent_is_a_root(self, parent: str | None) -> None:
        """Null, empty and all zeros mean no parent."""
        assert names(span("s1", "AGENT", parent), span("s2", parent="s1")) == ["s2"]

    def test_every_span_without_a_parent_is_a_root(self) -> None:
        """Two runs in one trace have two roots."""
        assert names(span("s1", "AGENT", None), span("s2", "AGENT", None), span("s3", parent="s2")) == ["s3"]

    def test_a_trace_cut_off_above_the_agent_has_that_agent_as_root(self) -> None:
        """Exactly one span has a missing parent and all others are below it."""
        assert names(span("s1", "AGENT", "gone"), span("s2", parent="s1"), span("s3", parent="s2")) == ["s2", "s3"]

    def test_no_root_is_assumed_where_two_spans_have_a_missing_parent(self) -> None:
        """Then both are steps."""
        assert names(span("s1", "AGENT", "gone"), span("s2", "AGENT", "lost")) == ["s1", "s2"]

    def test_no_root_is_assumed_where_a_span_is_not_below_the_orphan(self) -> None:
        """A cycle beside it is not below it."""
        cycle = [span("s2", parent="s3"), span("s3", parent="s2")]
        assert names(span("s1", "AGENT", "gone"), *cycle) == ["s1", "s2", "s3"]

    def test_a_span_with_a_missing_parent_beside_a_root_is_a_step(self) -> None:
        """A tool whose parent was dropped still ran."""
        assert names(ROOT, span("s2", parent="gone")) == ["s2"]

    def test_a_tool_span_with_a_parent_id_is_never_a_root(self) -> None:
        """Not even alone, or with everything below it."""
        assert names(span("s1", parent="gone")) == ["s1"]
        assert names(span("s1", parent="gone"), span("s2", parent="s1")) == ["s1", "s2"]

    def test_in_a_cycle_of_parents_nothing_is_a_root(self) -> None:
        """Also where a span is its own parent."""
        assert names(span("s1", "AGENT", "s2"), span("s2", "AGENT", "s1")) == ["s1", "s2"]
        assert names(span("s1", "AGENT", "s1")) == ["s1"]

    def test_a_span_delivered_twice_counts_once(self) -> None:
        """Same trace id and span id: one step; the same span id in another trace is another span."""
        assert names(ROOT, span("s1"), span("s1")) == ["s1"]
        other = [span("root", "CHAIN", None, trace_id="u"), span("s1", trace_id="u")]
        assert names(ROOT, span("s1"), *other) == ["s1", "s1"]


class TestFallback:
    """A trace without a step span contributes the calls embedded in its completions."""

    def test_calls_count_in_the_order_of_models_then_of_calls(self) -> None:
        """And say where they come from."""
        steps = collect_steps(partition(ROOT, llm("s5", "c"), llm("s2", "b", "a")))
        assert [(s.name, s.kind, s.origin, s.span_id) for s in steps] == [
            ("b", "TOOL", "completion", "s2"),
            ("a", "TOOL", "completion", "s2"),
            ("c", "TOOL", "completion", "s5"),
        ]

    def test_a_root_agent_over_models_does_not_hide_the_calls(self) -> None:
        """Client-side tools: the only agent is the root."""
        assert names(span("root", "AGENT", None), llm("s1", "search")) == ["search"]

    def test_a_root_model_counts(self) -> None:
        """A completion may be a whole trace."""
        assert names(llm("s1", "search", parent=None)) == ["search"]

    def test_calls_do_not_count_beside_a_step_span(self) -> None:
        """One tool span is enough."""
        assert names(ROOT, llm("s1", "search", "open"), span("s2")) == ["s2"]

    def test_only_models_contribute(self) -> None:
        """Other spans may repeat a completion."""
        assert names(ROOT, span("s1", "CHAIN", tool_calls=(ToolCall("search"),))) == []

    def test_each_call_id_counts_once_in_a_trace(self) -> None:
        """Where it was recorded first; calls without an id all count."""
        first, again = ToolCall("a", "1", {"x": 1}), ToolCall("a", "1", {"x": 2})
        steps = collect_steps(partition(ROOT, llm("s2", again, "b", "b"), llm("s1", first)))
        assert [(s.name, s.arguments) for s in steps] == [("a", {"x": 1}), ("b", None), ("b", None)]

    def test_each_trace_of_a_session_falls_back_by_itself(self) -> None:
        """One trace with tool spans does not hide the calls of another, nor its call ids."""
        one = [ROOT, span("s3"), llm("s2", ToolCall("hidden", "1"))]
        other = [
            span("root", "CHAIN", None, trace_id="u"),
            llm("s1", ToolCall("a", "1"), "z", trace_id="u"),
            llm("s4", ToolCall("a", "1"), ToolCall("c", "2"), trace_id="u"),
        ]
        assert names(*one, *other) == ["a", "z", "s3", "c"]

    def test_an_id_of_another_call_or_none_at_all_hides_nothing(self) -> None:
        """Ids may start anew in each completion, and an empty one is none."""
        first = llm("s1", ToolCall("a", "call_0"), ToolCall("b", "call_1"), ToolCall("e", ""))
        second = llm("s2", ToolCall("c", "call_0"), ToolCall("b", "call_1"), ToolCall("e", ""))
        assert names(ROOT, first, second) == ["a", "b", "e", "c", "e"]


class TestOrder:
    """Start, then span name by code point, then span id, then place in the completion."""

    def test_steps_come_by_start_time_in_full_nanoseconds(self) -> None:
        """One nanosecond decides, at a size where floats cannot tell."""
        moment = 1_796_034_572_114_663_583
        later = span("s1", start_time_unix_nano=moment + 1)
        assert names(ROOT, later, span("s2", start_time_unix_nano=moment)) == ["s2", "s1"]

    def test_equal_starts_come_by_span_name_by_code_point(self) -> None:
        """`Z` is before `a`, whatever the tools are called and in whatever order they arrive."""
        ties = [span(f"s{n}", name=name, start_time_unix_nano=5) for n, name in enumerate("aZé")]
        assert names(ROOT, *ties) == names(ROOT, *reversed(ties)) == ["Z", "a", "é"]

    def test_equal_names_come_by_span_id(self) -> None:
        """The tool's name does not matter for the order."""
        ties = [span(i, name="n", tool_name=t, start_time_unix_nano=5) for i, t in (("b", "first"), ("a", "second"))]
        assert names(ROOT, *ties) == ["second", "first"]

    def test_calls_of_models_with_equal_starts_are_not_mixed(self) -> None:
        """All calls of one completion, then all of the other."""
        models = [llm("b", "b0", "b1"), llm("a", "a0", "a1")]
        tied = [CanonicalSpan("t", m.span_id, "LLM", "chat", "root", 7, tool_calls=m.tool_calls) for m in models]
        assert names(ROOT, *tied) == ["a0", "a1", "b0", "b1"]

    def test_a_session_is_one_sequence_in_the_order_of_execution(self) -> None:
        """Not one trace after the other."""
        other = [span("root", "CHAIN", None, trace_id="u"), span("s2", trace_id="u")]
        spans = (*other, ROOT, span("s1"), span("s3"))
        session = partition(*spans, partition_type="session", partition_id="c", session_id="c")
        assert [step.name for step in collect_steps(session)] == ["s1", "s2", "s3"]

    def test_a_span_that_ends_before_it_starts_is_kept_by_its_start(self) -> None:
        """Its end does not matter."""
        assert names(ROOT, span("s3", end_time_unix_nano=1), span("s2")) == ["s2", "s3"]

    @given(st.permutations([ROOT, *(span(f"s{n}", start_time_unix_nano=n // 3 + 1) for n in range(9))]))
    def test_the_order_in_which_spans_arrive_does_not_matter(self, spans: list[CanonicalSpan]) -> None:
        """Any arrival gives the same steps."""
        assert names(*spans) == [f"s{n}" for n in range(9)]


class TestMissingStart:
    """A missing or zero start time of a span that matters is an error, not a guess."""

    @pytest.mark.parametrize("start", [None, 0])
    def test_a_step_without_a_start_fails_by_name(self, start: int | None) -> None:
        """The message names the span and what to record."""
        with pytest.raises(ScoringError, match=r"'s2' \(s2\) have no start time\. Record") as caught:
            names(ROOT, span("s1"), span("s2", start_time_unix_nano=start))
        assert caught.value.code is FailureCode.MISSING_START_TIME

    def test_many_spans_without_a_start_are_counted(self) -> None:
        """Three are named."""
        untimed = [span(f"s{n}", start_time_unix_nano=None) for n in range(9)]
        with pytest.raises(ScoringError, match="and 6 more"):
            names(ROOT, *untimed)

    def test_a_model_with_counted_calls_matters(self) -> None:
        """In the fallback its start is the start of the calls."""
        with pytest.raises(ScoringError, match="s1"):
            names(ROOT, llm("s1", "search", start_time_unix_nano=None))

    def test_spans_that_are_no_steps_need_no_start(self) -> None:
        """The root, chains, models beside tools, models without calls, models that only repeat calls."""
        root = span("root", "AGENT", None, start_time_unix_nano=None)
        assert names(root, llm("s1", "x", start_time_unix_nano=None), span("s2")) == ["s2"]
        again = llm("s1", ToolCall("a", "1"), start_time_unix_nano=None)
        assert names(root, again, llm("s2", ToolCall("a", "1")), llm("s3", start_time_unix_nano=None)) == ["a"]


class TestNames:
    """TOOL: the bare name. AGENT: the agent's name, else the raw span name. Embedded: the function's name."""

    def test_an_agent_without_a_name_has_its_raw_span_name(self) -> None:
        """Nothing is stripped from it."""
        assert names(ROOT, span("s1", "AGENT", name="billing_agent.run")) == ["billing_agent.run"]

    def test_a_tool_without_a_name_has_its_span_name_without_affixes(self) -> None:
        """As the reader would name it."""
        assert names(ROOT, span("s1", name="execute_tool get_weather", tool_name=None)) == ["get_weather"]

    def test_a_step_keeps_what_was_recorded_of_the_call(self) -> None:
        """Arguments, id, status, full name and where it is."""
        tool = span(
            "s1",
            tool_name="list",
            tool_full_name="mcp__gh__list",
            tool_arguments={"a": 1},
            tool_call_id="c1",
            status="ERROR",
        )
        (step,) = collect_steps(partition(ROOT, tool))
        assert (step.full_name, step.arguments, step.call_id) == ("mcp__gh__list", {"a": 1}, "c1")
        assert (step.status, step.trace_id, step.span_id) == ("ERROR", "t", "s1")


class TestNotApplicable:
    """A partition that cannot be scored says why."""

    def test_a_partition_without_tool_agent_or_model_has_no_required_kinds(self) -> None:
        """Also an empty one."""
        assert not_applicable_reason(partition(ROOT)) == not_applicable_reason(partition()) == "no_required_kinds"
        assert not required_kinds_present(partition(ROOT))

    @pytest.mark.parametrize("kind", ["TOOL", "AGENT", "LLM"])
    def test_one_required_span_is_enough_even_as_the_root(self, kind: SpanKind) -> None:
        """Then there are steps, if only none."""
        assert not_applicable_reason(partition(span("root", kind, None))) is None

    def test_calls_announced_and_not_recorded_make_it_unscorable(self) -> None:
        """Never zero steps; also below a root agent, and where other completions show their calls."""
        hidden = llm("s1", calls_announced=True)
        assert not_applicable_reason(partition(ROOT, hidden)) == "content_not_recorded"
        root = span("root", "AGENT", None)
        assert not_applicable_reason(partition(root, llm("s2", "shown"), hidden)) == "content_not_recorded"

    def test_a_step_span_makes_it_scorable(self) -> None:
        """Then the spans tell what the completions hide."""
        assert not_applicable_reason(partition(ROOT, llm("s1", calls_announced=True), span("s2"))) is None

    def test_calls_that_are_there_were_recorded(self) -> None:
        """Whatever the finish reason."""
        assert not_applicable_reason(partition(ROOT, llm("s1", "a", calls_announced=True))) is None

    def test_one_such_trace_makes_its_session_so(self) -> None:
        """Part of a session would be compared with the whole trajectory."""
        other = [span("root", "CHAIN", None, trace_id="u"), llm("s4", calls_announced=True, trace_id="u")]
        assert not_applicable_reason(partition(ROOT, span("s1"), *other)) == "content_not_recorded"


class TestDescribe:
    """The JSON object of `stepacc steps`."""

    def test_it_gives_steps_and_gaps(self) -> None:
        """In the order of execution."""
        tool = span("s1", tool_name="list", tool_full_name="mcp__gh__list", tool_arguments={"a": 1})
        gap = Gap("orphan_spans", "One span has no parent.", ("s9",))
        assert describe(partition(ROOT, tool, gaps=(gap,), session_id="c")) == {
            "partition_type": "trace",
            "partition_id": "t",
            "session_id": "c",
            "status": "ok",
            "reason": None,
            "steps": [
                {
                    "name": "list",
                    "kind": "TOOL",
                    "from": "span",
                    "full_name": "mcp__gh__list",
                    "arguments": {"a": 1},
                    "span_id": "s1",
                }
            ],
            "gaps": [{"kind": "orphan_spans", "detail": "One span has no parent.", "span_ids": ["s9"]}],
        }

    def test_it_says_why_there_are_no_steps(self) -> None:
        """The reason is the metric's own."""
        for spans, reason in (
            ([ROOT], "no_required_kinds"),
            ([ROOT, llm("s1", calls_announced=True)], "content_not_recorded"),
            ([ROOT, span("s1", start_time_unix_nano=None)], "missing_start_time"),
        ):
            found = describe(partition(*spans))
            assert (found["status"], found["reason"], found["steps"]) == ("not_scorable", reason, [])


def _slow_roots(spans: list[CanonicalSpan]) -> set[str]:
    """Transcribe the rule: walk up from every span, as far as it goes."""
    by_id = {s.span_id: s for s in spans}
    roots = {s.span_id for s in spans if s.parent_span_id is None}
    if roots:
        return roots
    orphans = [s for s in spans if s.parent_span_id not in by_id]
    if len(orphans) != 1 or orphans[0].kind == "TOOL":
        return set()
    for each in spans:
        here, seen = each, set[str]()
        while here.span_id != orphans[0].span_id:
            if here.span_id in seen or here.parent_span_id is None:
                return set()
            seen.add(here.span_id)
            here = by_id[here.parent_span_id]
    return {orphans[0].span_id}


@given(
    st.lists(
        st.tuples(st.sampled_from(["TOOL", "AGENT", "CHAIN"]), st.sampled_from([None, *"abcdefgx"])),
        min_size=1,
        max_size=7,
    )
)
def test_roots_are_those_of_a_walk_up_from_every_span(links: list[tuple[SpanKind, str | None]]) -> None:
    """Any tree, forest, orphan or cycle."""
    spans = [span(i, kind, parent) for i, (kind, parent) in zip("abcdefg", links, strict=False)]
    assert find_roots(spans) == _slow_roots(spans)


def _lines(count: int, shape: str) -> int:
    """Count the lines run for a chain of tools under a cut-off agent, or for as many orphans."""
    ids = ["gone", "top", *(f"s{n}" for n in range(1, count))]
    tools = [span(f"s{n}", parent=ids[n] if shape == "chain" else "gone") for n in range(1, count)]
    top = span("top", "AGENT", "gone", agent_name="top")
    trace = partition(*reversed(tools), top)
    lines = 0

    def count_line(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return count_line

    before = sys.gettrace()
    sys.settrace(count_line)
    try:
        steps = collect_steps(trace)
    finally:
        sys.settrace(before)
    assert len(steps) == (count - 1 if shape == "chain" else count)
    return lines


@pytest.mark.parametrize("shape", ["chain", "orphans"])
def test_work_grows_with_the_spans_and_not_with_their_square(shape: str) -> None:
    """Eight times the spans run about eight times the lines, nowhere near sixty-four times; and nothing recurses."""
    assert _lines(4_000, shape) < 9 * _lines(500, shape)
