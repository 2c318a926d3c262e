"""The match modes that look at order (contract, section 2); containment in any order is a count.

All of it goes by classes of steps (`stepacc_core.judging.relation`) and is close to linear; groups are filled by
augmenting paths, one step at a time.
"""

from collections.abc import Sequence

from stepacc_core.judging.relation import Wanted, WantedElement

_NOBODY = -1


def holds_exactly(elements: Sequence[WantedElement], classes: Sequence[int]) -> bool:
    """Tell whether the observed steps are the reference: same steps, same order, nothing else.

    An optional step may be absent, and a group's members may come in any order.
    """
    size = len(classes)
    least = [0]
    most = [0]
    for element in reversed(elements):
        members = element if isinstance(element, tuple) else (element,)
        least.append(least[-1] + sum(not member.optional for member in members))
        most.append(most[-1] + len(members))
    least.reverse()
    most.reverse()
    reached = {0} if least[0] <= size <= most[0] else set()
    for index, element in enumerate(elements):
        following: set[int] = set()
        for start in reached:
            if isinstance(element, tuple):
                following.update(_group_ends(element, classes, start))
                continue
            if element.optional:
                following.add(start)
            if start < size and classes[start] in element.classes:
                following.add(start + 1)
        reached = {at for at in following if least[index + 1] <= size - at <= most[index + 1]}
        if not reached:
            return False
    return size in reached


def holds_in_order(elements: Sequence[WantedElement], classes: Sequence[int]) -> bool:
    """Tell whether the required steps of the reference are a subsequence of the observed ones.

    Each element takes its steps as early as it can after those of the element before. That never costs a later one
    its place, and a group ends earliest when each step that adds to it is taken.
    """
    size = len(classes)
    at = 0
    for element in elements:
        members = element if isinstance(element, tuple) else (element,)
        filling = Filling([member for member in members if not member.optional])
        while not filling.is_full:
            if at == size:
                return False
            filling.offer(classes[at])
            at += 1
    return True


class Filling:
    """A group being filled with observed steps in turn, always the earliest that fit together.

    A step that finds no free member may move earlier steps to other members, along an augmenting path. Once a step of
    a class finds no place, no later one of that class does, however the group is filled on (the steps that fit
    together form a matroid), so that few searches fail.
    """

    def __init__(self, members: Sequence[Wanted]) -> None:
        self._accepting: dict[int, list[int]] = {}
        for index, member in enumerate(members):
            for number in member.classes:
                self._accepting.setdefault(number, []).append(index)
        self._held_by = [_NOBODY] * len(members)
        self._free = len(members)
        self._refused: set[int] = set()

    @property
    def is_full(self) -> bool:
        """Whether every member has a step."""
        return not self._free

    def offer(self, number: int) -> bool:
        """Take a step of this class if all taken so far can have a member each with it; tell whether it was taken."""
        if number in self._refused:
            return False
        moved: dict[int, tuple[int, int]] = {}
        queue = [number]
        for asking in queue:
            for member in self._accepting.get(asking, ()):
                holder = self._held_by[member]
                if holder == _NOBODY:
                    self._hand_over(member, asking, moved)
                    self._free -= 1
                    return True
                if holder != number and holder not in moved:
                    moved[holder] = (asking, member)
                    queue.append(holder)
        self._refused.add(number)
        return False

    def _hand_over(self, member: int, taker: int, moved: dict[int, tuple[int, int]]) -> None:
        """Give the free member to a step of a class, its former one to the class that asked for it, and so on."""
        self._held_by[member] = taker
        while taker in moved:
            taker, member = moved[taker]
            self._held_by[member] = taker


def _group_ends(members: tuple[Wanted, ...], classes: Sequence[int], start: int) -> range:
    """Return where a group may end that begins at `start`: each step of it has a member, each required member a step.

    Both can be had at once when each can be had alone (Mendelsohn and Dulmage 1958), and each holds for one side of a
    bound.
    """
    everyone = Filling(members)
    required = Filling([member for member in members if not member.optional])
    end = start
    first = start if required.is_full else None
    while end < len(classes) and everyone.offer(classes[end]):
        required.offer(classes[end])
        end += 1
        if first is None and required.is_full:
            first = end
    return range(end if first is None else first, end + (first is not None))
