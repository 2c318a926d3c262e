"""Choosing one alignment among those of least distance.

From the end back to the start, only the places that lie on an alignment of least distance are visited. Each learns the
best that can follow it: fewest observed steps without a match, which is most matches; then fewest required steps
without one, then fewest checks on matches that do not hold, then shortest windows, then the earliest next window, all
in one integer whose digits never carry; and the move that leads there. Then the moves are followed from the start.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from stepacc_core.alignment.backward import EXTRA, PAIR, Costs, Edges, row_above
from stepacc_core.alignment.distance import Rows
from stepacc_core.alignment.group_rows import GroupRow, packed
from stepacc_core.alignment.limits import Budget
from stepacc_core.alignment.matching import NOTHING, gains
from stepacc_core.alignment.relation import Pattern
from stepacc_core.alignment.terms import NAMES_ONLY, Terms
from stepacc_core.alignment.windows import Weights, window_minima

if TYPE_CHECKING:
    from stepacc_core.alignment.group_windows import GroupWindows

Span = tuple[int, int]

_NARROW = 200
"""Begins times ends of a group's windows up to which looking at each costs less than the forest."""

_PAIR_ONLY = bytes([PAIR])


class Choice:
    """The backward pass over the rows of one comparison.

    Args:
        elements: the patterns compared, none of them empty.
        size: how many steps were observed.
        rows: their least distances.
        budget: what the pass may cost.
        terms: what is asked of the elements beyond names.
    """

    __slots__ = (
        "_budget",
        "_columns",
        "_elements",
        "_ends",
        "_highs",
        "_moves",
        "_rows",
        "_starts",
        "_step",
        "_taken",
        "_terms",
        "_values",
        "_weights",
    )

    def __init__(
        self, elements: list[Pattern], size: int, rows: Rows, budget: Budget, terms: Terms = NAMES_ONLY
    ) -> None:
        self._elements = elements
        self._rows = rows
        self._budget = budget
        self._terms = terms
        self._starts = size + 1 if rows.groups else 1
        check = self._starts * self._starts
        need = check * (size * terms.most + 1) if terms.required else 0
        swap = need * (terms.required + 1) or check * (size * terms.most + 1)
        unit = swap * (size + 1)
        self._weights = Weights(unit, swap, need, check, check * terms.most, self._starts)
        self._step = Costs(unit + swap, unit + need, unit + swap + need, check * terms.most)
        self._highs = [0] * len(rows.rises)
        self._moves = [_PAIR_ONLY] * len(rows.rises)
        self._ends: dict[int, tuple[Sequence[int], Sequence[int]]] = {}
        self._taken: dict[int, dict[int, int]] = {}
        self._columns = [size]
        self._values = [0]

    def spans(self) -> list[Span]:
        """Return for each element the observed steps it takes, as start and end; a missing step takes none."""
        rows = self._rows
        index = len(self._elements)
        step = self._step
        along = Costs(step.extra, 0, step.unlike, step.same)
        self._go_up(index, (-1, 0, -1, rows.rises[index]), along)
        while index:
            if len(self._columns) == 1:
                index = self._one_way(index)
                if not index:
                    break
            index -= 1
            element = self._elements[index]
            if isinstance(element, int):
                edges = (rows.missing[index], rows.alike[index], rows.kept[index], rows.rises[index])
                self._go_up(index, edges, step if self._terms is NAMES_ONLY else self._step_costs(index))
            else:
                row = rows.groups[index]
                if row.windows is None:
                    self._take_windows(index, element, row)
                else:
                    self._take_best_windows(index, row, row.windows)
                self._go_up(index, (-1, 0, -1, rows.rises[index]), along)
        return self._follow()

    def _one_way(self, index: int) -> int:
        """Go up from a row with one place as long as a pair is the only way there; return the row reached."""
        (column,), (value,) = self._columns, self._values
        bases, rises = self._rows.bases, self._rows.rises
        missing, alike = self._rows.missing, self._rows.alike
        highs = self._highs
        unlike, same, held = self._step.unlike, self._step.same, self._terms.held
        while index and column:
            above = index - 1
            at = column - bases[above]
            if missing[above] >> at & 1 or (at > 1 and rises[above] >> (at - 2) & 1):
                break
            index = above
            column -= 1
            if not alike[index] >> (at - 1) & 1:
                value += unlike
            elif held and index in held:
                value += self._missed(index)(column)
            else:
                value += same
            highs[index] = column
        self._columns, self._values = [column], [value]
        return index

    def _step_costs(self, index: int) -> Costs:
        costs = self._step
        if index in self._terms.optional:
            costs = costs._replace(other=0)
        if index in self._terms.held:
            costs = costs._replace(checked=self._missed(index))
        return costs

    def _missed(self, index: int) -> Callable[[int], int]:
        held, same, check = self._terms.held[index], self._weights.same, self._weights.check
        return lambda step: same - held(step) * check

    def _go_up(self, index: int, edges: Edges, costs: Costs) -> None:
        columns, values, moves = row_above(self._columns, self._values, edges, costs, self._rows.bases[index])
        high = columns[0]
        span = high - columns[-1] + 1
        self._budget.spend(span)
        if span == len(moves):
            self._moves[index] = bytes(moves)
        else:
            spread = bytearray(span)
            for column, move in zip(columns, moves, strict=True):
                spread[high - column] = move
            self._moves[index] = bytes(spread)
        self._highs[index] = high
        self._columns, self._values = columns, values

    def _take_windows(self, index: int, members: tuple[int, ...], row: GroupRow) -> None:
        """Replace the places after a group by those where its windows begin."""
        columns, values = self._columns, self._values
        self._ends[index] = (packed(columns), packed(values))
        high, low = columns[0], row.start
        stop = min(high, low + len(row.distances) - 1)
        unit = self._weights.cost
        if (high - low) * (stop - low) <= _NARROW:
            leasts = [self._best_window(index, column)[0] for column in range(stop, low - 1, -1)]
        else:
            begins = [NOTHING] * (high - low + 1)
            for column, value in zip(columns, values, strict=True):
                if column >= low:
                    begins[high - column] = value - value % self._starts
            mirrored = gains(members, low, high, self._budget, mirrored=True)
            leasts = window_minima(begins, mirrored, len(members), self._weights)[high - stop :]
        self._columns, self._values = [], []
        for column, least in zip(range(stop, low - 1, -1), leasts, strict=True):
            # Places that no alignment of least distance passes are found too dear here.
            if least >= 0 and least // unit + row.distances[column - low] == self._rows.distance:
                self._columns.append(column)
                self._values.append(least - least % self._starts + column)

    def _take_best_windows(self, index: int, row: GroupRow, windows: "GroupWindows") -> None:
        """Do the same for a group that has optional members or checks."""
        follows = windows.follows(self._columns, self._values, self._weights.cost)
        taken = self._taken[index] = {}
        columns, values = [], []
        for column in range(min(self._columns[0], row.start + len(row.distances) - 1), row.start - 1, -1):
            left = self._rows.distance - row.distances[column - row.start]
            least, end = windows.best(column, left, follows, self._weights)
            if least >= 0:
                taken[column] = end
                columns.append(column)
                values.append(least - least % self._starts + column)
        self._columns, self._values = columns, values

    def _best_window(self, index: int, start: int) -> tuple[int, int]:
        """Return the cost of the best window from `start`, with what follows, and its end.

        Best is first what costs least in all, then the earliest next window, then the shortest.
        """
        row = self._rows.groups[index]
        begin = start - row.start
        best, end = NOTHING, start
        matched, counted = 0, begin
        ends, values = self._ends[index]
        for place, value in zip(reversed(ends), reversed(values), strict=True):
            if place < start:
                continue
            matched += sum([0 <= gain <= begin for gain in row.gains[counted : place - row.start]])
            counted = place - row.start
            cost = value + self._weights.window(row.members, place - start, matched)
            if best < 0 or cost < best:
                best, end = cost, place
        return best, end

    def _follow(self) -> list[Span]:
        spans: list[Span] = []
        moves, highs = self._moves, self._highs
        column = index = 0
        bottom = len(self._elements)
        while index < bottom:
            move = moves[index][highs[index] - column]
            if move == PAIR:
                end = column + 1
            elif move == EXTRA:
                column += 1
                continue
            elif index in self._taken:
                end = self._taken[index][column]
            elif index in self._ends:
                _, end = self._best_window(index, column)
            else:
                end = column
            spans.append((column, end))
            column = end
            index += 1
        return spans
