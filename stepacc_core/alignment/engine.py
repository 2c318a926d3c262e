"""The alignment of patterns with a sequence of observed steps."""

from stepacc_core.alignment.choice import Choice, Span
from stepacc_core.alignment.distance import rows
from stepacc_core.alignment.relation import Pattern


def best_spans(elements: list[Pattern], size: int) -> tuple[int, list[Span]]:
    """Align elements, none of them an empty group, with `size` observed steps.

    Returns:
        The distance, and for each element the observed steps it takes as start and end. A missing step takes none
        and stands at its start; steps between two spans are extra.
    """
    same, group = _alike(elements, size)
    while True:
        rest, left = _without(elements, same), size - same
        table = rows(rest, left)
        # Giving up a matching pair at the front never lowers the distance, nor adds matches. It can only bring a group
        # forward, when the pair's step goes to a plain element behind the group and all before that one is missing.
        spare = group - same - table.distance
        if same == 0 or not table.groups or spare >= 0:
            break
        same = max(0, same + spare)
    spans = [(index, index + 1) for index in range(same)]
    spans += [(start + same, end + same) for start, end in Choice(rest, left, table).spans()]
    return table.distance, spans


def _alike(elements: list[Pattern], size: int) -> tuple[int, int]:
    """Return how many plain elements at the front match one by one, and the steps until the first group is over."""
    same = 0
    for element in elements[:size]:
        if isinstance(element, tuple) or not element >> same & 1:
            break
        same += 1
    steps = 0
    for element in elements:
        if isinstance(element, tuple):
            return same, steps + len(element)
        steps += 1
    return same, steps


def _without(elements: list[Pattern], same: int) -> list[Pattern]:
    if not same:
        return elements
    return [
        element >> same if isinstance(element, int) else tuple(m >> same for m in element)
        for element in elements[same:]
    ]
