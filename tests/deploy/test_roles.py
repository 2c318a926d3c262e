"""The roles of `deploy/postgres`: every command works under the one it should, and none can do more than its part."""

import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from stepacc_dagster.database import DAGSTER_URL_VARIABLE, URL_VARIABLE
from stepacc_dagster.local.postgres import throwaway_postgres
from tests.cli_access import RECORDED, RECORDED_STEPS, Said, stepacc
from tests.integration.packaging_access import REPOSITORY

pytestmark = pytest.mark.slow

SQL = REPOSITORY / "deploy" / "postgres"
DOC = (REPOSITORY / "docs" / "deploy.md").read_text("utf-8")
HARDENED, TRACES, GRANTED = re.findall(r"^```sql\n(.*?)^```$", DOC, flags=re.MULTILINE | re.DOTALL)[:3]
"""Statements of the page on deployment: what else may be taken away, a trace store of one's own, and what it grants."""
TRACES_URL = "EVALS_TRACES_URL"
DAY, FOREIGN_DAY = "2026-11-30", "2026-10-05"
"""The days of the recorded trace, and of the one in the table of somebody else."""
EXPECTED = [
    {
        "source": source,
        "annotations": [{"target": {"type": "trace", "id": trace}, "expected_steps": steps}],
    }
    for source, trace, steps in (
        ("landed", "900d66f3b6dd0c31902e0c73ce3b4bbe", RECORDED_STEPS),
        ("foreign", "a1", ["search", "answer"]),
    )
]
USERS = "evals_worker", "evals_viewer", "evals_traces", "evals_dagster"
"""All but the one who migrates."""
_ROWS = """
    INSERT INTO agents.spans VALUES
    ('a1', '1', NULL, 'agent', '2026-10-05 10:00+00', '2026-10-05 10:01+00', '{"openinference.span.kind": "CHAIN"}'),
    ('a1', '2', '1', 'search', '2026-10-05 10:00:01+00', '2026-10-05 10:00:02+00',
        '{"openinference.span.kind": "TOOL", "tool.name": "search"}'),
    ('a1', '3', '1', 'answer', '2026-10-05 10:00:03+00', '2026-10-05 10:00:04+00',
        '{"openinference.span.kind": "TOOL", "tool.name": "answer"}')
"""
_TABLES = "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname = ANY('{stepacc,agents}')"


@dataclass(frozen=True)
class Site:
    """A database with the roles, and the logins into it."""

    url: sa.URL
    home: Path

    def login(self, user: str, driver: str = "postgresql+psycopg") -> str:
        """Return the URL of a user."""
        return self.url.set(username=user, drivername=driver).render_as_string(hide_password=False)

    @contextmanager
    def connected(self, user: str) -> Iterator["psycopg.Connection[tuple[object, ...]]"]:
        """Connect as a user."""
        with psycopg.connect(self.login(user, "postgresql"), autocommit=True) as connection:
            yield connection

    def execute(self, user: str, statement: str) -> list[tuple[object, ...]]:
        """Run statements as a user; return the rows of the last."""
        with self.connected(user) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []


def table_source(home: Path) -> None:
    """Write the settings of two sources: one of landed spans, one of a table of somebody else."""
    columns = {"trace_id": "trace_id", "span_id": "span_id", "name": "name", "start_time": "started_at"}
    more = {"parent_span_id": "parent_id", "end_time": "ended_at", "attributes": "attributes", "arrival": "written_at"}
    store = {"kind": "table", "schema": "agents", "table": "spans", "columns": columns | more}
    own: dict[str, object] = {"store": store, "store_url_env": TRACES_URL, "start_date": FOREIGN_DAY}
    sources: dict[str, dict[str, object]] = {"landed": {"start_date": DAY}, "foreign": own}
    for name, settings in sources.items():
        folder = home / "defs" / name
        folder.mkdir(parents=True)
        document = {"type": "stepacc_dagster.StepAccuracyComponent", "attributes": {"source": name, **settings}}
        (folder / "defs.yaml").write_text(json.dumps(document))


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A server of its own, since roles are of the whole server, with nothing in it but roles and a trace store."""
    with tempfile.TemporaryDirectory(prefix="stepacc-test-") as folder, throwaway_postgres() as server:
        made = Site(sa.make_url(server.url("postgres")), Path(folder))
        for _ in range(2):
            made.execute("postgres", (SQL / "roles.sql").read_text())
        made.execute("postgres", (SQL / "logins.sql").read_text())
        made.execute("postgres", HARDENED)
        made.execute("postgres", TRACES)
        made.execute("postgres", GRANTED)
        made.execute("postgres", _ROWS)
        table_source(made.home)
        yield made


@pytest.fixture
def run(site: Site, monkeypatch: pytest.MonkeyPatch) -> "Commands":
    """Commands of the site, under the login of the worker unless another is named."""
    monkeypatch.setenv("STEPACC_HOME", str(site.home))
    monkeypatch.setenv(DAGSTER_URL_VARIABLE, site.login("evals_dagster", "postgresql"))
    monkeypatch.setenv(TRACES_URL, site.login("evals_traces"))
    return Commands(site, monkeypatch)


@dataclass(frozen=True)
class Commands:
    """Runs commands as users of the database."""

    site: Site
    patch: pytest.MonkeyPatch

    def __call__(self, *arguments: str | Path, user: str = "evals_worker") -> Said:
        """Run a command that is to succeed."""
        self.patch.setenv(URL_VARIABLE, self.site.login(user))
        said = stepacc(*arguments)
        assert said.code == 0, said.err
        return said


def test_each_command_works_under_the_role_that_it_should(run: Commands) -> None:
    site = run.site
    run("db", "upgrade", user="evals_migrator")
    owners = "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'stepacc'"
    assert site.execute("postgres", owners) == [("stepacc_owner",)]

    run("import", "traces", "--source", "landed", RECORDED)
    for place, expected in enumerate(EXPECTED):
        path = site.home / f"expected_{place}.json"
        path.write_text(json.dumps(expected))
        run("annotations", "import", path)
    for source, day in (("landed", DAY), ("foreign", FOREIGN_DAY)):
        run("ingest", "--source", source, "--from", day, "--to", day)
        run("materialize", "--source", source, "--from", day, "--to", day)
        for user in ("evals_worker", "evals_viewer"):
            [row] = run("scores", "--source", source, "--json", user=user).rows
            assert (row["status"], row["score"]) == ("scored", 1.0)
    assert site.execute("postgres", "SELECT count(*) > 0 FROM pg_tables WHERE schemaname = 'dagster'") == [(True,)]
    run("erase", "--source", "landed", "--trace", "900d66f3b6dd0c31902e0c73ce3b4bbe", "--yes")


def test_none_can_do_more_than_its_part(run: Commands) -> None:
    """Every table of `stepacc` and the trace store is tried."""
    site = run.site
    run("db", "upgrade", user="evals_migrator")
    tables = [str(name) for (name,) in site.execute("postgres", _TABLES)]
    assert len(tables) > 10
    for table in tables:
        foreign = table.startswith("agents.")
        outsiders = ["evals_dagster", *(("evals_worker", "evals_viewer") if foreign else ("evals_traces",))]
        for user in outsiders:
            refused(site, user, f"SELECT FROM {table}")
        for user in {*outsiders, "evals_viewer", "evals_traces"}:
            refused(site, user, f"DELETE FROM {table}")  # noqa: S608 (a table's name)
        for user in USERS:
            for statement in (f"DROP TABLE {table}", f"TRUNCATE {table}", f"ALTER TABLE {table} ADD mine int"):
                refused(site, user, statement)
    for user in USERS:
        for statement in ("CREATE TABLE stepacc.mine ()", "DROP SCHEMA stepacc CASCADE", "CREATE SCHEMA mine"):
            refused(site, user, statement)


def refused(site: Site, user: str, statement: str) -> None:
    """See that Postgres refuses a statement of a user for want of a right."""
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        site.execute(user, statement)
