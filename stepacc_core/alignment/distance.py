"""Least distances, row by row: what it costs at least to bring an expected prefix to an observed one.

Row `r` speaks of the first `r` elements, its column `j` of the first `j` observed steps. Neighbouring columns
differ by at most one, so a row is two masks, of its rises and of its falls. A plain step makes the next row in a
dozen operations on whole rows (Myers 1999; Hyyrö 2003, here with the observed steps along the word). A group reads
its row as numbers, takes the cheapest window for each end, and writes masks again.

An optional step's row is that before it, but one less behind each step that it matches at a rise, as far as the row
goes on rising.

A group's row is only worked out within a band. An alignment of distance `d` never leaves the diagonals that `d`
can pay for, so a distance found within a band of its own width is the least; until then the band is widened.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from operator import sub
from typing import TYPE_CHECKING

from stepacc_core.alignment.limits import Budget
from stepacc_core.alignment.matching import NOTHING, gains
from stepacc_core.alignment.relation import Mask, Pattern
from stepacc_core.alignment.terms import NAMES_ONLY, GroupTerms, Terms
from stepacc_core.alignment.windows import Weights, window_minima

if TYPE_CHECKING:
    from stepacc_core.alignment.group_windows import GroupWindows

_DISTANCE = Weights(1)
_SLACK = 4
_WIDEN = 4
_MANY = 1_000


@dataclass(slots=True)
class GroupRow:
    """What the row before a group says within the band: columns `start` to `stop`, windows ending up to `end`.

    A group of names alone has gains, another has its windows.
    """

    members: int
    start: int
    end: int
    distances: Sequence[int]
    gains: Sequence[int]
    windows: "GroupWindows | None" = None


@dataclass(slots=True)
class Rows:
    """The least distances of a comparison, as edges on which nothing is lost.

    Attributes:
        distance: that of the whole.
        rises: for each row, the mask of steps `j` with column `j + 1` one above column `j`.
        missing: for each plain element, the columns where it may be missing.
        alike: for each plain element, the observed steps that may match it.
        unlike: for each plain element, the observed steps that may substitute it.
        groups: for each group, by the index of its element, its row.
    """

    distance: int = 0
    rises: list[Mask] = field(default_factory=list)
    missing: list[Mask] = field(default_factory=list)
    alike: list[Mask] = field(default_factory=list)
    unlike: list[Mask] = field(default_factory=list)
    groups: dict[int, GroupRow] = field(default_factory=dict)


def rows(elements: list[Pattern], size: int, budget: Budget, terms: Terms = NAMES_ONLY) -> Rows:
    """Return the rows of non-empty elements against `size` observed steps.

    Raises:
        ScoringError: `too_large` when groups have to be compared with too many steps.
    """
    members = [len(element) for element in elements if isinstance(element, tuple)]
    if not members:
        return _rows(elements, size, (0, 0), budget, terms)
    steps = len(elements) - len(members) + sum(members)
    # Optional steps may be absent without an edit: so many diagonals further left everything may lie.
    absent = len(terms.optional) + sum([sum(group.optional) for group in terms.groups.values()])
    more = size - steps
    reach = max(more, -more - absent, 0) + _SLACK
    whole = size + steps
    while True:
        if reach * 2 > size:
            reach = whole
        found = _rows(elements, size, ((reach - more + absent) // 2, (reach + more + absent) // 2), budget, terms)
        if found.distance <= reach:
            return found
        reach = min(found.distance, reach * _WIDEN)


def _rows(elements: list[Pattern], size: int, band: tuple[int, int], budget: Budget, terms: Terms) -> Rows:
    below, above = band
    full = (1 << size) - 1
    wide = full << 1 | 1
    rise, fall, left = full, 0, 0
    rises, missing, alike, unlike = [rise], [], [], []
    optional = terms.optional
    groups: dict[int, GroupRow] = {}
    diagonal = 0
    for index, element in enumerate(elements):
        if index in optional and isinstance(element, int):
            behind, rise, fall, clear = _optional_row(element, rise, fall, full)
            missing.append(wide ^ behind)
            alike.append(element & clear)
            unlike.append(0)
            diagonal += 1
        elif isinstance(element, int):
            zero = ((((element & rise) + rise) ^ rise) | element | fall) & full
            down = (fall | full ^ (rise | zero)) << 1 | 1
            rise = ((rise & zero) << 1 | wide ^ (down | zero)) & full
            fall = down & zero
            missing.append(down)
            alike.append(element)
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
            row, after = _group_row(element, terms.groups.get(index), (start, end), before, budget)
            groups[index] = row
            left, rise, fall = _masks(after[begin - start :], begin, size)
            missing.append(0)
            alike.append(0)
            unlike.append(0)
        rises.append(rise)
    return Rows(left + rise.bit_count() - fall.bit_count(), rises, missing, alike, unlike, groups)


def _optional_row(element: Mask, rise: Mask, fall: Mask, full: Mask) -> tuple[Mask, Mask, Mask, Mask]:
    """Return the columns that are one less than above, rises and falls, and the steps where no pair loses anything."""
    begun = element & rise
    less = ((begun + rise) ^ rise | begun) & rise
    behind = less << 1
    level = full & ~(rise | fall)
    return behind, (rise & (full ^ less | behind)) | (level & behind), fall & ~behind, full ^ fall


def _group_row(
    element: tuple[Mask, ...], terms: GroupTerms | None, places: tuple[int, int], before: list[int], budget: Budget
) -> tuple[GroupRow, list[int]]:
    """Return what is kept of the row before a group, and the row after it, both within the band."""
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
