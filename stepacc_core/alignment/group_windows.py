"""Windows of a group that has optional members or checks.

Of the largest matchings between members and the steps of a window there is one that also matches as many required
members as any does, since the sets of members that can be matched together are those of a matroid. So a window costs
the larger of two numbers, required members and steps that are left over. These costs are no Monge array, as they are
without optional members, and every pair of a begin and an end is looked at, a row of numbers at a time. Where checks
decide between windows, the assignment is solved for those that may be the best.
"""

from collections import defaultdict
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stepacc_core.alignment.assignment import Assignment
from stepacc_core.alignment.limits import Budget
from stepacc_core.alignment.matching import NOTHING, gains
from stepacc_core.alignment.terms import GroupTerms
from stepacc_core.alignment.windows import Weights

Numbers = NDArray[np.int64]

_NO_WINDOW = (NOTHING, NOTHING)


class Follows(NamedTuple):
    """What follows a group: the places where it may end, ascending, and distance and cost from each to the end."""

    places: Numbers
    distances: Numbers
    values: list[int]


class _Window(NamedTuple):
    """A window on an alignment of least distance: its cost, with what follows, when no check holds, and its end."""

    cost: int
    end: int


class GroupWindows:
    """The windows of one group between two places.

    Args:
        terms: the group.
        start: the first place.
        end: the last place.
        budget: charged for what is looked at.
    """

    def __init__(self, terms: GroupTerms, start: int, end: int, budget: Budget) -> None:
        self._most = terms.most
        self._start, self._end = start, end
        self._budget = budget
        required = [mask for mask, optional in zip(terms.members, terms.optional, strict=True) if not optional]
        self._required = len(required)
        self._gains = np.array(gains(terms.members, start, end, budget), dtype=np.int64)
        self._required_gains = self._gains
        if len(required) < len(terms.members):
            self._required_gains = np.array(gains(required, start, end, budget), dtype=np.int64)
        self._assignment = Assignment(terms, start, end, budget) if terms.held else None

    def after(self, before: Sequence[int]) -> list[int]:
        """Return the least distance at each place, given those at the places where a window may begin."""
        least = np.full(self._end - self._start + 1, np.iinfo(np.int64).max)
        for at, value in enumerate(before):
            np.minimum(least[at:], self._from(self._start + at)[0] + value, out=least[at:])
        return [int(value) for value in least]

    def follows(self, columns: Sequence[int], values: Sequence[int], cost: int) -> Follows:
        """Return what follows the group, given columns from right to left with their values, and what an edit costs."""
        ascending = list(reversed(values))
        distances = np.array([value // cost for value in ascending], dtype=np.int64)
        return Follows(np.array(list(reversed(columns)), dtype=np.int64), distances, ascending)

    def best(self, begin: int, left: int, follows: Follows, weights: Weights) -> tuple[int, int]:
        """Return the cost of the best window from a place, with what follows, and its end; -1 where there is none.

        Args:
            begin: the place.
            left: the distance from there to the end of everything.
            follows: where the window may end.
            weights: what windows cost.
        """
        first = int(np.searchsorted(follows.places, begin))
        lengths = follows.places[first:] - begin
        distance, matched, missing = (numbers[lengths] for numbers in self._from(begin))
        alike: defaultdict[tuple[int, int], list[_Window]] = defaultdict(list)
        for at in np.flatnonzero(distance + follows.distances[first:] == left).tolist():
            length, size = int(lengths[at]), int(matched[at])
            cost = (
                follows.values[first + at]
                + int(distance[at]) * weights.cost
                + (length - size) * weights.swap
                + int(missing[at]) * weights.need
                + size * self._most * weights.check
                + length * weights.length
            )
            alike[size, int(missing[at])].append(_Window(cost, begin + length))
        self._budget.spend(sum(map(len, alike.values())))
        if self._assignment is None:
            return min([window for windows in alike.values() for window in windows], default=_NO_WINDOW)
        return self._most_holding(begin, list(alike.values()), weights.check, self._assignment)

    def _from(self, begin: int) -> tuple[Numbers, Numbers, Numbers]:
        """Return distance, matches and missing members of the windows from a place, by length up to the last place."""
        at = begin - self._start
        self._budget.spend(20 + (self._end - begin) // 50)
        matched = _counted(self._gains[at:], at)
        needed = matched if self._required_gains is self._gains else _counted(self._required_gains[at:], at)
        missing = self._required - needed
        return np.maximum(missing, np.arange(len(matched)) - matched), matched, missing

    def _most_holding(
        self, begin: int, alike: list[list[_Window]], check: int, assignment: Assignment
    ) -> tuple[int, int]:
        """Return the best window, with its cost.

        Of windows whose matchings are alike in size, one within another holds no more checks than that one. So the
        solution of a window bounds those within it, and the shortest that holds as much is found by halving.
        """
        bounds = [[assignment.prospect(begin, window.end) for window in windows] for windows in alike]
        solved = [[False] * len(windows) for windows in alike]
        queue = [
            (window.cost - bounds[kind][at] * check, window.end, kind, at)
            for kind, windows in enumerate(alike)
            for at, window in enumerate(windows)
        ]
        heapify(queue)
        while queue:
            cost, end, kind, at = heappop(queue)
            windows = alike[kind]
            if cost == windows[at].cost - bounds[kind][at] * check:
                if solved[kind][at]:
                    return cost, end
                after = at + 1
                while after < len(windows) and not solved[kind][after]:
                    after += 1
                middle = len(windows) - 1 if after == len(windows) else (at + after) // 2
                holding = assignment.holding(begin, windows[middle].end)
                solved[kind][middle] = True
                for within in range(middle + 1):
                    bounds[kind][within] = min(bounds[kind][within], holding)
            heappush(queue, (windows[at].cost - bounds[kind][at] * check, end, kind, at))
        return _NO_WINDOW


def _counted(gained: Numbers, at: int) -> Numbers:
    """Return the matches of windows from the place `at`, by length."""
    matched = np.zeros(len(gained) + 1, dtype=np.int64)
    np.cumsum((gained >= 0) & (gained <= at), out=matched[1:])
    return matched
