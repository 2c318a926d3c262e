"""One row of the backward pass: the places from which the end is reached without loss, and their best moves.

A place is left by a move: a plain step and an observed one make a pair, an observed step is extra, or the element
goes its other way, which is to be missing for a plain step and to take its window for a group.
"""

from bisect import bisect_left
from collections.abc import Callable
from operator import neg
from typing import NamedTuple

from stepacc_core.alignment.relation import Mask

PAIR, EXTRA, OTHER = range(3)

_BLOCK = 4096
"""Columns handled together: reading a bit takes time with the length of its mask."""

_Pending = tuple[int, int, int]
"""A place that may still be reached from further left below, with its cost and move so far."""

_NONE: _Pending = (-1, 0, 0)


Edges = tuple[Mask, Mask, Mask, Mask]
"""The moves on which nothing is lost, as masks of columns or of steps: the other way, a pair alike, no pair unlike
(these lead to the row below), and an extra step (along the row)."""


class Costs(NamedTuple):
    """What the moves to a row cost.

    Attributes:
        extra: of an extra step.
        other: of the other way.
        unlike: of a pair unlike.
        same: of a pair alike.
        checked: tells the cost of a pair alike by its step, where that depends on the step.
    """

    extra: int
    other: int
    unlike: int
    same: int = 0
    checked: Callable[[int], int] | None = None


Found = tuple[list[int], list[int], list[int]]
"""Columns of a row's places from right to left, the cost of the best that follows each, and the move it begins with."""


def row_above(columns: list[int], follows: list[int], edges: Edges, costs: Costs, base: int) -> Found:
    """Return the places of a row.

    Where two moves are as good, a pair is preferred to an extra step, and that to the other way.

    Args:
        columns: those of the places in the row below, from right to left.
        follows: the cost of the best that follows each.
        edges: the moves.
        costs: of the moves.
        base: the column where the masks begin; there are no places before it.
    """
    if base:
        columns = [column - base for column in columns]
    found: Found = ([], [], [])
    pending = _NONE
    if columns[0] > _BLOCK:
        pending, columns, follows = _in_blocks(columns, follows, edges, costs, (found, base))
    place, value, move = _block(columns, follows, edges, costs, (pending, found, base))
    if place == 0:
        found[0].append(0)
        found[1].append(value)
        found[2].append(move)
    if base:
        return [column + base for column in found[0]], found[1], found[2]
    return found


def _in_blocks(
    columns: list[int], follows: list[int], edges: Edges, costs: Costs, state: tuple[Found, int]
) -> tuple[_Pending, list[int], list[int]]:
    """Find the places right of the first block; return the one in hand there and what is left of the row below."""
    found, base = state
    pending = _NONE
    ones = (2 << _BLOCK) - 1
    other, alike, kept, extra = edges
    at = 0
    while (high := max(pending[0], columns[at] if at < len(columns) else -1)) > _BLOCK:
        shift = high - _BLOCK
        upto = bisect_left(columns, -shift, at, key=neg)
        part: Found = ([], [], [])
        place, value, move = pending
        place, value, move = _block(
            [column - shift for column in columns[at:upto]],
            follows[at:upto],
            (other >> shift & ones, alike >> shift & ones, kept >> shift & ones, extra >> shift & ones),
            costs,
            ((max(place - shift, -1), value, move), part, base + shift),
        )
        found[0].extend([column + shift for column in part[0]])
        found[1].extend(part[1])
        found[2].extend(part[2])
        pending = _NONE if place < 0 else (shift, value, move)
        at = upto
    return pending, columns[at:], follows[at:]


def _block(  # noqa: C901, PLR0912 -- one loop, unrolled for speed
    columns: list[int],
    follows: list[int],
    edges: Edges,
    costs: Costs,
    state: tuple[_Pending, Found, int],
) -> _Pending:
    """Find the places of a block but for column 0; that one is returned, if reached, with its cost and move.

    The last of the state says how many columns lie left of the block.
    """
    other, alike, kept, extra = edges
    more, missing, swap, same, checked = costs
    (place, value, move), (places, values, moves), shift = state
    for column, follow in zip(columns, follows, strict=True):
        # Nothing below leads to the places right of this column any more: they are final.
        while place > column:
            places.append(place)
            values.append(value)
            moves.append(move)
            place -= 1
            if extra >> place & 1:
                value += more
                move = EXTRA
            else:
                place = -1
        if other >> column & 1 and (place != column or follow + missing < value):
            place = column
            value = follow + missing
            move = OTHER
        if not column:
            break
        step = column - 1
        if alike >> step & 1:
            paired = follow + (checked(step + shift) if checked else same)
        elif kept >> step & 1:
            continue
        else:
            paired = follow + swap
        if place == column:
            places.append(place)
            values.append(value)
            moves.append(move)
            place = step if extra >> step & 1 else -1
            value += more
            move = EXTRA
        if place != step or paired <= value:
            place = step
            value = paired
            move = PAIR
    while place > 0:
        places.append(place)
        values.append(value)
        moves.append(move)
        place -= 1
        if extra >> place & 1:
            value += more
            move = EXTRA
        else:
            place = -1
    return place, value, move
