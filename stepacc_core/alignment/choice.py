"""Choosing one alignment among those of least distance.

From the end back to the start, only the places that lie on an alignment of least distance are visited. Each learns the
best that can follow it: fewest substitutions, then shortest windows, then the earliest next window, all in one
integer whose digits never carry; and the move that leads there. Then the moves are followed from the start.
"""

from stepacc_core.alignment.distance import MAX_PLACES, GroupRow, Rows, too_many_places
from stepacc_core.alignment.matching import gains
from stepacc_core.alignment.relation import Pattern
from stepacc_core.alignment.windows import Weights, window_minima

Span = tuple[int, int]

_PAIR, _EXTRA, _MISSING, _WINDOW = range(4)


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
        for index in range(bottom - 1, -1, -1):
            element = self._elements[index]
            if isinstance(element, int):
                self._plain_row(index, element)
            else:
                self._group_row(index, element, self._rows.groups[index])
        return self._follow()

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
        high = columns[0]
        low = row.start
        begins: list[int | None] = [None] * (high - low + 1)
        for column, value in zip(columns, values, strict=True):
            if column >= low:
                begins[high - column] = value - value % self._starts
        minima = window_minima(begins, gains(members, low, high, mirrored=True), len(members), self._weights)
        found, costs = [], []
        for column in range(min(high, low + len(row.distances) - 1), low - 1, -1):
            least = minima[high - column]
            # Places that no alignment of least distance passes are found too dear here.
            if least is not None and least // self._weights.cost + row.distances[column - low] == self._rows.distance:
                found.append(column)
                costs.append(least + column)
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
                end = self._window_end(index, column)
            spans.append((column, end))
            column = end
            index += 1
        return spans

    def _window_end(self, index: int, start: int) -> int:
        """Return where the best window from `start` ends: the earliest next window first, then the shortest."""
        row = self._rows.groups[index]
        members = self._elements[index]
        size = len(members) if isinstance(members, tuple) else 1
        ends, values = self._ends[index]
        matched = 0
        column = start
        best, end = -1, start
        for place, value in zip(reversed(ends), reversed(values), strict=True):
            if place < start:
                continue
            while column < place:
                gain = row.gains[column - row.start]
                matched += 0 <= gain <= start - row.start
                column += 1
            cost = value + self._weights.window(size, place - start, matched)
            if best < 0 or cost < best:
                best, end = cost, place
        return end
