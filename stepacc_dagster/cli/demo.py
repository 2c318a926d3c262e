"""`stepacc demo`."""

import dataclasses
import sys

import click
from rich.box import SIMPLE
from rich.table import Table
from sqlalchemy.engine import make_url

from stepacc_core.__main__ import worked_example
from stepacc_core.picture import picture
from stepacc_dagster.cli.output import cell, emit_json, json_option, note, out
from stepacc_dagster.database import database_url, open_database
from stepacc_dagster.demo.run import DemoOutcome, DemoScore, run_demo
from stepacc_dagster.failures import address
from stepacc_dagster.local.home import local_home

_SHOWN_ID = 8
"""Characters of an id in the table."""


@click.command()
@json_option
def demo(*, as_json: bool) -> None:
    """Score recorded traces of real agent frameworks, from nothing; safe to run again."""
    note(_place(database_url()))
    with open_database() as url:
        outcome = run_demo(url, note)
    failed = [run for run in outcome.runs if not run.success]
    for run in failed:
        note(f"Run {run.run_id} failed: {run.error}")
    if as_json:
        emit_json({"runs": [dataclasses.asdict(run) for run in outcome.runs], "scores": _plain(outcome.scores)})
    else:
        _show(outcome)
    sys.exit(1 if failed else 0)


def _place(url: str | None) -> str:
    """Say where everything lies."""
    if url is None:
        return f"Everything lies in {local_home()}; set STEPACC_HOME for another folder."
    return f"The data lie in the database {address(make_url(url))} (STEPACC_DATABASE_URL), the rest in {local_home()}."


def _plain(scores: list[DemoScore]) -> list[dict[str, object]]:
    return [dataclasses.asdict(score) for score in scores]


def _show(outcome: DemoOutcome) -> None:
    out().print(_table(outcome.scores))
    if worst := _most_telling(outcome.scores):
        click.echo(f"\nThe alignment of trace {worst.partition_id}, score {worst.score:.3f}:\n")
        click.echo(picture(worst.metadata))
    click.echo("\nThe worked example of the metric, one stray step at the front:\n")
    click.echo(worked_example())
    click.echo(
        "\nTo browse assets, partitions, checks and lineage: make dev (or `stepacc dev`), then http://127.0.0.1:3000"
    )


def _table(scores: list[DemoScore]) -> Table:
    table = Table(title="agent.step_accuracy 2.0.0", title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("day", no_wrap=True)
    table.add_column("occurrence", no_wrap=True)
    table.add_column("task", no_wrap=True)
    table.add_column("score", no_wrap=True, justify="right")
    table.add_column("measured against", no_wrap=True)
    for row in scores:
        score = "-" if row.score is None else f"{row.score:.3f}"
        occurrence = cell(f"{row.partition_type} {row.partition_id[:_SHOWN_ID]}")
        table.add_row(row.window_key, occurrence, cell(row.task_id or "-"), score, _measured_against(row))
    return table


def _measured_against(row: DemoScore) -> str:
    if row.score is None:
        return f"{row.status.replace('_', ' ')}: {row.code or row.reason}"
    return f"annotation {row.annotation_id}, revision {row.revision}" if row.annotation_id else "-"


def _most_telling(scores: list[DemoScore]) -> DemoScore | None:
    """Return the lowest score whose alignment shows the most kinds of entries."""
    imperfect = [row for row in scores if row.score is not None and row.score < 1]
    return min(imperfect, key=lambda row: (row.score, -_kinds(row), row.partition_id), default=None)


def _kinds(row: DemoScore) -> int:
    return len({entry["op"] for entry in row.metadata["steps"]})
