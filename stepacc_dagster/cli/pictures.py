"""Printing pictures of alignments."""

import sys

import click
from rich.console import Console

from stepacc_core.picture import Picture


def show_picture(drawn: Picture) -> None:
    """Print a picture: on a terminal in colour and at its width, else as plain text."""
    if sys.stdout.isatty():
        Console(highlight=False).print(drawn)
    else:
        click.echo(str(drawn))
