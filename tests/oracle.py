"""A slow transcription of the contract of `agent.step_accuracy`, section 5, to hold the fast engine against.

Nothing here is shared with `stepacc_core.alignment`: one recursion over every way to lay the elements on the
observed steps, and one comparison of tuples that spells the tie rules out. The fifth rule reads: where all else is
equal, the moves are compared left to right; a plain step takes the next observed step rather than leave it as extra,
and leaves it as extra rather than be missing; a group takes the shorter window.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from stepacc_core.model import Step
from stepacc_core.names import matches
from stepacc_core.trajectory import Group, Trajectory

_PAIR, _EXTRA, _MISSING, _GROUP = range(4)


class Best(NamedTuple):
    """What is compared, in this order; less is better."""

    distance: int
    substitutions: int
    window_lengths: int
    window_starts: tuple[int, ...]
    moves: tuple[tuple[int, int], ...]


class Expected(NamedTuple):
    """What the oracle says of one comparison."""

    distance: int
    matches: int
    entries: list[dict[str, Any]]


def oracle(trajectory: Trajectory, steps: Sequence[Step]) -> Expected:
    """Return the alignment that the contract wants."""
    elements = [(i, e) for i, e in enumerate(trajectory.elements) if not (isinstance(e, Group) and not e.members)]
    size = len(steps)

    @cache
    def matched(at: int, start: int) -> list[int]:
        group = elements[at][1]
        assert isinstance(group, Group)
        return growth(group.members, steps[start:])

    @cache
    def best(at: int, column: int) -> Best:
        options = []
        if column < size:
            options.append(_add(best(at, column + 1), _EXTRA, distance=1))
        if at == len(elements):
            return options[0] if options else Best(0, 0, 0, (), ())
        element = elements[at][1]
        if isinstance(element, Group):
            members = len(element.members)
            for end in range(column, size + 1):
                length = end - column
                rest = best(at + 1, end)
                claimed = matched(at, column)[length]
                options.append(
                    Best(
                        rest.distance + max(members, length) - claimed,
                        rest.substitutions + min(members, length) - claimed,
                        rest.window_lengths + length,
                        (column, *rest.window_starts),
                        ((_GROUP, length), *rest.moves),
                    )
                )
        else:
            options.append(_add(best(at + 1, column), _MISSING, distance=1))
            if column < size:
                wrong = not matches(element, steps[column].name, steps[column].kind)
                options.append(_add(best(at + 1, column + 1), _PAIR, distance=wrong, substitutions=wrong))
        return min(options)

    whole = best(0, 0)
    entries = list(_entries(elements, steps, whole.moves))
    return Expected(whole.distance, sum(entry["op"] == "match" for entry in entries), entries)


def _add(rest: Best, move: int, *, distance: int, substitutions: int = 0) -> Best:
    return Best(
        rest.distance + distance,
        rest.substitutions + substitutions,
        rest.window_lengths,
        rest.window_starts,
        ((move, 0), *rest.moves),
    )


def growth(members: Sequence[str], window: Sequence[Step]) -> list[int]:
    """Return the size of a largest matching with none, one, two, ... of the window's steps (Kuhn 1955)."""
    owner: dict[int, int] = {}
    sizes = [0]

    def augment(at: int, tried: set[int]) -> bool:
        for member in range(len(members)):
            if member not in tried and matches(members[member], window[at].name, window[at].kind):
                tried.add(member)
                if member not in owner or augment(owner[member], tried):
                    owner[member] = at
                    return True
        return False

    for at in range(len(window)):
        sizes.append(sizes[-1] + augment(at, set()))
    return sizes


def largest_matching(members: Sequence[str], window: Sequence[Step]) -> int:
    """Return the size of a largest matching by trying every way; the check on `growth`."""
    if not window:
        return 0
    step = window[0]
    sizes = [largest_matching(members, window[1:])]
    for at, member in enumerate(members):
        if matches(member, step.name, step.kind):
            sizes.append(1 + largest_matching([*members[:at], *members[at + 1 :]], window[1:]))
    return max(sizes)


def _entries(
    elements: list[tuple[int, Any]], steps: Sequence[Step], moves: tuple[tuple[int, int], ...]
) -> Iterator[dict[str, Any]]:
    at = column = 0
    for move, length in moves:
        if move == _EXTRA:
            yield _entry("insert", None, steps[column].name, None, column)
            column += 1
            continue
        index, element = elements[at]
        at += 1
        if move == _MISSING:
            yield _entry("delete", element, None, index, None)
        elif move == _PAIR:
            step = steps[column]
            op = "match" if matches(element, step.name, step.kind) else "substitute"
            yield _entry(op, element, step.name, index, column)
            column += 1
        else:
            yield from _group_entries(index, element.members, column, steps[column : column + length])
            column += length


def _entry(
    op: str, expected: str | None, actual: str | None, expected_index: int | None, actual_index: int | None, **more: int
) -> dict[str, Any]:
    entry = {"op": op, "expected": expected, "actual": actual}
    return {**entry, "expected_index": expected_index, "actual_index": actual_index, **more}


def _group_entries(index: int, members: Sequence[str], column: int, window: Sequence[Step]) -> Iterator[dict[str, Any]]:
    claimed = _claims(members, window)
    assert len(claimed) == growth(members, window)[-1]
    missing = [member for member in range(len(members)) if member not in claimed.values()]
    for at, step in enumerate(window):
        if at in claimed:
            yield _entry("match", members[claimed[at]], step.name, index, column + at, group=index)
        elif missing:
            yield _entry("substitute", members[missing.pop(0)], step.name, index, column + at, group=index)
        else:
            yield _entry("insert", None, step.name, None, column + at, group=index)
    for member in missing:
        yield _entry("delete", members[member], None, index, None, group=index)


def _claims(members: Sequence[str], window: Sequence[Step]) -> dict[int, int]:
    """Return which step claims which member: step by step, along a shortest augmenting path in authored order."""
    claimed: dict[int, int] = {}
    for at in range(len(window)):
        # Paths of (step, member) pairs, each step taking the member over from the next.
        paths: list[list[tuple[int, int]]] = [[(at, -1)]]
        reached: set[int] = set()
        while paths:
            path = paths.pop(0)
            asking = path[-1][0]
            owners = {member: step for step, member in claimed.items()}
            for member in range(len(members)):
                if member in reached or not matches(members[member], window[asking].name, window[asking].kind):
                    continue
                reached.add(member)
                longer = [*path[:-1], (asking, member)]
                if member in owners:
                    paths.append([*longer, (owners[member], -1)])
                else:
                    claimed.update(longer)
                    paths.clear()
                    break
    return claimed
