"""Real processes over a home of their own, that a test can hold up, kill and start again.

A disturbance hits at a point that was reached for certain, never after a sleep.
"""

import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import dagster as dg
import pytest
import sqlalchemy as sa

from stepacc_core import register
from stepacc_core.metrics import registry
from stepacc_dagster.database import URL_VARIABLE
from stepacc_dagster.definitions import load_sources
from stepacc_dagster.local.instance import local_instance
from stepacc_dagster.local.postgres import running_postgres
from stepacc_dagster.local.server import LocalPostgres
from stepacc_dagster.sources import Source
from stepacc_dagster.storage.schema import upgrade
from tests.cli_access import COMMAND
from tests.integration import gated_metric
from tests.integration.conftest import opened
from tests.integration.disturbed_access import TYPES
from tests.integration.evaluation_samples import START
from tests.integration.test_cli_dev import free_port

T = TypeVar("T")

_ROOT = Path(__file__).parents[2]
_PATIENCE = 150.0
"""Seconds within which all that is waited for comes about, also on a machine that has much else to do."""
_QUICKER = {"poll_interval_seconds: 30": "poll_interval_seconds: 1", "run_end_seconds: 60": "run_end_seconds: 1"}
"""What of the shipped settings would only make the tests wait."""
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def until(condition: Callable[[], T], what: str) -> T:
    """Wait for something to come true, and return it."""
    deadline = time.monotonic() + _PATIENCE
    while not (met := condition()):
        if time.monotonic() > deadline:
            pytest.fail(f"In {_PATIENCE:.0f} s it did not come about that {what}.")
        time.sleep(0.05)
    return met


def configure(home: Path, name: str, metric: str, **settings: Any) -> None:
    """Write the settings of a source."""
    attributes = {
        "source": name,
        "start_date": START,
        "metric": metric,
        "partition_types": list(TYPES),
        "unannotated": TYPES,
        "retry": {"max_retries": 2, "delay_seconds": 0.1},
        **settings,
    }
    folder = home / "defs" / name
    folder.mkdir(parents=True, exist_ok=True)
    document = {"type": "stepacc_dagster.StepAccuracyComponent", "attributes": attributes}
    (folder / "defs.yaml").write_text(json.dumps(document))


@dataclass(frozen=True)
class Gates:
    """Files that hold up whoever comes to score an occurrence; see `gated_metric`."""

    folder: Path

    def close(self, ident: str) -> None:
        """Let the next one who comes to a trace or session wait."""
        (self.folder / ident).touch()

    def reached(self, ident: str) -> int:
        """Wait until a process is held up at a gate; return its id."""
        note = self.folder / f"{ident}.pid"
        said = until(lambda: note.exists() and note.read_text().partition("\n"), f"a process comes to {ident}")
        assert said
        return int(said[0])

    def open(self, ident: str) -> None:
        """Hold nobody up any more."""
        (self.folder / ident).unlink()
        (self.folder / f"{ident}.pid").unlink(missing_ok=True)


@dataclass(frozen=True)
class Stage:
    """A home with sources, a server that runs throughout, and the processes of a test over them."""

    home: Path
    server: LocalPostgres
    engine: sa.Engine
    instance: dg.DagsterInstance
    gates: Gates
    environment: Mapping[str, str]

    @property
    def sources(self) -> list[Source]:
        """The sources that are configured."""
        return load_sources(self.home / "defs")

    @contextmanager
    def command(self, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
        """Start a command."""
        with subprocess.Popen(
            [*COMMAND, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=dict(self.environment),
        ) as process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.kill()

    @contextmanager
    def dev(self) -> Iterator["Dev"]:
        """Start `stepacc dev`, and end it with the block unless it ended before."""
        log = self.home / "dev.log"
        with (
            log.open("a") as errors,
            subprocess.Popen(
                [*COMMAND, "dev", "--json", "--port", str(free_port())],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=dict(self.environment),
            ) as process,
        ):
            assert process.stdout is not None
            try:
                said = process.stdout.readline()
                assert said, log.read_text()
                yield Dev(process, json.loads(said)["url"], log)
            finally:
                if process.poll() is None:
                    process.send_signal(signal.SIGTERM)

    def rows(self, query: str, **values: Any) -> list[Any]:
        """Return the rows of a query."""
        with self.engine.connect() as connection:
            return list(connection.execute(sa.text(query), values))

    def execute(self, statement: str) -> None:
        """Run a statement, as somebody at the database might."""
        with self.engine.begin() as connection:
            connection.execute(sa.text(statement))

    def crash(self, crash: Callable[[], object]) -> None:
        """Do what makes the server end all connections, and wait until it did and lets people in again."""
        with self.engine.connect() as connection:
            crash()
            until(lambda: not _answers(connection), "Postgres ended all connections")
        until(self._lets_in, "Postgres has recovered")

    def _lets_in(self) -> bool:
        try:
            self.rows("SELECT 1")
        except sa.exc.OperationalError:
            return False
        return True

    def processes(self, command: str) -> list[int]:
        """Return the processes over the home whose command line has these words."""
        return [pid for pid, line in self._processes() if command in line]

    def _processes(self) -> Iterator[tuple[int, str]]:
        mark = f"DAGSTER_HOME={self.home}/dagster".encode()
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (path / "environ").read_bytes().split(b"\0"):
                    yield int(path.name), (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue


@dataclass(frozen=True)
class Dev:
    """A running `stepacc dev`."""

    process: "subprocess.Popen[str]"
    url: str
    log: Path

    def ask(self, query: str, **variables: Any) -> Any:
        """Return what the webserver answers a GraphQL query."""
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(f"{self.url}/graphql", body, {"Content-Type": "application/json"})  # noqa: S310 (http)
        with _DIRECT.open(request, timeout=60) as answer:
            document = json.load(answer)
        assert "errors" not in document, document["errors"]
        return document["data"]


def _answers(connection: sa.Connection) -> bool:
    try:
        connection.execute(sa.text("SELECT 1"))
    except sa.exc.DBAPIError:
        return False
    return True


@contextmanager
def open_stage(home: Path, server: LocalPostgres | None = None) -> Iterator[Stage]:
    """Open a stage.

    Args:
        home: a folder that every user can enter and that holds nothing but the settings of sources.
        server: a server of the test's own; the private one of the home where left out.
    """
    gates, plugins, dagster = home / "gates", home / "plugins", home / "dagster"
    for folder in (gates, plugins, dagster):
        folder.mkdir()
    _install(plugins)
    settings = resources.files("stepacc_dagster.local").joinpath("dagster.yaml").read_text()
    for shipped, quicker in _QUICKER.items():
        assert shipped in settings
        settings = settings.replace(shipped, quicker)
    (dagster / "dagster.yaml").write_text(settings)
    environment = {
        **os.environ,
        "STEPACC_HOME": str(home),
        "PYTHONPATH": os.pathsep.join([str(plugins), str(_ROOT)]),
        gated_metric.GATES: str(gates),
    }
    if server is not None:
        environment[URL_VARIABLE] = server.url("postgres")
    with (
        nullcontext(server) if server else running_postgres(home) as used,
        opened(environment.get(URL_VARIABLE) or used.url()) as engine,
        local_instance(home, engine.url.render_as_string(hide_password=False)) as instance,
        own_metrics(gates),
    ):
        upgrade(engine)
        yield Stage(home, used, engine, instance, Gates(gates), environment)


@contextmanager
def own_metrics(gates: Path) -> Iterator[None]:
    """Make the gated metrics known to this process too, whose gates are all open."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "_METRICS", dict(registry._METRICS))
        patch.setenv(gated_metric.GATES, str(gates))
        register(gated_metric.patient())
        register(gated_metric.hasty())
        yield


def _install(folder: Path) -> None:
    """Make the gated metrics known to processes that have the folder on their path, as installing a package does."""
    package = folder / "acme_gated-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-gated\nVersion: 1.0\n")
    makers = "".join(f"{maker} = {gated_metric.__name__}:{maker}\n" for maker in ("patient", "hasty"))
    (package / "entry_points.txt").write_text(f"[stepacc.metrics]\n{makers}")
