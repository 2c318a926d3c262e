"""`agent.trajectory_match` on whole partitions: where references come from, failures, answers, and what a run took."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepacc_core import CanonicalPartition, CanonicalSpan, Result, Step, trajectory_match
from stepacc_core.errors import ConfigError
from stepacc_core.judging.answer import answer_in, final_answer
from stepacc_core.metrics import build_config, config_hash, evaluate
from stepacc_core.metrics.trajectory_match import get_trace_metric
from stepacc_core.model import AnnotationRef, Gap, Member, ToolCall

METRIC = get_trace_metric()
ROOT = CanonicalSpan("t", "root", "CHAIN", "run", None, 1, output="I refunded 25 USD.")
CALL = CanonicalSpan("t", "s1", "TOOL", "refund", "root", 2, tool_name="refund", tool_arguments={"amount": 25})
CHAT = CanonicalSpan(
    "t", "m1", "LLM", "chat", "root", 3, output="Done.", input_tokens=100, output_tokens=20, cost_usd=0.5
)
REFUND = {"references": [{"name": "refund", "steps": [{"tool": "refund", "args": {"amount": 25}}]}]}
OTHER = {"references": [{"name": "other", "steps": ["other"]}]}


def trace(*spans: CanonicalSpan, **fields: Any) -> CanonicalPartition:
    """A trace of these spans, or of a call below a root."""
    return CanonicalPartition("trace", "t", spans=spans or (ROOT, CALL), **fields)


def config(**values: Any) -> Any:
    """A config of the metric."""
    return build_config(METRIC, values)


def row(result: Result, name: str) -> Member:
    """One row, by its short name."""
    [found] = [member for member in result.family if member.name == f"trajectory_match.{name}"]
    return found


def refuse(*, task: str | None, answer: Any, reference: Any) -> bool:
    """Judge nothing, as a user's function that fails."""
    raise RuntimeError(task, answer, reference.name)


def agree(*, task: str | None, answer: Any, reference: Any) -> float:
    """Judge by what a user's function is given."""
    return 0.25 if (task, answer, reference.name) == ("refunds", "I refunded 25 USD.", "refund") else 1.0


def test_the_rows_are_those_of_the_manifest_in_its_order() -> None:
    manifest = METRIC.manifest
    result = METRIC.score(trace(reference_trajectories=REFUND))

    assert tuple(member.name for member in result.family) == manifest.family
    assert (manifest.headline, manifest.execution.emits_metric_family) == ("trajectory_match.passed", True)
    assert (manifest.annotation_key, manifest.needs_expected_steps) == ("reference_trajectories", False)
    assert result.score == row(result, "passed").score == 1


def test_references_come_from_the_configs_annotations_then_the_column_then_the_config() -> None:
    own = {"annotations": {"t": {"reference_trajectories": '["other"]'}}}
    everything = trace(reference_trajectories=REFUND, annotation=AnnotationRef(7, 2))

    first = METRIC.score(everything, config(reference_trajectories=OTHER, **own)).metadata
    column = METRIC.score(everything, config(reference_trajectories=OTHER)).metadata
    fallback = METRIC.score(trace(), config(reference_trajectories=OTHER)).metadata

    assert (first["expected_from"], first["reference"]["name"]) == ("annotations", "reference 1")
    assert (column["expected_from"], column["reference"]["name"]) == ("column", "refund")
    assert column["annotation"] == {"id": 7, "revision": 2}
    assert (fallback["expected_from"], fallback["reference"]["name"]) == ("config", "other")


@pytest.mark.parametrize(
    ("partition", "code", "said"),
    [
        (trace(), "missing_references", "Nobody said which trajectories are acceptable for trace `t`"),
        (trace(expected_steps=["refund"]), "missing_references", "Nobody said"),
        (
            trace(reference_trajectories={"references": []}, annotation=AnnotationRef(7, 2)),
            "invalid_references",
            "Annotation 7, revision 2, of trace `t`:",
        ),
        (trace(annotation=AnnotationRef(7, 2)), "invalid_references", "Annotation 7"),
        (trace(reference_trajectories="{"), "invalid_references", "The column reference_trajectories of trace `t`:"),
        (
            trace(ROOT, replace(CALL, start_time_unix_nano=None), reference_trajectories=REFUND),
            "missing_start_time",
            "no start time",
        ),
    ],
)
def test_an_occurrence_that_cannot_be_judged_fails_in_every_row(
    partition: CanonicalPartition, code: str, said: str
) -> None:
    result = METRIC.score(partition)

    assert (result.status, result.code, result.score) == ("failed", code, None)
    assert said in str(result.error)
    assert [member.name for member in result.family] == list(METRIC.manifest.family)
    assert {(member.status, member.error, member.score) for member in result.family} == {("failed", result.error, None)}


def test_an_occurrence_without_content_is_not_applicable_in_every_row() -> None:
    silent = replace(CHAT, calls_announced=True)

    result = METRIC.score(trace(ROOT, silent, reference_trajectories=REFUND))

    assert (result.status, result.reason) == ("not_applicable", "content_not_recorded")
    assert {(member.status, member.reason) for member in result.family} == {("not_applicable", "content_not_recorded")}


def test_a_judge_that_fails_costs_its_own_row_alone() -> None:
    """P69 and P70: a harness that fails is an error, and neither a pass nor a fail."""
    said = {**REFUND, "final_answer": {"callable": f"{__name__}:refuse"}}

    result = METRIC.score(trace(reference_trajectories=said, task_id="refunds"))

    answer = row(result, "final_answer")
    assert (answer.status, answer.code, answer.score) == ("failed", "hook_failed", None)
    assert "RuntimeError" in str(answer.error)
    assert [member.status for member in result.family if member is not answer] == ["scored"] * 9
    assert (result.score, result.metadata["verdict"]) == (1, "review")


def test_a_run_that_crashed_before_it_did_anything_forbidden_proves_nothing() -> None:
    """P70: neither a pass nor a fail, although its path is that of an agent that called nothing."""
    nothing = {"match": "exact", "references": [{"steps": []}], "forbidden": ["delete"]}
    crashed = replace(ROOT, status="ERROR", output=None)
    thought = replace(CHAT, output=None)

    verdicts = [
        METRIC.score(trace(root, thought, *calls, reference_trajectories=said)).metadata["verdict"]
        for root, calls, said in (
            (ROOT, (), nothing),
            (crashed, (), nothing),
            (crashed, (), {**nothing, "final_answer": {"contains": "x"}}),
            (crashed, (replace(CALL, tool_name="delete"),), nothing),
            (replace(ROOT, status="ERROR"), (), {**nothing, "final_answer": {"contains": "25 USD"}}),
        )
    ]

    assert verdicts == ["pass", "review", "review", "fail", "pass"]


def test_a_judge_is_given_task_answer_and_reference_and_may_return_a_number() -> None:
    said = {**REFUND, "final_answer": {"callable": f"{__name__}:agree"}}

    result = METRIC.score(trace(reference_trajectories=said, task_id="refunds"))

    assert row(result, "final_answer").score == 0.25
    assert result.metadata["verdict"] == "fail"


def test_what_a_run_took_is_summed_where_it_was_recorded_and_unknown_elsewhere() -> None:
    budget = {**REFUND, "budget": {"max_steps": 1, "max_tokens": 150, "max_cost_usd": 0.75}}
    twice = replace(CHAT, span_id="m2", cost_usd=None)
    recorded = row(METRIC.score(trace(ROOT, CALL, CHAT, twice, CHAT, reference_trajectories=budget)), "efficiency")
    silent = row(METRIC.score(trace(reference_trajectories=budget)), "efficiency")

    assert {key: recorded.metadata[key] for key in ("tokens", "input_tokens", "output_tokens", "cost_usd")} == {
        "tokens": 240,
        "input_tokens": 200,
        "output_tokens": 40,
        "cost_usd": 0.5,
    }
    assert [recorded.metadata[f"llm_spans{what}"] for what in ("", "_with_tokens", "_with_cost")] == [2, 2, 1]
    assert recorded.metadata["budget_breaches"] == [{"limit": "max_tokens", "allowed": 150, "observed": 240}]
    assert (silent.metadata["tokens"], silent.metadata["cost_usd"]) == (None, None)
    assert silent.metadata["budget_not_recorded"] == ["max_tokens", "max_cost_usd"]
    assert recorded.score == silent.score == 1


def test_gaps_are_carried_into_the_metadata_and_make_another_evaluation() -> None:
    partition = trace(reference_trajectories=REFUND)
    gapped = replace(partition, gaps=(Gap("orphan_spans", "One span has no parent.", ("s1",)),))

    before, after = (evaluate(METRIC, each, config()) for each in (partition, gapped))

    assert after.result.metadata["gaps"] == [
        {"kind": "orphan_spans", "detail": "One span has no parent.", "span_ids": ["s1"]}
    ]
    assert before.steps_hash != after.steps_hash
    assert before.reference_hash == after.reference_hash


def test_a_changed_output_is_another_evaluation_and_a_changed_reference_no_other_config() -> None:
    partition = trace(reference_trajectories=REFUND)
    other = trace(replace(ROOT, output="No."), CALL, reference_trajectories=REFUND)

    assert evaluate(METRIC, partition, config()).steps_hash != evaluate(METRIC, other, config()).steps_hash
    assert config_hash(config(reference_trajectories=OTHER)) == config_hash(config())


def test_a_config_with_a_bad_reference_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"field `reference_trajectories`: .*reference_trajectories.* cannot be used"):
        config(reference_trajectories={"references": [{"steps": [{"tool": ""}]}]})


def test_the_answer_is_the_roots_or_else_that_of_the_last_completion_without_tool_calls() -> None:
    asking = replace(CHAT, span_id="m2", start_time_unix_nano=9, output="Let me see.", tool_calls=(ToolCall("x"),))
    early = replace(CHAT, span_id="m0", start_time_unix_nano=2, output="First.")

    assert final_answer(trace(ROOT, CALL, CHAT)) == "I refunded 25 USD."
    assert final_answer(trace(replace(ROOT, output=None), CHAT, asking, early)) == "Done."
    assert final_answer(trace(replace(ROOT, output=" "), CALL)) is None
    assert final_answer(trace(replace(ROOT, output={"paid": True}))) == {"paid": True}


def test_the_answer_of_a_session_is_that_of_its_last_trace() -> None:
    later = replace(ROOT, trace_id="u", span_id="r2", start_time_unix_nano=10, output="Bye.")
    session = CanonicalPartition("session", "s", spans=(later, ROOT, CALL))

    assert final_answer(session) == "Bye."


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        ("Hello.", "Hello."),
        ({"role": "assistant", "content": "Hello."}, "Hello."),
        (
            {"role": "assistant", "content": [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo."}]},
            "Hello.",
        ),
        ([{"role": "assistant", "parts": [{"type": "text", "content": "Hello."}]}], "Hello."),
        ([{"text": "Hello."}], "Hello."),
        ({"messages": [{"type": "human", "content": "Hi"}, {"type": "ai", "content": "Hello."}]}, "Hello."),
        ({"messages": [{"type": "ai", "data": {"content": "Hello."}}]}, "Hello."),
        ({"choices": [{"message": {"role": "assistant", "content": "Hello."}}]}, "Hello."),
        ({"generations": [[{"text": "Hello.", "message": {"kwargs": {}}}]]}, "Hello."),
        ({"candidates": [{"content": {"role": "model", "parts": [{"text": "Hello."}]}}]}, "Hello."),
        (
            {
                "object": "response",
                "output": [
                    {"type": "reasoning", "summary": []},
                    {"type": "message", "content": [{"type": "output_text", "text": "Hello."}]},
                ],
            },
            "Hello.",
        ),
        ({"raw": "Hello.", "pydantic": None, "json_dict": None, "tasks_output": []}, "Hello."),
        ({"output": {"paid": True}, "_output_tool_name": None, "_state": {}}, {"paid": True}),
        ({"finish_reason": "stop", "content": "Hello.", "usage": {}, "cached": False}, "Hello."),
        ({"role": "assistant", "content": None, "tool_calls": [{}]}, None),
        ({"messages": [{"role": "assistant", "content": "Hello."}, {"role": "user", "content": "Bye"}]}, None),
        ({"object": "response", "output": [{"type": "function_call", "name": "x"}]}, None),
        ("  ", None),
        (["red", "blue"], ["red", "blue"]),
        ({"content": "of my own", "paid": True}, {"content": "of my own", "paid": True}),
        (0, 0),
        (False, False),
    ],
)
def test_an_answer_is_the_text_of_a_message_or_a_value_of_the_agents_own(output: Any, answer: Any) -> None:
    assert answer_in(output) == answer
    assert type(answer_in(output)) is type(answer)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["role", "type", "content", "parts", "text", "messages", "choices", "message", "data", "output"]
            ),
            inner | st.sampled_from(["assistant", "ai", "message", "response"]),
            max_size=3,
        )
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(json_values, json_values, json_values)
def test_whatever_was_recorded_is_judged(answer: Any, arguments: Any, output: Any) -> None:
    said = {**REFUND, "final_answer": {"any_of": [{"contains": "x"}, {"number": 1}, {"json": {}}]}}
    call = replace(CALL, tool_arguments=arguments, output=output)

    result = METRIC.score(trace(replace(ROOT, output=answer), call, call, reference_trajectories=said))

    assert result.status == "scored"
    json.dumps([result.metadata, *(member.metadata for member in result.family)], allow_nan=False)


def test_steps_that_are_none_are_refused() -> None:
    with pytest.raises(ConfigError, match="'search'; write Step"):
        trajectory_match(["search"], ["search"])  # type: ignore[list-item]
    assert trajectory_match(None, [Step("search")]).code == "missing_references"
