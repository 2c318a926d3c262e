"""The matching relation as masks: which observed steps satisfy which expected one.

The engine of this package never sees a name. An expected step is an integer whose bit `j` is set when
observed step `j` satisfies it, a group is the tuple of its members' masks; any relation can be written
so, also one that is no equivalence (contract of `agent.step_accuracy`, section 4).
"""

from collections.abc import Iterable, Sequence

from stepacc_core.model import Step
from stepacc_core.names import fold
from stepacc_core.trajectory import Group, Trajectory

Mask = int
Pattern = Mask | tuple[Mask, ...]
"""What the engine aligns: a plain step's mask, or the masks of a group's members in authored order."""

_FEW = 32
"""Positions up to which single shifts beat filling a byte array."""


def patterns(trajectory: Trajectory, steps: Sequence[Step]) -> list[Pattern]:
    """Return the pattern of each element, empty groups as empty tuples."""
    tools: dict[str, list[int]] = {}
    agents: dict[str, list[int]] = {}
    for position, step in enumerate(steps):
        if step.kind == "AGENT":
            agents.setdefault(step.name, []).append(position)
        else:
            tools.setdefault(fold(step.name), []).append(position)
    known: dict[str, Mask] = {}
    size = len(steps)

    def mask(name: str) -> Mask:
        found = known.get(name)
        if found is None:
            found = known[name] = _mask(tools.get(fold(name), ()), size) | _mask(agents.get(name, ()), size)
        return found

    return [
        tuple([mask(member) for member in element.members]) if isinstance(element, Group) else mask(element)
        for element in trajectory.elements
    ]


def bits(mask: Mask) -> list[int]:
    """Return the positions of the set bits, ascending."""
    text = bin(mask)[:1:-1]
    found = []
    position = text.find("1")
    while position >= 0:
        found.append(position)
        position = text.find("1", position + 1)
    return found


def _mask(positions: Iterable[int], size: int) -> Mask:
    positions = list(positions)
    if len(positions) <= _FEW:
        mask = 0
        for position in positions:
            mask |= 1 << position
        return mask
    row = bytearray(size // 8 + 1)
    for position in positions:
        row[position >> 3] |= 1 << (position & 7)
    return int.from_bytes(row, "little")
