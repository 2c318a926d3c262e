"""How commands print: data to standard output, everything about the work to standard error."""

import json
from typing import Any

import click
from rich.console import Console

_TABLE_WIDTH = 100
"""Columns that the widest of our tables takes."""

errors = Console(stderr=True, highlight=False)
"""For progress, notes and warnings."""


def out() -> Console:
    """Return a console on the standard output of the moment, for tables.

    It is wide enough for ours: a narrower terminal breaks the lines itself, which loses nothing.
    """
    console = Console(highlight=False)
    console.width = max(console.width, _TABLE_WIDTH)
    return console


def emit_json(value: Any) -> None:
    """Print one JSON value on one line."""
    click.echo(json.dumps(value, ensure_ascii=False, default=str))


def note(text: str) -> None:
    """Say something about the work, apart from its result."""
    errors.print(text, markup=False, soft_wrap=True)


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text for people.")
