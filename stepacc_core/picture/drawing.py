"""The picture of one alignment, whatever it is drawn on."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stepacc_core.errors import ResultError
from stepacc_core.model import Result
from stepacc_core.picture.html import PICTURE_CSS, html_of
from stepacc_core.picture.rows import Shown, folded, has_alignment, rows_of
from stepacc_core.picture.text import Piece, lines_of
from stepacc_core.picture.words import count_text
from stepacc_core.shown import shown

WIDTH = 100
"""Columns of a picture where nobody says how many there are, as in a file or a pipe."""

LONGEST = 400
"""Entries of a picture that are shown where nobody says how many, after folding."""

_COLOURS = {
    "match": "green",
    "substitute": "yellow",
    "differs": "yellow",
    "insert": "cyan",
    "delete": "red",
    "quiet": "bright_black",
}


@dataclass(frozen=True, slots=True, repr=False)
class Picture:
    """Expected steps above observed ones, with a sign and a word for what is not as expected.

    `str` and `repr` are the text, at 100 columns; `rich` prints it in colour at the width of its console, and a
    notebook shows the HTML.
    """

    shown: tuple[Shown, ...]
    count: str

    def text(self, width: int = WIDTH) -> str:
        """Return the picture as lines of at most so many columns, without a newline at the end."""
        return "\n".join("".join(text for text, _ in line).rstrip() for line in self._lines(width))

    def html(self) -> str:
        """Return the picture as a fragment of HTML for a page that holds `PICTURE_CSS`."""
        return html_of(self.shown, self.count)

    def __str__(self) -> str:
        """Return the text at 100 columns."""
        return self.text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<style>{PICTURE_CSS}</style>{self.html()}"

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        """Print in colour; rich leaves colours out in a file, in a pipe, and where NO_COLOR is set."""
        from rich.text import Text  # noqa: PLC0415 (rich is asked for by whoever prints with it)

        del console
        for line in self._lines(options.max_width):
            pieces = [(text, _COLOURS.get(kind or "", "")) for text, kind in line]
            yield Text.assemble(*pieces, no_wrap=True, overflow="ignore")

    def _lines(self, width: int) -> Iterator[list[Piece]]:
        return lines_of(self.shown, self.count, width)


def picture(result: Result | Mapping[str, Any], *, longest: int = LONGEST) -> Picture:
    """Draw the alignment of a scored result, or of the metadata of one.

    Runs of steps that match are folded, as are very long ones of any other kind. Control characters, and those that
    turn the direction of text, are shown escaped.

    Args:
        result: of `agent.step_accuracy` or `agent.trajectory_match`, any version, or its metadata.
        longest: entries that are shown in all; beyond, those in the middle are left out and counted.

    Raises:
        ResultError: there is no alignment in it, as in a result that failed.
    """
    metadata = result.metadata if isinstance(result, Result) else result
    if not has_alignment(metadata):
        msg = f"There is no alignment to draw in the metadata {shown(dict(metadata))}; give those of a scored result."
        raise ResultError(msg)
    rows = rows_of(metadata)
    return Picture(folded(rows, longest), count_text(metadata, rows))
