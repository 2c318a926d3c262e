"""Evaluations of traces that are alike are made once, and are those that would be made one by one."""

from dataclasses import replace
from typing import Any

from stepacc_core.metrics import Evaluations, evaluate, get_metric, reads_content
from stepacc_core.metrics.step_accuracy import StepAccuracy
from stepacc_core.metrics.step_accuracy_config import StepAccuracyConfig
from stepacc_core.model import AnnotationRef, CanonicalPartition, CanonicalSpan, PartitionType, Result

METRIC = get_metric("agent.step_accuracy", "2.0.0")
CONFIG = StepAccuracyConfig(expected_steps=["a"], annotations={"2": {"expected_steps": '["b"]'}})


def few_partitions() -> list[CanonicalPartition]:
    """Return all that can be made of few values: many are alike but for one thing."""
    root = CanonicalSpan("t", "root", "CHAIN", "run")
    spans = [
        CanonicalSpan("t", "s", kind, name, parent, start, calls_announced=announced)
        for kind in ("TOOL", "AGENT", "LLM", "CHAIN")
        for name in ("a", "A")
        for parent in ("root", None)
        for start in (1, None)
        for announced in (False, True)
    ]
    kinds: tuple[PartitionType, ...] = ("trace", "session")
    return [
        CanonicalPartition(kind, ident, expected_steps=expected, annotation=annotation, spans=(root, span))
        for kind in kinds
        for ident in ("1", "2", "3")
        for expected in (None, ["a"], ["a", "A"], ["a", 1])
        for annotation in (None, AnnotationRef(1, 1), AnnotationRef(2, 1))
        for span in spans
    ]


def test_evaluations_are_those_made_one_by_one() -> None:
    evaluations = Evaluations(METRIC, CONFIG)
    for partition in few_partitions():
        assert evaluations.of(partition) == evaluate(METRIC, partition, CONFIG)


def test_what_is_alike_is_evaluated_once() -> None:
    evaluations = Evaluations(METRIC, CONFIG)
    span = CanonicalSpan("1", "s1", "TOOL", "a", "root", 1)
    first = CanonicalPartition("trace", "3", spans=(span,))
    second = replace(first, partition_id="4", spans=(replace(span, trace_id="2", span_id="x", tool_arguments=[1]),))
    assert evaluations.of(first) is evaluations.of(second)


def test_few_evaluations_are_kept_however_many_differ() -> None:
    evaluations = Evaluations(METRIC, CONFIG)
    for number in range(3_000):
        span = CanonicalSpan("1", "s1", "TOOL", f"tool {number}", "root", 1)
        evaluations.of(CanonicalPartition("trace", "3", spans=(span,)))
    large = tuple(CanonicalSpan("1", f"s{place}", "TOOL", "a", "root", 1) for place in range(300))
    first, second = (evaluations.of(CanonicalPartition("trace", name, spans=large)) for name in "34")
    assert first == second
    assert first is not second


def test_a_metric_made_from_another_is_asked_each_time() -> None:
    class Arguments(StepAccuracy):
        def score(self, partition: CanonicalPartition, config: Any = None) -> Result:  # noqa: ARG002 (the signature)
            return Result("scored", score=float(partition.spans[0].tool_arguments))

    metric = Arguments("manifests/agent.step_accuracy-2.0.0.yaml", StepAccuracyConfig)
    evaluations = Evaluations(metric, CONFIG)
    span = CanonicalSpan("1", "s1", "TOOL", "a", "root", 1)
    given = [CanonicalPartition("trace", "3", spans=(replace(span, tool_arguments=number),)) for number in (0, 1)]
    assert reads_content(metric)
    assert [evaluations.of(each).result.score for each in given] == [0, 1]
