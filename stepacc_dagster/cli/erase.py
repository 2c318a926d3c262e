"""`stepacc erase`."""

import dataclasses
import getpass
import sys
from collections.abc import Mapping
from typing import Any

import click
import sqlalchemy as sa

from stepacc_core.redaction import RedactionSettings
from stepacc_dagster.cli.erase_text import counts_table, left_over, store_sentences, told
from stepacc_dagster.cli.output import emit_json, errors, json_option, note
from stepacc_dagster.database import open_database
from stepacc_dagster.erasing import Found, Target, erase, find
from stepacc_dagster.errors import UnknownIdError
from stepacc_dagster.event_log import EmptiedLog, can_be_emptied, empty_event_log
from stepacc_dagster.failures import sentence
from stepacc_dagster.local.event_logs import instances_of_this_machine
from stepacc_dagster.redaction.forms import redacted_forms
from stepacc_dagster.sources import Source
from stepacc_dagster.storage.opening import ready_engine
from stepacc_dagster.storage.tombstones import TargetKind


@click.command("erase")
@click.option("--trace", "trace_id", metavar="ID", help="The trace of this id.")
@click.option("--session", "session_id", metavar="ID", help="All traces of the session of this id.")
@click.option("--user", "user_id", metavar="ID", help="All traces of which a span names the user of this id.")
@click.option("--source", metavar="NAME", help="In this source only; in every source where left out.")
@click.option("--reason", default="", help="Why; kept in the audit.")
@click.option("--author", default=None, help="Who asks for it; kept in the audit. Your login name where left out.")
@click.option(
    "--unseen", is_flag=True, help="Also when nothing is known by the id yet: what comes later is not stored."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def erase_(  # noqa: PLR0913, PLR0917 (a command's options)
    trace_id: str | None,
    session_id: str | None,
    user_id: str | None,
    source: str | None,
    reason: str,
    author: str | None,
    *,
    unseen: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Remove what is stored of a trace, a session or a person, for good.

    Spans, arguments, outputs, reasons of scores and what was said of these traces go; their score rows stay, without
    content. What comes of them later is not stored. Everything else, and what is not reached, is in docs/erase.md.

    \b
    stepacc erase --trace 4bf92f3577b34da6a3ce929d0e0e4736
    stepacc erase --user jane --source support_agent
    """  # noqa: D301 (click reads the backspace)
    kind, ident = _named({"trace": trace_id, "session": session_id, "user": user_id}, source)
    configured = _configured()
    with open_database() as url, ready_engine(url) as engine:
        settings = [RedactionSettings(), *(each.redaction for each in configured.values())]
        forms = () if kind == "trace" else redacted_forms(engine, ident, settings)
        target = Target.of(kind, ident, source, forms)
        if target.kind == "user":
            note("Looking for the user in all spans; this reads every one of them.")
        found = find(engine, target, configured)
        if found.unknown and not unseen:
            raise UnknownIdError(_unknown(target))
        _ask(found, yes=yes)
        erased = erase(engine, found, configured, author=_login() if author is None else author, reason=reason)
        logs, problems = _empty_logs(url, engine, erased.windows)
    problems += left_over(found.unsearched, logs)
    stores = store_sentences(erased.windows, configured)
    if as_json:
        emit_json(_document(found, dataclasses.asdict(erased.removed), logs, problems, stores))
    else:
        note(told(found, erased.removed, logs))
        for line in (*stores, *problems):
            note(line)
    sys.exit(1 if problems else 0)


def _named(given: Mapping[TargetKind, str | None], source: str | None) -> tuple[TargetKind, str]:
    named = [(kind, ident) for kind, ident in given.items() if ident is not None]
    if len(named) != 1:
        msg = "Give one of --trace ID, --session ID and --user ID."
        raise click.UsageError(msg)
    [(kind, ident)] = named
    if not ident.strip() or source == "":
        msg = f"--{'source' if ident.strip() else kind} is empty; write {'a name' if ident.strip() else 'an id'}."
        raise click.UsageError(msg)
    return kind, ident


def _ask(found: Found, *, yes: bool) -> None:
    """Show what would be removed, and ask; without a terminal to ask on, refuse."""
    if yes:
        return
    errors.print(counts_table(found))
    if not sys.stdin.isatty():
        msg = "Nothing was removed: there is no terminal to ask on. Add --yes to remove this for good."
        raise click.UsageError(msg)
    click.confirm("Remove this for good?", abort=True, err=True)


def _unknown(target: Target) -> str:
    where = f"source `{target.source}`" if target.source else "any source"
    which = "No span names this user" if target.kind == "user" else f"There is no {target.kind} `{target.ident}`"
    return (
        f"{which} in {where}; give the whole id. To keep out what may come of it later, add --unseen: nothing of it is "
        "stored then."
    )


def _empty_logs(url: str, engine: sa.Engine, windows: Mapping[str, Any]) -> tuple[EmptiedLog, list[str]]:
    """Empty the event logs of the Dagster instances of this machine, and say which could not be."""
    total = EmptiedLog()
    problems: list[str] = []
    if not windows:
        return total, problems
    try:
        with instances_of_this_machine(url, engine) as instances:
            for instance in instances:
                if can_be_emptied(instance):
                    total += empty_event_log(instance, windows)
                else:
                    problems.append(
                        f"The events of the Dagster instance {instance.root_directory} are not in Postgres and keep "
                        "names of steps: delete its runs over these windows in Dagster."
                    )
    except Exception as error:  # noqa: BLE001 (what was erased stays so, whatever Dagster's storage raises)
        problems.append(f"Dagster's event log could not be emptied ({sentence(error)}); run the same command again.")
    return total, problems


def _configured() -> dict[str, Source]:
    from stepacc_dagster.definitions import defs_folder, read_sources  # noqa: PLC0415 (loads Dagster)

    found = read_sources(defs_folder())
    for refused in found.refused:
        note(f"The store of a source is not known: {refused.error}")
    return {source.name: source for source in found.sources}


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # an account without a name, as in a container
        return ""


def _document(
    found: Found, removed: dict[str, int], logs: EmptiedLog, problems: list[str], stores: list[str]
) -> dict[str, Any]:
    target = found.target
    ident = {} if target.kind == "user" else {"id": target.ident}  # which is not to be written down again
    return {
        "target": {"type": target.kind, **ident},
        "source": target.source,
        "erased_before": found.erased_before,
        "removed": removed,
        "event_log": dataclasses.asdict(logs),
        "stores": stores,
        "left": problems,
    }
