"""What the benchmarks of the alignment compare: trajectories and runs with a share of edits, seeded."""

import random
from typing import Any

from stepacc_core.model import Step

NAMES = [f"tool_{number}" for number in range(50)]
MIXED = ["Get-Weather", "get_weather", "getweather"]
"""Three names of agents that are one as the name of a tool."""

Case = tuple[list[Any], list[Step]]
"""Expected and observed steps."""


def sample(size: int, groups: int, rate: float, seed: int = 1) -> Case:
    """Return a trajectory of so many steps, some of them in groups spread evenly, and a run with edits.

    Args:
        size: steps in all.
        groups: groups of twelve steps, or of three where the trajectory is short.
        rate: the share of steps that are changed, lost or doubled with another, a third each.
        seed: equal seeds give equal cases.
    """
    rng = random.Random(seed)  # noqa: S311 -- seeded on purpose
    names = rng.choices(NAMES, k=size)
    expected, done = grouped(rng, names, groups, 12 if size >= 100 else 3)
    return expected, [Step(name) for name in edited(rng, done, round(size * rate))]


def grouped(rng: random.Random, names: list[str], groups: int, members: int) -> tuple[list[Any], list[str]]:
    """Return the names with some of them in groups, and in an order in which they may be taken."""
    expected: list[Any] = list(names)
    done = list(names)
    for number in range(groups - 1, -1, -1):
        start = number * len(names) // groups
        group = names[start : start + members]
        expected[start : start + members] = [group]
        done[start : start + members] = rng.sample(group, k=len(group))
    return expected, done


def edited(rng: random.Random, names: list[str], edits: int) -> list[str]:
    """Return the names with so many of them changed, lost or doubled with another."""
    made = {place: rng.randrange(3) for place in rng.sample(range(len(names)), k=edits)}
    done: list[str] = []
    for place, name in enumerate(names):
        edit = made.get(place)
        done += [name] if edit is None else [[], [rng.choice(NAMES)], [name, rng.choice(NAMES)]][edit]
    return done


def mixed(size: int, groups: int, edits: int, seed: int = 1) -> Case:
    """Return a case in whose groups agents and tools of one folded name meet."""
    rng = random.Random(seed)  # noqa: S311 -- seeded on purpose
    names = [rng.choice(MIXED) if rng.random() < 0.5 else name for name in rng.choices(NAMES, k=size)]
    for group in range(groups):
        start = group * size // groups
        names[start : start + 12] = rng.choices(MIXED, k=12)
    expected, done = grouped(rng, names, groups, 12)
    return expected, [Step(name, rng.choice(["TOOL", "AGENT"]) if name in MIXED else "TOOL")
                      for name in edited(rng, done, edits)]  # fmt: skip
