"""The command line: `stepacc`.

Each command lives in a module that is loaded only when the command runs, so that commands over files never wait for
Dagster and work without its packages.
"""

import errno
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from stepacc_core._version import __version__
from stepacc_core.errors import StepaccError

_COMMANDS = {
    "annotations": ("annotations:annotations", "Import, check, list and withdraw expected steps."),
    "backfill": ("backfill:backfill", "Bring partitions up to date, such as after a new version of the metric."),
    "completion": ("completion:completion", "Print the script that completes commands and options in a shell."),
    "collect": ("collect:collect", "Receive traces by OTLP over HTTP and land them in the database."),
    "db": ("db:db", "Create the tables, or bring them up to date."),
    "demo": ("demo:demo", "Score real traces on a local PostgreSQL, from nothing."),
    "dev": ("dev:dev", "Start the Dagster UI and daemon over the local database."),
    "diff": ("diff:diff_", "Compare versions, configs, time ranges or sources: how far, which traces, and why."),
    "doctor": ("doctor:doctor", "Say what is wrong with installation, database, Dagster and sources, and what to do."),
    "erase": ("erase:erase_", "Remove what is stored of a trace, a session or a person, for good."),
    "export": ("export:export", "Write scores as Parquet, CSV or JSON lines, for other tools."),
    "gate": ("gate:gate", "Say whether scores are good enough, by their mean, coverage or a baseline, for CI."),
    "import": ("landing:import_", "Land trace files in the database."),
    "ingest": ("materialize:ingest", "Turn landed spans into canonical traces, in Dagster runs."),
    "lineage": ("lineage:lineage", "Show which scores used an annotation, and what made those of a trace or session."),
    "manifest": ("manifest:manifest", "Show what a metric accepts, costs and means."),
    "materialize": ("materialize:materialize", "Ingest and score a range of partitions, in Dagster runs."),
    "report": ("report:report", "Write the scores of a source as one page of HTML."),
    "score": ("score:score", "Score trace files against an annotations file; no database."),
    "scores": ("scores:scores", "Show the current scores of a source."),
    "steps": ("steps:steps", "Show which steps the reader finds in trace files; no database."),
    "suggest": ("suggest:suggest_", "Propose expected steps for a task from good runs of it."),
    "summaries": ("summaries:summaries", "Show what the repeated runs of each task amount to."),
}
"""Command -> (module below `stepacc_dagster.cli` and attribute, help in one line)."""

_OF_DAGSTER = {
    "alembic",
    "dagster",
    "dagster_postgres",
    "dagster_webserver",
    "detect_secrets",
    "google",
    "opentelemetry",
    "phonenumbers",
    "psycopg",
    "psycopg2",
    "re2",
    "requests",
    "sqlalchemy",
    "starlette",
    "stdnum",
    "urllib3",
    "uvicorn",
}
"""Packages of the extra `dagster`."""


_EXIT_CODES = (
    "Exit code 0: done; 1: not done, or not all of it, as a sentence says; 2: wrong use; 3: a fault of stepacc."
)

_LONGEST = 300
"""Characters that are shown of what an unforeseen error says."""


class _Unexpected(click.ClickException):
    """An error that nobody foresaw, and so one of stepacc's own; its exit code is no answer of any command."""

    exit_code = 3

    def __init__(self, error: Exception, *, debug: bool) -> None:
        said = _concealed(next(iter(str(error).strip().splitlines()), "") or "no reason given").rstrip(".")
        hint = "" if debug else " Run it as `stepacc --debug ...` for the traceback."
        super().__init__(
            f"This should not happen: {type(error).__name__}: {said}.{hint} Please report it to the maintainers, with "
            f"the traceback and the version ({__version__})."
        )


class _Group(click.Group):
    """A group that loads a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 (click's signature)
        if cmd_name not in _COMMANDS:
            return None
        module, _, attribute = _COMMANDS[cmd_name][0].partition(":")
        try:
            command: click.Command = getattr(import_module(f"{__name__}.{module}"), attribute)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in _OF_DAGSTER:
                raise
            msg = (
                f"`stepacc {cmd_name}` needs packages that are not installed; "
                "run: pip install 'stepacc[dagster,embedded]' "
                "(embedded is the local PostgreSQL server, of no use where STEPACC_DATABASE_URL names another)"
            )
            raise click.ClickException(msg) from None
        _document_exit_codes(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, and name those of like names where there is none."""
        if args[0] not in _COMMANDS and (like := get_close_matches(args[0], _COMMANDS)):
            ctx.fail(f"No such command {args[0]!r}; did you mean {' or '.join(f'`{name}`' for name in like)}?")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command without loading any of them."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [CompletionItem(name, help=text) for name, (_, text) in _COMMANDS.items() if name.startswith(incomplete)]

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command, and turn what it raises into a sentence; with --debug the traceback stands above it."""
        debug = bool(ctx.params["debug"])
        with _ends_on_sigterm():
            try:
                return super().invoke(ctx)
            except (click.exceptions.Exit, click.Abort):
                raise
            except Exception as error:
                if isinstance(error, OSError) and error.errno == errno.EPIPE:  # click ends quietly
                    raise
                if debug and (error.__cause__ or not isinstance(error, click.ClickException)):
                    traceback.print_exc()
                if isinstance(error, click.ClickException):
                    raise
                said = _foreseen(error)
                raise (click.ClickException(said) if said else _Unexpected(error, debug=debug)) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 (click's signature)
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


def _document_exit_codes(command: click.Command) -> None:
    """Let the help of a command that says nothing of its exit codes end with those that all have."""
    if isinstance(command, click.Group):
        for below in command.commands.values():
            _document_exit_codes(below)
    elif "exit code" not in " ".join((command.help or "").lower().split()):
        command.epilog = _EXIT_CODES


@contextmanager
def _ends_on_sigterm() -> Iterator[None]:
    """Let SIGTERM end a command as Ctrl-C does, so that it stops the local server on its way out."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _foreseen(error: Exception) -> str | None:
    """Return the sentence of an error that has one, or None."""
    if isinstance(error, StepaccError):
        return str(error)
    return _of_system(error) if isinstance(error, OSError) else _of_database(error)


def _concealed(text: str) -> str:
    """Return what an error says without secrets; nothing of it where that cannot be told."""
    try:
        from stepacc_core.shown import begun  # noqa: PLC0415 (only errors wait for it)

        return begun(text, _LONGEST)
    except Exception:  # noqa: BLE001 (the first error is the one to tell)
        return "what it says cannot be shown"


def _of_system(error: OSError) -> str:
    where = f" ({error.filename})" if error.filename else ""
    return f"The system says: {error.strerror or error}{where}."


def _of_database(error: Exception) -> str | None:
    """Return in one sentence what a database said, or None if the error is none of a database."""
    if "sqlalchemy" not in sys.modules:
        return None
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415 (the commands over files work without it)

    if not isinstance(error, SQLAlchemyError):
        return None
    from stepacc_dagster.failures import sentence  # noqa: PLC0415 (as above)

    return sentence(error)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="stepacc")
@click.option("--debug", is_flag=True, help="Show the traceback of an error above its sentence.")
def main(*, debug: bool) -> None:  # noqa: ARG001 (read by the group)
    """Score the steps of AI agents from their traces.

    Results go to standard output, all else to standard error. Colours are left out where NO_COLOR is set.

    Exit codes: 0 done; 1 an error, told in a sentence, or what a command checks does not hold, or Ctrl-C; 2 a wrong
    option or argument; 3 a fault of stepacc itself. `stepacc COMMAND --help` tells more.
    """
    # A name from a trace may hold what the terminal's encoding lacks; that must not end a command.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
