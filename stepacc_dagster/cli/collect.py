"""`stepacc collect`: an OTLP/HTTP receiver that lands traces in the database, until Ctrl-C."""

import dataclasses
import ipaddress
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click
import uvicorn

from stepacc_dagster.cli.output import emit_json, json_option, note
from stepacc_dagster.cli.redacting import source_redactor
from stepacc_dagster.cli.sources import source_option, source_or_only
from stepacc_dagster.doors.group_commit import GroupCommit
from stepacc_dagster.doors.receiver import Limits, receiver
from stepacc_dagster.storage.opening import open_storage
from stepacc_dagster.storage.raw_spans import Landed

_MIB = 1024 * 1024
_BACKLOG = 2_048
_ENDS_WITHIN = 30
"""Seconds that requests under way get at the end."""


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; others need --token-env.")
@click.option("--port", default=4318, show_default=True, type=click.IntRange(0, 65_535), help="Port; 0 for a free one.")
@source_option
@click.option("--token-env", metavar="VARIABLE", help="Environment variable with the token that clients must send.")
@click.option(
    "--max-request-mib", default=64, show_default=True, type=click.IntRange(1), help="Largest request, also unpacked."
)
@click.option(
    "--max-waiting-mib",
    default=128,
    show_default=True,
    type=click.IntRange(1),
    help="Requests held in memory, together.",
)
@json_option
def collect(  # noqa: PLR0913, PLR0917 (one parameter an option)
    host: str,
    port: int,
    source: str | None,
    token_env: str | None,
    max_request_mib: int,
    max_waiting_mib: int,
    *,
    as_json: bool,
) -> None:
    """Receive traces, and log records of GenAI instrumentations, by OTLP/HTTP and land them in the table `otel_spans`.

    Point exporters at it with OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 and the protocol http/protobuf or
    http/json. A request is acknowledged when its spans are committed. Ctrl-C lands what was received, and ends.

    Secrets and personal data are redacted before anything is stored: see docs/redaction.md.

    \b
    stepacc collect --source support_agent
    OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 python agent.py
    """  # noqa: D301 (click reads the backspace)
    token = _token(host, token_env)
    limits = Limits(request_bytes=max_request_mib * _MIB, waiting_bytes=max_waiting_mib * _MIB)
    name = source_or_only(source)
    with _listening(host, port) as bound, open_storage() as engine:
        commits = GroupCommit(
            engine,
            name,
            redactor=source_redactor(engine, name),
            landed=_on_landed if as_json else _say_nothing,
            failed=_on_failure,
        )
        server = uvicorn.Server(
            uvicorn.Config(
                receiver(commits, token=token, limits=limits),
                access_log=False,
                log_config=None,
                server_header=False,
                timeout_graceful_shutdown=_ENDS_WITHIN,
            )
        )
        _end_by_signal(server)
        address = _address(bound)
        if as_json:
            emit_json({"event": "listening", "url": address, "source": name})
        note(f"Receiving traces at {address}/v1/traces for the source {name} (Ctrl-C ends it).")
        server.run(sockets=[bound])
        totals = commits.totals
        if as_json:
            emit_json({"event": "stopped", **dataclasses.asdict(totals)})
        note(
            f"Stopped. {totals.requests} requests in {totals.transactions} transactions: {totals.new} spans new, "
            f"{totals.changed} changed, {totals.same} there already."
        )


def _token(host: str, variable: str | None) -> str | None:
    if variable is None:
        if _is_loopback(host):
            return None
        msg = (
            f"{host} can be reached from other machines, so clients must send a token: put one into an environment "
            "variable and name it with --token-env, or listen on 127.0.0.1."
        )
        raise click.UsageError(msg)
    token = os.environ.get(variable, "").strip()
    if not token:
        msg = f"The environment variable {variable}, named by --token-env, is not set or empty; put the token into it."
        raise click.UsageError(msg)
    return token


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        msg = f"The address {host} cannot be used ({error.strerror or error}); choose another with --host."
        raise click.ClickException(msg) from None
    with bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind(place)
        except OSError as error:
            msg = f"Port {port} of {host} cannot be used ({error.strerror}); choose another with --port."
            raise click.ClickException(msg) from None
        bound.listen(_BACKLOG)  # from here on clients may connect, and wait until they are served
        yield bound


def _address(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _end_by_signal(server: uvicorn.Server) -> None:
    def end(_number: int, _frame: FrameType | None) -> None:
        server.should_exit = True

    # The server has handlers of its own while it runs, and raises the signal again when it is done.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)


def _on_landed(requests: int, landed: Landed) -> None:
    emit_json({"event": "landed", "requests": requests, **dataclasses.asdict(landed)})


def _say_nothing(_requests: int, _landed: Landed) -> None:
    return


def _on_failure(sentence: str | None) -> None:
    if sentence is None:
        note("The database takes spans again.")
    else:
        note(f"The database takes no spans; clients are asked to try again: {sentence}")
