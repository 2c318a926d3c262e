"""`stepacc scores`."""

import dataclasses
from collections.abc import Iterator

import click

from stepacc_dagster.cli.output import emit_json, json_option, note, out
from stepacc_dagster.cli.score_table import score_table, summary
from stepacc_dagster.cli.sources import source_option
from stepacc_dagster.evaluators import Evaluator, evaluator_of, evaluators_of
from stepacc_dagster.local.evaluation import local_source
from stepacc_dagster.sources import Source
from stepacc_dagster.storage.current import ScoreSelection, current_scores
from stepacc_dagster.storage.opening import open_storage

_FIRST, _LAST = "", "~"
"""Text before and after every window's key."""


@click.command()
@source_option
@click.option(
    "--metric",
    help="Name of a metric of the source, or of a member of its family; where left out, all metrics, and of a family "
    "the member that stands for it.",
)
@click.option("--from", "first", metavar="KEY", default=_FIRST, help="First window; the oldest where left out.")
@click.option("--to", "last", metavar="KEY", default=_LAST, help="Last window, included; the newest where left out.")
@json_option
def scores(source: str | None, metric: str | None, first: str, last: str, *, as_json: bool) -> None:
    """Show the current scores of a source, by the metric versions and configs it has now.

    \b
    stepacc scores --source support_agent
    stepacc scores --metric agent.trajectory_match        every member of the family
    stepacc scores --metric trajectory_match.f1 --json

    With --json every member is there, each row with the name of its metric or member.
    """  # noqa: D301 (click reads the backspace)
    chosen = local_source(source)
    selections = list(_selections(chosen, metric, first, last, members=as_json))
    with open_storage() as engine, engine.connect() as connection:
        found = [(selection, current_scores(connection, selection)) for selection in selections]
    for selection, rows in found:
        if as_json:
            for row in rows:
                emit_json({"metric": selection.metric, **dataclasses.asdict(row)})
            continue
        out().print(score_table(rows, f"{chosen.name}: {selection.metric} {selection.version}"))
        note(summary(rows) if len(found) == 1 else f"{selection.metric}: {summary(rows)}")


def _selections(
    source: Source, metric: str | None, first: str, last: str, *, members: bool
) -> Iterator[ScoreSelection]:
    evaluators = evaluators_of(source) if metric is None else (evaluator_of(source, metric),)
    for evaluator in evaluators:
        for name in _names(evaluator, metric, members=members):
            version = evaluator.metric.manifest.version
            yield ScoreSelection(source.name, name, version, evaluator.config_hash, first, last)


def _names(evaluator: Evaluator, metric: str | None, *, members: bool) -> tuple[str, ...]:
    """Return the names of the rows that are shown of a metric."""
    if metric is None:
        return evaluator.row_names if members else (evaluator.headline,)
    return evaluator.row_names if metric == evaluator.name else (metric,)
