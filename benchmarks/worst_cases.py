"""The inputs that take longest: unlike, repetitive, wide groups, agents and tools of one name."""

import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.alignment_cases import MIXED, NAMES
from benchmarks.measure import shown, table
from stepacc_core import Step, step_accuracy

Make = Callable[[random.Random], tuple[list[Any], list[Step]]]


def tools(names: list[str]) -> list[Step]:
    """Return steps of tools."""
    return [Step(name) for name in names]


def both_kinds(rng: random.Random, size: int) -> list[Step]:
    """Return steps of tools and agents that are one by the folded name."""
    return [Step(rng.choice(MIXED), rng.choice(["TOOL", "AGENT"])) for _ in range(size)]


CASES: dict[str, Make] = {
    "5,000 of one name, as many of another": lambda _: (["a"] * 5_000, tools(["b"] * 5_000)),
    "2,500 of one name, 10,000 of another": lambda _: (["a"] * 2_500, tools(["b"] * 10_000)),
    "1,000 of one name, 25,000 of it": lambda _: (["a"] * 1_000, tools(["a"] * 25_000)),
    "1,000 of one name, 25,000 of it and another in turn": lambda _: (["a"] * 1_000, tools(["a", "b"] * 12_500)),
    "5,000 by 5,000 of two names at random": lambda rng: (
        rng.choices("ab", k=5_000),
        tools(rng.choices("ab", k=5_000)),
    ),
    "25 by 1,000,000 of one name": lambda _: (["a"] * 25, tools(["a"] * 1_000_000)),
    "50 groups of 12, 10,000 at random": lambda rng: (
        [rng.choices(NAMES, k=12) for _ in range(50)],
        tools(rng.choices(NAMES, k=10_000)),
    ),
    "200 groups of 12, 10,000 at random": lambda rng: (
        [rng.choices(NAMES, k=12) for _ in range(200)],
        tools(rng.choices(NAMES, k=10_000)),
    ),
    "one group of 5,000 of one name, as many": lambda _: ([["a"] * 5_000], tools(["a"] * 5_000)),
    "250 groups of 10 of one name, 10,000 of it": lambda _: ([["a"] * 10] * 250, tools(["a"] * 10_000)),
    "2,500 groups of two names, 5,000 at random": lambda rng: ([["a", "b"]] * 2_500, tools(rng.choices("ab", k=5_000))),
    "5,000 groups of one, 5,000 of two names": lambda rng: ([["a"]] * 5_000, tools(rng.choices("ab", k=5_000))),
    "50 groups of 12 of both kinds, 10,000": lambda rng: (
        [rng.choices(MIXED, k=12) for _ in range(50)],
        both_kinds(rng, 10_000),
    ),
    "400 groups of 12 of both kinds, 5,000": lambda rng: (
        [rng.choices(MIXED, k=12) for _ in range(400)],
        both_kinds(rng, 5_000),
    ),
    "one group of 5,000 of both kinds, as many": lambda rng: ([rng.choices(MIXED, k=5_000)], both_kinds(rng, 5_000)),
}


def worst_cases() -> str:
    """Return the table; each case is run once, in a process of its own, for its memory."""
    lines = []
    for number, name in enumerate(CASES):
        done = subprocess.run(  # noqa: S603 -- this module itself
            [sys.executable, "-m", "benchmarks.worst_cases", str(number)], capture_output=True, text=True, check=True
        )
        lines.append([name, *done.stdout.rstrip("\n").split("\t")])
    return (
        "The inputs of up to 25 million pairs that take longest, once each in a process of its own; the memory is all "
        "that the process had at its peak, the steps and the result included.\n\n"
        + table(["expected and observed", "time", "peak memory", "status", "score"], lines)
    )


def run(number: int) -> None:
    """Run one case and print its cells."""
    expected, steps = list(CASES.values())[number](random.Random(2))  # noqa: S311 -- seeded on purpose
    start = time.process_time()
    result = step_accuracy(expected, steps)
    seconds = time.process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    score = "" if result.score is None else f"{result.score:.3f}"
    print(shown(seconds), f"{memory:,} MB", result.code or result.status, score, sep="\t")


if __name__ == "__main__":
    run(int(sys.argv[1]))
