"""`stepacc demo`."""

import dataclasses
import sys

import click
from sqlalchemy.engine import make_url

from stepacc_core.__main__ import worked_example
from stepacc_core.picture import picture
from stepacc_dagster.cli.output import emit_json, json_option, note, print_table
from stepacc_dagster.cli.pictures import show_picture
from stepacc_dagster.cli.score_table import score_document, score_table
from stepacc_dagster.database import database_url, open_database
from stepacc_dagster.demo.run import DemoOutcome, run_demo
from stepacc_dagster.failures import address
from stepacc_dagster.local.home import local_home
from stepacc_dagster.storage.current import CurrentScore


@click.command()
@json_option
def demo(*, as_json: bool) -> None:
    """Score recorded traces of real agent frameworks, from nothing; safe to run again.

    \b
    stepacc demo
    """  # noqa: D301 (click reads the backspace)
    note(_place(database_url()))
    with open_database() as url:
        outcome = run_demo(url, note)
    failed = [run for run in outcome.runs if not run.success]
    for run in failed:
        note(f"Run {run.run_id} failed: {run.error}")
    if as_json:
        runs = [dataclasses.asdict(run) for run in outcome.runs]
        emit_json({"runs": runs, "scores": [*map(score_document, outcome.scores)]})
    else:
        _show(outcome)
    sys.exit(1 if failed else 0)


def _place(url: str | None) -> str:
    """Say where everything lies."""
    if url is None:
        return f"Everything lies in {local_home()}; set STEPACC_HOME for another folder."
    return f"The data lie in the database {address(make_url(url))} (STEPACC_DATABASE_URL), the rest in {local_home()}."


def _show(outcome: DemoOutcome) -> None:
    print_table(score_table(outcome.scores, "agent.step_accuracy 2.0.0"))
    if worst := _most_telling(outcome.scores):
        click.echo(f"\nThe alignment of trace {worst.partition_id}, score {worst.score:.3f}:\n")
        show_picture(picture(worst.metadata))
    click.echo("\nThe worked example of the metric, one stray step at the front:\n")
    click.echo(worked_example())
    click.echo("\nTo draw others: stepacc scores --worst 3 --picture, or stepacc scores --trace ID --picture")
    click.echo(
        "\nTo browse assets, partitions, checks and lineage: make dev (or `stepacc dev`), then http://127.0.0.1:3000"
    )


def _most_telling(scores: list[CurrentScore]) -> CurrentScore | None:
    """Return the lowest score whose alignment shows the most kinds of entries."""
    imperfect = [row for row in scores if row.score is not None and row.score < 1 and row.metadata]
    return min(imperfect, key=lambda row: (row.score, -_kinds(row), row.partition_id), default=None)


def _kinds(row: CurrentScore) -> int:
    return len({entry["op"] for entry in row.metadata["steps"]})
