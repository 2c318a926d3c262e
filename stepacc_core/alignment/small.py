"""Groups against a short run: one table from the end to the start that settles distance and ties at once.

A place of the table stands before an element and an observed step. Its cost is that of the best that can follow: edits,
then observed steps without a match, then lengths of windows, then where the next window begins, all in one integer
whose digits never carry.

Only places within a band around the diagonal are looked at. What is found within any band is an alignment, so no better
one leaves the diagonals that its distance can pay for, and it is the best itself once the band holds all of these.
"""
# ruff: noqa: FURB136, PLR1730 -- a call of min or max takes as long as half a place

from collections import Counter
from functools import reduce
from operator import or_
from typing import NamedTuple

from stepacc_core.alignment.relation import Mask, Pattern

Span = tuple[int, int]

_STEPS_AN_EDIT = 32
"""Expected steps for each edit that the first band has room for, beyond one and those that the lengths ask for."""

_Row = tuple[int, list[int], list[int]]
"""Places before an element: the first column; the costs, with one that is never reached on both sides; and for a group,
where the best window ends that begins at each place."""


class _Costs(NamedTuple):
    """What is weighed: an edit, a step without a match, a step in a window, and a place that is never reached."""

    edit: int
    idle: int
    length: int
    never: int


def small_spans(elements: list[Pattern], total: int, size: int, widest: int) -> tuple[int, list[Span]] | None:
    """Align elements, none of them an empty group, with `size` observed steps.

    Args:
        elements: the patterns compared.
        total: how many steps these are, members of groups one by one.
        size: how many steps were observed.
        widest: how many diagonals may be looked at.

    Returns:
        The distance, and for each element the observed steps it takes, as `best_spans` says; None where the band would
        be too wide, or where two expected steps are satisfied by some observed ones in common and not by others.
    """
    masks: list[Mask] = []
    for element in elements:
        if isinstance(element, int):
            masks.append(element)
        else:
            masks += element
    if sum({*masks}) != reduce(or_, masks):
        return None
    more = size - total
    length = size + 1
    costs = _Costs(length**3, length**2, length, length**3 * (size + total + 1) * 2)
    slack = 1 + total // _STEPS_AN_EDIT
    reach = abs(more) + slack
    below, above = _band(reach, more, 0, 0)
    while below + above < widest:
        rows = _rows(elements, size, (total, below, above), costs)
        distance = rows[0][1][1] // costs.edit
        if distance > reach:
            if distance > reach + widest:
                break
            most = sum([min(count, mask.bit_count()) for mask, count in Counter(masks).items()])
            missing, idle = total - most, size - most
            left, right = _band(distance, more, missing, idle)
            if left > below or right > above:
                reach = min(distance, max(reach, missing, idle) + slack)
                slack *= 2
                below, above = _band(reach, more, missing, idle)
                continue
        return distance, _follow(elements, rows, costs)
    return None


def _band(distance: int, more: int, missing: int, idle: int) -> tuple[int, int]:
    """Return how many diagonals to the left and to the right of the first an alignment of some distance can lead.

    The `n`-th to the right takes `n` extra steps, and `n - more` missing ones to come back. Extra steps come on top of
    the expected ones that are missing or substituted, missing steps on top of the observed ones that are extra or
    substituted.

    Args:
        distance: that of the alignment.
        more: how many more steps are observed than expected.
        missing: how many expected steps match nothing, at least.
        idle: how many observed steps match nothing, at least.
    """
    return min((distance - more) // 2, distance - idle), min((distance + more) // 2, distance - missing)


def _rows(elements: list[Pattern], size: int, band: tuple[int, int, int], costs: _Costs) -> list[_Row]:
    """Return the places before each element, and those after the last.

    The band is the number of steps expected in all, and how many diagonals there are to the left and to the right.
    """
    at, below, above = band
    extra = costs.edit + costs.idle
    low = at - below if at > below else 0
    row: _Row = (low, [costs.never, *range((size - low) * extra, -1, -extra), costs.never], [])
    rows = [row]
    for element in reversed(elements):
        at -= 1 if isinstance(element, int) else len(element)
        low = at - below if at > below else 0
        high = at + above if at + above < size else size
        if isinstance(element, int):
            row = _before_plain(element, low, high, row, costs)
        else:
            row = _before_group(element, low, high, row, costs)
        rows.append(row)
    rows.reverse()
    return rows


def _before_plain(mask: Mask, low: int, high: int, after: _Row, costs: _Costs) -> _Row:
    edit, idle, _, never = costs
    extra = edit + idle
    start, follows, _ = after
    found = [never]
    cost = never
    at = high + 1 - start
    paired = follows[at + 1]
    for column in range(high, low - 1, -1):
        cost += extra
        if not mask >> column & 1:
            paired += extra
        if paired < cost:
            cost = paired
        paired = follows[at]
        if paired + edit < cost:
            cost = paired + edit
        found.append(cost)
        at -= 1
    found.append(never)
    found.reverse()
    return low, found, []


def _before_group(members: tuple[Mask, ...], low: int, high: int, after: _Row, costs: _Costs) -> _Row:
    edit, idle, length, never = costs
    extra, unmatched = edit + idle, idle + length
    count = len(members)
    start, follows, _ = after
    found, ends = [never], []
    cost = never
    for begin in range(high, low - 1, -1):
        # The steps that add a match to a window from here on: of each name, as many as the group has members.
        matching = 0
        for mask in members:
            free = mask >> begin & ~matching
            matching |= free & -free
        # A window that is longer than the group and ends in a step without a match is worse than a shorter one.
        longest = matching.bit_length()
        if longest < count:
            longest = count
        end = stop = begin if begin > start else start
        steps = end - begin
        matched = (matching & (1 << steps) - 1).bit_count()
        window = (steps if steps > count else count) * edit + steps * unmatched - matched * extra
        matching >>= steps
        best = never
        for follow in follows[end + 1 - start : begin + longest + 2 - start]:
            if window + follow < best:
                best, stop = window + follow, end
            window += unmatched
            if matching & 1:
                window -= extra
            if steps >= count:
                window += edit
            matching >>= 1
            steps += 1
            end += 1
        cost += extra
        best += begin - best % length
        if best < cost:
            cost = best
        found.append(cost)
        ends.append(stop)
    found.append(never)
    found.reverse()
    ends.reverse()
    return low, found, ends


def _follow(elements: list[Pattern], rows: list[_Row], costs: _Costs) -> list[Span]:
    """Return the spans of the best alignment: a pair is preferred to an extra step, and that to a missing one."""
    extra = costs.edit + costs.idle
    spans: list[Span] = []
    column = 0
    for index, element in enumerate(elements):
        low, here, ends = rows[index]
        cost = here[column - low + 1]
        if isinstance(element, int):
            start, follows, _ = rows[index + 1]
            end = column + 1
            while cost != follows[end - start + 1] + (0 if element >> column & 1 else extra):
                if cost != here[end - low + 1] + extra:
                    end = column
                    break
                cost -= extra
                column, end = end, end + 1
        else:
            while cost % costs.length != column:
                column += 1
                cost = here[column - low + 1]
            end = ends[column - low]
        spans.append((column, end))
        column = end
    return spans
