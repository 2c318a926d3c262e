"""Least distances, row by row: what it costs at least to bring an expected prefix to an observed one.

Row `r` speaks of the first `r` elements, its column `j` of the first `j` observed steps. Neighbouring columns
differ by at most one, so a row is two masks, of its rises and of its falls. A plain step makes the next row in a
dozen operations on whole rows (Myers 1999; Hyyrö 2003, here with the observed steps along the word). An optional step
takes fewer: its row is the one before, but one less behind each step that it matches at a rise, as far as the row goes
on rising. A group reads its row as numbers, takes the cheapest window for each end, and writes masks again.

Rows are only worked out within a band. An alignment of distance `d` never leaves the diagonals that `d` can pay for, so
a distance found within a band of its own width is the least; until then the band is widened. Short sequences of plain
steps are done with before a band would pay.
"""

from dataclasses import dataclass, field

from stepacc_core.alignment.group_rows import GroupRow, group_row, row_masks, row_values
from stepacc_core.alignment.limits import Budget
from stepacc_core.alignment.relation import Mask, Pattern
from stepacc_core.alignment.terms import NAMES_ONLY, Terms

SHORT = 2_000
"""Observed steps up to which plain steps are compared without a band."""

_SLACK = 4
_PLAIN_SLACK = 60
"""Edits that the first band has room for beyond those that the lengths ask for, with groups and without."""

_NARROW = 3
"""A band pays when it is narrower than this part of all columns."""

_WIDEN = 4
_LOOK = 256
"""Elements after which it is looked whether the band can still be wide enough."""


@dataclass(slots=True)
class Rows:
    """The least distances of a comparison, as edges on which nothing is lost.

    The masks of a row and of the element after it begin at the row's base.

    Attributes:
        distance: that of the whole.
        bases: for each row, its first column.
        rises: for each row, the mask of steps `j` with column `j + 1` one above column `j`.
        missing: for each plain element, the columns where it may be missing; all for a group.
        alike: for each plain element, the observed steps that may match it.
        kept: for each plain element, the observed steps that may not substitute it.
        groups: for each group, by the index of its element, its row.
    """

    distance: int = 0
    bases: list[int] = field(default_factory=list)
    rises: list[Mask] = field(default_factory=list)
    missing: list[Mask] = field(default_factory=list)
    alike: list[Mask] = field(default_factory=list)
    kept: list[Mask] = field(default_factory=list)
    groups: dict[int, GroupRow] = field(default_factory=dict)


def rows(elements: list[Pattern], size: int, budget: Budget, terms: Terms = NAMES_ONLY) -> Rows:
    """Return the rows of non-empty elements against `size` observed steps.

    Raises:
        ScoringError: `too_large` when groups have to be compared with too many steps.
    """
    masks = [element for element in elements if isinstance(element, int)]
    plain = len(masks) == len(elements)
    if plain and size <= SHORT and not terms.optional:
        return short_rows(masks, size)
    steps = sum([1 if isinstance(element, int) else len(element) for element in elements])
    # Optional steps may be absent without an edit: so many diagonals further left everything may lie.
    absent = len(terms.optional) + sum([sum(group.optional) for group in terms.groups.values()])
    more = size - steps
    whole = size + steps
    reach = whole if plain and size <= SHORT else max(more, -more - absent, 0) + (_PLAIN_SLACK if plain else _SLACK)
    while True:
        if reach * _NARROW > size:
            reach = whole
        band = None if reach == whole else ((reach - more + absent) // 2, (reach + more + absent) // 2)
        found = _rows(elements, size, band, budget, terms)
        if isinstance(found, int):
            reach = max(found, reach * 2)
        elif found.distance <= reach:
            return found
        else:
            reach = min(found.distance, reach * _WIDEN)


def short_rows(elements: list[Mask], size: int) -> Rows:
    """Return the rows of plain steps, none of them optional, without a band."""
    full = (1 << size) - 1
    wide = full << 1 | 1
    rise, fall = full, 0
    rises: list[Mask] = [rise]
    missing: list[Mask] = []
    kept: list[Mask] = []
    for element in elements:
        zero = ((((element & rise) + rise) ^ rise) | element | fall) & full
        down = (fall | full ^ (rise | zero)) << 1 | 1
        rise = ((rise & zero) << 1 | wide ^ (down | zero)) & full
        fall = down & zero
        missing.append(down)
        kept.append(zero)
        rises.append(rise)
    distance = len(elements) + rise.bit_count() - fall.bit_count()
    return Rows(distance, [0] * len(rises), rises, missing, elements, kept)


def _rows(  # noqa: PLR0915 -- one loop, unrolled for speed
    elements: list[Pattern], size: int, band: tuple[int, int] | None, budget: Budget, terms: Terms
) -> Rows | int:
    """Return the rows within a band, or a guess at the distance when the band is soon seen to be too narrow.

    The band is so many diagonals to the left and to the right of the first; None is all.
    """
    moving = band is not None
    below, above = band or (0, size)
    optional = terms.optional
    base, high = 0, min(size, above)
    rise = full = (1 << high) - 1
    fall = left = diagonal = 0
    bases, rises, missing, alike, kept = [base], [rise], [], [], []
    groups: dict[int, GroupRow] = {}
    for index, element in enumerate(elements):
        if isinstance(element, int):
            diagonal += 1
            if moving:
                if high < min(size, diagonal + above):
                    high += 1
                    rise |= full + 1
                    full = full << 1 | 1
                element = element >> base & full  # noqa: PLW2901 -- the part that lies in the band
            if index in optional:
                behind, rise, fall, clear = _optional_row(element, rise, fall, full)
                missing.append(full << 1 ^ behind | 1)
                alike.append(element & clear)
                kept.append(-1)
            else:
                zero = ((((element & rise) + rise) ^ rise) | element | fall) & full
                down = (fall | full ^ (rise | zero)) << 1 | 1
                rise = ((rise & zero) << 1 | (full << 1 | 1) ^ (down | zero)) & full
                fall = down & zero
                missing.append(down)
                alike.append(element)
                kept.append(zero)
                left += 1
            if moving and base < min(size, diagonal - below):
                base += 1
                left += (rise & 1) - (fall & 1)
                rise, fall, full = rise >> 1, fall >> 1, full >> 1
        else:
            diagonal += len(element)
            begin, end = (max(0, min(size, diagonal - below)), min(size, diagonal + above)) if moving else (0, size)
            budget.spend(end - base)
            before = row_values(left, rise, fall, high - base)
            groups[index], after = group_row(element, terms.groups.get(index), (base, end), before, budget)
            after = after[begin - base :]
            base, high, left = begin, end, after[0]
            rise, fall = row_masks(after)
            full = (1 << (end - begin)) - 1
            missing.append(-1)
            alike.append(0)
            kept.append(-1)
        bases.append(base)
        rises.append(rise)
        if moving and not index % _LOOK:
            upto = (1 << max(0, min(diagonal, high) - base)) - 1
            value = left + (rise & upto).bit_count() - (fall & upto).bit_count()
            if value > below + above:
                return value * len(elements) * 5 // (4 * (index + 1))
    return Rows(left + rise.bit_count() - fall.bit_count(), bases, rises, missing, alike, kept, groups)


def _optional_row(element: Mask, rise: Mask, fall: Mask, full: Mask) -> tuple[Mask, Mask, Mask, Mask]:
    """Return the columns that are one less than above, rises and falls, and the steps where no pair loses anything."""
    begun = element & rise
    less = ((begun + rise) ^ rise | begun) & rise
    behind = less << 1
    level = full & ~(rise | fall)
    return behind, (rise & (full ^ less | behind)) | (level & behind), fall & ~behind, full ^ fall
