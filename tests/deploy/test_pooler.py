"""PgBouncer in transaction mode before the database of stepacc: all but Dagster's own storage goes through it."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sa

from stepacc_dagster.database import DAGSTER_URL_VARIABLE, URL_VARIABLE
from stepacc_dagster.local.instance import local_instance
from stepacc_dagster.storage.schema import head_revision, upgrade
from tests.deploy.servers import needs, running_pgbouncer
from tests.integration.conftest import Server, opened
from tests.integration.disturbed_access import Rows, rows
from tests.integration.evaluation_access import Workshop, open_workshop
from tests.integration.evaluation_samples import DAYS, agent_trace, chain_trace
from tests.integration.packaging_access import REPOSITORY

pytestmark = [needs("pgbouncer", "pgbouncer"), pytest.mark.slow, pytest.mark.long]

SETTINGS = REPOSITORY / "deploy" / "postgres" / "pgbouncer.ini"
WINDOWS = DAYS[:8]
"""More than psycopg sends a statement before it would prepare it."""


@dataclass(frozen=True)
class Pooled:
    """A workshop whose connections to the database of stepacc go through the pooler."""

    url: str
    workshop: Workshop
    direct: sa.Engine
    expected: Rows


def work(workshop: Workshop) -> None:
    """Land, annotate, ingest and score a few days, and score them again."""
    workshop.annotate("task", "refund", ["search", "answer"])
    for place, key in enumerate(WINDOWS):
        tools = ("search", "answer", "fetch")[: place % 3 + 1]
        session = f"talk {place // 2}"
        workshop.land(agent_trace(f"{key} trace", key, *tools, task="refund", session=session), chain_trace(key, key))
    for _ in range(2):
        run = workshop.run(*WINDOWS, partition_types={"trace": "fail", "session": "skip"})
        assert run.success, run.error


@pytest.fixture(scope="module")
def pooled(server: Server, _migrated_template: str, _dagster_template: str) -> Iterator[Pooled]:
    """An empty database behind a pooler that has just enough connections to it for one step."""
    with tempfile.TemporaryDirectory(prefix="stepacc-test-") as folder, ExitStack() as stack:
        home = Path(folder)
        home.chmod(0o755)
        (home / "pgbouncer").mkdir()
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        with open_workshop(server, _migrated_template, _dagster_template) as workshop:
            work(workshop)
            expected = rows(workshop.engine)
        behind = stack.enter_context(server.database())
        url = stack.enter_context(
            running_pgbouncer(home / "pgbouncer", behind, SETTINGS.read_text(), default_pool_size=3)
        )
        storage = sa.make_url(stack.enter_context(server.database(_dagster_template)))
        storage = storage.set(drivername="postgresql+psycopg2").update_query_dict({"options": "-csearch_path=dagster"})
        patch.setenv(DAGSTER_URL_VARIABLE, storage.render_as_string(hide_password=False))
        engine = stack.enter_context(opened(url))
        instance = stack.enter_context(local_instance(home, url))
        yield Pooled(url, Workshop(instance, engine), stack.enter_context(opened(behind)), expected)


def test_migrations_and_scoring_through_a_pooler_leave_the_same_rows(
    pooled: Pooled, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert upgrade(pooled.workshop.engine) == head_revision()
    monkeypatch.setenv(URL_VARIABLE, pooled.url)
    work(pooled.workshop)
    assert rows(pooled.direct) == pooled.expected
