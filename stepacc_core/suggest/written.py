"""Elements of a suggestion as a trajectory that runs can be aligned with."""

from collections.abc import Mapping

from stepacc_core.suggest.order import Label
from stepacc_core.suggest.runs import Key
from stepacc_core.trajectory import Element, Group, Trajectory

Elements = list[list[Label]]
"""Steps (lists of one) and groups, in order."""


def trajectory_of(elements: Elements, names: Mapping[Key, str]) -> Trajectory:
    """Return the trajectory of elements, of which there is at least one."""
    made: list[Element] = [
        names[members[0][0]] if len(members) == 1 else Group(tuple(names[key] for key, _ in members))
        for members in elements
    ]
    return Trajectory(tuple(made), sum(map(len, elements)), any(len(members) > 1 for members in elements))
