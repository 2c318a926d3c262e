"""The best assignment of the steps of a window to the members of a group.

Best is first the most matches, then the most matches of required members, then the most checks holding, then the
earliest steps. One matrix of weights says the first three in whole numbers whose digits never carry.
"""

from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from stepacc_core.alignment.limits import Budget
from stepacc_core.alignment.relation import bits
from stepacc_core.alignment.terms import GroupTerms


class Assignment:
    """Assignments within windows between two places.

    Args:
        terms: the group.
        start: the first place.
        end: the last place.
        budget: charged for what is solved.
    """

    def __init__(self, terms: GroupTerms, start: int, end: int, budget: Budget) -> None:
        self._budget = budget
        ones = (1 << (end - start)) - 1
        masks = [mask >> start & ones for mask in terms.members]
        union = 0
        for mask in masks:
            union |= mask
        # Steps that satisfy no member are left out of the problem.
        self._steps = bits(union)
        self._start = start
        budget.spend(len(masks) * len(self._steps))
        columns = {step: column for column, step in enumerate(self._steps)}
        self._fits = np.zeros((len(masks), len(self._steps)), dtype=bool)
        self._held = np.zeros(self._fits.shape, dtype=np.int64)
        for member, mask in enumerate(masks):
            for step in bits(mask):
                self._fits[member, columns[step]] = True
                if terms.held:
                    self._held[member, columns[step]] = terms.held(member, start + step)
        self._optional = np.array(terms.optional, dtype=bool)
        self._holding: dict[tuple[int, int], int] = {}
        best = self._held.max(axis=0, initial=0)
        self._prospects: list[int] = [0, *np.cumsum(best).tolist()]
        self._prospect = int(self._held.max(axis=1, initial=0).sum())

    def prospect(self, begin: int, end: int) -> int:
        """Return a number of checks that no assignment in a window exceeds."""
        first, last = self._columns(begin, end)
        return min(self._prospect, self._prospects[last] - self._prospects[first])

    def holding(self, begin: int, end: int) -> int:
        """Return how many checks hold under the best assignment of a window."""
        key = self._columns(begin, end)
        if key not in self._holding:
            rows, columns = self._solved(*key, earliest=False)
            self._holding[key] = int(self._held[rows, columns + key[0]].sum())
        return self._holding[key]

    def pairs(self, begin: int, end: int) -> dict[int, int]:
        """Return the best assignment of a window: which member each step takes."""
        first, last = self._columns(begin, end)
        rows, columns = self._solved(first, last, earliest=True)
        return {
            self._start + self._steps[first + column]: member
            for member, column in zip(rows.tolist(), columns.tolist(), strict=True)
        }

    def _columns(self, begin: int, end: int) -> tuple[int, int]:
        return bisect_left(self._steps, begin - self._start), bisect_left(self._steps, end - self._start)

    def _solved(self, first: int, last: int, *, earliest: bool) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        fits, held = self._fits[:, first:last], self._held[:, first:last]
        members, width = fits.shape
        # The solver takes cubic time at worst, where many members and steps are alike.
        self._budget.spend(members * width * (20 + min(members, width)) // 2_000)
        weights = held
        if earliest:
            weights = weights * (members * width + 1) + np.arange(width, 0, -1)
        unit = int(weights.max(initial=0)) * members + 1
        weights = np.where(fits, weights + unit * (members + 2 - self._optional[:, None]), 0)
        rows, columns = linear_sum_assignment(weights, maximize=True)
        matched = fits[rows, columns]
        return rows[matched], columns[matched]
