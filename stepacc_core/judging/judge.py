"""One run against one reference, and the choice among several (contract, section 2)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import chain

from stepacc_core.alignment import ReferenceAlignment, align_reference
from stepacc_core.judging.considered import Attempts, Considered, fold_attempts, without_ignored
from stepacc_core.judging.counts import Counts, count
from stepacc_core.judging.modes import holds_exactly, holds_in_order
from stepacc_core.judging.relation import Relation
from stepacc_core.references import (
    ArgumentCheck,
    MatchMode,
    ReferenceElement,
    ReferenceGroup,
    ReferenceStep,
    ReferenceTrajectory,
    TaskReferences,
    check_arguments,
)

MODES: tuple[MatchMode, ...] = ("exact", "in_order", "any_order")


@dataclass(frozen=True, slots=True)
class Judged:
    """What one reference says of a run.

    `holds` tells for each mode whether the path fits. `checks` are those of the matched pairs, by the index of the
    observed step; `names_checks` tells whether the reference has any at all.
    """

    reference: ReferenceTrajectory
    attempts: Attempts
    holds: dict[MatchMode, bool]
    counts: Counts
    alignment: ReferenceAlignment
    names_checks: bool
    checks: dict[int, tuple[ArgumentCheck, ...]] = field(default_factory=dict)

    @property
    def expected(self) -> Collection[int]:
        """The indices of the observed steps that a reference step asked for."""
        return self.checks.keys()

    @property
    def asked(self) -> int:
        """The argument checks on the aligned steps."""
        return sum(map(len, self.checks.values()))

    @property
    def holding(self) -> int:
        """Those of them that hold."""
        return sum(check.holds is True for checks in self.checks.values() for check in checks)

    @property
    def told(self) -> int:
        """Those of them of which it can be told whether they hold."""
        return sum(check.holds is not None for checks in self.checks.values() for check in checks)

    @property
    def arguments(self) -> float | None:
        """The share of those told that hold; None where there is nothing to tell."""
        return self.holding / self.told if self.told else None

    @property
    def efficiency_ratio(self) -> float:
        """Required reference steps for each observed step that is no matched optional one; may exceed 1.

        Where no such step ran it is 1 if nothing was required, else 0.
        """
        needed = self.counts.observed - self.counts.matched_optional
        return self.counts.required / needed if needed else float(not self.counts.required)

    @property
    def efficiency(self) -> float:
        """The ratio, at most 1."""
        return min(1.0, self.efficiency_ratio)


def judge(considered: Considered, reference: ReferenceTrajectory) -> Judged:
    """Judge a run by one reference.

    Raises:
        ScoringError: `too_large`.
    """
    reference = without_ignored(reference, considered.ignore) if considered.ignore else reference
    attempts = fold_attempts(considered.steps, reference)
    steps = attempts.steps
    relation = Relation(steps, considered.barred)
    wanted = relation.wanted(reference)
    counts = count(wanted, relation.classes)
    members = [_members(element) for element in reference.elements]
    asked: dict[tuple[int, int, int], tuple[ArgumentCheck, ...]] = {}

    def checks(element: int, member: int, observed: int) -> tuple[ArgumentCheck, ...]:
        key = (element, member, observed)
        if key not in asked:
            asked[key] = check_arguments(members[element][member], steps[observed].arguments)
        return asked[key]

    most = max((_checks_of(step) for step in chain.from_iterable(members)), default=0)
    # Of alignments in which as many checks hold, the one with fewest that fail is taken: else the share of those that
    # hold would depend on the order of a group's members. Each pair counts, also one without checks.
    weight = 1 + most * sum(map(len, members))

    def agreement(element: int, member: int, observed: int) -> int:
        found = checks(element, member, observed)
        holding = sum(check.holds is True for check in found)
        return holding * weight + most - sum(check.holds is False for check in found)

    numbers = [[most * weight + most for _ in element] for element in members]
    alignment = align_reference(relation.elements(reference, numbers), len(steps), agreement)
    in_order = holds_in_order(wanted, relation.classes)
    return Judged(
        reference=reference,
        attempts=attempts,
        holds={
            "exact": in_order and holds_exactly(wanted, relation.classes),
            "in_order": in_order,
            "any_order": counts.holds_in_any_order,
        },
        counts=counts,
        alignment=alignment,
        names_checks=most > 0,
        checks={
            pair.observed: checks(pair.element, pair.member, pair.observed)
            for pair in alignment.operations
            if pair.op == "match" and pair.element is not None and pair.member is not None and pair.observed is not None
        },
    )


def choose(judged: Sequence[Judged], references: TaskReferences) -> Judged:
    """Choose the reference that a run is measured against.

    The passing one with the fewest edits, else the one with the best F1. Among equals the rows decide, and the first
    counts only where no row would tell the difference: so the order of references changes no row.
    """
    return min(judged, key=lambda one: _rank(one, references.match))


def _rank(one: Judged, mode: MatchMode) -> tuple[float, ...]:
    counts = one.counts
    arguments = -1.0 if one.arguments is None else one.arguments
    rest = (-counts.precision, -counts.recall, -arguments, -one.efficiency, one.names_checks, one.asked)
    edits = one.alignment.distance
    return (0, edits, -counts.f1, *rest) if one.holds[mode] else (1, -counts.f1, edits, *rest)


def _members(element: ReferenceElement) -> tuple[ReferenceStep, ...]:
    return element.members if isinstance(element, ReferenceGroup) else (element,)


def _checks_of(step: ReferenceStep) -> int:
    return len(step.args) + step.args_exact
