"""The alignment of patterns with a sequence of observed steps."""

from stepacc_core.alignment.choice import Choice, Span
from stepacc_core.alignment.distance import rows
from stepacc_core.alignment.limits import Budget
from stepacc_core.alignment.matching import NOTHING, claims
from stepacc_core.alignment.relation import Pattern
from stepacc_core.alignment.small import small_spans
from stepacc_core.alignment.terms import NAMES_ONLY, Terms

_WORTH_TRIMMING = 8
"""Leaving out matching elements at the front pays from this many on, if all are no more than as many times as many:
it takes time to shift the masks of the others."""

_SMALL = 10_000
"""Expected times observed steps up to which groups are compared in one table, if its band stays narrow."""

_WIDEST = 12
"""Diagonals of that band, at most: its time grows with their square, that of whole rows and the choice hardly."""

_LARGE = 1_000
"""Members up to which a group is tried in place; the searches for more are left to the rows, which are charged."""


def best_spans(elements: list[Pattern], total: int, size: int, terms: Terms = NAMES_ONLY) -> tuple[int, list[Span]]:
    """Align elements, none of them an empty group, with `size` observed steps.

    Args:
        elements: the patterns compared.
        total: how many steps these are, members of groups one by one.
        size: how many steps were observed.
        terms: what is asked of the elements beyond names.

    Returns:
        The distance, and for each element the observed steps it takes as start and end. A missing step takes none
        and stands at its start; steps between two spans are extra.

    Raises:
        ScoringError: `too_large` when choosing would take longer than a `Budget` allows.
    """
    if total == size:
        spans = _in_place(elements, size)
        if len(spans) == len(elements):
            return 0, spans
    budget = Budget()
    if not terms.names_only:
        table = rows(elements, size, budget, terms)
        return table.distance, Choice(elements, size, table, budget, terms).spans()
    if total * size <= _SMALL and len(elements) < total:
        found = small_spans(elements, total, size, _WIDEST)
        if found:
            return found
    spans = _in_place(elements, size)
    same = group = 0
    if len(spans) >= _WORTH_TRIMMING and len(spans) * _WORTH_TRIMMING >= len(elements):
        same, group = _front(elements, len(spans))
    while True:
        rest, left = _without(elements, same), size - same
        table = rows(rest, left, budget)
        # Giving up a matching pair at the front never lowers the distance, nor adds matches. It can only bring a group
        # forward, when the pair's step goes to a plain element behind the group and all before that one is missing.
        spare = group - same - table.distance
        if same == 0 or not table.groups or spare >= 0:
            break
        same = max(0, same + spare)
    chosen = Choice(rest, left, table, budget).spans()
    if same:
        chosen = spans[:same] + [(start + same, end + same) for start, end in chosen]
    return table.distance, chosen


def _in_place(elements: list[Pattern], size: int) -> list[Span]:
    """Return the spans of the elements that are matched in full, one right after the other, from the front."""
    spans: list[Span] = []
    start = 0
    for element in elements:
        if isinstance(element, int):
            end = start + 1
            if not element >> start & 1:
                break
        else:
            end = start + len(element)
            if end > size or len(element) > _LARGE or NOTHING in claims(element, start, end):
                break
        spans.append((start, end))
        start = end
    return spans


def _front(elements: list[Pattern], in_place: int) -> tuple[int, int]:
    """Return how many plain elements at the front are in place, and the steps until the first group is over."""
    for steps, element in enumerate(elements):
        if isinstance(element, tuple):
            return min(in_place, steps), steps + len(element)
    return in_place, len(elements)


def _without(elements: list[Pattern], same: int) -> list[Pattern]:
    if not same:
        return elements
    return [
        element >> same if isinstance(element, int) else tuple([mask >> same for mask in element])
        for element in elements[same:]
    ]
