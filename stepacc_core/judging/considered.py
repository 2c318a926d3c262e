"""What of the observed steps is compared: without ignored steps and repeated attempts, and what of it is forbidden."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from stepacc_core.judging.canonical import call_of
from stepacc_core.judging.relation import satisfies, steps_of
from stepacc_core.model import Step
from stepacc_core.names import matches
from stepacc_core.references import (
    ReferenceElement,
    ReferenceGroup,
    ReferenceStep,
    ReferenceTrajectory,
    TaskReferences,
)


@dataclass(frozen=True, slots=True)
class ForbiddenSeen:
    """A forbidden sequence, and the steps of its first occurrence; other steps may lie between them."""

    sequence: tuple[str, ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Considered:
    """The observed steps without the ignored ones, and what was found on the way.

    `ignore` holds the ignored names. `barred` holds those that are forbidden by themselves: such steps are never
    ignored, and match nothing.
    """

    steps: tuple[Step, ...]
    ignored: tuple[Step, ...]
    forbidden: tuple[ForbiddenSeen, ...]
    ignore: tuple[str, ...]
    barred: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Attempts:
    """Observed steps of which repeated attempts were folded into their last.

    `folded` has, for the index of each such step, how many attempts went before it.
    """

    steps: tuple[Step, ...]
    folded: dict[int, int]


def consider(steps: Sequence[Step], references: TaskReferences) -> Considered:
    """Leave out ignored steps and look for forbidden ones, also among those that are ignored."""
    barred = tuple(sequence[0] for sequence in references.forbidden if len(sequence) == 1)
    kept: list[Step] = []
    ignored: list[Step] = []
    for step in steps:
        (ignored if _named(step, references.ignore) and not _named(step, barred) else kept).append(step)
    seen = tuple(
        ForbiddenSeen(sequence, found)
        for sequence in references.forbidden
        if (found := _first_occurrence(sequence, steps)) is not None
    )
    return Considered(tuple(kept), tuple(ignored), seen, references.ignore, barred)


def without_ignored(reference: ReferenceTrajectory, names: Sequence[str]) -> ReferenceTrajectory:
    """Leave ignored steps out of a reference too: what is no step cannot be required."""

    def kept(step: ReferenceStep) -> bool:
        return not any(matches(name, step.name, step.kind or "TOOL") for name in names)

    elements: list[ReferenceElement] = []
    for element in reference.elements:
        if isinstance(element, ReferenceGroup):
            elements.append(ReferenceGroup(tuple(filter(kept, element.members))))
        elif kept(element):
            elements.append(element)
    return replace(reference, elements=tuple(elements))


def fold_attempts(steps: tuple[Step, ...], reference: ReferenceTrajectory) -> Attempts:
    """Fold the attempts of steps that the reference counts once (`count_as: once`).

    Consecutive calls of one tool with the same arguments, all but the last with error status, are attempts of the last.
    """
    once = [step for step in steps_of(reference) if step.count_once]
    if not once:
        return Attempts(steps, {})
    kept: list[Step] = []
    folded: dict[int, int] = {}
    attempts = 0
    for step, following in zip(steps, (*steps[1:], None), strict=False):
        if (
            following is not None
            and step.kind == "TOOL"
            and step.status == "ERROR"
            and call_of(step) == call_of(following)
            and any(satisfies(step, wanted) for wanted in once)
        ):
            attempts += 1
            continue
        if attempts:
            folded[len(kept)] = attempts
            attempts = 0
        kept.append(step)
    return Attempts(tuple(kept), folded)


def _named(step: Step, names: Iterable[str]) -> bool:
    return any(matches(name, step.name, step.kind) for name in names)


def _first_occurrence(sequence: tuple[str, ...], steps: Sequence[Step]) -> tuple[Step, ...] | None:
    """Return the earliest steps that have these names in this order."""
    found: list[Step] = []
    for step in steps:
        if len(found) < len(sequence) and matches(sequence[len(found)], step.name, step.kind):
            found.append(step)
    return tuple(found) if len(found) == len(sequence) else None
