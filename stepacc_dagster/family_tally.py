"""What the members of a metric family amount to over one window, and what the metric says beside them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stepacc_core.model import CanonicalPartition, Member, PartitionType, Result

_KEPT = 20
"""Occurrences that are kept to be named; all of them are in the score table."""

UNCONFIRMED = "unconfirmed_reference"
"""Kind of the assumption that a reference nobody confirmed is right."""


@dataclass(slots=True)
class MemberTally:
    """Running counts over the rows of one member."""

    scored: int = 0
    failed: int = 0
    not_applicable: int = 0
    score_sum: float = 0.0

    @property
    def mean(self) -> float | None:
        """Mean score; None where nothing was scored."""
        return self.score_sum / self.scored if self.scored else None

    def add(self, member: Member) -> None:
        """Count one row."""
        if member.score is not None:
            self.scored += 1
            self.score_sum += member.score
        elif member.error:
            self.failed += 1
        else:
            self.not_applicable += 1


@dataclass(slots=True)
class FamilyTally:
    """Running counts over the results of a family; all are empty for a metric without one.

    `members` are by what was scored and by name, so that no mean is of traces and sessions together. `verdicts`, `gaps`
    and `unconfirmed` count occurrences: by verdict, by kind of gap, and by name of a reference that nobody confirmed.
    `forbidden` counts those in which something forbidden ran, and `forbidden_seen` names some.
    """

    members: dict[tuple[PartitionType, str], MemberTally] = field(default_factory=dict)
    verdicts: Counter[str] = field(default_factory=Counter)
    gaps: Counter[str] = field(default_factory=Counter)
    unconfirmed: Counter[str] = field(default_factory=Counter)
    resting_on_unconfirmed: int = 0
    """Occurrences that were measured against any reference that nobody confirmed."""
    forbidden: int = 0
    forbidden_seen: list[str] = field(default_factory=list)

    def add(self, partition: CanonicalPartition, result: Result) -> None:
        """Count the result of one occurrence."""
        for member in result.family:
            self.members.setdefault((partition.partition_type, member.name), MemberTally()).add(member)
        metadata = result.metadata
        if isinstance(verdict := metadata.get("verdict"), str):
            self.verdicts[verdict] += 1
        self.gaps.update({str(gap["kind"]) for gap in _documents(metadata, "gaps") if "kind" in gap})
        assumptions = [each for each in _documents(metadata, "assumptions") if each.get("kind") == UNCONFIRMED]
        self.unconfirmed.update({str(each.get("reference")) for each in assumptions})
        self.resting_on_unconfirmed += bool(assumptions)
        if forbidden := metadata.get("forbidden"):
            self.forbidden += 1
            if len(self.forbidden_seen) < _KEPT:
                named = ", ".join(map(_sequence, forbidden)) if isinstance(forbidden, list | tuple) else str(forbidden)
                self.forbidden_seen.append(f"{partition.partition_type} {partition.partition_id}: {named}")


def _documents(metadata: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    value = metadata.get(name)  # another metric's metadata may call anything so
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list | tuple) else []


def _sequence(forbidden: object) -> str:
    return " then ".join(map(str, forbidden)) if isinstance(forbidden, list | tuple) else str(forbidden)
