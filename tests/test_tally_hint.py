"""The hint that an agent which begins many alignments unexpectedly is the entry agent."""

from typing import Any

import pytest

from stepacc_core.metrics import evaluate, get_metric
from stepacc_core.metrics.step_accuracy_config import StepAccuracyConfig
from stepacc_core.model import CanonicalPartition, CanonicalSpan
from stepacc_dagster.tally import WindowTally

METRIC = get_metric("agent.step_accuracy")


def _trace(number: int, first: str, kind: Any) -> CanonicalPartition:
    spans = (
        CanonicalSpan("t", "root", "CHAIN", "run", start_time_unix_nano=1),
        CanonicalSpan("t", "a", kind, first, "root", start_time_unix_nano=2),
        CanonicalSpan("t", "b", "TOOL", "search", "root", start_time_unix_nano=3),
    )
    return CanonicalPartition("trace", f"t{number}", expected_steps=["search"], spans=spans)


def _hint(*traces: tuple[str, str]) -> str | None:
    tally = WindowTally()
    for number, (first, kind) in enumerate(traces):
        partition = _trace(number, first, kind)
        tally.add(partition, evaluate(METRIC, partition, StepAccuracyConfig()))
    return tally.entry_agent_hint


def test_an_agent_that_begins_many_alignments_is_named_with_the_setting() -> None:
    hint = _hint(*[("Support agent", "AGENT")] * 3, *[("log", "TOOL")] * 7)

    assert hint is not None
    assert "`Support agent`" in hint
    assert "3 of 10" in hint
    assert "entry_agent: root" in hint


@pytest.mark.parametrize(
    "traces",
    [
        [],
        [("Support agent", "AGENT")] * 2,
        [("log", "TOOL")] * 9,
        [("Support agent", "AGENT")] * 3 + [("log", "TOOL")] * 8,
        [(f"agent {n}", "AGENT") for n in range(9)],
    ],
    ids=["nothing", "too few", "tools", "too small a share", "different agents"],
)
def test_without_such_an_agent_there_is_no_hint(traces: list[tuple[str, str]]) -> None:
    assert _hint(*traces) is None
