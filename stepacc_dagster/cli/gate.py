"""`stepacc gate`."""

import sys
from pathlib import Path
from typing import Any

import click
from rich.box import SIMPLE
from rich.table import Table

from stepacc_core.comparison.choosing import Wanted
from stepacc_core.comparison.gate import Criteria, Decision, as_option
from stepacc_core.comparison.observations import NEWEST, OLDEST
from stepacc_core.comparison.outcomes import listed
from stepacc_core.errors import ConfigError
from stepacc_core.model import PartitionType
from stepacc_dagster.cli.gate_baselines import baseline
from stepacc_dagster.cli.output import cell, emit_json, json_option, note, out, printable
from stepacc_dagster.cli.selecting import chosen, refusals, selection_options
from stepacc_dagster.cli.sources import source_or_only
from stepacc_dagster.gate_report import document, junit
from stepacc_dagster.gating import judge
from stepacc_dagster.storage.opening import open_storage

_share = click.FloatRange(0, 1)


@click.group("gate", invoke_without_command=True)
@selection_options
@click.option("--newest", type=click.IntRange(1), metavar="N", help="Only the newest N windows with anything in them.")
@click.option("--min-mean", type=_share, metavar="SCORE", help="Least mean of the scores.")
@click.option("--min-coverage", type=_share, metavar="SHARE", help="Least share of what is known that has a score.")
@click.option("--min-scored", type=click.IntRange(1), default=1, show_default=True, help="Least number of scores.")
@click.option(
    "--no-forbidden",
    is_flag=True,
    help="No step that a reference forbids may have run in what is scored; what was not looked at is told.",
)
@click.option("--baseline", "baseline_name", metavar="NAME", help="No worse than this baseline beyond noise.")
@click.option("--margin", type=_share, default=0.0, show_default=True, help="By how much the mean may fall below it.")
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Chance of failing where nothing fell.")
@click.option("--all-tasks", is_flag=True, help="Every task of the baseline must have a score now.")
@click.option("--shared-references", is_flag=True, help="Compare only what has the baseline's expectation still.")
@click.option(
    "--junit", "junit_file", type=click.Path(dir_okay=False, path_type=Path), help="Write JUnit XML to this file."
)
@json_option
@click.pass_context
def gate(  # noqa: PLR0913, PLR0917 (a command's options)
    context: click.Context,
    source: str | None,
    metric: str | None,
    metric_version: str | None,
    config_hash: str | None,
    partition_type: PartitionType | None,
    first: str,
    last: str,
    newest: int | None,
    min_mean: float | None,
    min_coverage: float | None,
    min_scored: int,
    baseline_name: str | None,
    margin: float,
    alpha: float,
    junit_file: Path | None,
    *,
    no_forbidden: bool,
    all_tasks: bool,
    shared_references: bool,
    as_json: bool,
) -> None:
    """Say whether the current scores are good enough, for continuous integration.

    \b
    stepacc gate --min-mean 0.9 --min-coverage 0.95 --newest 7
    stepacc gate --metric trajectory_match.passed --no-forbidden
    stepacc gate baseline set good --from 2026-11-01 --to 2026-11-07
    stepacc gate --baseline good --from 2026-11-08 --margin 0.02 --junit gate.xml

    Exit code 0: all that is asked for is met; 1: it is not, also where nothing is scored or the comparison with the
    baseline is refused; 2: wrong use, several versions or configs in the selection, or the database cannot be read.
    """  # noqa: D301 (click reads the backspace)
    if context.invoked_subcommand is not None:
        return
    with refusals():
        criteria = Criteria(
            min_mean=min_mean,
            min_coverage=min_coverage,
            min_scored=min_scored,
            no_forbidden=no_forbidden,
            against_baseline=baseline_name is not None,
            margin=margin,
            alpha=alpha,
            all_tasks=all_tasks,
            shared_references=shared_references,
            spelled=as_option,
        )
        wanted = Wanted(source_or_only(source), metric, metric_version, config_hash, partition_type, first, last)
        if newest is not None and (wanted.first, wanted.last) != (OLDEST, NEWEST):
            msg = "--newest chooses the windows, and so do --from and --to; give one or the other."
            raise ConfigError(msg)
        with open_storage() as engine, engine.connect() as connection:
            decision = judge(connection, chosen(connection, wanted, newest).selection, criteria, baseline_name)
        if junit_file is not None:
            junit_file.write_bytes(junit(decision))
    if as_json:
        emit_json(document(decision))
    else:
        _tell(decision)
    sys.exit(0 if decision.passed else 1)


gate.add_command(baseline)


def _tell(decision: Decision) -> None:
    out().print(cell(str(decision.evidence.selection)))
    table = Table(box=SIMPLE, padding=(0, 1, 0, 0))
    for column in ("criterion", "result", "value", "asked"):
        table.add_column(column, no_wrap=True, justify="right" if column in {"value", "asked"} else "left")
    for outcome in decision.outcomes:
        table.add_row(outcome.name, outcome.status, _number(outcome.value), _number(outcome.required))
    out().print(table)
    for line in _beside(decision):
        note(line)
    click.echo(printable(decision.reason))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}".rstrip("0").rstrip(".")


def _beside(decision: Decision) -> list[str]:
    """Return what a comparison with a baseline leaves out."""
    against: Any = decision.against
    if against is None:
        return []
    told = []
    if against.change:
        low, high = against.change.low, against.change.high
        told.append(f"The change since the baseline lies between {low:+.3f} and {high:+.3f} (95 % interval).")
    if against.missing_tasks:
        told.append(
            f"Of these tasks of the baseline nothing is scored now: {printable(listed(against.missing_tasks))}."
        )
    for count, said in (
        (len(against.pairing.after_only), "have no counterpart in the baseline"),
        (against.repeated, "are in the baseline itself, and left out"),
        (len(against.pairing.other_reference), "tasks or traces have another expectation than in the baseline"),
    ):
        if count:
            told.append(f"{count} {said if 'tasks' in said else f'scores {said}'}.")
    return told
