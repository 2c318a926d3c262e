"""Which observed steps satisfy which reference step.

Names compare as in `agent.step_accuracy`. Observed steps whose names compare as equal are of one class, and a reference
step accepts classes: so steps of one name are never looked at one by one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stepacc_core.alignment import ReferenceElement as Element
from stepacc_core.alignment import ReferenceStep as ElementStep
from stepacc_core.judging.canonical import StepKey, step_key
from stepacc_core.model import Step
from stepacc_core.names import fold, matches
from stepacc_core.references import ReferenceGroup, ReferenceStep, ReferenceTrajectory

NO_CLASS = -1
"""The class of forbidden steps, which no reference step accepts."""

_SHORT = 512
"""Observed steps up to which setting bits one by one beats filling byte arrays."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A reference step as the classes it accepts."""

    classes: frozenset[int]
    optional: bool


WantedElement = Wanted | tuple[Wanted, ...]
"""A plain step, or the members of a group."""


def steps_of(reference: ReferenceTrajectory) -> Iterator[ReferenceStep]:
    """Yield the steps of a reference, a group's members one by one."""
    for element in reference.elements:
        if isinstance(element, ReferenceGroup):
            yield from element.members
        else:
            yield element


def satisfies(step: Step, wanted: ReferenceStep) -> bool:
    """Tell whether an observed step is what a reference step names; arguments are not looked at."""
    return wanted.kind in (None, step.kind) and matches(wanted.name, step.name, step.kind)


class Relation:
    """The relation between the steps of one run and reference steps.

    Args:
        steps: the observed steps.
        barred: forbidden names, whose steps satisfy nothing.
    """

    def __init__(self, steps: Sequence[Step], barred: Sequence[str] = ()) -> None:
        numbers: dict[StepKey, int] = {}
        classes: list[int] = []
        for step in steps:
            key = step_key(step)
            if key not in numbers:
                is_barred = any(matches(name, step.name, step.kind) for name in barred)
                numbers[key] = NO_CLASS if is_barred else len(numbers)
            classes.append(numbers[key])
        self._numbers = numbers
        self.classes = tuple(classes)
        """The class of each observed step."""

    def wanted(self, reference: ReferenceTrajectory) -> list[WantedElement]:
        """Return the elements of a reference as the classes that they accept."""
        return [
            tuple([self._wanted(member) for member in element.members])
            if isinstance(element, ReferenceGroup)
            else self._wanted(element)
            for element in reference.elements
        ]

    def elements(self, reference: ReferenceTrajectory, checks: Sequence[Sequence[int]]) -> list[Element]:
        """Return the elements as the alignment engine takes them.

        Args:
            reference: the reference.
            checks: for each element, the number of argument checks of each of its steps.
        """
        masks = _masks(self.classes)
        found: list[Element] = []
        for element, counts, authored in zip(self.wanted(reference), checks, reference.elements, strict=True):
            members = [
                ElementStep(sum(masks[number] for number in step.classes), step.optional, count)
                for step, count in zip(element if isinstance(element, tuple) else (element,), counts, strict=True)
            ]
            found.append(tuple(members) if isinstance(authored, ReferenceGroup) else members[0])
        return found

    def _wanted(self, step: ReferenceStep) -> Wanted:
        keys: list[StepKey] = []
        if step.kind != "AGENT":
            keys.append(("TOOL", fold(step.name)))
        if step.kind != "TOOL":
            keys.append(("AGENT", step.name))
        numbers = [self._numbers.get(key, NO_CLASS) for key in keys]
        return Wanted(frozenset(number for number in numbers if number != NO_CLASS), step.optional)


def _masks(classes: Sequence[int]) -> dict[int, int]:
    """Return for each class the mask of its steps: bit `j` is set for the step at `j`."""
    masks: dict[int, int] = {}
    if len(classes) <= _SHORT:
        for position, number in enumerate(classes):
            masks[number] = masks.get(number, 0) | 1 << position
        return masks
    rows: dict[int, bytearray] = {}
    for position, number in enumerate(classes):
        row = rows.setdefault(number, bytearray())
        row.extend(bytes((position >> 3) + 1 - len(row)))
        row[position >> 3] |= 1 << (position & 7)
    return {number: int.from_bytes(row, "little") for number, row in rows.items()}
