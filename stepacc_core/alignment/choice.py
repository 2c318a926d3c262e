"""Choosing one alignment among those of least distance.

From the end back to the start, only the places that lie on an alignment of least distance are visited. Each learns the
best that can follow it: fewest substitutions, then shortest windows, then the earliest next window, all in one
integer whose digits never carry; and the move that leads there. Then the moves are followed from the start.
"""

from stepacc_core.alignment.distance import MAX_PLACES, GroupRow, Rows, too_many_places
from stepacc_core.alignment.matching import NOTHING, gains
from stepacc_core.alignment.relation import Pattern
from stepacc_core.alignment.windows import Weights, window_minima

Span = tuple[int, int]

_PAIR, _EXTRA, _MISSING, _WINDOW = range(4)
_PAIR_ONLY = bytes([_PAIR])

_NARROW = 200
"""Begins times ends of a group's windows up to which looking at each costs less than the forest."""


class Choice:
    """The backward pass over the rows of one comparison.

    Args:
        elements: the patterns compared, none of them empty.
        size: how many steps were observed.
        rows: their least distances.
    """

    __slots__ = ("_cells", "_elements", "_ends", "_highs", "_moves", "_places", "_rows", "_size", "_starts", "_weights")

    def __init__(self, elements: list[Pattern], size: int, rows: Rows) -> None:
        self._elements = elements
        self._size = size
        self._rows = rows
        self._starts = size + 1 if rows.groups else 1
        swap = self._starts * (size + 1 if rows.groups else 1)
        self._weights = Weights(swap * (size + 1), swap, self._starts)
        self._highs = [0] * len(rows.rises)
        self._moves = [b""] * len(rows.rises)
        self._ends: dict[int, tuple[list[int], list[int]]] = {}
        self._places = 0
        self._cells: tuple[list[int], list[int]] = ([], [])

    def spans(self) -> list[Span]:
        """Return for each element the observed steps it takes, as start and end; a missing step takes none."""
        bottom = len(self._elements)
        self._close(bottom, [self._size], [0])
        index = bottom
        while index:
            if len(self._cells[0]) == 1:
                index = self._one_way(index)
                if not index:
                    break
            index -= 1
            element = self._elements[index]
            if isinstance(element, int):
                self._plain_row(index, element)
            else:
                self._group_row(index, element, self._rows.groups[index])
        return self._follow()

    def _one_way(self, index: int) -> int:
        """Go up from a row with one place as long as a pair is the only way there; return the row reached."""
        (column,), (value,) = self._cells
        elements, rises, missing = self._elements, self._rows.rises, self._rows.missing
        highs, moves = self._highs, self._moves
        swap = self._weights.cost + self._weights.swap
        while index and column:
            above, step = index - 1, column - 1
            element = elements[above]
            if (
                not isinstance(element, int)
                or missing[above] >> column & 1
                or (step and rises[above] >> (step - 1) & 1)
            ):
                break
            if not element >> step & 1:
                value += swap
            index, column = above, step
            highs[index] = column
            moves[index] = _PAIR_ONLY
        self._cells = ([column], [value])
        return index

    def _plain_row(self, index: int, element: int) -> None:  # noqa: C901, PLR0912, PLR0915 -- one loop, unrolled for speed
        missing = self._rows.missing[index]
        unlike = self._rows.unlike[index]
        rise = self._rows.rises[index]
        unit = self._weights.cost
        swap = unit + self._weights.swap
        columns: list[int] = []
        values: list[int] = []
        moves: list[int] = []
        place = -1
        value = move = 0
        for column, follow in zip(*self._cells, strict=True):
            # Nothing below leads to the places right of this column any more: they are final.
            while place > column:
                columns.append(place)
                values.append(value)
                moves.append(move)
                if place and rise >> (place - 1) & 1:
                    place -= 1
                    value += unit
                    move = _EXTRA
                else:
                    place = -1
            if missing >> column & 1 and (place != column or follow + unit < value):
                place = column
                value = follow + unit
                move = _MISSING
            if place == column:
                columns.append(place)
                values.append(value)
                moves.append(move)
                if place and rise >> (place - 1) & 1:
                    place -= 1
                    value += unit
                    move = _EXTRA
                else:
                    place = -1
            if not column:
                continue
            step = column - 1
            if element >> step & 1:
                paired = follow
            elif unlike >> step & 1:
                paired = follow + swap
            else:
                continue
            if place != step or paired <= value:
                place = step
                value = paired
                move = _PAIR
        while place >= 0:
            columns.append(place)
            values.append(value)
            moves.append(move)
            if place and rise >> (place - 1) & 1:
                place -= 1
                value += unit
                move = _EXTRA
            else:
                place = -1
        self._store(index, columns, values, moves)

    def _group_row(self, index: int, members: tuple[int, ...], row: GroupRow) -> None:
        columns, values = self._ends[index] = self._cells
        high, low = columns[0], row.start
        stop = min(high, low + len(row.distances) - 1)
        if (high - low) * (stop - low) <= _NARROW:
            leasts = [self._best_window(index, column)[0] for column in range(stop, low - 1, -1)]
        else:
            begins = [NOTHING] * (high - low + 1)
            for column, value in zip(columns, values, strict=True):
                if column >= low:
                    begins[high - column] = value - value % self._starts
            leasts = window_minima(begins, gains(members, low, high, mirrored=True), len(members), self._weights)
            leasts = leasts[high - stop :]
        found, costs = [], []
        for column, least in zip(range(stop, low - 1, -1), leasts, strict=True):
            # Places that no alignment of least distance passes are found too dear here.
            if least >= 0 and least // self._weights.cost + row.distances[column - low] == self._rows.distance:
                found.append(column)
                costs.append(least - least % self._starts + column)
        self._close(index, found, costs)

    def _close(self, index: int, columns: list[int], values: list[int]) -> None:
        """Add to a row the places from which an extra step leads to those given."""
        rise = self._rows.rises[index]
        unit = self._weights.cost
        closed: list[int] = []
        costs: list[int] = []
        moves: list[int] = []
        for column, value in zip([*columns, -1], [*values, 0], strict=True):
            while closed and closed[-1] > column + 1 and rise >> (closed[-1] - 1) & 1:
                closed.append(closed[-1] - 1)
                costs.append(costs[-1] + unit)
                moves.append(_EXTRA)
            if column < 0:
                break
            if closed and rise >> column & 1 and closed[-1] == column + 1 and costs[-1] + unit < value:
                closed.append(column)
                costs.append(costs[-1] + unit)
                moves.append(_EXTRA)
            else:
                closed.append(column)
                costs.append(value)
                moves.append(_WINDOW)
        self._store(index, closed, costs, moves)

    def _store(self, index: int, columns: list[int], values: list[int], moves: list[int]) -> None:
        high = columns[0]
        span = high - columns[-1] + 1
        self._places += span
        if self._places > MAX_PLACES:
            raise too_many_places()
        if span == len(moves):
            self._moves[index] = bytes(moves)
        else:
            spread = bytearray(span)
            for column, move in zip(columns, moves, strict=True):
                spread[high - column] = move
            self._moves[index] = bytes(spread)
        self._highs[index] = high
        self._cells = (columns, values)

    def _follow(self) -> list[Span]:
        spans: list[Span] = []
        column = 0
        bottom = len(self._elements)
        index = 0
        while index < bottom:
            move = self._moves[index][self._highs[index] - column]
            if move == _EXTRA:
                column += 1
                continue
            if move == _PAIR:
                end = column + 1
            elif move == _MISSING:
                end = column
            else:
                _, end = self._best_window(index, column)
            spans.append((column, end))
            column = end
            index += 1
        return spans

    def _best_window(self, index: int, start: int) -> tuple[int, int]:
        """Return the cost of the best window from `start`, with what follows, and its end.

        Best is first what costs least in all, then the earliest next window, then the shortest.
        """
        row = self._rows.groups[index]
        members = row.members
        begin = start - row.start
        best, end = NOTHING, start
        matched, counted = 0, begin
        ends, values = self._ends[index]
        for place, value in zip(reversed(ends), reversed(values), strict=True):
            if place < start:
                continue
            matched += sum([0 <= gain <= begin for gain in row.gains[counted : place - row.start]])
            counted = place - row.start
            cost = value + self._weights.window(members, place - start, matched)
            if best < 0 or cost < best:
                best, end = cost, place
        return best, end
