"""What happens to the data in a soak: spans arrive, late ones among them, and annotations change.

It follows from a seed and the moment at which it begins, so that the same can be written once more, undisturbed.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from stepacc_core.annotations import TargetType
from stepacc_core.model import PartitionType, RawSpan
from stepacc_dagster.sources import PartitionKind
from stepacc_dagster.storage.annotations import AnnotationEntry, add_annotations, withdraw
from stepacc_dagster.storage.raw_spans import land_spans
from tests.integration.evaluation_samples import agent_trace, tool_span

SOURCES: dict[str, PartitionKind] = {"days": "daily", "hours": "hourly"}
"""The sources of a soak, and how each is cut into windows."""
TOOLS = ("search", "fetch", "answer", "refund")
EXPECTED: tuple[Any, ...] = (
    ["search", "answer"],
    ["search", "refund", "answer"],
    [["search", "fetch"], "answer"],
    ["answer"],
    ["fetch", ["answer", "refund"]],
)
"""What may be expected of a task, a trace or a session; version 1.0.0 of the metric refuses the groups."""
TASKS = ("refund", "question", "greeting")
WINDOWS = 6
"""Closed windows of each source in which something happens."""
_SECOND = 1_000_000_000
_LATE_SECONDS = 600

Write = Callable[[sa.Connection], object]


@dataclass(frozen=True)
class Happening:
    """Something that is written in one transaction; written twice it changes nothing.

    Attributes:
        at: when, as a share of the whole time, 0 to 1.
        what: what it is, in words.
        write: writes it.
    """

    at: float
    what: str
    write: Write


@dataclass(frozen=True)
class Place:
    """A window: its day and the hour at which traces of it begin."""

    day: str
    hour: int


def places(kind: PartitionKind, begin: datetime) -> list[Place]:
    """Return the last windows that had closed at a moment, oldest first."""
    length = timedelta(hours=1) if kind == "hourly" else timedelta(days=1)
    moments = [begin - length * back for back in range(WINDOWS, 0, -1)]
    return [Place(moment.date().isoformat(), moment.hour if kind == "hourly" else 9) for moment in moments]


def happenings(seed: int, begin: datetime, count: int) -> list[Happening]:
    """Return what happens, in order: some at once, and then about `count` more, evenly over the time."""
    chance = random.Random(seed)  # noqa: S311 (a test's)
    lives = [_Life(source, places(kind, begin), chance) for source, kind in SOURCES.items()]
    found = [replace(each, at=0.0) for life in lives for each in life.first()]
    for number in range(count):
        at = (number + 1) / (count + 1)
        found.append(replace(chance.choice(lives).next(at), at=at))
    return found


class _Life:
    """What becomes of one source."""

    def __init__(self, source: str, where: list[Place], chance: random.Random) -> None:
        self._source, self._places, self._chance = source, where, chance
        self._traces: dict[str, list[RawSpan]] = {}
        self._moved: set[str] = set()
        self._said: set[tuple[TargetType, str, PartitionType]] = set()

    def first(self) -> Iterator[Happening]:
        """Yield what is there at the beginning: a trace or two in each window, and what is expected of the tasks."""
        for place in range(len(self._places)):
            yield self._arrive(place, 2)
        for task in TASKS:
            yield self._say("task", task, "trace")

    def next(self, at: float) -> Happening:
        """Return what happens next, at a share of the time."""
        newest = min(int(at * len(self._places)), len(self._places) - 1)
        kinds: dict[Callable[[], Happening], int] = {
            lambda: self._arrive(newest, self._chance.randint(1, 5)): 8,
            lambda: self._arrive(self._chance.randrange(len(self._places)), self._chance.randint(1, 5)): 4,
            self._late_span: 4,
            self._older_root: 1,
            self._again: 1,
            self._annotate: 4,
            self._take_back: 1,
        }
        [kind] = self._chance.choices(list(kinds), list(kinds.values()))
        return kind()

    def _arrive(self, place: int, count: int) -> Happening:
        """Let whole traces arrive; every other one belongs to a session, which lasts over two windows."""
        where, spans = self._places[place], []
        for _ in range(count):
            ident = f"{self._source} t{len(self._traces)}"
            session = (
                f"{self._source} s{place // 2}.{self._chance.randrange(3)}" if self._chance.random() < 0.5 else None
            )
            tools = self._chance.choices(TOOLS, k=self._chance.randint(1, 4))
            task = self._chance.choice((*TASKS, None))
            self._traces[ident] = agent_trace(ident, where.day, *tools, hour=where.hour, task=task, session=session)
            spans += self._traces[ident]
        return self._land(f"{count} traces of {where.day} {where.hour}h", spans)

    def _late_span(self) -> Happening:
        """Let a span of a trace arrive that was there before."""
        ident = self._chance.choice(list(self._traces))
        later = self._chance.randint(10, _LATE_SECONDS) * _SECOND
        return self._one_more(ident, "late", _start(self._traces[ident]) + later, "root")

    def _older_root(self) -> Happening:
        """Let a span arrive that moves its trace into the window before."""
        ident = self._chance.choice(list(self._traces))
        if ident in self._moved:
            return self._late_span()
        self._moved.add(ident)
        back = 3_600 if SOURCES[self._source] == "hourly" else 24 * 3_600
        return self._one_more(ident, "older", _start(self._traces[ident]) - (back - 120) * _SECOND, None)

    def _one_more(self, ident: str, word: str, start: int, parent: str | None) -> Happening:
        spans = self._traces[ident]
        span = tool_span(ident, f"{word} {len(spans)}", self._chance.choice(TOOLS), start, parent)
        spans.append(span)
        return self._land(f"a span of {ident}, {word}", [span])

    def _again(self) -> Happening:
        """Let the spans of a trace be sent once more."""
        ident = self._chance.choice(list(self._traces))
        return self._land(f"{ident} again", list(self._traces[ident]))

    def _annotate(self) -> Happening:
        kinds: tuple[tuple[TargetType, str, PartitionType], ...] = (
            ("task", self._chance.choice(TASKS), "trace"),
            ("trace", self._chance.choice(list(self._traces)), "trace"),
            (
                "session",
                f"{self._source} s{self._chance.randrange(WINDOWS // 2)}.{self._chance.randrange(3)}",
                "session",
            ),
        )
        return self._say(*self._chance.choice(kinds))

    def _say(self, target: TargetType, ident: str, kind: PartitionType) -> Happening:
        self._said.add((target, ident, kind))
        entry = AnnotationEntry(
            self._source, target, ident, self._chance.choice(EXPECTED), kind, author="qa@example.org"
        )
        return Happening(0, f"{self._source}: {target} {ident} annotated", lambda conn: add_annotations(conn, [entry]))

    def _take_back(self) -> Happening:
        target, ident, kind = taken = self._chance.choice(sorted(self._said))
        self._said.discard(taken)
        if not self._said:
            return self._say(*taken)
        return Happening(
            0,
            f"{self._source}: annotation of {target} {ident} withdrawn",
            lambda conn: withdraw(conn, self._source, target, ident, partition_type=kind),
        )

    def _land(self, what: str, spans: list[RawSpan]) -> Happening:
        return Happening(0, f"{self._source}: {what}", lambda conn: land_spans(conn, self._source, spans))


def _start(spans: list[RawSpan]) -> int:
    return min(span.start_time_unix_nano for span in spans if span.start_time_unix_nano is not None)
