"""A real `stepacc collect` process, and real ways to send to it."""

import json
import os
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from stepacc_dagster.database import URL_VARIABLE
from tests.cli_access import COMMAND
from tests.integration.conftest import opened

SOURCE = "received"
PROTOBUF = "application/x-protobuf"
JSON = "application/json"


@dataclass(frozen=True)
class Answer:
    """What the receiver answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Collector:
    """A receiver that runs."""

    url: str
    process: "subprocess.Popen[str]"

    def post(self, body: bytes, kind: str = PROTOBUF, path: str = "/v1/traces", **headers: str) -> Answer:
        """Send a request; names of headers are written with _ for -."""
        named = {"Content-Type": kind, **{name.replace("_", "-"): value for name, value in headers.items()}}
        return self._answer(urllib.request.Request(self.url + path, body, named))  # noqa: S310 (our own address)

    def get(self, path: str) -> Answer:
        """Ask for a page."""
        return self._answer(urllib.request.Request(self.url + path))  # noqa: S310 (our own address)

    def kill(self) -> None:
        """End the process without any chance to finish."""
        self.process.kill()
        self.process.wait()

    def end(self, number: signal.Signals = signal.SIGTERM) -> dict[str, Any]:
        """Ask the process to end; return what it said last."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, err
        last: dict[str, Any] = json.loads(out.splitlines()[-1])
        return last

    @staticmethod
    def _answer(request: urllib.request.Request) -> Answer:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=60) as response:
                return Answer(response.status, dict(response.headers), response.read())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, dict(error.headers), error.read())


@contextmanager
def collecting(url: str, *options: str, **environment: str) -> Iterator[Collector]:
    """Run a receiver over a database, on a free port, and end it if the test did not."""
    command = [*COMMAND, "collect", "--port", "0", "--source", SOURCE, "--json", *options]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, URL_VARIABLE: url, **environment},
    )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first, process.communicate()[1]
        yield Collector(json.loads(first)["url"], process)
    finally:
        process.kill()
        process.communicate()


def request_of(*names: str, trace: int = 1, attributes: Mapping[str, str] | None = None) -> ExportTraceServiceRequest:
    """Make a request of one span for each name, numbered within a trace."""
    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    for number, name in enumerate(names, start=1):
        span = spans.add(
            trace_id=trace.to_bytes(16, "big"),
            span_id=number.to_bytes(8, "big"),
            name=name,
            start_time_unix_nano=1_796_000_000_000_000_000 + number,
            end_time_unix_nano=1_796_000_000_000_000_000 + number + 1,
        )
        for key, value in (attributes or {}).items():
            span.attributes.add(key=key).value.string_value = value
    return request


def body_of(*names: str, trace: int = 1, attributes: Mapping[str, str] | None = None) -> bytes:
    """Return such a request as protobuf."""
    return request_of(*names, trace=trace, attributes=attributes).SerializeToString()


def landed(url: str) -> dict[tuple[str, str], Any]:
    """Return the rows of `otel_spans` by trace and span id."""
    with opened(url) as engine, engine.connect() as connection:
        rows = connection.execute(sa.text("SELECT * FROM stepacc.otel_spans"))
        return {(row.trace_id, row.span_id): row for row in rows}


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
