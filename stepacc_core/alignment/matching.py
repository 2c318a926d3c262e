"""Largest one-to-one matchings between a group's members and a run of observed steps.

The sets of steps that can be matched at once form a transversal matroid (Edmonds and Fulkerson 1965).
Two things follow. Steps that are offered in turn and kept when an augmenting path exists give a largest
matching, always of the earliest steps that can be in one. And over windows that end at one step, that
step adds a match to exactly the windows that begin after the oldest step of the circuit it closes with
the newest steps matched so far, so one number per step says it all.
"""

from collections.abc import Sequence

from stepacc_core.alignment.limits import Budget
from stepacc_core.alignment.relation import Mask, bits

_FEW = 256
"""Members times steps up to which trying them in turn beats setting up a search."""

NOTHING = -1
"""No member, no step, no window: used where a position would stand."""


def claims(members: Sequence[Mask], start: int, end: int) -> list[int]:
    """Match the members of a group with the steps of its window.

    Steps claim in the order observed; each takes the first free member in authored order. A step that finds
    none free may move earlier steps to other members, along a shortest augmenting path that is searched in
    authored order. So the claim is a fixed function of its arguments.

    Args:
        members: the members' masks, in authored order.
        start: the first step of the window.
        end: the step after its last.

    Returns:
        For each step of the window the index of the member it claims, or -1.
    """
    if (end - start) * len(members) <= _FEW:
        claimed = _first_free(members, start, end)
        if claimed is not None:
            return claimed
    accepted = _accepted(_cut(members, start, end), end - start)
    matching = _Matching(accepted, len(members))
    for step in range(end - start):
        member, seen = matching.search(step)
        if member == NOTHING:
            matching.close(seen)
    claimed = [NOTHING] * (end - start)
    for member, step in enumerate(matching.owner):
        if step != NOTHING:
            claimed[step] = member
    return claimed


def _first_free(members: Sequence[Mask], start: int, end: int) -> list[int] | None:
    """Return the claims when no step has to be moved to another member, else None."""
    free = list(range(len(members)))
    claimed = []
    for position in range(start, end):
        for member in free:
            if members[member] >> position & 1:
                free.remove(member)
                claimed.append(member)
                break
        else:
            if free and any(mask >> position & 1 for mask in members):
                return None
            claimed.append(NOTHING)
    return claimed


def gains(members: Sequence[Mask], start: int, end: int, budget: Budget, *, mirrored: bool = False) -> list[int]:
    """Tell to which windows each step adds a match.

    Args:
        members: the masks of a group's members.
        start: the first observed step considered.
        end: the step after the last.
        budget: charged where members share some steps and not others, as when names of tools and agents meet.
        mirrored: read the steps from the last to the first, so that windows grow to the left.

    Returns:
        For the x-th step read, the least number of steps read before a window began such that the step adds a
        match to it: the windows that began later gain too. -1 where no window gains.
    """
    width = end - start
    found = [NOTHING] * width
    counts: dict[Mask, int] = {}
    union = 0
    shared = False
    for mask in _cut(members, start, end):
        if mask in counts:
            counts[mask] += 1
        elif mask:
            shared = shared or bool(union & mask)
            union |= mask
            counts[mask] = 1
    if shared:
        return _mixed_gains(_cut(members, start, end), width, budget, mirrored=mirrored)
    last = width - 1
    for mask, count in counts.items():
        positions = [last - position for position in reversed(bits(mask))] if mirrored else bits(mask)
        for position in positions[:count]:
            found[position] = 0
        for full, position in zip(positions, positions[count:], strict=False):
            found[position] = full + 1
    return found


def _mixed_gains(members: list[Mask], width: int, budget: Budget, *, mirrored: bool) -> list[int]:
    budget.spend(len(members) * width)
    accepted = _accepted(members, width)
    if mirrored:
        accepted.reverse()
    matching = _Matching(accepted, len(members))
    found = []
    for step in range(width):
        if not accepted[step]:
            found.append(NOTHING)
            continue
        member, seen = matching.search(step)
        found.append(0 if member != NOTHING else matching.replace_oldest(seen) + 1)
    return found


class _Matching:
    """A matching that grows step by step; `owner` says which step holds each member."""

    def __init__(self, accepted: list[int], members: int) -> None:
        self.owner = [NOTHING] * members
        self._accepted = accepted
        self._held: dict[int, int] = {}
        self._free = self._open = (1 << members) - 1

    def search(self, step: int) -> tuple[int, dict[int, int]]:
        """Match the step if it can be; return the member freed for it and by whom each member was reached."""
        seen: dict[int, int] = {}
        unseen = self._open
        queue = [step]
        for asking in queue:
            reached = self._accepted[asking] & unseen
            free = reached & self._free
            if free:
                member = (free & -free).bit_length() - 1
                seen[member] = asking
                self._free ^= 1 << member
                self._hand_over(member, seen, step)
                return member, seen
            unseen &= ~reached
            for member in bits(reached):
                seen[member] = asking
                queue.append(self.owner[member])
        return NOTHING, seen

    def close(self, seen: dict[int, int]) -> None:
        """Leave out members from which no free one can be reached, now or later."""
        for member in seen:
            self._open &= ~(1 << member)

    def replace_oldest(self, seen: dict[int, int]) -> int:
        """Let the step whose search failed take the place of the oldest step it reached, which is returned."""
        member = min(seen, key=self.owner.__getitem__)
        oldest = self.owner[member]
        del self._held[oldest]
        step = next(iter(seen.values()))
        self._hand_over(member, seen, step)
        return oldest

    def _hand_over(self, member: int, seen: dict[int, int], step: int) -> None:
        while True:
            taker = seen[member]
            given_up = self._held.get(taker, NOTHING)
            self.owner[member] = taker
            self._held[taker] = member
            if taker == step:
                return
            member = given_up


def _cut(members: Sequence[Mask], start: int, end: int) -> list[Mask]:
    ones = (1 << (end - start)) - 1
    return [mask >> start & ones for mask in members]


def _accepted(members: Sequence[Mask], width: int) -> list[int]:
    accepted = [0] * width
    for index, mask in enumerate(members):
        bit = 1 << index
        for position in bits(mask):
            accepted[position] |= bit
    return accepted
