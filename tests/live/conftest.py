"""Live servers over the test server's databases."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import dagster as dg
import pytest
import sqlalchemy as sa

from tests.integration.conftest import (
    Server,
    _dagster_template,
    _migrated_template,
    dagster_instance,
    dagster_storage,
    migrated_engine,
    migrated_url,
    server,
)
from tests.integration.evaluation_access import Workshop
from tests.live.servers import LiveServer, running_mlflow, running_phoenix

__all__ = [
    "_dagster_template",
    "_migrated_template",
    "dagster_instance",
    "dagster_storage",
    "migrated_engine",
    "migrated_url",
    "server",
]

PROGRAMS = Path(__file__).parents[2] / ".venv-live" / "bin"
RUNNING: dict[str, Callable[[Path, str, Path], AbstractContextManager[LiveServer]]] = {
    "phoenix": running_phoenix,
    "mlflow": running_mlflow,
}


@pytest.fixture(scope="session", params=RUNNING)
def live(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A live server of each kind, one after the other; its processes are gone before its database is."""
    kind: str = request.param
    if not (PROGRAMS / kind).exists():
        pytest.skip(f"{PROGRAMS / kind} is missing; `make test-live` installs it")
    databases: Server = request.getfixturevalue("server")
    with (
        databases.database() as url,
        RUNNING[kind](PROGRAMS, url, tmp_path_factory.mktemp(kind)) as started,
    ):
        yield started


@pytest.fixture
def workshop(dagster_instance: dg.DagsterInstance, migrated_engine: sa.Engine) -> Workshop:
    """A workshop over databases of the test's own."""
    return Workshop(dagster_instance, migrated_engine)
