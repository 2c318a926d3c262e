"""Plain steps: rows from the end, then one walk from the start.

Here row `i` and column `j` speak of the last `i` elements and the last `j` steps, so masks are mirrored: bit `j` stands
for the step that `j` others follow.

Where an element matches the step at hand, the walk pairs the two and looks no further. For take a best alignment that
does not. It cannot pair both with others, as these pairs would cross. One of the two it pairs with another, as it would
otherwise save two edits by pairing them. Pairing them instead, and leaving that other one unpaired, costs no edit and
loses no match; and a pair here is what the last rule prefers.

Elsewhere seldom more than one move keeps the least distance. Where several do, all ways are followed to the row where
they meet again. The one with the fewest substitutions, which has the most matches, is taken, and of these the one whose
moves are preferred from left to right.
"""

from stepacc_core.alignment.distance import Rows, rows
from stepacc_core.alignment.limits import Budget
from stepacc_core.alignment.relation import Mask

Edit = tuple[str, int, int]
"""What is no match: its `op` in the metadata, and the next element and the next observed step at its place."""

_PAIR, _EXTRA, _MISSING = range(3)
"""The moves, the preferred one first."""

_FORKED = 8
"""Places that may be looked at where ways fork, for each element and step, before it is left to whole rows."""


def plain_edits(masks: list[Mask], size: int) -> list[Edit] | None:
    """Return what is no match in the best alignment of plain elements with `size` observed steps, from the start.

    Args:
        masks: the mirrored masks of the elements, in the order of the trajectory.
        size: how many steps were observed.

    Returns:
        None where ways fork so often that choosing among whole rows is quicker.
    """
    last, end = len(masks) - 1, size - 1
    front = _front(masks, end)
    rest = masks[front:][::-1]
    table = rows([*rest], size - front, Budget())
    alike, bases = table.alike, table.bases
    element, step = last - front, end - front
    left = _FORKED * (len(masks) + size)
    edits: list[Edit] = []
    while element >= 0 and step >= 0:
        at = step - bases[element]
        if at >= 0 and alike[element] >> at & 1:
            element -= 1
            step -= 1
            continue
        moves = _moves(table, element, step)
        if len(moves) > 1:
            moves, places = _best_way(table, element, step, left)
            left -= places
            if left < 0:
                return None
        for move in moves:
            if move == _EXTRA:
                edits.append(("insert", last - element, end - step))
            elif move == _MISSING:
                edits.append(("delete", last - element, end - step))
            elif not alike[element] >> (step - bases[element]) & 1:
                edits.append(("substitute", last - element, end - step))
            element -= move != _EXTRA
            step -= move != _MISSING
    edits += [("delete", last - absent, end - step) for absent in range(element, -1, -1)]
    edits += [("insert", last - element, end - extra) for extra in range(step, -1, -1)]
    return edits


def _front(masks: list[Mask], end: int) -> int:
    """Return how many elements match one right after the other from the start."""
    for place, mask in enumerate(masks):
        if place > end or not mask >> (end - place) & 1:
            return place
    return len(masks)


def _moves(table: Rows, element: int, step: int) -> list[int]:
    """Return the moves that may be best at a place."""
    at = step - table.bases[element]
    if at < 0:  # no step is left, or none in the band
        return [_MISSING]
    if table.alike[element] >> at & 1:
        return [_PAIR]
    moves = []
    if not table.kept[element] >> at & 1:
        moves.append(_PAIR)
    before = step - table.bases[element + 1]
    if before >= 0 and table.rises[element + 1] >> before & 1:
        moves.append(_EXTRA)
    if table.missing[element] >> (at + 1) & 1:
        moves.append(_MISSING)
    return moves


def _best_way(table: Rows, element: int, step: int, most: int) -> tuple[list[int], int]:
    """Return the best moves from a place to where all ways of least distance meet, and the number of places on these.

    No moves are returned where there are more than `most` places.
    """
    ways, meeting = _ways(table, element, step, most)
    places = sum(map(len, ways))
    if places > most:
        return [], places
    # The fewest substitutions from each place on, and the move that leads there.
    follows = dict.fromkeys(meeting, (0, _PAIR))
    chosen = []
    for above, row in enumerate(reversed(ways), element - len(ways) + 1):
        here: dict[int, tuple[int, int]] = {}
        for place, moves in reversed(row.items()):
            options = []
            for move in moves:
                if move == _PAIR:
                    unlike = not table.alike[above] >> (place - table.bases[above]) & 1
                    options.append((follows[place - 1][0] + unlike, move))
                else:
                    options.append((here[place - 1][0] if move == _EXTRA else follows[place][0], move))
            here[place] = min(options)
        chosen.append(here)
        follows = here
    taken = []
    for here in reversed(chosen):
        while (move := here[step][1]) == _EXTRA:
            taken.append(move)
            step -= 1
        taken.append(move)
        step -= move == _PAIR
    return taken, places


def _ways(table: Rows, element: int, step: int, most: int) -> tuple[list[dict[int, list[int]]], list[int]]:
    """Return the places on ways of least distance, from the right, with their moves, row by row until all ways meet.

    The second answer is the places of the row where they do: one, or those before the last element is passed, from
    which there is only one way on. The search ends after `most` places.
    """
    found: list[dict[int, list[int]]] = []
    places = [step]
    seen = 0
    while element >= 0 and seen <= most and (len(places) > 1 or not found):
        row: dict[int, list[int]] = {}
        below: set[int] = set()
        while places:
            place = places.pop()
            moves = row[place] = _moves(table, element, place)
            for move in moves:
                if move != _EXTRA:
                    below.add(place - 1 if move == _PAIR else place)
                elif not places or places[-1] != place - 1:
                    places.append(place - 1)
        found.append(row)
        seen += len(row)
        places = sorted(below)
        element -= 1
    return found, places
