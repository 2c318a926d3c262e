"""`stepacc backfill`."""

import dataclasses
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby

import click
import sqlalchemy as sa
from rich.box import SIMPLE
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from stepacc_core.errors import ConfigError, StepaccError
from stepacc_dagster.backfills import Only, Planned, plan
from stepacc_dagster.cli.materialize import follow
from stepacc_dagster.cli.output import cell, counted, emit_json, json_option, note, print_table, progress_bar
from stepacc_dagster.daemon_backfills import daemon_is_alive, states
from stepacc_dagster.definitions import defs_folder, read_sources
from stepacc_dagster.failures import sentence
from stepacc_dagster.local.evaluation import LocalEvaluation, local_evaluation
from stepacc_dagster.storage.comparison import VersionScores
from stepacc_dagster.stores.errors import UnfollowableError
from stepacc_dagster.windows import spanned

_SHOWN = 10
_TEXTS = ("row", "of", "version", "config")
_COLUMNS = (
    *("of", "version", "config", "scored", "failed", "not applicable", "mean"),
    *("pairs", "now higher", "lower", "change"),
)
_SUCCESS = "COMPLETED_SUCCESS"
_ROUNDS = 2
"""Backfills by the daemon: what was asked for, and then the homes of sessions that changed by it."""


@click.command()
@click.option("--source", help="Name of the source; every source where left out.")
@click.option("--metric", help="Only by the metric of this name, and only sources that it scores.")
@click.option("--from", "first", metavar="KEY", help="First partition, UTC; the source's first where left out.")
@click.option("--to", "last", metavar="KEY", help="Last partition, included; the newest where left out.")
@click.option(
    "--only",
    type=click.Choice(["stale", "failed", "all"]),
    default="stale",
    show_default=True,
    help="What is out of date, what failed at the last attempt, or every partition of the range.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option(
    "--how",
    type=click.Choice(["auto", "daemon", "here"]),
    default="auto",
    show_default=True,
    help="By Dagster's daemon and queue, or by runs of this process; auto: by the daemon where one runs.",
)
@json_option
def backfill(  # noqa: PLR0913, PLR0917 (a command's options)
    source: str | None,
    metric: str | None,
    first: str | None,
    last: str | None,
    only: Only,
    how: str,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Bring partitions up to date: after a new version or config of the metric, late spans, or failures.

    \b
    stepacc backfill --dry-run                  what is out of date, and why
    stepacc backfill --only failed              try again what failed
    stepacc backfill --from 2026-11-01 --to 2026-11-30 --only all

    Old scores stay; going back to the version before is the same command. What was done before an interruption is not
    done again: run the command again to go on. The exit code is 1 when a partition failed, or a source or its defs.yaml
    could not be read (the others are brought up to date all the same).
    """  # noqa: D301 (click reads the backspace)
    names, refused = _names(source, metric)
    for error in refused:
        note(f"Left out: {error}")
    done = [False] * len(refused)
    for name in names:
        try:
            done.append(_backfill(name, metric, first, last, only, how, dry_run=dry_run, as_json=as_json))
        except (StepaccError, sa.exc.DBAPIError) as error:
            if len(names) == 1 and not refused:
                raise
            note(f"{name}: {sentence(error)}")
            done.append(False)
    sys.exit(0 if all(done) else 1)


def _names(source: str | None, metric: str | None) -> tuple[list[str], list[StepaccError]]:
    """Return the sources that are meant, and why files that may be meant too give none."""
    found = read_sources(defs_folder())
    if source is not None:
        found.named(source)
    refused = [each.error for each in found.refused] if source is None else []
    by = {each.name: [choice.name for choice in each.choices] for each in found.sources}
    chosen = [name for name, metrics in by.items() if source in (None, name) and (metric is None or metric in metrics)]
    if not chosen:
        for error in refused:
            raise error
        known = ", ".join(f"`{name}` (by {' and '.join(metrics)})" for name, metrics in by.items()) or "none"
        asked = " and ".join(
            part for part in (source and f"source `{source}`", metric and f"metric `{metric}`") if part
        )
        msg = f"Nothing configured in {defs_folder()} is of {asked or 'any source'}; there are: {known}."
        raise ConfigError(msg)
    return chosen, refused


def _backfill(  # noqa: PLR0913, PLR0917 (the command's options)
    name: str,
    metric: str | None,
    first: str | None,
    last: str | None,
    only: Only,
    how: str,
    *,
    dry_run: bool,
    as_json: bool,
) -> bool:
    with local_evaluation(name, metric) as evaluation:
        keys = evaluation.partition_keys(first, last)
        try:
            evaluation.observe()
        except UnfollowableError as error:
            note(f"{name}: {error} Until then, `--only all` is the way to ingest what is new.")
        planned = plan(evaluation.states(keys), keys, only)
        _tell_plan(evaluation, keys, planned, tell=click.echo if dry_run else note, as_json=as_json)
        if dry_run or not planned:
            return True
        by_daemon = how == "daemon" or (how == "auto" and daemon_is_alive(evaluation.instance))
        ended = _by_daemon(evaluation, keys, planned) if by_daemon else _here(evaluation, planned)
        failed = [state for states in evaluation.states(keys).values() for state in states if state.problem]
        failed = list({state.window_key: state for state in failed}.values())
        for state in failed[:_SHOWN]:
            note(f"{state.window_key} failed: {state.problem}")
        if len(failed) > _SHOWN:
            note(f"And {len(failed) - _SHOWN} more; `stepacc backfill --only failed --dry-run` lists them.")
        _tell_versions(evaluation, evaluation.versions(keys), as_json=as_json)
    return ended and not failed


def _here(evaluation: LocalEvaluation, planned: Sequence[Planned]) -> bool:
    note("No daemon takes it up: done by Dagster runs of this process.")
    outcomes = follow(evaluation.bring_up_to_date(planned))
    note(f"{sum(run.success for run in outcomes)} of {counted(len(outcomes), 'run')} succeeded.")
    return all(run.success for run in outcomes)


def _by_daemon(evaluation: LocalEvaluation, keys: Sequence[str], planned: Sequence[Planned]) -> bool:
    success = True
    for round_number in range(_ROUNDS):
        if not planned:
            break
        ident = evaluation.launch(planned, f"{evaluation.title} over {spanned([window.key for window in planned])}")
        waits = "" if daemon_is_alive(evaluation.instance) else "; it starts when a daemon does (`stepacc dev`)"
        note(f"Backfill {ident} of {counted(len(planned), 'partition')} is queued{waits}.")
        try:
            status = _followed(evaluation, keys, planned, ident)
        except KeyboardInterrupt:
            note(f"Backfill {ident} is left to Dagster, which goes on with it; end it there under Runs, Backfills.")
            raise
        note(f"Backfill {ident} ended: {status.lower().replace('_', ' ')}.")
        success &= status == _SUCCESS
        again = {window.key for window in planned} if round_number else set()
        planned = [w for w in plan(evaluation.states(keys), keys, "stale") if not w.problem and w.key not in again]
    return success


def _followed(evaluation: LocalEvaluation, keys: Sequence[str], planned: Sequence[Planned], ident: str) -> str:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    chosen = {window.key for window in planned}
    last, warned = "", False
    with progress_bar(*columns) as progress:
        task = progress.add_task("partitions", total=len(chosen))
        for status in states(evaluation.instance, ident):
            standing = evaluation.states(keys).values()
            waiting = {state.window_key for found in standing for state in found if state.is_due}
            progress.update(task, completed=len(chosen - waiting))
            last = status
            if not warned and not daemon_is_alive(evaluation.instance):
                note(
                    "No daemon gives a sign of life. It goes on when one runs (`stepacc dev`); Ctrl-C leaves it queued."
                )
                warned = True
    return last


def _tell_plan(
    evaluation: LocalEvaluation,
    keys: Sequence[str],
    planned: Sequence[Planned],
    *,
    tell: Callable[[str], None],
    as_json: bool,
) -> None:
    if as_json:
        for window in planned:
            emit_json({"source": evaluation.source.name, **dataclasses.asdict(window)})
        return
    name = f"{evaluation.source.name}, {evaluation.title}"
    if not planned:
        tell(f"{name}: nothing to do in {spanned(keys)}.")
        return
    ingested = sum(window.ingest for window in planned)
    tell(
        f"{name}: {counted(len(planned), 'partition')} of {len(keys)}, {spanned([window.key for window in planned])}; "
        f"{ingested} to ingest and score, {len(planned) - ingested} to score."
    )
    for why, count in Counter(window.why for window in planned).most_common():
        tell(f"  {count:>5}  {why}")
    for window in [window for window in planned if window.problem][:_SHOWN]:
        tell(f"  {window.key} failed before: {window.problem}")


def _tell_versions(
    evaluation: LocalEvaluation, versions: Mapping[str, Sequence[VersionScores]], *, as_json: bool
) -> None:
    if as_json:
        for name, compared in versions.items():
            for each in compared:
                emit_json({"source": evaluation.source.name, "metric": name, "comparison": dataclasses.asdict(each)})
        return
    named = len(versions) > 1
    table = Table(title=f"{evaluation.source.name}, by version", title_justify="left", box=SIMPLE)
    for column in (*(["row"] if named else []), *_COLUMNS):
        table.add_column(column, no_wrap=True, justify="left" if column in _TEXTS else "right")
    for name, compared in versions.items():
        for row in _rows(compared):
            table.add_row(*map(cell, [name, *row] if named else row))
    print_table(table)
    apart = sum(each.other_reference for compared in versions.values() for each in compared)
    if apart:
        note(f"{counted(apart, 'score')} of another expectation than the present version's are in no pair.")


def _rows(versions: Sequence[VersionScores]) -> Iterator[list[str]]:
    for kind, group in groupby(versions, key=lambda each: each.partition_type):
        *others, last = group
        yield from (_row(kind, each, compared=each.pairs > 0) for each in others)
        yield _row(kind, last, compared=False)  # the one that the others are compared with


def _row(kind: str, each: VersionScores, *, compared: bool) -> list[str]:
    return [
        f"{kind}s",
        each.metric_version,
        each.config_hash[:8],
        str(each.scored),
        str(each.failed),
        str(each.not_applicable),
        "-" if each.mean is None else f"{each.mean:.3f}",
        *([str(each.pairs), str(each.higher), str(each.lower)] if compared else ["", "", ""]),
        "" if not compared or each.change is None else f"{each.change:+.3f}",
    ]
