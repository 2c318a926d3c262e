"""`stepacc summaries`."""

import dataclasses
from collections.abc import Sequence
from datetime import UTC

import click
from rich.box import SIMPLE
from rich.table import Table

from stepacc_dagster.cli.output import cell, counted, emit_json, json_option, note, out
from stepacc_dagster.cli.sources import source_option
from stepacc_dagster.evaluators import evaluator_of, evaluators_of, summarised_metrics
from stepacc_dagster.local.evaluation import local_source
from stepacc_dagster.storage.opening import open_storage
from stepacc_dagster.storage.summaries import TaskSummary, summarise, task_summaries_of

_COLUMNS = ("task", "version", "config", "against", "runs", "scored", "passed", "rate", "95 % interval", "mean")
_LEFT = 4
"""How many columns, the first ones, are no numbers."""


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

    Runs are counted per metric version, config and reference revision, never across them. The summaries are brought up
    to date with the current scores first. With --json every member of a family is there.
    """  # noqa: D301 (click reads the backspace)
    chosen = local_source(source)
    evaluators = evaluators_of(chosen)
    asked = None if metric is None else evaluator_of(chosen, metric)
    with open_storage() as engine, engine.begin() as connection:
        summarise(connection, chosen.name, summarised_metrics(chosen, evaluators), chosen.summaries.ks)
        found = task_summaries_of(connection, chosen.name, task)
    shown = [name for each in evaluators for name in (each.row_names if as_json else (each.headline,))]
    if asked is not None:
        shown = list(asked.row_names) if metric == asked.name else [str(metric)]
    for name in shown:
        rows = [row for row in found if row.metric == name]
        if as_json:
            for row in rows:
                changed_at = row.changed_at.astimezone(UTC).isoformat()
                emit_json({"source": chosen.name, **dataclasses.asdict(row), "changed_at": changed_at})
        elif rows:
            out().print(_table(f"{chosen.name}: {name}", rows))
            for said in _assumed(rows):
                note(said)
    if not found:
        about = f" of task {task!r}" if task else ""
        note(f"There is no run{about} to summarise: no scored trace or session of `{chosen.name}` names such a task.")


def _table(title: str, rows: Sequence[TaskSummary]) -> Table:
    ks = list(dict.fromkeys(k for row in rows for k in row.pass_at_k))
    table = Table(title=title, title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0))
    for place, column in enumerate((*_COLUMNS, *(f"pass@{k} ^{k}" for k in ks))):
        table.add_column(column, justify="left" if place < _LEFT else "right")
    for row in rows:
        chances = (f"{_figure(row.pass_at_k.get(k))} {_figure(row.pass_hat_k.get(k))}" for k in ks)
        table.add_row(
            cell(row.task_id if row.partition_type == "trace" else f"{row.task_id} (session)"),
            row.metric_version,
            row.config_hash[:8],
            "-" if row.annotation_id is None else f"{row.annotation_id}, rev. {row.annotation_revision}",
            str(row.n),
            str(row.n_scored),
            str(row.passes),
            _figure(row.pass_rate),
            "-" if row.pass_rate_low is None else f"{_figure(row.pass_rate_low)} to {_figure(row.pass_rate_high)}",
            _figure(row.mean),
            *chances,
        )
    return table


def _assumed(rows: Sequence[TaskSummary]) -> list[str]:
    """Say what the summaries rest on that nobody confirmed, or no trace shows."""
    said = [
        f"{row.task_id}: measured against {', '.join(row.unconfirmed_references)}, which nobody confirmed."
        for row in rows
        if row.unconfirmed_references
    ]
    return said + [
        f"{row.task_id}: {kind.replace('_', ' ')} assumed in {counted(runs, 'run')}."
        for row in rows
        for kind, runs in row.assumptions.items()
    ]


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
