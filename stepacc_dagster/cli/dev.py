"""`stepacc dev`: the Dagster UI and daemon over the local database, until Ctrl-C."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from importlib import resources
from pathlib import Path
from types import FrameType

import click

from stepacc_dagster.cli.output import counted, emit_json, json_option, note
from stepacc_dagster.database import check_reachable, connect_engine, open_database
from stepacc_dagster.definitions import defs_folder, read_sources
from stepacc_dagster.local.dead_runs import end_dead_runs
from stepacc_dagster.local.home import local_home, lock_file, make_home, try_exclusive
from stepacc_dagster.local.instance import instance_environment, local_instance
from stepacc_dagster.storage.schema import upgrade

_HOST = "127.0.0.1"
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_STANDARD_ERROR = 2
_STARTS_WITHIN = 120
"""Seconds after which a webserver that does not answer is given up."""
_STOPS_WITHIN = 20
"""Seconds that Dagster's processes get to end their runs' bookkeeping before they are killed."""


class _Stop(BaseException):
    """Somebody asked the command to end; no error, so that nothing catches it by accident."""


@click.command()
@click.option(
    "--port",
    default=3000,
    show_default=True,
    type=click.IntRange(1, 65_535),
    help="Port of the UI, on this machine only.",
)
@json_option
def dev(port: int, *, as_json: bool) -> None:
    """Start the Dagster UI and daemon over the local database; one Ctrl-C ends everything.

    \b
    stepacc dev
    stepacc dev --port 3001
    """  # noqa: D301 (click reads the backspace)
    _refuse_busy(port)
    home = local_home()
    with _until_stopped(), _alone(home), open_database() as url:
        _prepare(home, url)
        with _children(home, url, port) as children:
            _wait_until_up(port, children)
            if as_json:
                emit_json({"url": f"http://{_HOST}:{port}", "home": str(home)})
            note(f"The Dagster UI is at http://{_HOST}:{port} (Ctrl-C ends it). Sources and logs lie in {home}")
            _watch(children)


@contextmanager
def _until_stopped() -> Iterator[None]:
    """Take Ctrl-C, SIGTERM and a closed terminal for the end of the work, which is no failure."""
    before = {number: signal.signal(number, _stop) for number in _SIGNALS}
    try:
        yield
    except _Stop:
        note("Stopped.")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """Refuse to start a second daemon over one instance, of which each would take up what the other does."""
    make_home(home)
    with lock_file(home / "dev.alive") as descriptor:
        if not try_exclusive(descriptor):
            msg = f"`stepacc dev` runs over {home} already; end that one, or name another folder with STEPACC_HOME."
            raise click.ClickException(msg)
        yield


def _stop(_number: int, _frame: FrameType | None) -> None:
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # a second Ctrl-C must not leave anything running
    raise _Stop


def _refuse_busy(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port))
        except OSError as error:
            msg = f"Port {port} cannot be used ({error.strerror}); choose another with --port."
            raise click.ClickException(msg) from None


def _prepare(home: Path, url: str) -> None:
    sources = read_sources(defs_folder())
    for refused in sources.refused:
        if not sources.sources:
            raise refused.error
        note(f"{refused.error} Its source is left out; mend the file, and reload the definitions in the UI.")
    engine = connect_engine(url)
    try:
        check_reachable(engine)
        upgrade(engine)
    finally:
        engine.dispose()
    with local_instance(home, url) as instance:  # creates settings and tables before two processes want to
        if ended := end_dead_runs(instance):
            note(f"The process of {counted(len(ended), 'run')} was killed, which is noted as failed.")


@contextmanager
def _children(home: Path, url: str, port: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    workspace = home / "dagster" / "workspace.yaml"
    workspace.write_text(resources.files("stepacc_dagster.local").joinpath("workspace.yaml").read_text())
    environment = {**os.environ, **instance_environment(home, url), "PYTHONWARNINGS": "ignore"}
    # Daemon and code servers warn of what is as it should be: of cursors that are not made yet, of heartbeats that end
    # when a code server is replaced by the next, or that come late on a busy machine.
    shared = ["--code-server-log-level", "error", "-w", str(workspace)]
    commands = (
        ["dagster_webserver", "-h", _HOST, "-p", str(port), "--log-level", "warning", *shared],
        ["dagster._daemon", "run", "--log-level", "error", *shared],
    )
    children: list[subprocess.Popen[bytes]] = []
    try:
        for command in commands:
            # A session of its own, so that Ctrl-C reaches this process alone and ends the children in order.
            children.append(  # noqa: PERF401 (one that fails to start must not lose the others)
                subprocess.Popen(  # noqa: S603 (our own interpreter and fixed arguments)
                    [sys.executable, "-m", *command],
                    env=environment,
                    cwd=home,
                    stdin=subprocess.DEVNULL,
                    stdout=_STANDARD_ERROR,  # they log there
                    start_new_session=True,
                    preexec_fn=_default_signals,  # noqa: PLW1509 (no threads here yet)
                )
            )
        yield children
    finally:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        _end(children)


def _default_signals() -> None:
    # Started in the background by a shell, SIGINT is ignored and Dagster's processes would inherit that.
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)


def _end(children: list[subprocess.Popen[bytes]]) -> None:
    for child in children:
        _signal_group(child, signal.SIGTERM)
    deadline = time.monotonic() + _STOPS_WITHIN
    for child in children:
        try:
            child.wait(timeout=max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            note(f"Process {child.pid} did not end in {_STOPS_WITHIN} s and is killed.")
    for child in children:
        _signal_group(child, signal.SIGKILL)  # whatever of its group is left, such as a code server
        child.wait()


def _signal_group(child: subprocess.Popen[bytes], number: signal.Signals) -> None:
    try:
        os.killpg(child.pid, number)
    except ProcessLookupError:
        return


def _wait_until_up(port: int, children: list[subprocess.Popen[bytes]]) -> None:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy knows nothing of this machine
    deadline = time.monotonic() + _STARTS_WITHIN
    while time.monotonic() < deadline:
        _refuse_ended(children)
        try:
            with direct.open(f"http://{_HOST}:{port}/server_info", timeout=5):
                return
        except (OSError, HTTPException):
            time.sleep(0.2)
    msg = f"The Dagster webserver did not answer on port {port} within {_STARTS_WITHIN} s."
    raise click.ClickException(msg)


def _watch(children: list[subprocess.Popen[bytes]]) -> None:
    while True:
        _refuse_ended(children)
        time.sleep(0.5)


def _refuse_ended(children: list[subprocess.Popen[bytes]]) -> None:
    for child in children:
        if (status := child.poll()) is not None:
            msg = f"A Dagster process ended by itself with exit code {status}; its messages stand above."
            raise click.ClickException(msg)
