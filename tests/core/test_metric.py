"""`agent.step_accuracy` over whole partitions: which trajectory is used, statuses, and what the result says."""

import json
from typing import Any

import pytest

from stepacc_core import CanonicalPartition, CanonicalSpan, Step, get_metric, step_accuracy
from stepacc_core.errors import ConfigError
from stepacc_core.metrics import build_config, evaluate
from stepacc_core.model import AnnotationRef

METRIC = get_metric("agent.step_accuracy")
FIRST = get_metric("agent.step_accuracy", "1.0.0")


def partition(*tools: str, **fields: Any) -> CanonicalPartition:
    """One trace: an agent at the root and a tool span for each name, a second apart."""
    spans = [CanonicalSpan("t1", "root", "AGENT", "agent", start_time_unix_nano=1)]
    spans += [
        CanonicalSpan("t1", f"s{n}", "TOOL", f"execute {tool}", "root", start_time_unix_nano=n + 2, tool_name=tool)
        for n, tool in enumerate(tools)
    ]
    return CanonicalPartition("trace", "t1", spans=tuple(spans), **fields)


def config(**values: Any) -> Any:
    """A config of 2.0.0."""
    return build_config(METRIC, values)


def test_the_worked_example_scores_two_thirds_and_nothing_by_position() -> None:
    observed = [Step("preamble_call"), Step("search"), Step("open_document")]

    graded = step_accuracy(["search", "open_document"], observed)
    strict = step_accuracy(["search", "open_document"], observed, scoring_method="strict_position")

    assert graded.score == 1 - 1 / 3
    assert [entry["op"] for entry in graded.metadata["steps"]] == ["insert", "match", "match"]
    assert strict.score == 0
    assert strict.metadata["extra_steps"] == ["open_document"]


def test_annotations_of_the_config_come_before_the_column_and_that_before_the_fallback() -> None:
    by_key = {"t1": {"expected_steps": '["a"]'}, "other": {"expected_steps": '["z"]'}}
    fallback = ["c"]

    first = METRIC.score(partition("a", expected_steps=["b"]), config(annotations=by_key, expected_steps=fallback))
    second = METRIC.score(partition("b", expected_steps=["b"]), config(expected_steps=fallback))
    third = METRIC.score(partition("c"), config(expected_steps=fallback))

    assert [r.metadata["expected_from"] for r in (first, second, third)] == ["annotations", "column", "config"]
    assert [r.score for r in (first, second, third)] == [1, 1, 1]


@pytest.mark.parametrize("bad", ["[", "{}", '[["a", ["b"]]]', "[]"])
def test_an_invalid_trajectory_never_falls_through_to_the_next_one(bad: str) -> None:
    by_key = {"t1": {"expected_steps": bad}}

    result = METRIC.score(partition("a", expected_steps=["a"]), config(annotations=by_key, expected_steps=["a"]))

    assert (result.status, result.score) == ("failed", None)


@pytest.mark.parametrize(
    ("column", "code"),
    [
        (None, "missing_expected_steps"),
        ([], "invalid_expected_steps"),
        ([[]], "invalid_expected_steps"),
        ([1], "invalid_expected_steps"),
        ("[1", "invalid_annotation_json"),
        ('["a"', "invalid_annotation_json"),
        ([["a", ["b"]]], "nested_group"),
    ],
)
def test_each_way_to_have_no_trajectory_has_its_code_and_names_the_annotation(column: Any, code: str) -> None:
    annotation = AnnotationRef(12, 3) if column is not None else None

    result = METRIC.score(partition("a", expected_steps=column, annotation=annotation), config())

    assert result.status == "failed"
    assert result.code == code
    assert result.score is None
    assert ("Annotation 12, revision 3" in str(result.error)) == (column is not None)
    assert "`t1`" in str(result.error)


def test_text_in_the_column_that_no_annotation_put_there_is_an_invalid_trajectory() -> None:
    assert METRIC.score(partition("a", expected_steps="[1"), config()).code == "invalid_expected_steps"


def test_a_group_is_refused_by_position_when_the_occurrence_is_scored() -> None:
    result = METRIC.score(partition("a", expected_steps=[["a"]]), config(scoring_method="strict_position"))

    assert result.code == "group_under_strict_position"
    assert (
        FIRST.score(partition("a", expected_steps=[["a"]]), build_config(FIRST, {})).code
        == "group_under_strict_position"
    )


def test_a_span_without_start_fails_its_occurrence() -> None:
    spans = (CanonicalSpan("t1", "r", "AGENT", "a", start_time_unix_nano=1), CanonicalSpan("t1", "s", "TOOL", "x", "r"))

    result = METRIC.score(CanonicalPartition("trace", "t1", expected_steps=["x"], spans=spans), config())

    assert result.code == "missing_start_time"
    assert "(s)" in str(result.error)


def test_without_a_tool_agent_or_llm_span_the_metric_does_not_apply() -> None:
    spans = (CanonicalSpan("t1", "r", "CHAIN", "chain", start_time_unix_nano=1),)

    result = METRIC.score(CanonicalPartition("trace", "t1", expected_steps=["x"], spans=spans), config())

    assert (result.status, result.reason, result.score, result.code) == (
        "not_applicable",
        "no_required_kinds",
        None,
        None,
    )


def test_calls_announced_but_not_recorded_are_not_zero_steps() -> None:
    llm = CanonicalSpan("t1", "r", "LLM", "chat", start_time_unix_nano=1, calls_announced=True)

    result = METRIC.score(CanonicalPartition("trace", "t1", expected_steps=["x"], spans=(llm,)), config())

    assert (result.status, result.reason, result.score) == ("not_applicable", "content_not_recorded", None)


def test_a_trace_of_an_agent_that_did_nothing_scores_zero() -> None:
    result = METRIC.score(partition(expected_steps=["a"]), config())

    assert (result.status, result.score) == ("scored", 0)
    assert result.metadata["actual_steps"] == []


def test_the_metadata_says_everything_the_contract_lists() -> None:
    fields = {"expected_steps": ["a", ["b", "c"]], "annotation": AnnotationRef(7, 2)}

    metadata = METRIC.score(partition("a", "c", "b", **fields), config(metric_name="refunds")).metadata

    assert {key: value for key, value in metadata.items() if key != "steps"} == {
        "metric_name": "refunds",
        "scoring_method": "edit_distance",
        "expected_from": "column",
        "annotation": {"id": 7, "revision": 2},
        "expected_steps": ["a", ["b", "c"]],
        "actual_steps": ["a", "c", "b"],
        "total_steps": 3,
        "correct_steps": 3,
        "edit_distance": 0,
    }
    assert json.loads(json.dumps(metadata)) == metadata


def test_by_position_there_is_no_edit_distance_but_extra_steps() -> None:
    metadata = METRIC.score(
        partition("a", "b", expected_steps=["a"]), config(scoring_method="strict_position")
    ).metadata

    assert metadata["extra_steps"] == ["b"]
    assert "edit_distance" not in metadata


def test_the_first_version_is_strict_position_under_the_same_names() -> None:
    trace = partition("x", "a", expected_steps=["a"])

    first = FIRST.score(trace, build_config(FIRST, {}))

    assert first == METRIC.score(trace, config(scoring_method="strict_position"))
    assert METRIC.score(trace, config()).score == 0.5


def test_an_evaluation_is_recognised_by_steps_and_reference_alone() -> None:
    base = evaluate(METRIC, partition("a", expected_steps=["a"]), config())
    moved = evaluate(METRIC, partition("a", expected_steps=["a"], annotation=AnnotationRef(1, 1)), config())
    other_steps = evaluate(METRIC, partition("b", expected_steps=["a"]), config())
    other_reference = evaluate(METRIC, partition("a", expected_steps=["b"]), config())
    nobody = evaluate(METRIC, partition("a"), config())

    assert (base.steps_hash, base.reference_hash) == (moved.steps_hash, moved.reference_hash)
    assert other_steps.steps_hash != base.steps_hash
    assert other_reference.reference_hash != base.reference_hash
    assert (nobody.reference, nobody.reference_hash) == (None, None)


def test_an_unknown_scoring_method_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'fuzzy'.*edit_distance"):
        step_accuracy(["a"], [], scoring_method="fuzzy")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["tool", "LLM", "", None, []])
def test_a_step_of_a_kind_that_does_not_exist_is_refused(kind: Any) -> None:
    with pytest.raises(ConfigError, match=r"'search' is of the kind .*; use 'TOOL' or 'AGENT'\."):
        Step("search", kind)


def test_observed_steps_that_are_none_are_told_apart_from_a_fault_of_ours() -> None:
    with pytest.raises(ConfigError, match=r"'search'.*Step\(name, kind\)"):
        step_accuracy(["search"], ["search"])  # type: ignore[list-item]


def test_a_list_too_deep_to_be_written_is_refused_like_any_nested_group() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]

    assert step_accuracy(["a", [deep]], []).code == "nested_group"


def test_an_annotation_of_nothing_is_a_bad_one_and_no_missing_one() -> None:
    result = METRIC.score(partition("a", annotation=AnnotationRef(3, 1)), config(expected_steps=["a"]))

    assert result.code == "invalid_expected_steps"
    assert "Annotation 3, revision 1" in str(result.error)


def test_a_copied_config_is_scored_by_what_it_says_now() -> None:
    copied = config(expected_steps=["b"]).model_copy(update={"expected_steps": ["a"]})

    assert METRIC.score(partition("a"), copied).score == 1


def test_a_trace_that_the_metric_does_not_apply_to_is_another_evaluation_than_one_without_steps() -> None:
    def evaluation(*, announced: bool) -> Any:
        llm = CanonicalSpan("t1", "r", "LLM", "chat", start_time_unix_nano=1, calls_announced=announced)
        return evaluate(METRIC, CanonicalPartition("trace", "t1", expected_steps=["x"], spans=(llm,)), config())

    hidden, visible = evaluation(announced=True), evaluation(announced=False)

    assert (hidden.result.status, visible.result.status) == ("not_applicable", "scored")
    assert hidden.steps_hash != visible.steps_hash
