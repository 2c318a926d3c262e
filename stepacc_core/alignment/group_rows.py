"""The row behind a group: the least distances of one row as numbers, and back as masks."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import sub
from typing import TYPE_CHECKING

from stepacc_core.alignment.limits import Budget
from stepacc_core.alignment.matching import NOTHING, gains
from stepacc_core.alignment.relation import Mask
from stepacc_core.alignment.terms import GroupTerms
from stepacc_core.alignment.windows import Weights, window_minima

if TYPE_CHECKING:
    from stepacc_core.alignment.group_windows import GroupWindows

_DISTANCE = Weights(1)
_MANY = 1_000


@dataclass(slots=True)
class GroupRow:
    """What the row before a group says within the band: columns from `start` on, windows ending up to `end`.

    A group of names alone has gains, another has its windows.
    """

    members: int
    start: int
    end: int
    distances: Sequence[int]
    gains: Sequence[int]
    windows: "GroupWindows | None" = None


def group_row(
    element: tuple[Mask, ...], terms: GroupTerms | None, places: tuple[int, int], before: list[int], budget: Budget
) -> tuple[GroupRow, list[int]]:
    """Return what is kept of the row before a group, and the row after it.

    Args:
        element: the members' masks.
        terms: what is asked of the members beyond names.
        places: the first place where a window may begin, and the last where it may end.
        before: the row at the first place and those behind it where a window may begin.
        budget: charged for what is looked at.
    """
    start, end = places
    if terms:
        from stepacc_core.alignment.group_windows import GroupWindows  # noqa: PLC0415 -- slow to import

        windows = GroupWindows(terms, start, end, budget)
        return GroupRow(len(element), start, end, packed(before), [], windows), windows.after(before)
    found = gains(element, start, end, budget)
    begins = before + [NOTHING] * (end - start + 1 - len(before))
    after = window_minima(begins, found, len(element), _DISTANCE)
    return GroupRow(len(element), start, end, packed(before), packed(found)), after


def packed(numbers: list[int]) -> Sequence[int]:
    """Return many numbers in an eighth of the memory, unless one is too large for it."""
    if len(numbers) < _MANY:
        return numbers
    try:
        return array("q", numbers)
    except OverflowError:
        return numbers


def row_values(left: int, rise: Mask, fall: Mask, width: int) -> list[int]:
    """Return the numbers of a row of so many steps that begins with `left`."""
    # The bit above keeps leading zeros; reversed, the text runs with the columns.
    above = 1 << width
    ups = bin(rise | above)[:2:-1].encode()
    downs = bin(fall | above)[:2:-1].encode()
    return list(accumulate(map(sub, ups, downs), initial=left))


def row_masks(values: list[int]) -> tuple[Mask, Mask]:
    """Return rises and falls of a row."""
    steps = [after - value for value, after in pairwise(values)]
    steps.reverse()
    rise = int("0" + "".join(["1" if step > 0 else "0" for step in steps]), 2)
    fall = int("0" + "".join(["1" if step < 0 else "0" for step in steps]), 2)
    return rise, fall
