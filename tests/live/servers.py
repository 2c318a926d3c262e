"""Live servers of Phoenix and MLflow, each over a database of the test server."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import sqlalchemy as sa

from stepacc_core.annotations import EXPECTED_STEPS_KEY
from stepacc_dagster.stores.settings import MlflowSettings, PhoenixSettings, StoreSettings
from tests.integration.collect_access import PROTOBUF, free_port
from tests.integration.conftest import opened
from tests.live.processes import ask, running
from tests.live.recorded import Recording

JSON = {"Content-Type": "application/json"}
OTLP = {"Content-Type": PROTOBUF, "Content-Encoding": "gzip"}
_PATIENCE = 60.0  # seconds until spans that were acknowledged are rows


class LiveServer(Protocol):
    """A server that takes spans and keeps them in Postgres."""

    @property
    def database_url(self) -> str:
        """The URL of its database."""

    def settings(self, project: str) -> StoreSettings:
        """Return the settings that read one of its projects."""

    def trace_id(self, recorded: str) -> str:
        """Return the id that it gives a trace."""

    def send(self, recording: Recording, project: str) -> None:
        """Send spans over OTLP/HTTP, and wait until they are rows."""

    def expect(self, recording: Recording, steps: list[str]) -> None:
        """Say through the server what a trace should do."""


@dataclass(frozen=True)
class Phoenix:
    """An Arize Phoenix server."""

    url: str
    database_url: str

    def settings(self, project: str) -> PhoenixSettings:
        """Return the settings that read a project."""
        return PhoenixSettings(projects=(project,))

    def trace_id(self, recorded: str) -> str:
        """Return the id of a trace, which stays as it is."""
        return recorded

    def send(self, recording: Recording, project: str) -> None:
        """Send spans; an attribute of their resource names the project."""
        for body in recording.bodies(project):
            ask(f"{self.url}/v1/traces", body, OTLP)
        _wait_until_stored(self.database_url, recording)

    def expect(self, recording: Recording, steps: list[str]) -> None:
        """Make a dataset of one example, which stems from a span of the trace."""
        (trace_id,) = recording.trace_ids
        dataset = {
            "action": "create",
            "name": f"expectations of {trace_id}",
            "inputs": [{}],
            "outputs": [{EXPECTED_STEPS_KEY: steps}],
            "metadata": [{}],
            "span_ids": [recording.spans[0].span_id.hex()],
        }
        ask(f"{self.url}/v1/datasets/upload?sync=true", json.dumps(dataset).encode(), JSON)


@dataclass(frozen=True)
class Mlflow:
    """An MLflow tracking server."""

    url: str
    database_url: str

    def settings(self, project: str) -> MlflowSettings:
        """Return the settings that read an experiment."""
        return MlflowSettings(experiments=(project,))

    def trace_id(self, recorded: str) -> str:
        """Return the id of a trace, which gets a prefix."""
        return f"tr-{recorded}"

    def send(self, recording: Recording, project: str) -> None:
        """Send spans; a header names the experiment by its id."""
        experiment = self._experiment(project)
        for body in recording.bodies(project):
            ask(f"{self.url}/v1/traces", body, {**OTLP, "x-mlflow-experiment-id": experiment})
        _wait_until_stored(self.database_url, recording)

    def expect(self, recording: Recording, steps: list[str]) -> None:
        """Log an expectation of the trace."""
        trace_id = self.trace_id(*recording.trace_ids)
        assessment = {
            "assessment_name": EXPECTED_STEPS_KEY,
            "trace_id": trace_id,
            "source": {"source_type": "HUMAN", "source_id": "qa@example.org"},
            "expectation": {"value": steps},
        }
        self._call(f"3.0/mlflow/traces/{trace_id}/assessments", {"assessment": assessment})

    def _experiment(self, name: str) -> str:
        found = self._call("2.0/mlflow/experiments/search", {"max_results": 100})
        known = {each["name"]: each["experiment_id"] for each in found.get("experiments", [])}
        return str(known.get(name) or self._call("2.0/mlflow/experiments/create", {"name": name})["experiment_id"])

    def _call(self, path: str, body: Mapping[str, Any]) -> Any:
        return json.loads(ask(f"{self.url}/api/{path}", json.dumps(body).encode(), JSON))


@contextmanager
def running_phoenix(programs: Path, database_url: str, folder: Path) -> Iterator[Phoenix]:
    """Run Phoenix, without telemetry.

    Its web server listens on loopback. Its gRPC door cannot be told an address: it gets a free port.
    """
    url = f"http://127.0.0.1:{(port := free_port())}"
    environment = {
        "PHOENIX_SQL_DATABASE_URL": _address(database_url, "postgresql"),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free_port()),
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_TELEMETRY_ENABLED": "false",
        "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
    }
    with running([programs / "phoenix", "serve"], environment, folder, f"{url}/healthz"):
        yield Phoenix(url, database_url)


@contextmanager
def running_mlflow(programs: Path, database_url: str, folder: Path) -> Iterator[Mlflow]:
    """Run MLflow, on loopback, without telemetry and without workers for jobs."""
    url = f"http://127.0.0.1:{(port := free_port())}"
    environment = {
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "true",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }
    command: list[str | Path] = [programs / "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--workers", "1", "--default-artifact-root", folder / "artifacts"]
    command += ["--backend-store-uri", _address(database_url, "postgresql+psycopg2")]
    with running(command, environment, folder, f"{url}/health"):
        yield Mlflow(url, database_url)


def _address(url: str, driver: str) -> str:
    return sa.make_url(url).set(drivername=driver).render_as_string(hide_password=False)


def _wait_until_stored(database_url: str, recording: Recording) -> None:
    wanted = {span.span_id.hex() for span in recording.spans}
    query, deadline = sa.text("SELECT count(*) FROM spans WHERE span_id = ANY(:ids)"), time.monotonic() + _PATIENCE
    with opened(database_url) as engine:
        while time.monotonic() < deadline:
            with engine.connect() as connection:
                if connection.scalar(query, {"ids": sorted(wanted)}) == len(wanted):
                    return
            time.sleep(0.1)
    message = f"Spans of {recording.file} were acknowledged and are not stored after {_PATIENCE:.0f} seconds."
    raise AssertionError(message)
