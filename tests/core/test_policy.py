"""Step policies: what a source may choose not to count as a step."""

import json
from pathlib import Path
from typing import Any

import pytest

from stepacc_core.errors import ConfigError, ReadError
from stepacc_core.metrics import config_hash
from stepacc_core.metrics.step_accuracy_config import StepAccuracyConfig
from stepacc_core.model import CanonicalPartition, CanonicalSpan, ToolCall
from stepacc_core.otlp import read_otlp_lines
from stepacc_core.policy import LITERAL, StepPolicy, apply_policy
from stepacc_core.reading import read_traces, trace_partition
from stepacc_core.steps import collect_steps

TRACES = Path(__file__).parents[1] / "data" / "traces"


def steps_of(name: str, policy: StepPolicy) -> list[str]:
    """The names of the steps of a recorded trace under a policy."""
    spans = list(read_otlp_lines((TRACES / f"{name}.otlp.jsonl").read_text().splitlines()))
    good = [span for span in spans if not isinstance(span, ReadError)]
    (trace,) = read_traces(good)
    return [step.name for step in collect_steps(apply_policy(trace_partition(trace), policy))]


@pytest.mark.parametrize(
    ("name", "settings", "steps"),
    [
        ("openinference-openai-agents/parallel", {}, ["Support agent", "get_weather", "get_weather", "get_time"]),
        ("openinference-openai-agents/parallel", {"entry_agent": "root"}, ["get_weather", "get_weather", "get_time"]),
        ("google-adk/sequential", {"entry_agent": "root"}, ["lookup_order", "check_refund_policy", "issue_refund"]),
        ("pydantic-ai/sequential", {"entry_agent": "root"}, ["lookup_order", "check_refund_policy", "issue_refund"]),
        (
            "google-adk/handoff",
            {"entry_agent": "root"},
            ["transfer_to_agent", "billing_agent", "lookup_invoice"],
        ),
        ("google-adk/handoff", {"entry_agent": "root", "handoffs": "tool"}, ["transfer_to_agent", "lookup_invoice"]),
        ("google-adk/handoff", {"entry_agent": "root", "handoffs": "agent"}, ["billing_agent", "lookup_invoice"]),
        ("google-adk/handoff", {"entry_agent": "root", "handoffs": "none"}, ["lookup_invoice"]),
        ("pydantic-ai/subagent", {}, ["ask_billing", "billing_agent", "lookup_invoice"]),
        ("pydantic-ai/subagent", {"handoffs": "tool"}, ["ask_billing", "lookup_invoice"]),
        ("pydantic-ai/subagent", {"handoffs": "agent"}, ["billing_agent", "lookup_invoice"]),
        ("pydantic-ai/subagent", {"ignore": ("Ask-Billing",)}, ["billing_agent", "lookup_invoice"]),
        ("pydantic-ai/subagent", {"ignore": ("Billing_Agent",)}, ["ask_billing", "billing_agent", "lookup_invoice"]),
        ("openinference-openai/llm_only_parallel", {"ignore": ("get_time",)}, ["get_weather", "get_weather"]),
    ],
)
def test_recorded_traces_give_the_steps_a_policy_asks_for(
    name: str, settings: dict[str, Any], steps: list[str]
) -> None:
    assert steps_of(name, StepPolicy(**settings)) == steps


def _span(span_id: str, kind: Any, parent: str | None, start: int, **fields: Any) -> CanonicalSpan:
    return CanonicalSpan("t", span_id, kind, span_id, parent, start_time_unix_nano=start, **fields)


def test_an_entry_agent_that_is_no_step_does_not_hide_the_calls_of_its_completions() -> None:
    spans = (
        _span("root", "CHAIN", None, 1),
        _span("agent", "AGENT", "root", 2),
        _span("chat", "LLM", "agent", 3, tool_calls=(ToolCall("search"),)),
    )
    partition = CanonicalPartition("trace", "t", spans=spans)

    assert [step.name for step in collect_steps(partition)] == ["agent"]
    assert [step.name for step in collect_steps(apply_policy(partition, StepPolicy(entry_agent="root")))] == ["search"]


def test_an_agent_that_comes_after_a_tool_is_no_entry_agent() -> None:
    spans = (_span("root", "CHAIN", None, 1), _span("tool", "TOOL", "root", 2), _span("agent", "AGENT", "root", 3))
    partition = CanonicalPartition("trace", "t", spans=spans)

    assert apply_policy(partition, StepPolicy(entry_agent="root")) == partition


def test_what_is_left_out_is_a_gap_that_names_the_spans() -> None:
    spans = (_span("root", "CHAIN", None, 1), _span("agent", "AGENT", "root", 2), _span("tool", "TOOL", "agent", 3))
    changed = apply_policy(CanonicalPartition("trace", "t", spans=spans), StepPolicy(entry_agent="root"))

    assert [(gap.kind, gap.span_ids) for gap in changed.gaps] == [("left_out_by_policy", ("agent",))]
    assert json.dumps([span.kind for span in changed.spans]) == '["CHAIN", "CHAIN", "TOOL"]'


def test_a_cycle_of_parents_ends() -> None:
    spans = (_span("a", "AGENT", "b", 1), _span("b", "CHAIN", "a", 2), _span("c", "TOOL", "c", 3))

    changed = apply_policy(CanonicalPartition("trace", "t", spans=spans), StepPolicy(handoffs="none"))

    assert [step.name for step in collect_steps(changed)] == ["a", "c"]


def test_the_literal_policy_changes_nothing_and_is_in_no_hash() -> None:
    partition = CanonicalPartition("trace", "t", spans=(_span("a", "AGENT", "x", 1),))

    assert apply_policy(partition, LITERAL) is partition
    assert config_hash(StepAccuracyConfig(), LITERAL.settings()) == config_hash(StepAccuracyConfig())
    assert StepPolicy(ignore=("b", "a", "b")).settings() == {"ignore": ["a", "b"]}
    assert StepPolicy(entry_agent="root", handoffs="none").settings() == {"entry_agent": "root", "handoffs": "none"}


@pytest.mark.parametrize("settings", [{"entry_agent": "roots"}, {"handoffs": "tools"}])
def test_a_setting_that_does_not_exist_is_told_the_allowed_ones(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"`\w+` is 'roots?'|`\w+` is 'tools'"):
        StepPolicy(**settings)
