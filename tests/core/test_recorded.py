"""Recordings of producers beside the 61 files give their true calls; see `tests/data/recorded/README.md`."""

import json
from pathlib import Path
from typing import Any

import pytest

from stepacc_core.exports.formats import read_trace_lines
from stepacc_core.log_records import carrier, is_kept
from stepacc_core.model import CanonicalTrace, RawSpan
from stepacc_core.reading import read_traces, trace_partition
from stepacc_core.steps import collect_steps, not_applicable_reason
from tests.fidelity import difference

FOLDER = Path(__file__).parents[1] / "data" / "recorded"
ENTRIES: list[dict[str, Any]] = json.loads((FOLDER / "manifest.json").read_text("utf-8"))["files"]


def traces(file: str) -> tuple[CanonicalTrace, ...]:
    """Read a recorded file, which must be free of errors."""
    found: list[Any] = list(read_trace_lines((FOLDER / file).read_text("utf-8").splitlines()))
    spans = [item for item in found if isinstance(item, RawSpan)]
    logs = [item for item in found if isinstance(item, tuple)]
    assert len(spans) + len(logs) == len(found)
    return read_traces([*spans, *(carrier(log) for log in logs if is_kept(log[1]))])


def test_every_file_is_listed() -> None:
    assert sorted(entry["file"] for entry in ENTRIES) == sorted(path.name for path in FOLDER.glob("*.jsonl"))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: str(entry["file"]))
def test_a_recording_gives_its_true_calls_and_agents(entry: dict[str, Any]) -> None:
    """Calls of one completion in any order among themselves; where none was recorded the trace says so."""
    partitions = [trace_partition(trace) for trace in traces(entry["file"])]
    steps = [step for partition in partitions for step in collect_steps(partition)]
    assert [step.name for step in steps if step.kind == "AGENT"] == entry["agents"]
    reasons = {not_applicable_reason(partition) for partition in partitions}
    if entry["true_calls"] is None:
        assert (steps, reasons) == ([], {"content_not_recorded"})
        return
    assert "content_not_recorded" not in reasons
    calls = [step for step in steps if step.kind == "TOOL"]
    assert difference([entry["true_calls"]], calls) is None
