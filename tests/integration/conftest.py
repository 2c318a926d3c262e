"""A real PostgreSQL server and a real Dagster instance for the tests.

One server serves a session, and every test gets a database of its own, copied from a template in a
few hundredths of a second. `STEPACC_TEST_DATABASE_URL` names another server, whose user may create databases.
"""

import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import pytest
import sqlalchemy as sa

from stepacc_dagster.database import DAGSTER_URL_VARIABLE, connect_engine, normalise_url
from stepacc_dagster.local.instance import local_instance
from stepacc_dagster.local.kept_connections import kept_connections
from stepacc_dagster.local.postgres import throwaway_postgres


class Server:
    """Makes databases on one server and drops them again."""

    def __init__(self, url: str) -> None:
        self.url = sa.make_url(normalise_url(url))

    @contextmanager
    def database(self, template: str | None = None) -> Iterator[str]:
        """Create a database, empty or as a copy; yield its URL; drop it at the end.

        Its files are copied, which is quicker both to make and to drop than a copy that is written to the log.
        """
        name = f"stepacc_test_{uuid.uuid4().hex}"
        self._execute(f"CREATE DATABASE {name} TEMPLATE {template or 'template1'} STRATEGY FILE_COPY")
        try:
            yield self.url.set(database=name).render_as_string(hide_password=False)
        finally:
            self._execute(f"DROP DATABASE {name} WITH (FORCE)")

    def _execute(self, statement: str) -> None:
        engine = sa.create_engine(self.url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
        with engine.connect() as connection:
            connection.execute(sa.text(statement))


@contextmanager
def opened(url: str) -> Iterator[sa.Engine]:
    """An engine of the plugin's own kind, disposed of at the end."""
    engine = connect_engine(url)
    try:
        yield engine
    finally:
        engine.dispose()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """The session's server."""
    if url := os.environ.get("STEPACC_TEST_DATABASE_URL"):
        yield Server(url)
        return
    with throwaway_postgres() as throwaway:
        yield Server(throwaway.url("postgres"))


@pytest.fixture
def open_home() -> Iterator[Path]:
    """A folder of stepacc that every user can enter, as the server's account must when root runs the tests."""
    with tempfile.TemporaryDirectory(prefix="stepacc-test-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def postgres_url(server: Server) -> Iterator[str]:
    """The URL of an empty database of the test's own."""
    with server.database() as url:
        yield url


@pytest.fixture
def engine(postgres_url: str) -> Iterator[sa.Engine]:
    """An engine over an empty database of the test's own."""
    with opened(postgres_url) as engine:
        yield engine


@pytest.fixture(scope="session")
def _migrated_template(server: Server) -> Iterator[str]:
    from stepacc_dagster.storage.schema import upgrade  # noqa: PLC0415 - most tests need no Alembic

    with server.database() as url:
        with opened(url) as engine:
            upgrade(engine)
        yield str(sa.make_url(url).database)


@pytest.fixture
def migrated_url(server: Server, _migrated_template: str) -> Iterator[str]:
    """The URL of a database of the test's own, which has the tables of stepacc."""
    with server.database(_migrated_template) as url:
        yield url


@pytest.fixture
def migrated_engine(migrated_url: str) -> Iterator[sa.Engine]:
    """An engine over a database of the test's own, which has the tables of stepacc."""
    with opened(migrated_url) as engine:
        yield engine


@pytest.fixture(scope="session")
def _dagster_template(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with server.database() as url:
        with local_instance(tmp_path_factory.mktemp("home"), url):
            pass
        yield str(sa.make_url(url).database)


@pytest.fixture
def dagster_storage(server: Server, _dagster_template: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A database of Dagster's own, which the environment names; no table has to be made in it."""
    with server.database(_dagster_template) as own:
        storage = sa.make_url(own).update_query_dict({"options": "-csearch_path=dagster"})
        storage = storage.set(drivername="postgresql+psycopg2")
        monkeypatch.setenv(DAGSTER_URL_VARIABLE, storage.render_as_string(hide_password=False))
        yield


@pytest.fixture
def dagster_instance(
    migrated_url: str,
    dagster_storage: None,  # noqa: ARG001 (where it keeps its runs)
    tmp_path: Path,
) -> Iterator[dg.DagsterInstance]:
    """A real local instance, empty, with `STEPACC_DATABASE_URL` naming the database of `migrated_url`.

    It keeps its connections, as it does for the commands.
    """
    with local_instance(tmp_path / "home", migrated_url) as instance, kept_connections(instance):
        yield instance
