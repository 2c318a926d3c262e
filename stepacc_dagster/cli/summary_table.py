"""Task summaries as a table, and what they rest on in sentences."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from rich.box import SIMPLE
from rich.table import Table

from stepacc_dagster.cli.output import cell, counted
from stepacc_dagster.evaluators import Evaluator
from stepacc_dagster.storage.summaries import TaskSummary

_SHOWN_HASH = 8
_TASK = 12
"""Characters of a task's id in a line, at least; more lines follow where it is longer."""
_ALONE = "1"
"""The k for which both chances are the pass rate, which is shown in any case."""


def summary_tables(source: str, evaluator: Evaluator, rows: Sequence[TaskSummary]) -> Iterator[Table]:
    """Yield a table for each version and config of a metric; its title says which one the source has now.

    Args:
        source: name of the source.
        evaluator: the metric as the source has it now, whatever members of its family the rows are of.
        rows: summaries, in the order in which those of a task are shown.
    """
    metric = evaluator.name
    for (version, config_hash), group in groupby(sorted(rows, key=_maker), key=_maker):
        shown = sorted(group, key=lambda row: (row.task_id, row.partition_type == "session"))
        names = {row.metric for row in shown}
        only = f"{next(iter(names))} of " if len(names) == 1 and metric not in names else ""
        present = "which the source has now" if in_use(evaluator, shown[0]) else "not what the source has now"
        title = f"{source}: {only}{metric} {version}, config {config_hash[:_SHOWN_HASH]}, {present}"
        yield _table(title, shown, named=len(names) > 1)


def in_use(evaluator: Evaluator, row: TaskSummary) -> bool:
    """Tell whether a summary is by the version and config that the source has now."""
    return _maker(row) == (evaluator.metric.manifest.version, evaluator.config_hash)


def assumed(rows: Iterable[TaskSummary]) -> list[str]:
    """Say what summaries rest on that nobody confirmed, or that no trace shows; each once."""
    said: dict[str, None] = {}
    for row in rows:
        if row.unconfirmed_references:
            names = ", ".join(row.unconfirmed_references)
            said[f"{row.task_id}: measured against references that nobody confirmed: {names}."] = None
        for kind, runs in row.assumptions.items():
            said[f"{row.task_id}: {kind.replace('_', ' ')} in {counted(runs, 'run')}."] = None
    return list(said)


def _table(title: str, rows: Sequence[TaskSummary], *, named: bool) -> Table:
    ks = [k for k in dict.fromkeys(k for row in rows for k in row.pass_at_k) if k != _ALONE]
    table = Table(title=title, title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("task", min_width=_TASK)
    for column in (*(["row"] if named else []), "against"):
        table.add_column(column, no_wrap=True)
    for column in ("runs", "passed", "rate", "95 %", "mean", *(f"pass@{k} ^{k}" for k in ks)):
        table.add_column(column, no_wrap=True, justify="right")
    before = ""
    for row in rows:
        task = row.task_id if row.partition_type == "trace" else f"{row.task_id} (session)"
        table.add_row(
            cell("" if task == before else task),
            *([cell(row.metric.rpartition(".")[2])] if named else []),
            "-" if row.annotation_id is None else f"{row.annotation_id}, rev. {row.annotation_revision}",
            str(row.n),
            f"{row.passes} of {row.n_scored}",
            _figure(row.pass_rate),
            "-" if row.pass_rate_low is None else f"{_figure(row.pass_rate_low)}-{_figure(row.pass_rate_high)}",
            _figure(row.mean),
            *(f"{_figure(row.pass_at_k.get(k))} {_figure(row.pass_hat_k.get(k))}" for k in ks),
        )
        before = task if named else ""
    return table


def _maker(row: TaskSummary) -> tuple[str, str]:
    return row.metric_version, row.config_hash


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
