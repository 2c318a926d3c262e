"""`stepacc scores`."""

import dataclasses

import click

from stepacc_dagster.cli.output import emit_json, json_option, note, out
from stepacc_dagster.cli.score_table import score_table, summary
from stepacc_dagster.cli.sources import source_option
from stepacc_dagster.local.evaluation import local_source
from stepacc_dagster.sources import evaluator_of
from stepacc_dagster.storage.current import ScoreSelection, current_scores
from stepacc_dagster.storage.opening import open_storage

_FIRST, _LAST = "", "~"
"""Text before and after every window's key."""


@click.command()
@source_option
@click.option("--from", "first", metavar="KEY", default=_FIRST, help="First window; the oldest where left out.")
@click.option("--to", "last", metavar="KEY", default=_LAST, help="Last window, included; the newest where left out.")
@json_option
def scores(source: str | None, first: str, last: str, *, as_json: bool) -> None:
    """Show the current scores of a source, by the metric version and config it has now."""
    chosen = local_source(source)
    evaluator = evaluator_of(chosen)
    manifest = evaluator.metric.manifest
    selection = ScoreSelection(chosen.name, manifest.name, manifest.version, evaluator.config_hash, first, last)
    with open_storage() as engine, engine.connect() as connection:
        rows = current_scores(connection, selection)
    if as_json:
        for row in rows:
            emit_json(dataclasses.asdict(row))
        return
    out().print(score_table(rows, f"{chosen.name}: {manifest.name} {manifest.version}"))
    note(summary(rows))
