"""Least distances, row by row: what it costs at least to bring an expected prefix to an observed one.

Row `r` speaks of the first `r` elements, its column `j` of the first `j` observed steps. Neighbouring columns
differ by at most one, so a row is two masks, of its rises and of its falls. A plain step makes the next row in a
dozen operations on whole rows (Myers 1999; Hyyrö 2003, here with the observed steps along the word). A group reads
its row as numbers, takes the cheapest window for each end, and writes masks again.

A group's row is only worked out within a band. An alignment of distance `d` never leaves the diagonals that `d`
can pay for, so a distance found within a band of its own width is the least; until then the band is widened.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from operator import sub

from stepacc_core.alignment.limits import Budget
from stepacc_core.alignment.matching import NOTHING, gains
from stepacc_core.alignment.relation import Mask, Pattern
from stepacc_core.alignment.windows import Weights, window_minima

_DISTANCE = Weights(1, 0, 0)
_SLACK = 4
_WIDEN = 4
_MANY = 1_000


@dataclass(slots=True)
class GroupRow:
    """What the row before a group says within the band: columns `start` to `stop`, windows ending up to `end`."""

    members: int
    start: int
    end: int
    distances: Sequence[int]
    gains: Sequence[int]


@dataclass(slots=True)
class Rows:
    """The least distances of a comparison, as edges on which nothing is lost.

    Attributes:
        distance: that of the whole.
        rises: for each row, the mask of steps `j` with column `j + 1` one above column `j`.
        missing: for each plain element, the columns where it may be missing.
        unlike: for each plain element, the observed steps that may substitute it.
        groups: for each group, by the index of its element, its row.
    """

    distance: int = 0
    rises: list[Mask] = field(default_factory=list)
    missing: list[Mask] = field(default_factory=list)
    unlike: list[Mask] = field(default_factory=list)
    groups: dict[int, GroupRow] = field(default_factory=dict)


def rows(elements: list[Pattern], size: int, budget: Budget) -> Rows:
    """Return the rows of non-empty elements against `size` observed steps.

    Raises:
        ScoringError: `too_large` when groups have to be compared with too many steps.
    """
    members = [len(element) for element in elements if isinstance(element, tuple)]
    if not members:
        return _rows(elements, size, (0, 0), budget)
    steps = len(elements) - len(members) + sum(members)
    more = size - steps
    reach = abs(more) + _SLACK
    whole = size + steps
    while True:
        if reach * 2 > size:
            reach = whole
        found = _rows(elements, size, ((reach - more) // 2, (reach + more) // 2), budget)
        if found.distance <= reach:
            return found
        reach = min(found.distance, reach * _WIDEN)


def _rows(elements: list[Pattern], size: int, band: tuple[int, int], budget: Budget) -> Rows:
    below, above = band
    full = (1 << size) - 1
    wide = full << 1 | 1
    rise, fall, left = full, 0, 0
    rises, missing, unlike = [rise], [], []
    groups: dict[int, GroupRow] = {}
    diagonal = 0
    for index, element in enumerate(elements):
        if isinstance(element, int):
            zero = ((((element & rise) + rise) ^ rise) | element | fall) & full
            down = (fall | full ^ (rise | zero)) << 1 | 1
            rise = ((rise & zero) << 1 | wide ^ (down | zero)) & full
            fall = down & zero
            missing.append(down)
            unlike.append(full ^ zero)
            left += 1
            diagonal += 1
        else:
            start = max(0, min(size, diagonal - below))
            stop = max(0, min(size, diagonal + above))
            diagonal += len(element)
            begin = max(0, min(size, diagonal - below))
            end = max(0, min(size, diagonal + above))
            budget.spend(end - start)
            before = _values(left, rise, fall, start, stop)
            found = gains(element, start, end, budget)
            groups[index] = GroupRow(len(element), start, end, packed(before), packed(found))
            places = before + [NOTHING] * (end - start + 1 - len(before))
            after = window_minima(places, found, len(element), _DISTANCE)
            left, rise, fall = _masks(after[begin - start :], begin, size)
            missing.append(0)
            unlike.append(0)
        rises.append(rise)
    return Rows(left + rise.bit_count() - fall.bit_count(), rises, missing, unlike, groups)


def packed(numbers: list[int]) -> Sequence[int]:
    """Return many numbers in an eighth of the memory, unless one is too large for it."""
    if len(numbers) < _MANY:
        return numbers
    try:
        return array("q", numbers)
    except OverflowError:
        return numbers


def _values(left: int, rise: Mask, fall: Mask, start: int, stop: int) -> list[int]:
    before = (1 << start) - 1
    value = left + (rise & before).bit_count() - (fall & before).bit_count()
    # The bit above the slice keeps leading zeros; reversed, the text runs with the columns.
    ones = 1 << (stop - start)
    ups = bin(rise >> start & (ones - 1) | ones)[:2:-1].encode()
    downs = bin(fall >> start & (ones - 1) | ones)[:2:-1].encode()
    return list(accumulate(map(sub, ups, downs), initial=value))


def _masks(values: list[int], begin: int, size: int) -> tuple[int, Mask, Mask]:
    """Return column 0, rises and falls of a row known from `begin` on; elsewhere it is one more a column away."""
    end = begin + len(values) - 1
    steps = [after - value for value, after in pairwise(values)]
    steps.reverse()
    rise = int("0" + "".join(["1" if step > 0 else "0" for step in steps]), 2) << begin
    fall = int("0" + "".join(["1" if step < 0 else "0" for step in steps]), 2) << begin
    rise |= (1 << size) - (1 << end)
    fall |= (1 << begin) - 1
    return values[0] + begin, rise, fall
