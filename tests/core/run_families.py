"""Families of runs made from a trajectory that is known: groups in any order, and steps dropped, repeated and added."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from stepacc_core import Step
from stepacc_core.suggest import Run, Suggestion

TOOLS = tuple(f"tool_{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")


@dataclass(frozen=True)
class Noise:
    """How often a step of a run is dropped, comes twice, and has a step of any name behind it."""

    dropped: float
    repeated: float
    added: float


def one_in(share: float) -> Noise:
    """So large a share of the steps is disturbed, in one of the three ways each."""
    return Noise(share / 3, share / 3, share / 3)


def canonical(expected: list[Any]) -> list[Any]:
    """The form in which trajectories of one meaning are equal: groups sorted, and none of equal names."""
    made: list[Any] = []
    for element in expected:
        if isinstance(element, list) and len(set(element)) > 1:
            made.append(sorted(element))
        else:
            made += element if isinstance(element, list) else [element]
    return made


def trajectory(random: Random) -> list[Any]:
    """Three to nine elements, a third of them groups of two to four; names come again, also within a group."""
    names = random.sample(TOOLS, 14)
    made: list[Any] = []
    for _ in range(random.randint(3, 9)):
        if random.random() < 0.3:
            size = random.randint(2, 4)
            repeats = random.random() < 0.2
            made.append(random.choices(names, k=size) if repeats else random.sample(names, size))
        else:
            made.append(random.choice(names))
    return canonical(made)


def run(random: Random, expected: list[Any], noise: Noise) -> Run:
    """One run of it."""
    clean = [name for element in expected for name in _any_order(random, element)]
    return Run(tuple(map(Step, _disturbed(random, clean, noise))))


def family(seed: int, noise: Noise, runs: int = 20) -> tuple[list[Any], list[Run]]:
    """A trajectory and runs of it."""
    random = Random(seed)  # noqa: S311 (nothing secret)
    expected = trajectory(random)
    return expected, [run(random, expected, noise) for _ in range(runs)]


def recovered(expected: list[Any], suggestion: Suggestion) -> bool:
    """Whether it is exactly what the runs were made from."""
    return canonical(suggestion.expected_steps()) == expected


def _any_order(random: Random, element: Any) -> list[str]:
    return random.sample(element, len(element)) if isinstance(element, list) else [element]


def _disturbed(random: Random, names: list[str], noise: Noise) -> Iterator[str]:
    for name in names:
        chance = random.random()
        if chance < noise.dropped:
            continue
        yield name
        if chance < noise.dropped + noise.repeated:
            yield name
        elif chance < noise.dropped + noise.repeated + noise.added:
            yield random.choice(TOOLS)
