"""The recorded scenarios, judged by one reference over all producers: what differs is listed and nothing else does."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from stepacc_core.metrics import build_config
from stepacc_core.metrics.trajectory_match import get_trace_metric
from stepacc_core.model import CanonicalPartition, CanonicalTrace
from stepacc_core.reading import session_partition, trace_partition
from tests.core.test_recorded import FOLDER as FURTHER
from tests.core.test_recorded import traces as further_traces
from tests.fidelity import TRACES, traces

ROOT = Path(__file__).parents[2]
SCENARIOS = yaml.safe_load((ROOT / "tests" / "cases" / "trajectory_match_traces.yaml").read_text(encoding="utf-8"))
METRIC = get_trace_metric()


def recorded(names: list[str]) -> dict[str, Callable[[], tuple[CanonicalTrace, ...]]]:
    """How to read each recorded file with one of these names, which is called without its ending."""
    files = [str(path.relative_to(TRACES)) for path in TRACES.rglob("*.otlp.jsonl")]
    readers = {file.removesuffix(".otlp.jsonl"): partial(traces, file) for file in files}
    further = [path.name for path in FURTHER.glob("*.jsonl")]
    readers |= {file.removesuffix(".jsonl"): partial(further_traces, file) for file in further}
    return {file: read for file, read in sorted(readers.items()) if any(name in file for name in names)}


def partition(found: tuple[CanonicalTrace, ...], scenario: str) -> CanonicalPartition:
    """The session of a file, or that of its traces which holds the run: a few producers scatter spans over others."""
    if scenario == "session":
        return session_partition("conv-42", found)
    return max((trace_partition(trace) for trace in found), key=lambda each: len(each.spans))


def differences(found: tuple[CanonicalTrace, ...], scenario: str) -> Any:
    """The rows that are not 1, or why there is none."""
    config = build_config(METRIC, {"reference_trajectories": SCENARIOS[scenario]["reference_trajectories"]})
    result = METRIC.score(partition(found, scenario), config)
    if result.status != "scored":
        return result.code or result.reason
    rows = {row.name.removeprefix("trajectory_match."): row.score for row in result.family}
    return {name: score if score is None else round(score, 6) for name, score in rows.items() if score != 1}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_producers_differ_as_listed_and_not_otherwise(scenario: str) -> None:
    said = SCENARIOS[scenario]
    files = recorded(said["names"])

    found = {file: differences(read(), scenario) for file, read in files.items()}

    assert len(files) == said["files"]
    assert {file: rows for file, rows in found.items() if rows} == said["differences"]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_each_difference_is_explained_in_the_documentation(scenario: str) -> None:
    text = (ROOT / "docs" / "trajectory_match.md").read_text(encoding="utf-8")

    assert [file for file in SCENARIOS[scenario]["differences"] if f"`{file}`" not in text] == []
