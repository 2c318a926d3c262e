"""`stepacc summaries`."""

import dataclasses
from datetime import UTC

import click

from stepacc_dagster.cli.output import emit_json, json_option, note, print_table
from stepacc_dagster.cli.sources import source_option
from stepacc_dagster.cli.summary_table import assumed, in_use, summary_tables
from stepacc_dagster.evaluators import Evaluator, evaluator_of, evaluators_of, summarised_metrics
from stepacc_dagster.local.source import local_source
from stepacc_dagster.storage.opening import open_storage
from stepacc_dagster.storage.summaries import TaskSummary, summarise, task_summaries_of


@click.command()
@source_option
@click.option("--task", metavar="ID", help="Only this task.")
@click.option(
    "--metric",
    help="Name of a metric of the source, or of a member of its family; where left out, all metrics, and of a family "
    "the member that stands for it.",
)
@json_option
def summaries(source: str | None, task: str | None, metric: str | None, *, as_json: bool) -> None:
    """Show what the repeated runs of each task amount to: how many passed, and what that tells of the next ones.

    \b
    stepacc summaries --source support_agent
    stepacc summaries --task refund --json
    stepacc summaries --metric agent.trajectory_match   every member of the family

    Runs are counted per metric version, config and reference revision, never across them. The summaries are brought up
    to date with the current scores first. Those of earlier versions and configs stay, and are told apart: by the title,
    and with --json by `in_use`. With --json every member of a family is there.
    """  # noqa: D301 (click reads the backspace)
    chosen = local_source(source)
    every = evaluators_of(chosen)
    evaluators = every if metric is None else (evaluator_of(chosen, metric),)
    with open_storage() as engine, engine.begin() as connection:
        summarise(connection, chosen.name, summarised_metrics(chosen, every), chosen.summaries.ks)
        found = task_summaries_of(connection, chosen.name, task)
    for evaluator in evaluators:
        rows = _rows(evaluator, found, metric, members=as_json)
        if as_json:
            for row in rows:
                changed_at = row.changed_at.astimezone(UTC).isoformat()
                told = {"changed_at": changed_at, "in_use": in_use(evaluator, row)}
                emit_json({"source": chosen.name, **dataclasses.asdict(row), **told})
            continue
        for table in summary_tables(chosen.name, evaluator, rows):
            print_table(table)
        for said in assumed(rows):
            note(said)
    if not found:
        about = f" of task {task!r}" if task else ""
        note(f"There is no run{about} to summarise: no scored trace or session of `{chosen.name}` names such a task.")


def _rows(evaluator: Evaluator, found: list[TaskSummary], metric: str | None, *, members: bool) -> list[TaskSummary]:
    """Return the summaries that are shown of a metric, member by member."""
    if metric is None:
        names: tuple[str, ...] = evaluator.row_names if members else (evaluator.headline,)
    else:
        names = evaluator.row_names if metric == evaluator.name else (metric,)
    return [row for name in names for row in found if row.metric == name]
