"""A month in minutes: traces, late spans, sessions, annotations, a bump and an outage, and every score still right."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any

import dagster as dg
import pytest
import sqlalchemy as sa

from stepacc_core import get_metric
from stepacc_core.metrics import build_config, evaluate
from stepacc_core.model import CanonicalTrace, PartitionType, RawSpan
from stepacc_core.reading import canonicalise, session_partition, trace_partition
from tests.integration.evaluation_access import Workshop
from tests.integration.evaluation_samples import agent_trace, day, tool_span
from tests.integration.following_access import Asked, Follower

FIRST = date(2025, 11, 1)
DAYS = [(FIRST + timedelta(days=n)).isoformat() for n in range(30)]
BUMP = 15
"""Day, counted from 0, on which the metric's version changes."""
DOWN = {20, 21}
"""Days on which nobody looks."""
TOOLS = ("search", "fetch", "answer", "refund")
TASKS: dict[str, list[Any]] = {
    "refund": ["search", "refund", "answer"],
    "question": [["search", "fetch"], "answer"],
    "greeting": ["answer"],
}
_SECOND = 1_000_000_000
_HOUR = 3_600 * _SECOND


@dataclass
class World:
    """What was landed and said so far, kept apart from the database: the truth that the scores are held against."""

    workshop: Workshop
    spans: dict[str, list[RawSpan]] = field(default_factory=dict)
    said: dict[tuple[str, str, PartitionType], Any] = field(default_factory=dict)

    def land(self, *spans: RawSpan) -> None:
        """Let spans arrive."""
        for span in spans:
            self.spans.setdefault(span.trace_id, []).append(span)
        self.workshop.land(spans)

    def say(self, target: Any, ident: str, value: Any, kind: PartitionType = "trace") -> None:
        """Annotate, or say something else than before."""
        self.said[target, ident, kind] = value
        self.workshop.annotate(target, ident, value, kind)

    def unsay(self, target: Any, ident: str) -> None:
        """Take an annotation back."""
        del self.said[target, ident, "trace"]
        self.workshop.withdraw(target, ident)

    def expected(self, kind: PartitionType, ident: str, task: str | None) -> Any:
        """Return what an occurrence is measured against."""
        own = self.said.get((kind, ident, kind))
        return own if own is not None else self.said.get(("task", task or "", kind))


def happenings(world: World, chance: random.Random, place: int) -> None:
    """Let a day happen."""
    key = DAYS[place]
    for n in range(3):
        task = chance.choice(list(TASKS))
        session = f"s {place // 3}" if n == 0 else None  # one session over three days
        tools = chance.choices(TOOLS, k=chance.randint(1, 4))
        world.land(*agent_trace(f"t {key} {n}", key, *tools, hour=8 + n, task=task, session=session))
    if place % 5 == 2:  # a span of the day before arrives a day late
        earlier = DAYS[place - 1]
        begin = day(earlier).start_ns + 12 * _HOUR
        world.land(tool_span(f"t {earlier} 1", "late", chance.choice(TOOLS), begin))
    if place == 9:  # one that goes over midnight
        begin = day(key).end_ns - _HOUR // 2
        shifted = agent_trace("midnight", key, "search", "answer", hour=23, task="question")
        world.land(*shifted, tool_span("midnight", "next day", "fetch", begin + _HOUR))
    if place == 12:  # one whose root turns out to be a day older
        world.land(tool_span(f"t {key} 2", "older", "search", day(DAYS[place - 1]).start_ns + 20 * _HOUR, None))
    said = {
        3: ("refund", TASKS["refund"]),
        6: ("question", TASKS["question"]),
        17: ("greeting", TASKS["greeting"]),
        23: ("refund", ["search", "refund"]),  # corrected
    }
    if place in said:
        world.say("task", *said[place])
    if place % 3 == 2:
        world.say("session", f"s {place // 3}", ["search", "answer"], "session")
    if place == 10:
        world.say("trace", f"t {DAYS[8]} 0", ["search"])
    if place == 25:
        world.unsay("trace", f"t {DAYS[8]} 0")


def truth(world: World, version: str) -> Iterator[tuple[str, str, str, float | None, str | None]]:
    """Compute every score from scratch by the core: kind, id, status, score and code."""
    metric = get_metric("agent.step_accuracy", version)
    config = build_config(metric, {})
    traces = [canonicalise(ident, spans) for ident, spans in world.spans.items()]
    sessions: dict[str, list[CanonicalTrace]] = {}
    for trace in traces:
        if trace.session_id:
            sessions.setdefault(trace.session_id, []).append(trace)
    partitions = [*map(trace_partition, traces), *(session_partition(*session) for session in sessions.items())]
    for partition in partitions:
        expected = world.expected(partition.partition_type, partition.partition_id, partition.task_id)
        result = evaluate(metric, replace(partition, expected_steps=expected), config).result
        yield partition.partition_type, partition.partition_id, result.status, result.score, result.code


@pytest.mark.slow
def test_a_month_ends_with_the_scores_that_the_core_computes_from_scratch(
    dagster_instance: dg.DagsterInstance, migrated_engine: sa.Engine
) -> None:
    workshop = Workshop(dagster_instance, migrated_engine)
    world, chance = World(workshop), random.Random(20251101)  # noqa: S311 (a test's)
    settings: dict[str, Any] = {"partition_types": {"trace": "fail", "session": "fail"}}
    before, after = (Follower(workshop, version=version, **settings) for version in ("1.0.0", "2.0.0"))
    old: list[Any] = []
    asked: list[Asked] = []
    for place in range(len(DAYS)):
        happenings(world, chance, place)
        if place == BUMP:
            asked += before.settle()
            old = workshop.rows("SELECT * FROM stepacc.scores ORDER BY id")
        if place not in DOWN:
            asked += (after if place >= BUMP else before).settle()
    assert after.look() == []

    current = {
        (row.partition_type, row.partition_id, row.status, row.score, row.code)
        for row in workshop.current()
        if row.metric_version == "2.0.0"
    }
    assert current == set(truth(world, "2.0.0"))
    assert len(current) == 91 + 10
    assert Counter(status for _, _, status, _, _ in current).keys() >= {"scored"}
    assert workshop.rows("SELECT * FROM stepacc.scores WHERE metric_version = '1.0.0' ORDER BY id") == old

    # Nothing was evaluated twice without cause: each time a window was taken, something in it was new, or the metric.
    [(changes, windows)] = workshop.rows("SELECT sum(content), count(*) FROM stepacc.windows")
    [(annotated,)] = workshop.rows("SELECT sum(content) FROM stepacc.window_annotations")
    bumped = workshop.rows("SELECT count(*) FROM stepacc.window_scores WHERE metric_version = '1.0.0'")[0][0]
    assert sum(len(run.keys) for run in asked) <= changes + annotated + bumped
    assert windows == len(DAYS)
    homes = {tuple(row) for row in workshop.rows("SELECT session_id, window_key FROM stepacc.sessions")}
    assert homes == {
        (row.partition_id, row.window_key)
        for row in workshop.current()
        if row.partition_type == "session" and row.metric_version == "2.0.0"
    }
