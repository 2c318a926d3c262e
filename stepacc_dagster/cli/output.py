"""How commands print: data to standard output, everything about the work to standard error."""

import json
from typing import Any

import click
from rich.console import Console
from rich.measure import Measurement
from rich.progress import Progress, ProgressColumn
from rich.table import Table
from rich.text import Text

_TABLE_WIDTH = 100
"""Columns that tables have at least."""
_WIDEST = 180
"""Columns up to which a table grows before its texts are broken."""

errors = Console(stderr=True, highlight=False)
"""For progress, notes and warnings."""


def out() -> Console:
    """Return a console on the standard output of the moment, for tables.

    It is wide enough for ours: a narrower terminal breaks the lines itself, which loses nothing.
    """
    console = Console(highlight=False)
    console.width = max(console.width, _TABLE_WIDTH)
    return console


def print_table(table: Table) -> None:
    """Print a table on standard output, so wide that no figure in it is cut; a narrower terminal breaks the lines."""
    console = out()
    needed = Measurement.get(console, console.options.update(width=_WIDEST), table).maximum
    console.width = max(console.width, needed)
    console.print(table)


def progress_bar(*columns: ProgressColumn) -> Progress:
    """Return a progress line that goes when the work is done; in a file or pipe there is none."""
    return Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal)


def emit_json(value: Any) -> None:
    """Print one JSON value on one line."""
    click.echo(json.dumps(value, ensure_ascii=False, default=str))


def note(text: str) -> None:
    """Say something about the work, apart from its result."""
    errors.print(text, markup=False, soft_wrap=True)


def printable(text: str) -> str:
    """Return text that comes from outside, with what would steer a terminal escaped."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def cell(text: str) -> Text:
    """Return text from outside as a table's cell; as a plain string, brackets in it would be taken as markup."""
    return Text(printable(text), overflow="fold")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, as `1 run` or `2 runs`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text for people.")
