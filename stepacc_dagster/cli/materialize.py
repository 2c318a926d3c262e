"""`stepacc ingest` and `stepacc materialize`."""

import dataclasses
import sys
from collections.abc import Callable, Iterator, Sequence

import click
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

from stepacc_dagster.cli.output import counted, emit_json, json_option, note, progress_bar
from stepacc_dagster.cli.score_table import summary
from stepacc_dagster.local.evaluation import LocalEvaluation, local_evaluation
from stepacc_dagster.local.outcome import RunOutcome
from stepacc_dagster.windows import spanned

_source = click.option("--source", help="Name of the source; the only one there is where left out.")
_from = click.option("--from", "first", metavar="KEY", help="First partition, UTC; the source's first where left out.")
_to = click.option("--to", "last", metavar="KEY", help="Last partition, included; the newest where left out.")


@click.command()
@_source
@_from
@_to
@json_option
def ingest(source: str | None, first: str | None, last: str | None, *, as_json: bool) -> None:
    """Turn the landed spans of a range of partitions into canonical traces, in Dagster runs.

    \b
    stepacc ingest --source support_agent --from 2026-11-01 --to 2026-11-30
    """  # noqa: D301 (click reads the backspace)
    _evaluate(source, first, last, LocalEvaluation.ingest, as_json=as_json)


@click.command()
@_source
@_from
@_to
@click.option("--metric", help="Score by this metric of the source only; by all where left out.")
@json_option
def materialize(source: str | None, first: str | None, last: str | None, metric: str | None, *, as_json: bool) -> None:
    """Ingest and score a range of partitions, in Dagster runs.

    \b
    stepacc materialize
    stepacc materialize --source support_agent --from 2026-11-01 --to 2026-11-30
    """  # noqa: D301 (click reads the backspace)
    _evaluate(source, first, last, LocalEvaluation.materialize, metric=metric, as_json=as_json)


def _evaluate(  # noqa: PLR0913 (a command's options)
    source: str | None,
    first: str | None,
    last: str | None,
    work: Callable[[LocalEvaluation, Sequence[str]], Iterator[RunOutcome]],
    *,
    metric: str | None = None,
    as_json: bool,
) -> None:
    with local_evaluation(source, metric) as evaluation:
        keys = evaluation.partition_keys(first, last)
        note(f"{evaluation.source.name}: {counted(len(keys), 'partition')}, {spanned(keys)}")
        runs = follow(work(evaluation, keys))
        scores = {name: evaluation.scores(keys, name) for name in evaluation.metrics}
    for run in runs:
        if as_json:
            emit_json(dataclasses.asdict(run))
        elif not run.success:
            note(f"Run {run.run_id} over {spanned([run.first, run.last])} failed: {run.error}")
    if not as_json:
        note(f"{sum(run.success for run in runs)} of {counted(len(runs), 'run')} succeeded.")
        if work is LocalEvaluation.materialize:
            for name, found in scores.items():
                note(summary(found) if len(scores) == 1 else f"{name}: {summary(found)}")
    sys.exit(0 if all(run.success for run in runs) else 1)


def follow(runs: Iterator[RunOutcome]) -> list[RunOutcome]:
    """Show a progress line while runs come in, and return them."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    done: list[RunOutcome] = []
    with progress_bar(*columns) as progress:
        task = progress.add_task("partitions", total=None)
        for run in runs:
            done.append(run)
            progress.update(task, advance=run.partitions, description=f"up to {run.last}")
    return done
