"""The least cost over all windows of a group that end at each step, in near-linear time.

A window that takes one more step changes its cost in one of few ways, and each change concerns all windows
that began late enough. So the costs of two windows, one begun before the other, only ever move in favour of
the later: a window that is no better than a later one is out for good. What is left costs strictly more the
later it began. Only the differences between neighbours are kept, every change is one subtraction, and a
disjoint-set forest finds the place (contract of `agent.step_accuracy`, section 8).
"""

from typing import NamedTuple


class Weights(NamedTuple):
    """What a window costs.

    Of a group without optional members and checks that is
    `(max(members, steps) - matched) * cost + (steps - matched) * swap + (members - matched) * need + matched * same
    + steps * length`.

    Attributes:
        cost: of each entry that is no match.
        swap: of each observed step that matches nothing.
        need: of each required step that nothing matches.
        check: of each check that does not hold on a match.
        same: of each match of a step without checks.
        length: of each step in a window.
    """

    cost: int
    swap: int = 0
    need: int = 0
    check: int = 0
    same: int = 0
    length: int = 0

    def window(self, members: int, steps: int, matched: int) -> int:
        """Return the cost of one window."""
        more = max(members, steps)
        return (
            (more - matched) * self.cost
            + (steps - matched) * self.swap
            + (members - matched) * self.need
            + matched * self.same
            + steps * self.length
        )


def window_minima(  # noqa: C901, PLR0912, PLR0915 -- one loop, unrolled for speed
    begins: list[int], gains: list[int], members: int, weights: Weights
) -> list[int]:
    """Return the least cost of what came before plus one window, for every place where the window may end.

    Args:
        begins: what it costs to be at each place before the window, -1 where the window cannot begin.
        gains: for the step after each place, the first begin whose window it adds a match to, or -1.
        members: the size of the group.
        weights: what windows cost.

    Returns:
        The least cost at each place of `begins`, -1 as long as no window can have begun.
    """
    rise = weights.cost + weights.swap + weights.length
    spare = weights.cost
    match = weights.cost + weights.swap + weights.need - weights.same
    empty = members * (weights.cost + weights.need)
    places = len(begins)
    parent = list(range(places + 1))
    before = [-1] * places
    above = [0] * places
    first = last = -1
    lowest = highest = raised = 0
    minima: list[int] = []
    for place, begin in enumerate(begins):
        if place:
            raised += rise
            falls = [(place - members if place > members else 0, spare)]
            if gains[place - 1] >= 0:
                falls.append((gains[place - 1], match))
            for start, amount in falls:
                if start > last:
                    continue
                highest -= amount
                root = start
                while parent[root] != root:
                    parent[root] = parent[parent[root]]
                    root = parent[root]
                if root == first:
                    lowest -= amount
                    continue
                step = above[root] - amount
                while step <= 0:
                    out = before[root]
                    parent[out] = root
                    before[root] = before[out]
                    if out == first:
                        first = root
                        lowest += step
                        break
                    step += above[out]
                above[root] = step
        if begin < 0:
            parent[place] = place + 1
        else:
            value = begin + empty - raised
            step = value - highest
            while last >= 0 and step <= 0:
                parent[last] = place
                step += above[last]
                last = before[last]
            if last < 0:
                first = place
                lowest = value
            before[place] = last
            above[place] = step
            last = place
            highest = value
        minima.append(lowest + raised if last >= 0 else -1)
    return minima
