"""Comparison position by position (contract of `agent.step_accuracy`, section 6)."""

from collections.abc import Sequence
from dataclasses import dataclass

from stepacc_core.alignment.entries import Entry
from stepacc_core.model import Step
from stepacc_core.names import matches
from stepacc_core.trajectory import Group, Trajectory


@dataclass(frozen=True, slots=True)
class PositionAlignment:
    """Expected steps held against the observed steps of the same positions.

    Attributes:
        matches: positions at which the observed step satisfies the expected one.
        entries: one per expected position: `match`, `substitute`, or `delete` where nothing was observed.
        extra_steps: names of the steps observed past the end of the trajectory, in order.
    """

    matches: int
    entries: list[Entry]
    extra_steps: list[str]


def align_by_position(trajectory: Trajectory, steps: Sequence[Step]) -> PositionAlignment:
    """Compare the i-th expected with the i-th observed step.

    Raises:
        ValueError: the trajectory has groups, whose members have no position; metrics refuse them earlier.
    """
    found: list[Entry] = []
    matched = 0
    for index, element in enumerate(trajectory.elements):
        if isinstance(element, Group):
            msg = f"expected_steps[{index}] is a group; a group has no single position, so align() is to be used."
            raise ValueError(msg)  # noqa: TRY004 -- the value is refused, not its type
        actual: str | None = None
        at: int | None = None
        op = "delete"
        if index < len(steps):
            step = steps[index]
            actual, at = step.name, index
            op = "match" if matches(element, actual, step.kind) else "substitute"
            matched += op == "match"
        found.append({"op": op, "expected": element, "actual": actual, "expected_index": index, "actual_index": at})
    return PositionAlignment(matched, found, [step.name for step in steps[len(trajectory.elements) :]])
