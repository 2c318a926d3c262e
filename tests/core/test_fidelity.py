"""The recorded traces of real producers give the true steps: which of them do is written down, so it cannot shrink."""

import json
from dataclasses import replace
from typing import Any

import pytest

from stepacc_core.conventions import mlflow
from stepacc_core.conventions.recognise import read_span
from stepacc_core.reading import canonicalise, group_by_trace, session_partition, trace_partition
from stepacc_core.steps import collect_steps
from tests.fidelity import TRACES, difference, main, manifest, outcome, raw_spans, traces

ENTRIES = {entry["file"]: entry for entry in manifest()}
EXPECTED: dict[str, Any] = json.loads((TRACES / "expected.json").read_text("utf-8"))


def test_the_list_names_every_recorded_file() -> None:
    """A file that is added or dropped must be decided upon."""
    assert sorted([*EXPECTED["right"], *EXPECTED["not_recorded"]]) == sorted(ENTRIES)
    assert len(ENTRIES) == 61


@pytest.mark.parametrize("file", EXPECTED["right"])
def test_the_true_tool_steps_are_read(file: str) -> None:
    """In their order, calls of one completion in any order, with the failed ones."""
    assert outcome(ENTRIES[file]).difference is None


@pytest.mark.parametrize("file", EXPECTED["not_recorded"])
def test_calls_that_were_not_recorded_are_no_zero_steps(file: str) -> None:
    """With content off the calls are nowhere in the file; the partition is not applicable and says why."""
    assert outcome(ENTRIES[file]).reasons == ("content_not_recorded",)


@pytest.mark.parametrize("file", EXPECTED["agents"])
def test_the_agents_that_are_steps_are_read(file: str) -> None:
    """All steps of the first trace that has any, agents by their own names."""
    found = [[s.name for s in collect_steps(trace_partition(t)) if s.kind == "AGENT"] for t in traces(file)]
    assert [names for names in found if names] == [EXPECTED["agents"][file]]


@pytest.mark.parametrize("file", EXPECTED["arguments"])
def test_the_arguments_of_the_true_calls_are_read(file: str) -> None:
    """Unwrapped and by name, whatever the producer wrote."""
    steps = [s for t in traces(file) for s in collect_steps(trace_partition(t)) if s.kind == "TOOL"]
    found = sorted(json.dumps([s.name, s.arguments], sort_keys=True) for s in steps)
    wanted = EXPECTED["arguments"][file]
    scenario = EXPECTED["scenarios"].get(wanted, wanted) if isinstance(wanted, str) else wanted
    assert found == sorted(json.dumps(call, sort_keys=True) for call in scenario)


@pytest.mark.parametrize("file", EXPECTED["sessions"])
def test_traces_of_one_conversation_share_its_session(file: str) -> None:
    """And the session has the steps of all its traces."""
    session_ids = {trace.session_id for trace in traces(file)}
    assert session_ids == {"conv-42"}
    steps = collect_steps(session_partition("conv-42", reversed(traces(file))))
    assert difference(ENTRIES[file]["true_calls"], [step for step in steps if step.kind == "TOOL"]) is None


@pytest.mark.parametrize("file", sorted(ENTRIES))
def test_the_order_and_number_of_deliveries_does_not_matter(file: str) -> None:
    """Children first, or everything twice: the same trace but for the gap that says so."""
    for trace_id, spans in group_by_trace(raw_spans(file)).items():
        once = canonicalise(trace_id, spans)
        assert canonicalise(trace_id, spans[::-1]) == once
        twice = canonicalise(trace_id, spans + spans[::-1])
        assert twice.spans == once.spans
        assert [gap.kind for gap in twice.gaps] == ["delivered_twice", *(gap.kind for gap in once.gaps)]


@pytest.mark.parametrize("file", sorted(ENTRIES))
def test_what_mlflow_adds_to_a_span_overrules_nothing_that_its_producer_said(file: str) -> None:
    """Its server puts a kind on the spans of other conventions, whose names are then those of operations, not tools."""
    for trace_id, spans in group_by_trace(raw_spans(file)).items():
        kinds = {span.span_id: read_span(span)[0].kind for span in spans}
        added = [
            replace(span, attributes={**span.attributes, "mlflow.spanType": kinds[span.span_id]})
            for span in spans
            if kinds[span.span_id] in mlflow.KINDS
        ]
        rest = [span for span in spans if kinds[span.span_id] not in mlflow.KINDS]
        assert added
        assert canonicalise(trace_id, added + rest) == canonicalise(trace_id, spans)


def test_the_summary_counts_and_names_what_differs(capsys: pytest.CaptureFixture[str]) -> None:
    """What `make fidelity` prints."""
    assert main() == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == f"{len(EXPECTED['right'])} of 61 recorded files give their true tool steps"
    assert len(printed) == 1 + len(EXPECTED["not_recorded"])
