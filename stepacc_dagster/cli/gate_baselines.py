"""`stepacc gate baseline`."""

import dataclasses
import getpass
from collections.abc import Sequence
from datetime import UTC
from typing import Any

import click
from rich.box import SIMPLE
from rich.table import Table

from stepacc_core.comparison.choosing import Wanted
from stepacc_core.comparison.observations import SHOWN_HASH, Observation
from stepacc_core.model import PartitionType
from stepacc_dagster.cli.output import cell, counted, emit_json, json_option, note, out, printable
from stepacc_dagster.cli.selecting import chosen, refusals, selection_options
from stepacc_dagster.cli.sources import source_or_only
from stepacc_dagster.storage.baselines import (
    StoredBaseline,
    list_baselines,
    load_baseline,
    set_baseline,
    stored_baseline,
)
from stepacc_dagster.storage.opening import open_storage


@click.group(short_help="Keep scores that later ones are compared with.")
def baseline() -> None:
    """Keep scores that later ones are compared with: set a baseline, list them, show one."""


@baseline.command("set", short_help="Keep the current scores of a selection.")
@click.argument("name")
@selection_options
@click.option("--author", help="Who sets it; your login name where left out.")
@click.option("--note", "why", default="", help="Why; kept with it.")
@json_option
def set_(  # noqa: PLR0913, PLR0917 (a command's options)
    name: str,
    source: str | None,
    metric: str | None,
    metric_version: str | None,
    config_hash: str | None,
    partition_type: PartitionType | None,
    first: str,
    last: str,
    author: str | None,
    why: str,
    *,
    as_json: bool,
) -> None:
    """Keep the current scores of a selection as the baseline NAME; one of that name gets a new revision.

    \b
    stepacc gate baseline set good --to 2026-11-07 --note "release 1.4"

    It holds metric, version, config, and each score with its task and expectation. Exit code 2: it cannot be set.
    """  # noqa: D301 (click reads the backspace)
    with refusals():
        wanted = Wanted(source_or_only(source), metric, metric_version, config_hash, partition_type, first, last)
        with open_storage() as engine, engine.begin() as connection:
            selection = chosen(connection, wanted).selection
            stored = set_baseline(connection, name, selection, author=_login() if author is None else author, note=why)
    if as_json:
        emit_json(_fields(stored))
    else:
        note(
            f"Baseline {printable(stored.name)}, revision {stored.revision}: {counted(stored.scored, 'score')}, "
            f"{stored.mean:.3f} on average, of {printable(str(stored.selection))}."
        )


@baseline.command("list")
@click.option("--source", help="Of this source only; of all where left out.")
@json_option
def list_(source: str | None, *, as_json: bool) -> None:
    """List the baselines in force.

    \b
    stepacc gate baseline list --source support_agent
    """  # noqa: D301 (click reads the backspace)
    with refusals(), open_storage() as engine, engine.connect() as connection:
        found = list_baselines(connection, source)
    if as_json:
        for each in found:
            emit_json(_fields(each))
        return
    table = Table(box=SIMPLE, padding=(0, 1, 0, 0))
    columns = ("source", "name", "revision", "metric", "version", "config", "windows", "scores", "mean", "set")
    for column in columns:
        table.add_column(
            column,
            justify="right" if column in {"revision", "scores", "mean"} else "left",
            no_wrap=column in {"name", "metric"},
        )
    for each in found:
        values = (
            each.source,
            each.name,
            str(each.revision),
            each.metric,
            each.metric_version,
            each.config_hash[:SHOWN_HASH],
            each.selection.windows,
            str(each.scored),
            f"{each.mean:.3f}",
            f"{each.created_at.astimezone(UTC):%Y-%m-%d}",
        )
        table.add_row(*map(cell, values))
    out().print(table)
    note(f"{counted(len(found), 'baseline')}.")


@baseline.command()
@click.argument("name")
@click.option("--source", help="Name of the source; the only configured one where left out.")
@json_option
def show(name: str, source: str | None, *, as_json: bool) -> None:
    """Show what the baseline NAME was made of, and its scores task by task.

    \b
    stepacc gate baseline show release-41 --json
    """  # noqa: D301 (click reads the backspace)
    with refusals():
        own = source_or_only(source)
        with open_storage() as engine, engine.connect() as connection:
            stored = stored_baseline(connection, own, name)
            scores = load_baseline(connection, stored).observations
    if as_json:
        kept = ("partition_id", "task_id", "score", "reference_hash", "annotation_id", "score_id")
        emit_json({**_fields(stored), "scores": [{field: getattr(each, field) for field in kept} for each in scores]})
        return
    out().print(cell(str(stored.selection)))
    set_by = f" by {stored.author}" if stored.author else ""
    why = f": {stored.note}" if stored.note else ""
    out().print(
        cell(f"Revision {stored.revision}, set {stored.created_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC{set_by}{why}")
    )
    out().print(_tasks(scores))


def _tasks(scores: Sequence[Observation]) -> Table:
    table = Table(box=SIMPLE, padding=(0, 1, 0, 0))
    for column in ("task", "annotation", "scores", "mean"):
        table.add_column(column, justify="right" if column in {"scores", "mean"} else "left")
    groups: dict[tuple[str, str], list[float]] = {}
    for each in scores:
        key = (each.task_id or "-", str(each.annotation_id or "-"))
        groups.setdefault(key, []).append(each.score or 0.0)
    for (task, annotation), values in sorted(groups.items()):
        table.add_row(cell(task), annotation, str(len(values)), f"{sum(values) / len(values):.3f}")
    return table


def _fields(stored: StoredBaseline) -> dict[str, Any]:
    first, last = stored.selection.bounds
    windows = {"first_window": first, "last_window": last}
    return {**dataclasses.asdict(stored), **windows, "created_at": stored.created_at.astimezone(UTC).isoformat()}


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # an account without a name, as in a container
        return ""
