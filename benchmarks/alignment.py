"""How long alignments take, beside RapidFuzz (plain steps only) and the slow oracle of the tests.

Run `python -m benchmarks.alignment`. It prints medians and ratios of one run and judges nothing.
"""

import random
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from rapidfuzz.distance import Levenshtein

from stepacc_core.alignment import align
from stepacc_core.model import Step
from stepacc_core.trajectory import Trajectory, parse_trajectory
from tests.oracle import oracle

NAMES = [f"tool_{number}" for number in range(50)]
SECONDS = 1.0
"""For how long each comparison is repeated."""

Case = tuple[str, Trajectory, list[Step], bool]
"""What is compared, and whether the oracle can be waited for."""


def main() -> None:
    """Print one line a case."""
    print(f"{'case':44} {'align':>12} {'RapidFuzz':>12} {'ratio':>7} {'oracle':>12} {'ratio':>7}")
    for name, trajectory, observed, small in cases(random.Random(1)):  # noqa: S311 -- seeded on purpose
        ours = median(partial(align, trajectory, observed))
        line = f"{name:44} {shown(ours)}"
        if trajectory.has_groups:
            line += f" {'-':>12} {'-':>7}"
        else:
            theirs = median(partial(rapidfuzz, list(trajectory.elements), [step.name for step in observed]))
            line += f" {shown(theirs)} {ours / theirs:7.1f}"
        if small:
            slow = median(partial(oracle, trajectory, observed))
            line += f" {shown(slow)} {ours / slow:7.4f}"
        print(line, flush=True)


def cases(rng: random.Random) -> list[Case]:
    """Return what is compared."""
    plain = rng.choices(NAMES, k=20)
    grouped: list[Any] = [*plain[:4], plain[4:7], *plain[7:12], plain[12:16], *plain[16:]]
    shuffled = [*plain[:4], *plain[6:3:-1], *plain[7:12], *plain[15:11:-1], *plain[16:]]
    thousand, ten_thousand = rng.choices(NAMES, k=1_000), rng.choices(NAMES, k=10_000)
    fifty = [rng.choices(NAMES, k=12) for _ in range(50)]
    many = [rng.sample(NAMES, k=12) for _ in range(800)]
    many_done = [name for group in many for name in rng.sample(group, k=len(group))]
    return [
        case("20 plain, all right", plain, plain, small=True),
        case("20 plain, three edits", plain, three_edits(plain), small=True),
        case("20 with two groups, all right", grouped, shuffled, small=True),
        case("20 with two groups, three edits", grouped, three_edits(shuffled), small=True),
        case("1,000 plain, 10 % edited", thousand, edited(rng, thousand)),
        case("10,000 plain, 10 % edited", ten_thousand, edited(rng, ten_thousand)),
        case("1,000 plain, 10,000 unlike", thousand, rng.choices(NAMES, k=10_000)),
        case("50 groups of 12, 10,000 unlike", fifty, rng.choices(NAMES, k=10_000)),
        case("800 groups of 12, shuffled, 10 % edited", many, edited(rng, many_done)),
    ]


def case(name: str, expected: list[Any], observed: list[str], *, small: bool = False) -> Case:
    """Return one case of tools."""
    return name, parse_trajectory(expected), [Step(tool) for tool in observed], small


def three_edits(names: list[str]) -> list[str]:
    """Return the names with one changed, one added and one lost."""
    return [*names[:4], "other", *names[5:9], "added", *names[9:14], *names[15:]]


def edited(rng: random.Random, names: list[str]) -> list[str]:
    """Return the names with a tenth of them changed, lost or doubled with another."""
    done: list[str] = []
    for name in names:
        draw = rng.random()
        done += [name] if draw > 0.1 else rng.choices(NAMES, k=int(draw * 30))
    return done


def rapidfuzz(expected: list[Any], observed: list[str]) -> object:
    """Align as RapidFuzz does, with all operations as objects."""
    return Levenshtein.opcodes(expected, observed).as_list()


def median(call: Callable[[], object]) -> float:
    """Return the median time of a call in seconds."""
    times: list[float] = []
    end = time.perf_counter() + SECONDS
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def shown(seconds: float) -> str:
    """Return a time for a column twelve wide."""
    for unit, factor in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:9.1f} {unit:2}"
    return f"{seconds * 1e6:9.2f} us"


if __name__ == "__main__":
    main()
