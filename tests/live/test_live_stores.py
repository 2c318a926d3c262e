"""Real servers of Phoenix and MLflow keep real spans as the stores read them: steps, scores, and what changes."""

from dataclasses import dataclass
from typing import Any

import pytest
import sqlalchemy as sa
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from stepacc_core.model import CanonicalTrace
from stepacc_core.otlp import read_otlp_lines
from stepacc_core.reading import canonicalise, group_by_trace, trace_partition
from stepacc_core.steps import collect_steps, not_applicable_reason
from stepacc_dagster.stores.base import Changes
from stepacc_dagster.stores.settings import StoreSettings
from stepacc_dagster.windows import Window, window_of
from tests.fidelity import TRACES, manifest
from tests.integration.conftest import opened
from tests.integration.evaluation_access import Workshop
from tests.integration.store_access import DAY, read
from tests.integration.store_access import opened as opened_store
from tests.live.recorded import DAY_NS, Recording, recording
from tests.live.servers import LiveServer

pytestmark = pytest.mark.live

EARLIER = window_of("2026-11-28", "daily")
URL_VARIABLE = "LIVE_STORE_URL"
LATE_FILE = "strands/sequential.otlp.jsonl"
STEPS = ["lookup_order", "check_refund_policy", "issue_refund"]
SCORED = {
    LATE_FILE: EARLIER,
    "pydantic-ai/sequential.otlp.jsonl": EARLIER,
    "openinference-langgraph/sequential.otlp.jsonl": DAY,
    "google-adk/sequential.otlp.jsonl": DAY,
}
"""Traces of one agent that took these steps, recorded from four producers, and the day they are moved to."""


@dataclass(frozen=True)
class Understood:
    """What matters of a trace wherever it is read, without the ids a store may change."""

    session_id: str | None
    task_id: str | None
    not_applicable: str | None
    steps: list[tuple[Any, ...]]


def understood(trace: CanonicalTrace) -> Understood:
    """Return what is understood of a trace."""
    partition = trace_partition(trace)
    steps = [
        (step.kind, step.name, step.full_name, step.arguments, step.call_id, step.status, step.origin, step.span_id)
        for step in collect_steps(partition)
    ]
    return Understood(trace.session_id, trace.task_id, not_applicable_reason(partition), steps)


def understood_of(file: str) -> dict[str, Understood]:
    """Return what is understood of the traces of a recorded file, by their ids."""
    spans: list[Any] = list(read_otlp_lines((TRACES / file).read_text("utf-8").splitlines()))
    return {trace_id: understood(canonicalise(trace_id, group)) for trace_id, group in group_by_trace(spans).items()}


def stored(live: LiveServer, project: str, window: Window) -> dict[str, Understood]:
    """Return what is understood of the traces that the server holds in a window, by their ids."""
    with opened(live.database_url) as engine:
        return {ident: understood(trace) for ident, trace in read(engine, live.settings(project), window).items()}


def changes(engine: sa.Engine, settings: StoreSettings, cursor: str | None = None) -> Changes:
    """Ask the store what changed."""
    with opened_store(engine, settings) as reader:
        return reader.changes(cursor, "daily")


def test_every_recorded_trace_is_understood_as_in_its_file(live: LiveServer) -> None:
    """Its steps with their arguments, its session, and why there are none; log records reach neither server."""
    files = [entry["file"] for entry in manifest() if entry["file"] not in SCORED]
    for file in files:
        live.send(recording(file), "recorded")

    wanted = {live.trace_id(ident): said for file in files for ident, said in understood_of(file).items()}
    found = stored(live, "recorded", DAY)
    assert len(found) == len(wanted)
    assert {ident: (said, wanted[ident]) for ident, said in found.items() if said != wanted[ident]} == {}


def test_live_traces_are_scored_and_a_late_child_changes_its_trace_only(
    live: LiveServer, workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The expectations come from the server too; the late child is the recorded last call of one trace."""
    monkeypatch.setenv(URL_VARIABLE, live.database_url)
    store = live.settings("scored")
    source: dict[str, Any] = {"start_date": EARLIER.key, "partition_types": {"trace": "fail"}, "store": store}
    source["store_url_env"] = URL_VARIABLE
    recordings = {file: _moved(file, day) for file, day in SCORED.items()}
    recordings[LATE_FILE], late = recordings[LATE_FILE].split(_is_last_call)
    for each in recordings.values():
        live.send(each, "scored")
        live.expect(each, STEPS)
    ids = {file: live.trace_id(*each.trace_ids) for file, each in recordings.items()}

    with opened(live.database_url) as engine:
        first = changes(engine, store)
        outcome = workshop.run(*first.windows, **source)
        before = _current(workshop)
        live.send(late, "scored")
        second = changes(engine, store, first.cursor)
        again = workshop.run(*first.windows, **source)
        after = _current(workshop)
        third = changes(engine, store, second.cursor)

    assert (outcome.error, again.error) == (None, None)
    assert (first.windows, second.windows, third) == (
        (EARLIER.key, DAY.key),
        (EARLIER.key,),
        Changes((), second.cursor),
    )
    counts = {ids[file]: (2 if file == LATE_FILE else 3, 3) for file in SCORED}
    assert {ident: (row.correct_steps, row.total_steps) for ident, row in before.items()} == counts
    assert {ident: (row.correct_steps, row.total_steps) for ident, row in after.items()} == dict.fromkeys(
        ids.values(), (3, 3)
    )
    assert {ident for ident, row in after.items() if row.steps_hash != before[ident].steps_hash} == {ids[LATE_FILE]}
    wanted = {ids[file]: next(iter(understood_of(file).values())) for file in SCORED}
    assert {**stored(live, "scored", EARLIER), **stored(live, "scored", DAY)} == wanted


def _moved(file: str, day: Window) -> Recording:
    return recording(file, days_back=(DAY.start_ns - day.start_ns) // DAY_NS)


def _is_last_call(span: Span) -> bool:
    named = {each.value.string_value for each in span.attributes if each.key == "gen_ai.tool.name"}
    return STEPS[-1] in named


def _current(workshop: Workshop) -> dict[str, Any]:
    return {row.partition_id: row for row in workshop.current()}
