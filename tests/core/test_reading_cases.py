"""Small traces of real producers give what `tests/cases/reading.json` says, in whatever order their spans come."""

import json
from pathlib import Path
from typing import Any

import pytest

from stepacc_core.model import RawEvent, RawSpan, Step
from stepacc_core.reading import canonicalise, trace_partition
from stepacc_core.steps import collect_steps, not_applicable_reason

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "cases" / "reading.json").read_text("utf-8"))[
    "cases"
]


def _span(written: dict[str, Any]) -> RawSpan:
    start, end = written["at"]
    return RawSpan(
        trace_id="t",
        span_id=written["id"],
        name=written["name"],
        parent_span_id=written.get("parent"),
        start_time_unix_nano=start,
        end_time_unix_nano=end,
        status=written.get("status", "UNSET"),
        attributes=written.get("attributes", {}),
        events=tuple(RawEvent(name, start, attributes) for name, attributes in written.get("events", ())),
        scope_name=written.get("scope", ""),
    )


def _told(step: Step) -> Any:
    return f"@{step.name}" if step.kind == "AGENT" else [step.name, step.arguments]


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_a_case_gives_its_steps_and_gaps(case: dict[str, Any]) -> None:
    spans = [_span(written) for written in case["spans"]]
    trace = canonicalise("t", spans)
    partition = trace_partition(trace)

    assert [_told(step) for step in collect_steps(partition)] == case["steps"]
    assert [gap.kind for gap in trace.gaps] == case["gaps"]
    assert not_applicable_reason(partition) == case.get("reason")
    assert {span.span_id for span in trace.spans} >= {span.span_id for span in spans}
    assert canonicalise("t", spans[::-1]) == trace
