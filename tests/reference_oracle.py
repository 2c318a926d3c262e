"""A slow transcription of the rules of `align_reference`, to hold the fast engine against.

Every way to lay the elements on the observed steps is tried, and in a group every one-to-one matching between members
and the steps of a window. Nothing here is shared with the engine but the types it is given.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from stepacc_core.alignment import Agreement, ReferenceElement, ReferenceStep

_PAIR, _EXTRA, _OTHER = range(3)


class Best(NamedTuple):
    """What is compared, in this order; less is better. Matches and checks holding are counted below zero."""

    distance: int
    matches: int
    missing: int
    holding: int
    window_lengths: int
    window_starts: tuple[int, ...]
    moves: tuple[tuple[int, int], ...]


class Expected(NamedTuple):
    """What the oracle says: numbers, and the places that the windows of the groups take."""

    distance: int
    matches: int
    missing: int
    holding: int
    windows: list[tuple[int, int]]


def reference_oracle(elements: Sequence[ReferenceElement], size: int, agreement: Agreement) -> Expected:
    """Return the best alignment of a reference with `size` observed steps."""
    kept = [(index, element) for index, element in enumerate(elements) if element != ()]

    @cache
    def window(at: int, start: int, end: int) -> tuple[int, int, int, int]:
        index, element = kept[at]
        assert isinstance(element, tuple)
        return min(_costs(element, index, list(range(start, end)), agreement))

    @cache
    def best(at: int, column: int) -> Best:
        options = []
        if column < size:
            options.append(_add(best(at, column + 1), _EXTRA, 1))
        if at == len(kept):
            return options[0] if options else Best(0, 0, 0, 0, 0, (), ())
        index, element = kept[at]
        if isinstance(element, tuple):
            for end in range(column, size + 1):
                rest = best(at + 1, end)
                sums = [count + more for count, more in zip(rest[:4], window(at, column, end), strict=True)]
                lengths = rest.window_lengths + end - column
                starts = (column, *rest.window_starts)
                options.append(Best._make([*sums, lengths, starts, ((_OTHER, end - column), *rest.moves)]))
        else:
            required = int(not element.optional)
            options.append(_add(best(at + 1, column), _OTHER, required, 0, required))
            if column < size and element.mask >> column & 1:
                holding = agreement(index, 0, column) if element.checks else 0
                options.append(_add(best(at + 1, column + 1), _PAIR, 0, -1, 0, -holding))
            elif column < size and not element.optional:
                options.append(_add(best(at + 1, column + 1), _PAIR, 1, 0, 1))
        return min(options)

    whole = best(0, 0)
    steps = [length for move, length in whole.moves if move != _EXTRA]
    lengths = [length for length, (_, element) in zip(steps, kept, strict=True) if isinstance(element, tuple)]
    windows = [(start, start + length) for start, length in zip(whole.window_starts, lengths, strict=True)]
    return Expected(whole.distance, -whole.matches, whole.missing, -whole.holding, windows)


def _add(rest: Best, move: int, *counts: int) -> Best:
    """Add distance, matches, missing required steps and checks holding of a move; those left out are 0."""
    first = [count + more for count, more in zip(rest[:4], (*counts, 0, 0, 0, 0), strict=False)]
    return Best._make([*first, rest.window_lengths, rest.window_starts, ((move, 0), *rest.moves)])


def _costs(
    members: tuple[ReferenceStep, ...], index: int, window: list[int], agreement: Agreement
) -> Iterator[tuple[int, int, int, int]]:
    """Yield distance, matches (below zero), missing members and checks holding (below zero) of every matching."""
    for pairs in _matchings(members, 0, frozenset(window)):
        taken = {member for member, _ in pairs}
        missing = sum(not step.optional for member, step in enumerate(members) if member not in taken)
        holding = sum(agreement(index, member, step) for member, step in pairs if members[member].checks)
        yield max(missing, len(window) - len(pairs)), -len(pairs), missing, -holding


def _matchings(
    members: tuple[ReferenceStep, ...], at: int, free: frozenset[int]
) -> Iterator[tuple[tuple[int, int], ...]]:
    if at == len(members):
        yield ()
        return
    yield from _matchings(members, at + 1, free)
    for step in free:
        if members[at].mask >> step & 1:
            for rest in _matchings(members, at + 1, free - {step}):
                yield ((at, step), *rest)
