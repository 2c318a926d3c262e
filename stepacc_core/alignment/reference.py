"""Alignment with references: steps that may be optional, and whose arguments may be checked.

What a reference adds to the rules of `stepacc_core.alignment.edit`:

- An optional step costs nothing when it is absent, and then has no operation. It takes a step that satisfies it or
  none, so that no other step stands in for it.
- A group costs the larger of two numbers: its required members without a step, and the steps of its window without a
  member.
- Of the alignments with the least distance and, among those, the most matches, those are best in which most argument
  checks hold. The other rules decide among these.

So distance, matches and checks holding depend neither on the order of a group's members nor on that of equal calls.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from stepacc_core.alignment.limits import check_size
from stepacc_core.alignment.relation import Mask

Agreement = Callable[[int, int, int], int]
"""Tells how many checks hold for an element, its member (0 for a plain step) and an observed step that satisfies it."""


@dataclass(frozen=True, slots=True)
class ReferenceStep:
    """One step of a reference.

    Attributes:
        mask: bit `j` is set when observed step `j` satisfies it by name.
        optional: it may be absent.
        checks: how many argument checks it has.
    """

    mask: Mask
    optional: bool = False
    checks: int = 0


ReferenceElement = ReferenceStep | tuple[ReferenceStep, ...]
"""A plain step, or the members of an unordered group."""


@dataclass(frozen=True, slots=True)
class Operation:
    """What became of one step, by indices.

    Attributes:
        op: `match` and `substitute` have a reference step and an observed one, `insert` has no reference step and
            `delete` no observed one.
        element: the index of the element.
        member: the index within its group, 0 for a plain step.
        observed: the index of the observed step.
        group: the element whose window the operation belongs to, set for extra steps too; None outside of windows.
    """

    op: Literal["match", "substitute", "insert", "delete"]
    element: int | None
    member: int | None
    observed: int | None
    group: int | None = None


@dataclass(frozen=True, slots=True)
class ReferenceAlignment:
    """One best alignment with a reference.

    Attributes:
        distance: the number of operations that are no `match`.
        matches: the number of operations that are.
        holding: the checks that hold on the matched steps.
        checks: the checks that the matched steps have.
        operations: in the order of the observed steps; a missing step stands where it was due, missing members at the
            end of their group's window. Optional steps that are absent have none.
    """

    distance: int
    matches: int
    holding: int
    checks: int
    operations: list[Operation]


def align_reference(
    elements: Sequence[ReferenceElement], size: int, agreement: Agreement | None = None
) -> ReferenceAlignment:
    """Align a reference with `size` observed steps.

    Args:
        elements: the reference; groups may be empty.
        size: how many steps were observed.
        agreement: asked only for steps that have checks, with observed steps that satisfy them; it answers with a
            number from 0 to the step's `checks`. Without it no check holds.

    Raises:
        ScoringError: `too_large`.
    """
    check_size(sum(len(element) if isinstance(element, tuple) else 1 for element in elements), size)
    return _Table(elements, size, agreement or _nothing_holds).alignment()


def _nothing_holds(_element: int, _member: int, _observed: int) -> int:
    return 0


_Value = tuple[int, int, int, int, int]
"""Distance, observed steps without match, checks not holding on matches, lengths of windows, start of the next."""

_Move = tuple[str, int]


class _Table:
    """The best that can follow each place, from the end back to the start."""

    def __init__(self, elements: Sequence[ReferenceElement], size: int, agreement: Agreement) -> None:
        self._elements = elements
        self._size = size
        self._agreement = agreement
        steps = [step for element in elements for step in (element if isinstance(element, tuple) else (element,))]
        self._most = max((step.checks for step in steps), default=0)

    def alignment(self) -> ReferenceAlignment:
        """Fill the table and follow the best moves."""
        below: list[_Value] = [(self._size - column, self._size - column, 0, 0, 0) for column in range(self._size + 1)]
        moves: list[list[_Move]] = []
        for index in range(len(self._elements) - 1, -1, -1):
            below, row = self._row(index, below)
            moves.append(row)
        moves.reverse()
        operations: list[Operation] = []
        column = 0
        for index in range(len(self._elements)):
            while moves[index][column][0] == "extra":
                operations.append(Operation("insert", None, None, column))
                column += 1
            kind, end = moves[index][column]
            element = self._elements[index]
            if isinstance(element, tuple):
                operations += self._group(index, element, column, end)
            elif kind == "pair":
                op: Literal["match", "substitute"] = "match" if element.mask >> column & 1 else "substitute"
                operations.append(Operation(op, index, 0, column))
            elif not element.optional:
                operations.append(Operation("delete", index, 0, None))
            column = end
        operations += [Operation("insert", None, None, position) for position in range(column, self._size)]
        return self._counted(operations)

    def _counted(self, operations: list[Operation]) -> ReferenceAlignment:
        matches = holding = checks = 0
        for operation in operations:
            if operation.op == "match":
                assert operation.element is not None  # noqa: S101 -- for the type checker
                assert operation.member is not None  # noqa: S101
                assert operation.observed is not None  # noqa: S101
                matches += 1
                checks += self._step(operation.element, operation.member).checks
                holding += self._held(operation.element, operation.member, operation.observed)
        return ReferenceAlignment(len(operations) - matches, matches, holding, checks, operations)

    def _step(self, index: int, member: int) -> ReferenceStep:
        element = self._elements[index]
        return element[member] if isinstance(element, tuple) else element

    def _held(self, index: int, member: int, observed: int) -> int:
        return self._agreement(index, member, observed) if self._step(index, member).checks else 0

    def _row(self, index: int, below: list[_Value]) -> tuple[list[_Value], list[_Move]]:
        element = self._elements[index]
        if element == ():
            return below, [("window", column) for column in range(self._size + 1)]
        values: list[_Value] = []
        moves: list[_Move] = []
        for column in range(self._size, -1, -1):
            options: list[tuple[_Value, int, _Move]] = []
            if values:
                options.append((_plus(values[-1], (1, 1, 0, 0)), 1, ("extra", column + 1)))
            if isinstance(element, tuple):
                for end in range(column, self._size + 1):
                    distance, unmatched, missed, _ = self._window(index, element, column, end)
                    value = _plus(below[end], (distance, unmatched, missed, end - column))
                    options.append(((*value[:4], column), 2 + end - column, ("window", end)))
            else:
                options.append((_plus(below[column], (0 if element.optional else 1, 0, 0, 0)), 2, ("missing", column)))
                if column < self._size and element.mask >> column & 1:
                    missed = self._most - self._held(index, 0, column)
                    options.append((_plus(below[column + 1], (0, 0, missed, 0)), 0, ("pair", column + 1)))
                elif column < self._size and not element.optional:
                    options.append((_plus(below[column + 1], (1, 1, 0, 0)), 0, ("pair", column + 1)))
            value, _, move = min(options)
            values.append(value)
            moves.append(move)
        return values[::-1], moves[::-1]

    def _window(
        self, index: int, members: tuple[ReferenceStep, ...], start: int, end: int
    ) -> tuple[int, int, int, dict[int, int]]:
        """Return distance, unmatched steps and checks not holding of a window, and which member each step takes."""
        from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 -- slow to import

        taken: dict[int, int] = {}
        if members and end > start:
            best = self._most * len(members) + 1
            weights = [
                [
                    best * (len(members) + 2 - member.optional) + self._held(index, at, position)
                    if member.mask >> position & 1
                    else 0
                    for position in range(start, end)
                ]
                for at, member in enumerate(members)
            ]
            rows, columns = linear_sum_assignment(weights, maximize=True)
            taken = {
                start + int(column): int(row)
                for row, column in zip(rows, columns, strict=True)
                if members[row].mask >> (start + int(column)) & 1
            }
        missing = sum(not member.optional for at, member in enumerate(members) if at not in set(taken.values()))
        unmatched = end - start - len(taken)
        missed = sum(self._most - self._held(index, at, position) for position, at in taken.items())
        return max(missing, unmatched), unmatched, missed, taken

    def _group(self, index: int, members: tuple[ReferenceStep, ...], start: int, end: int) -> list[Operation]:
        taken = self._window(index, members, start, end)[3]
        held = set(taken.values())
        missing = iter([at for at, member in enumerate(members) if not member.optional and at not in held])
        made = []
        for position in range(start, end):
            if position in taken:
                made.append(Operation("match", index, taken[position], position, index))
            elif (at := next(missing, None)) is not None:
                made.append(Operation("substitute", index, at, position, index))
            else:
                made.append(Operation("insert", None, None, position, index))
        return made + [Operation("delete", index, at, None, index) for at in missing]


def _plus(value: _Value, more: tuple[int, int, int, int]) -> _Value:
    return value[0] + more[0], value[1] + more[1], value[2] + more[2], value[3] + more[3], value[4]
