"""From what came before what in many runs to a sequence of steps and groups."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import fsum

from stepacc_core.suggest.runs import Key, Run

Label = tuple[Key, int]
"""One step of the suggestion: what it is, and the how-manieth of its kind."""

Places = dict[Label, int]
"""Where in a run each label stands; what did not run is not in it."""


@dataclass(frozen=True, slots=True)
class Order:
    """In how many runs with both one came before the other, came after it, and ran at the same time."""

    before: int
    after: int
    parallel: int

    def is_parallel(self, share: float) -> bool:
        """Tell whether they ran at the same time in this share of the runs."""
        both = self.before + self.after
        return both > 0 and self.parallel >= share * both

    def varies(self, share: float) -> bool:
        """Tell whether the less usual order occurs in this share of the runs."""
        return min(self.before, self.after) >= max(1.0, share * (self.before + self.after) - 1e-9)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What runs tell of the order of steps.

    `varies_from` is the share of the runs with both steps in which the less usual order must occur for it to vary, and
    `parallel_from` the share in which they must have run at the same time.
    """

    runs: Sequence[Run]
    places: Sequence[Places]
    varies_from: float
    parallel_from: float

    def support(self, label: Label) -> int:
        """Count the runs in which a step stands."""
        return sum(label in places for places in self.places)

    def position(self, label: Label) -> float:
        """Return where a step stands on the average, from 0 for the beginning of its runs to 1 for their end."""
        found = [
            (places[label] + 0.5) / len(run.steps)
            for run, places in zip(self.runs, self.places, strict=True)
            if label in places
        ]
        return fsum(found) / len(found)

    def order(self, first: Label, second: Label) -> Order:
        """Compare two steps over the runs that have both."""
        before = after = parallel = 0
        for run, places in zip(self.runs, self.places, strict=True):
            here, there = places.get(first), places.get(second)
            if here is not None and there is not None:
                before += here < there
                after += here > there
                parallel += (min(here, there), max(here, there)) in run.parallel
        return Order(before, after, parallel)

    def may_precede(self, first: Label, second: Label) -> tuple[bool, bool]:
        """Tell whether the first may come before the second, and the second before the first; one of them holds."""
        order = self.order(first, second)
        if order.is_parallel(self.parallel_from) or order.varies(self.varies_from):
            return True, True
        if order.before == order.after:  # no run has both
            earlier = self.position(first) <= self.position(second)
        else:
            earlier = order.before > order.after
        return earlier, not earlier


def in_order(labels: Sequence[Label], evidence: Evidence) -> list[list[Label]]:
    """Return the labels as steps (lists of one) and groups, in order.

    Labels that may come in either order are in one group, and so are labels among which there is no order at all, as
    where each of three comes before the next and the last before the first.
    """
    reach = [1 << index for index in range(len(labels))]
    for first, second in combinations(range(len(labels)), 2):
        forward, backward = evidence.may_precede(labels[first], labels[second])
        reach[first] |= forward << second
        reach[second] |= backward << first
    for over in range(len(labels)):
        for index in range(len(labels)):
            if reach[index] >> over & 1:
                reach[index] |= reach[over]
    elements: dict[int, list[Label]] = {}
    for index, label in enumerate(labels):
        elements.setdefault(reach[index], []).append(label)
    # One of any two may precede the other, so what reaches more comes first, and the same is reached within a group.
    ordered = sorted(elements.items(), key=lambda element: -element[0].bit_count())
    return [sorted(members, key=lambda label: (evidence.position(label), label)) for _, members in ordered]
