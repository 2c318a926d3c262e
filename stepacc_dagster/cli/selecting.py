"""Options that choose scores, and refusals that are told apart from the answer of a command."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click
import sqlalchemy as sa

from stepacc_core.comparison.choosing import NEWEST, OLDEST, Chosen, Wanted
from stepacc_core.errors import StepaccError
from stepacc_dagster.cli.output import counted, note, printable
from stepacc_dagster.failures import sentence
from stepacc_dagster.gating import find_selection

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--source", help="Name of the source; the only configured one where left out."),
    click.option("--metric", help="Name of the metric, or of a member of its family; the only one where left out."),
    click.option("--metric-version", help="Version of the metric; the only one where left out."),
    click.option(
        "--config", "config_hash", metavar="HASH", help="Beginning of the config's hash, 4 characters or more."
    ),
    click.option("--type", "partition_type", type=click.Choice(["trace", "session"]), help="What to compare."),
    click.option("--from", "first", metavar="KEY", default=OLDEST, help="First window; the oldest where left out."),
    click.option("--to", "last", metavar="KEY", default=NEWEST, help="Last window, included; the newest if left out."),
)


class Refused(click.ClickException):
    """What was asked cannot be answered: exit code 2, so that 1 is the answer no."""

    exit_code = 2


def selection_options(command: F) -> F:
    """Add the options that choose scores of one metric, version, config and type."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@contextmanager
def refusals() -> Iterator[None]:
    """Let every error that is no answer end the command with exit code 2."""
    try:
        yield
    except StepaccError as error:
        raise Refused(str(error)) from error
    except sa.exc.SQLAlchemyError as error:
        raise Refused(sentence(error)) from error


def chosen(connection: sa.Connection, wanted: Wanted, newest: int | None = None) -> Chosen:
    """Return the one selection that is asked for, and note what of another type it leaves out."""
    found = find_selection(connection, wanted, newest)
    for kind, count in found.others.items():
        note(f"Left out of {printable(str(found.selection))}: {counted(count, kind)}, which `--type {kind}` takes.")
    return found
