"""Pictures of the alignments of stored scores."""

from collections.abc import Iterable

import click

from stepacc_core.picture import has_alignment, picture
from stepacc_dagster.cli.output import note, printable
from stepacc_dagster.cli.pictures import show_picture
from stepacc_dagster.cli.score_table import result
from stepacc_dagster.storage.current import CurrentScore


def show_score_pictures(rows: Iterable[CurrentScore]) -> None:
    """Print the alignment of each row that has one, below what it is of; say so where none has."""
    drawn = 0
    for row in rows:
        if has_alignment(row.metadata):
            what = f"{row.partition_type} {row.partition_id}, {row.metric} {row.metric_version}, {result(row)}:"
            click.echo(f"{printable(what)}\n")
            show_picture(picture(row.metadata))
            click.echo()
            drawn += 1
    if not drawn:
        note("There is no alignment to draw: only a score has one, and what was erased has lost it.")
