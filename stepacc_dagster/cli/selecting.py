"""Options that choose scores, and refusals that are told apart from the answer of a command."""

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import click
import sqlalchemy as sa

from stepacc_core.comparison.choosing import Chosen, Wanted
from stepacc_core.comparison.observations import NEWEST, OLDEST
from stepacc_core.errors import ConfigError, StepaccError
from stepacc_dagster.cli.absent import unscored, unscored_windows
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
    except OSError as error:  # of a file that cannot be written
        if error.errno == errno.EPIPE:  # nobody reads on, which is no refusal
            raise
        msg = f"The system says: {error}."
        raise Refused(msg) from error


def chosen(
    connection: sa.Connection, wanted: Wanted, newest: int | None = None, *, may_be_unscored: bool = True
) -> Chosen:
    """Return the one selection that is asked for, and note what of another type it leaves out.

    Where there are several, and the source is configured here, it is the one by the metric, version and config that the
    source has now, which is noted. Where there is nothing, it is noted what is stored and which command scores more.

    Args:
        connection: where from.
        wanted: what is asked for.
        newest: only the newest windows, so many.
        may_be_unscored: whether a metric, version or config may be asked for that is not stored at all.

    Raises:
        ConfigError: there are several metrics, versions or configs, and nothing tells which is meant; or what is asked
            for is not stored, and must be.
    """
    try:
        found = find_selection(connection, wanted, newest)
    except ConfigError:
        own = _as_configured(wanted)
        if own is None:
            raise
        found = find_selection(connection, own, newest)
        note(f"Of several, what the source is scored by now: {printable(str(found.selection))}.")
    if not found.count:
        absent = unscored(connection, wanted)
        if absent and not may_be_unscored:
            raise ConfigError(absent)
        note(printable(absent or unscored_windows(found.selection)))
    for kind, count in found.others.items():
        note(f"Left out of {printable(str(found.selection))}: {counted(count, kind)}, which `--type {kind}` takes.")
    return found


def _as_configured(wanted: Wanted) -> Wanted | None:
    """Return what is wanted by the metric, version and config that the source has now; None where that is not known."""
    from stepacc_dagster.definitions import defs_folder, read_sources  # noqa: PLC0415 (loads Dagster)
    from stepacc_dagster.evaluators import evaluators_of  # noqa: PLC0415 (as above)

    try:
        fitting = [
            evaluator
            for source in read_sources(defs_folder()).sources
            if source.name == wanted.source
            for evaluator in evaluators_of(source)
            if wanted.metric in (None, evaluator.name, *evaluator.row_names)
            and wanted.metric_version in (None, evaluator.metric.manifest.version)
            and evaluator.config_hash.startswith(wanted.config_hash or "")
        ]
    except StepaccError:  # what is wrong with the settings is not what was asked about
        return None
    if len(fitting) != 1:
        return None
    [evaluator] = fitting
    return replace(
        wanted,
        metric=evaluator.headline if wanted.metric in (None, evaluator.name) else wanted.metric,
        metric_version=evaluator.metric.manifest.version,
        config_hash=evaluator.config_hash,
    )
