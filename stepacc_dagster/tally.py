"""What the scoring of one window amounts to: counts, the worst scores and what failed."""

import heapq
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stepacc_core.fingerprint import RunningFingerprint
from stepacc_core.metrics import Evaluation
from stepacc_core.model import CanonicalPartition, PartitionType, Result
from stepacc_core.policy import LITERAL, StepPolicy
from stepacc_dagster.family_tally import FamilyTally

_KEPT_SCORES = 10
_KEPT_FAILURES = 20
"""Occurrences that a tally keeps to be named; all of them are in the score table."""

_HINT_FROM = 3
_HINT_SHARE = 0.3
"""A stray agent is worth a word from this many alignments, and this share of them, on."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A scored occurrence, kept to show the worst ones; ordered from the lowest score."""

    score: float
    partition_type: PartitionType
    partition_id: str
    trace_id: str | None
    """The trace, or the first one of a session; None for a session without spans."""
    expected: tuple[Any, ...]
    actual: tuple[Any, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """What the metric says of it, an alignment perhaps."""

    def __lt__(self, other: "Scored") -> bool:
        """Order by score, then by id, so that equal inputs show equal tables."""
        return (self.score, self.partition_id) < (other.score, other.partition_id)


@dataclass(frozen=True, slots=True)
class Unscored:
    """An occurrence without a score and why."""

    partition_type: PartitionType
    partition_id: str
    trace_id: str | None
    """As of a scored one."""
    code: str
    reason: str


@dataclass(slots=True)
class Spread:
    """Running figures over scores of one kind of occurrence."""

    scored: int = 0
    total: float = 0.0
    least: float | None = None
    greatest: float | None = None

    @property
    def mean(self) -> float | None:
        """Mean score; None where nothing was scored."""
        return self.total / self.scored if self.scored else None

    def add(self, score: float) -> None:
        """Count one score."""
        self.scored += 1
        self.total += score
        self.least = score if self.least is None else min(self.least, score)
        self.greatest = score if self.greatest is None else max(self.greatest, score)


@dataclass(slots=True)
class WindowTally:
    """Running counts over the occurrences of one window; `add` and `skip` are called once for each."""

    lower_is_better: bool = False
    """Direction of the metric: the highest scores are the worst then."""
    policy: StepPolicy = LITERAL
    """What of a trace was no step."""
    spreads: dict[PartitionType, Spread] = field(default_factory=dict)
    """The scores of traces and those of sessions: a mean over both would be of nothing."""
    skipped: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    not_applicable: Counter[str] = field(default_factory=Counter)
    worst: list[Scored] = field(default_factory=list)
    failures: list[Unscored] = field(default_factory=list)
    inapplicable: list[Unscored] = field(default_factory=list)
    out_of_range: list[str] = field(default_factory=list)
    stray_agents: Counter[str] = field(default_factory=Counter)
    """Agents that are the first, unexpected step of an alignment."""
    annotated: int = 0
    """Occurrences for which an annotation is in force."""
    revisions: set[int] = field(default_factory=set)
    """Ids of the annotation revisions that evaluations were measured against."""
    in_force: RunningFingerprint = field(default_factory=RunningFingerprint)
    """Of the annotations in force: it changes when any of them does."""
    family: FamilyTally = field(default_factory=FamilyTally)
    """What the members of a family amount to."""
    evaluations: RunningFingerprint = field(default_factory=RunningFingerprint)
    """Of all evaluations so far: it changes when any score, its steps or its reference changes."""

    @property
    def scored(self) -> int:
        """Traces and sessions with a score."""
        return sum(spread.scored for spread in self.spreads.values())

    @property
    def occurrences(self) -> int:
        """Traces and sessions in the window, whatever became of them."""
        return self.rows + self.skipped

    @property
    def rows(self) -> int:
        """Rows the window has in the score table for this metric version and config."""
        return self.scored + self.failed.total() + self.not_applicable.total()

    @property
    def coverage(self) -> float | None:
        """Share of the occurrences that have a score; None for an empty window."""
        return self.scored / self.occurrences if self.occurrences else None

    @property
    def entry_agent_hint(self) -> str | None:
        """What to set when one agent begins many alignments without being expected; None where that is not so."""
        return entry_agent_hint(self.stray_agents, self.scored, self.policy)

    def skip(self) -> None:
        """Count an occurrence nobody annotated, which the source's setting leaves out."""
        self.skipped += 1

    def add(self, partition: CanonicalPartition, evaluation: Evaluation) -> None:
        """Count one evaluation."""
        result = evaluation.result
        kind, ident = partition.partition_type, partition.partition_id
        code = result.code or result.reason
        trace_id = _first_trace(partition)
        if partition.annotation:
            if evaluation.reference and evaluation.reference.origin == "column":
                self.revisions.add(partition.annotation.id)
            self.annotated += 1
            self.in_force.add([kind, ident, partition.annotation.id])
        scores = [result.score, *(member.score for member in result.family)]
        self.evaluations.add([kind, ident, evaluation.steps_hash, evaluation.reference_hash, *scores, code])
        self.family.add(partition, result)
        self.out_of_range += _outside(ident, result)
        if result.score is not None:
            expected, actual = _listed(result.metadata, "expected_steps"), _listed(result.metadata, "actual_steps")
            self._add_score(Scored(result.score, kind, ident, trace_id, expected, actual, result.metadata))
            if (name := unexpected_first_step(result.metadata)) and name in _agents(partition):
                self.stray_agents[name] += 1
        elif result.error:
            self.failed[result.error.code] += 1
            if len(self.failures) < _KEPT_FAILURES:
                self.failures.append(Unscored(kind, ident, trace_id, result.error.code, result.error.message))
        else:
            reason = str(result.reason)
            self.not_applicable[reason] += 1
            if len(self.inapplicable) < _KEPT_SCORES:
                self.inapplicable.append(Unscored(kind, ident, trace_id, "not_applicable", reason))

    def _add_score(self, entry: Scored) -> None:
        self.spreads.setdefault(entry.partition_type, Spread()).add(entry.score)
        if len(self.worst) == _KEPT_SCORES:
            better, worse = (entry, self.worst[-1]) if self.lower_is_better else (self.worst[-1], entry)
            if not worse < better:
                return
        worst = heapq.nlargest if self.lower_is_better else heapq.nsmallest
        self.worst = worst(_KEPT_SCORES, [*self.worst, entry])


def entry_agent_hint(stray_agents: Mapping[str, int], scored: int, policy: StepPolicy) -> str | None:
    """Return what to set when one agent begins many alignments without being expected; None where that is not so.

    Args:
        stray_agents: alignments by the agent that is their first, unexpected step.
        scored: all alignments looked at.
        policy: by which they were made; where it has the setting already there is nothing to set.
    """
    ((name, count),) = Counter(stray_agents).most_common(1) or [("", 0)]
    if policy.entry_agent == "root" or count < _HINT_FROM or count < _HINT_SHARE * scored:
        return None
    return (
        f"Agent `{name}` is the first, unexpected step of {count} of {scored} alignments. If it is the agent "
        "that takes the requests, set `step_policy: {entry_agent: root}` for this source."
    )


def unexpected_first_step(metadata: Mapping[str, Any]) -> str | None:
    """Return the observed step with which an alignment begins, if nothing was expected there; else None."""
    match metadata.get("steps"):
        case [{"op": "insert", "actual": str(name)}, *_]:
            return name
        case _:
            return None


def _outside(ident: str, result: Result) -> list[str]:
    """Name the scores of an occurrence that lie outside 0 to 1; those of a family with their members."""
    if result.family:
        return [
            f"{ident} ({each.name})" for each in result.family if each.score is not None and not 0 <= each.score <= 1
        ]
    return [ident] if result.score is not None and not 0 <= result.score <= 1 else []


def _first_trace(partition: CanonicalPartition) -> str | None:
    if partition.partition_type == "trace":
        return partition.partition_id
    return partition.spans[0].trace_id if partition.spans else None


def _agents(partition: CanonicalPartition) -> set[str]:
    return {span.agent_name or span.name for span in partition.spans if span.kind == "AGENT"}


def _listed(metadata: dict[str, Any], name: str) -> tuple[Any, ...]:
    value = metadata.get(name)  # another metric's metadata may call anything so
    return tuple(value) if isinstance(value, list | tuple) else ()
