"""Alignment with references: steps that may be optional, and whose arguments may be checked.

What a reference adds to the rules of `stepacc_core.alignment.edit`:

- An optional step costs nothing when it is absent, and then has no operation. It takes a step that satisfies it or
  none, so that no other step stands in for it.
- A group costs the larger of two numbers: its required members without a step, and the steps of its window without a
  member.
- Of the alignments with the least distance and, among those, the most matches, those are best in which most required
  steps match, and among those the ones in which most argument checks hold. The other rules decide among these.

So distance, matches and checks holding depend neither on the order of a group's members nor on that of equal calls.
In a group with optional members or checks, the steps of a window are assigned to members so that most match, of these
most required ones, then most checks hold, then the earliest steps match; other groups claim as they always do.

An optional step may be worth more edits than a required one: expected `[a (optional), b (optional), c]`, observed
`[c, a, b]` has two matches at distance 2 with `c` missing. To ask whether the required steps are there in order,
align them without the optional ones: they are when every one of them matches.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from stepacc_core.alignment.engine import best_spans
from stepacc_core.alignment.limits import Budget, check_size
from stepacc_core.alignment.matching import NOTHING, claims
from stepacc_core.alignment.relation import Mask, Pattern
from stepacc_core.alignment.terms import GroupTerms, Held, Terms

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
        agreement: asked only for steps that have checks, with observed steps that satisfy them, and more than once
            for the same; it answers with a number from 0 to the step's `checks`. Without it no check holds.

    Raises:
        ScoringError: `too_large`, as for `align`.
    """
    total = sum([len(element) if isinstance(element, tuple) else 1 for element in elements])
    check_size(total, size)
    indices = [index for index, element in enumerate(elements) if element != ()]
    given = [elements[index] for index in indices]
    terms = _terms(given, indices, agreement)
    patterns: list[Pattern] = [
        tuple([member.mask for member in element]) if isinstance(element, tuple) else element.mask for element in given
    ]
    distance, spans = best_spans(patterns, total, size, terms)
    operations: list[Operation] = []
    done = 0
    for at, (start, end) in enumerate(spans):
        operations += [Operation("insert", None, None, position) for position in range(done, start)]
        done = end
        element = given[at]
        if isinstance(element, tuple):
            claimed = _claimed(element, terms.groups.get(at), start, end)
            operations += _group(indices[at], element, claimed, start)
        elif start < end:
            operations.append(Operation("match" if element.mask >> start & 1 else "substitute", indices[at], 0, start))
        elif not element.optional:
            operations.append(Operation("delete", indices[at], 0, None))
    operations += [Operation("insert", None, None, position) for position in range(done, size)]
    holding, checks = _checks(elements, operations, agreement)
    return ReferenceAlignment(distance, len(operations) - distance, holding, checks, operations)


def _terms(given: list[ReferenceElement], indices: list[int], agreement: Agreement | None) -> Terms:
    optional: set[int] = set()
    groups: dict[int, GroupTerms] = {}
    held: dict[int, Held] = {}
    steps = [element if isinstance(element, tuple) else (element,) for element in given]
    checks = [max([member.checks for member in members]) if agreement else 0 for members in steps]
    most = max(checks, default=0)
    for at, element in enumerate(given):
        if not isinstance(element, tuple):
            if element.optional:
                optional.add(at)
            if agreement and checks[at]:
                held[at] = partial(agreement, indices[at], 0)
        elif checks[at] or any(member.optional for member in element):
            checked = partial(_held, agreement, indices[at], element) if agreement and checks[at] else None
            masks, absent = tuple([member.mask for member in element]), tuple([member.optional for member in element])
            groups[at] = GroupTerms(masks, absent, checked, most)
    required = [not member.optional for members in steps for member in members]
    return Terms(frozenset(optional), groups, held, most, 0 if all(required) else sum(required))


def _held(agreement: Agreement, index: int, members: tuple[ReferenceStep, ...], member: int, observed: int) -> int:
    return agreement(index, member, observed) if members[member].checks else 0


def _claimed(members: tuple[ReferenceStep, ...], terms: GroupTerms | None, start: int, end: int) -> list[int]:
    """Return for each step of a window the index of the member it matches, or -1."""
    if terms is None:
        return claims([member.mask for member in members], start, end)
    from stepacc_core.alignment.assignment import Assignment  # noqa: PLC0415 -- slow to import

    pairs = Assignment(terms, start, end, Budget()).pairs(start, end)
    return [pairs.get(position, NOTHING) for position in range(start, end)]


def _group(index: int, members: tuple[ReferenceStep, ...], claimed: list[int], start: int) -> list[Operation]:
    held = set(claimed)
    missing = iter([at for at, member in enumerate(members) if not member.optional and at not in held])
    made = []
    for position, member in enumerate(claimed, start):
        if member != NOTHING:
            made.append(Operation("match", index, member, position, index))
        elif (at := next(missing, None)) is not None:
            made.append(Operation("substitute", index, at, position, index))
        else:
            made.append(Operation("insert", None, None, position, index))
    return made + [Operation("delete", index, at, None, index) for at in missing]


def _checks(
    elements: Sequence[ReferenceElement], operations: list[Operation], agreement: Agreement | None
) -> tuple[int, int]:
    """Return how many checks hold on the matched steps, and how many they have."""
    holding = checks = 0
    for operation in operations:
        if operation.op != "match" or operation.element is None or operation.member is None:
            continue
        element = elements[operation.element]
        step = element[operation.member] if isinstance(element, tuple) else element
        checks += step.checks
        if step.checks and agreement and operation.observed is not None:
            holding += agreement(operation.element, operation.member, operation.observed)
    return holding, checks
