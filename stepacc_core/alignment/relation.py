"""The matching relation as masks: which observed steps satisfy which expected one.

The engine of this package never sees a name. An expected step is an integer whose bit `j` is set when
observed step `j` satisfies it, a group is the tuple of its members' masks; any relation can be written
so, also one that is no equivalence (contract of `agent.step_accuracy`, section 4).
"""

from collections.abc import Sequence

from stepacc_core.model import Step
from stepacc_core.names import fold
from stepacc_core.trajectory import Group, Trajectory

Mask = int
Pattern = Mask | tuple[Mask, ...]
"""What the engine aligns: a plain step's mask, or the masks of a group's members in authored order."""

_SHORT = 512
"""Observed steps up to which setting bits one by one beats filling byte arrays."""


def patterns(trajectory: Trajectory, steps: Sequence[Step]) -> list[Pattern]:
    """Return the pattern of each element, empty groups as empty tuples."""
    tools, agents = _seen(steps) if len(steps) <= _SHORT else _wanted(trajectory, steps)
    tool = tools.get
    agent = agents.get
    if len(steps) > _SHORT and not trajectory.has_groups:
        masks = {element: tool(fold(str(element)), 0) | agent(str(element), 0) for element in set(trajectory.elements)}
        return [masks[element] for element in trajectory.elements]
    if agents:
        return [
            tuple([tool(fold(name), 0) | agent(name, 0) for name in element.members])
            if isinstance(element, Group)
            else tool(fold(element), 0) | agent(element, 0)
            for element in trajectory.elements
        ]
    return [
        tuple([tool(fold(name), 0) for name in element.members])
        if isinstance(element, Group)
        else tool(fold(element), 0)
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


def _seen(steps: Sequence[Step]) -> tuple[dict[str, Mask], dict[str, Mask]]:
    """Return where each folded tool name and each agent name was observed."""
    tools: dict[str, Mask] = {}
    agents: dict[str, Mask] = {}
    bit = 1
    for step in steps:
        if step.kind == "AGENT":
            agents[step.name] = agents.get(step.name, 0) | bit
        else:
            name = fold(step.name)
            tools[name] = tools.get(name, 0) | bit
        bit += bit
    return tools, agents


def _wanted(trajectory: Trajectory, steps: Sequence[Step]) -> tuple[dict[str, Mask], dict[str, Mask]]:
    """Return the same for the expected names alone: a mask of many steps is long."""
    expected: set[str] = set()
    for element in trajectory.elements:
        if isinstance(element, Group):
            expected.update(element.members)
        else:
            expected.add(element)
    agents = {name: bytearray() for name in expected}
    tools = {fold(name): bytearray() for name in expected}
    folded: dict[str, bytearray | None] = {}
    length = len(steps) // 8 + 1
    for position, step in enumerate(steps):
        name = step.name
        if step.kind == "AGENT":
            row = agents.get(name)
        elif name in folded:
            row = folded[name]
        else:
            row = folded[name] = tools.get(fold(name))
        if row is None:
            continue
        if not row:
            row.extend(bytes(length))
        row[position >> 3] |= 1 << (position & 7)
    return _packed(tools), _packed(agents)


def _packed(found: dict[str, bytearray]) -> dict[str, Mask]:
    return {name: int.from_bytes(row, "little") for name, row in found.items() if row}
