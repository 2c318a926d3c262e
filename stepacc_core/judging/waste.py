"""Waste in a run: identical calls made again, and blocks of steps gone through again and again (contract, section 4).

Two calls are identical when tool and canonical arguments are the same and, where outputs were recorded, the outputs
too: polling with changing results and turning pages are no waste. What the reference expects is none either.
"""

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass

from stepacc_core.judging.canonical import Call, call_of
from stepacc_core.model import Step
from stepacc_core.references.equality import canonical

_LEAST_TIMES = 3


@dataclass(frozen=True, slots=True)
class Repeats:
    """Calls of one tool with the same arguments, of which `wasted` told nothing new. `first` is their first step."""

    first: int
    calls: int
    wasted: int


@dataclass(frozen=True, slots=True)
class Loop:
    """A block of `period` steps gone through `times` times in a row, from the step `start` on."""

    start: int
    period: int
    times: int


def repeated_calls(steps: Sequence[Step], expected: Collection[int]) -> list[Repeats]:
    """Return the identical calls that were made more often than needed, in the order of their first.

    Args:
        steps: the observed steps; those of agents are no calls.
        expected: indices of steps that a reference step asked for.
    """
    calls: dict[Call, list[int]] = {}
    for index, step in enumerate(steps):
        if step.kind == "TOOL":
            calls.setdefault(call_of(step), []).append(index)
    found = []
    for indices in calls.values():
        if len(indices) > 1:
            outputs = {canonical(steps[at].output) for at in indices if steps[at].output is not None}
            wasted = len(indices) - max(1, len(outputs), sum(at in expected for at in indices))
            if wasted > 0:
                found.append(Repeats(indices[0], len(indices), wasted))
    return found


def loops(steps: Sequence[Step], expected: Collection[int]) -> list[Loop]:
    """Return the longest runs in which a block of identical steps stands at least three times back to back.

    A run whose steps the reference asked for, all of them, is none. A block is given at its shortest: `a a a a` is one
    step four times and not two steps twice.

    Each period looks at every period-th step alone, and extends a hit to both sides (Main and Lorentz 1984); runs
    that a shorter period explains are jumped over.
    """
    numbers: dict[tuple[Call, Hashable], int] = {}
    sequence = [numbers.setdefault((call_of(step), canonical(step.output)), len(numbers)) for step in steps]
    size = len(sequence)
    found: list[Loop] = []
    ends: dict[int, list[tuple[int, int]]] = {}
    for period in range(1, size // _LEAST_TIMES + 1):
        explained = sorted(run for shorter, runs in ends.items() if period % shorter == 0 for run in runs)
        at = 0
        while at + period < size:
            if sequence[at] != sequence[at + period]:
                at += period
                continue
            covering = next((run for run in explained if run[0] <= at and at + period < run[1]), None)
            if covering is not None:
                at += max(period, (covering[1] - at - 1) // period * period)
                continue
            start, end = _extended(sequence, at, period)
            if end - start >= _LEAST_TIMES * period:
                ends.setdefault(period, []).append((start, end))
                if not all(index in expected for index in range(start, end)):
                    found.append(Loop(start, period, (end - start) // period))
            at += max(period, (end - at - 1) // period * period)
    return sorted(found, key=lambda loop: (loop.start, loop.period))


def _extended(sequence: Sequence[int], at: int, period: int) -> tuple[int, int]:
    """Return the longest run around a step in which each step equals the one a period later."""
    start = at
    while start and sequence[start - 1] == sequence[start - 1 + period]:
        start -= 1
    end = at + period
    while end < len(sequence) and sequence[end] == sequence[end - period]:
        end += 1
    return start, end
