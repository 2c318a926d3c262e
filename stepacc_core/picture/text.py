"""The picture as text: expected above observed, broken into blocks at a width; in a narrow place one entry a line."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from stepacc_core.picture.characters import cut, padded, width, wrapped
from stepacc_core.picture.rows import Bracket, Fold, Row, Shown, bracketed
from stepacc_core.picture.words import NOTHING, fold_text, kind, mark, word

Piece = tuple[str, str | None]
"""Text, and what it is of: the kind of an entry, `quiet`, or None for plain text."""

Drawn = tuple[Shown, Bracket]
"""An entry, and what of its group's bracket it draws."""

_ABOVE, _BELOW = "expected", "observed"
_LABEL = len(_ABOVE) + 2
_NARROW = 60
"""Columns below which the sides stand beside each other, an entry a line."""
_LEAST = 20
"""Columns that are taken in any case: less would not hold two names."""
_GAP = 2


@dataclass(frozen=True, slots=True)
class _Cell:
    """One entry as three pieces of text above each other, brackets of its group included."""

    above: str
    between: str
    below: str
    of: str
    notes: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        return max(width(self.above), width(self.between), width(self.below))


def lines_of(shown: Sequence[Shown], count: str, columns: int) -> Iterator[list[Piece]]:
    """Yield the lines of a picture, each as pieces, none wider than so many columns (20 at least)."""
    columns = max(columns, _LEAST)
    body = _beside if columns < _NARROW else _above
    for trace, stretch in groupby(bracketed(shown), key=lambda drawn: drawn[0].trace):
        if trace is not None:
            yield [(cut(f"trace {trace}", columns), "quiet")]
        yield from body(tuple(stretch), columns)
    for line in wrapped(count, columns):
        yield [(line, None)]


def _above(drawn: Sequence[Drawn], columns: int) -> Iterator[list[Piece]]:
    """Yield blocks of three lines: expected, what was done about it, observed."""
    room = columns - _LABEL
    for number, block in enumerate(_blocks(_cells(drawn, room), room)):
        if number:
            yield []
        widths = [cell.width for cell in block]
        for label, side in ((_ABOVE, "above"), ("", "between"), (_BELOW, "below")):
            line: list[Piece] = [(padded(label, _LABEL), "quiet")]
            for cell, inner in zip(block, widths, strict=True):
                line.append((padded(getattr(cell, side), inner), cell.of))
                line.append((" " * _GAP, None))
            yield line[:-1]
        for cell in block:
            for note in cell.notes:
                for text in wrapped(note, room):
                    yield [(" " * _LABEL, None), (text, cell.of)]


def _blocks(cells: Iterator[_Cell], room: int) -> Iterator[list[_Cell]]:
    block: list[_Cell] = []
    taken = 0
    for cell in cells:
        if block and taken + cell.width > room:
            yield block
            block, taken = [], 0
        block.append(cell)
        taken += cell.width + _GAP
    if block:
        yield block


def _cells(drawn: Sequence[Drawn], room: int) -> Iterator[_Cell]:
    for entry, bracket in drawn:
        above, sign, below = _sides(entry)
        above, sign, below = (cut(text, room - len("[]")) for text in (above, sign, below))
        inner = max(map(width, (above, sign, below)))
        opens, closes = "[" * bracket.opens, "]" * bracket.closes
        yield _Cell(
            opens + padded(above, inner) + closes,
            " " * len(opens) + padded(sign, inner) + " " * len(closes),
            opens + padded(below, inner) + closes,
            kind(entry),
            _notes(entry),
        )


def _beside(drawn: Sequence[Drawn], columns: int) -> Iterator[list[Piece]]:
    """Yield one line for an entry: its sign, its group, expected and observed."""
    room = columns - len(" =   ")
    sides = [_sides(entry) for entry, _ in drawn if isinstance(entry, Row)]
    left = min(max([width(_ABOVE), *(width(above) for above, _, _ in sides)]), (room - _GAP) // 2)
    right = room - left - _GAP
    yield [(f"     {padded(cut(_ABOVE, left), left)}  {cut(_BELOW, right)}", "quiet")]
    for entry, bracket in drawn:
        line = f" {mark(entry)} {_margin(bracket)} "
        if isinstance(entry, Fold):
            yield [(cut(f"{line}… {fold_text(entry)}", columns), kind(entry))]
            continue
        above, _, below = _sides(entry)
        yield [(f"{line}{padded(cut(above, left), left)}  {cut(below, right)}", kind(entry))]
        for note in _notes(entry):
            for text in wrapped(note, room):
                yield [(f"     {text}", kind(entry))]


def _margin(bracket: Bracket) -> str:
    if not bracket.inside:
        return " "
    return {(True, True): "[", (True, False): "┌", (False, True): "└"}.get((bracket.opens, bracket.closes), "│")


def _sides(entry: Shown) -> tuple[str, str, str]:
    if isinstance(entry, Fold):
        return "…", f"{mark(entry)} {fold_text(entry)}", "…"
    return entry.expected or NOTHING, f"{mark(entry)} {word(entry)}".rstrip(), entry.observed or NOTHING


def _notes(entry: Shown) -> tuple[str, ...]:
    if isinstance(entry, Fold):
        return ()
    return tuple(f"{entry.observed or entry.expected}: {difference}" for difference in entry.differences)
