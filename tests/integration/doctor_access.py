"""What the tests of `stepacc doctor` do: run it as a user does, and put an instance into a state."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import sqlalchemy as sa
from dagster._core.code_pointer import ModuleCodePointer
from dagster._core.origin import JobPythonOrigin, RepositoryPythonOrigin
from dagster._core.remote_origin import (
    RegisteredCodeLocationOrigin,
    RemoteInstigatorOrigin,
    RemoteJobOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    InstigatorType,
    SensorInstigatorData,
    TickData,
    TickStatus,
)
from dagster._daemon.types import DaemonHeartbeat
from dagster_shared.error import SerializableErrorInfo

from tests.cli_access import Said, stepacc
from tests.integration.evaluation_samples import SOURCE, START

REPOSITORY = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("stepacc"), "__repository__")
SENSOR = f"{SOURCE}_changes"
_PASSWORD = "pa55-w0rd"  # noqa: S105 (of a user that lives as long as a test)


@dataclass(frozen=True)
class Found:
    """One finding, with what it is about."""

    about: str
    level: str
    what: str
    what_to_do: str | None


@dataclass(frozen=True)
class Examined:
    """What `stepacc doctor` found."""

    said: Said

    @property
    def findings(self) -> list[Found]:
        """All findings, in order."""
        return [Found(**row) for row in self.said.rows]

    def bad(self, *levels: str) -> list[str]:
        """What is of these levels, or, where none is named, a warning or an error."""
        return [each.what for each in self.findings if each.level in (levels or ("warning", "error"))]

    def one(self, fragment: str, about: str = "") -> Found:
        """Return the one finding that says so, about something whose name begins so."""
        found = [each for each in self.findings if fragment in each.what and each.about.startswith(about)]
        assert len(found) == 1, "\n".join(f"{each.about}: {each.level}: {each.what}" for each in self.findings)
        return found[0]

    def says(self, fragment: str) -> bool:
        """Whether any finding says so."""
        return any(fragment in each.what for each in self.findings)


def doctor(*arguments: str) -> Examined:
    """Run the command, and see that its exit code is that of what it found."""
    said = stepacc("doctor", "--json", *arguments)
    found = Examined(said)
    assert "Traceback" not in said.err
    assert said.code == int(bool(found.bad("error")) or ("--strict" in arguments and bool(found.bad())))
    return found


def describe(home: Path, name: str = SOURCE, folder: str | None = None, **attributes: Any) -> Path:
    """Write the `defs.yaml` of a source, whose values are given as YAML; return its path."""
    path = home / "defs" / (folder or name) / "defs.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    values = {"source": name, "start_date": f"'{START}'", **attributes}
    lines = "".join(f"  {key}: {value}\n" for key, value in values.items())
    path.write_text(f"type: stepacc_dagster.StepAccuracyComponent\nattributes:\n{lines}")
    return path


def beat(instance: dg.DagsterInstance, ago: float = 0, *, part: str | None = None, error: str | None = None) -> None:
    """Give signs of life of the daemon, or of one part of it, as it does by itself."""
    errors = [SerializableErrorInfo(f"ValueError: {error}\n", [], "ValueError")] if error else None
    for name in [part] if part else instance.get_required_daemon_types():
        instance.add_daemon_heartbeat(DaemonHeartbeat(time.time() - ago, name, None, errors))


def queued(instance: dg.DagsterInstance, job: dg.JobDefinition, tags: dict[str, str]) -> dg.DagsterRun:
    """Put a run into the queue, as the webserver does."""
    origin = RemoteJobOrigin(repository_origin=REPOSITORY, job_name=job.name)
    pointer = ModuleCodePointer("stepacc_dagster.definitions", "defs", working_directory=None)
    code = JobPythonOrigin(job.name, RepositoryPythonOrigin(sys.executable, pointer))
    status = dg.DagsterRunStatus.QUEUED
    return instance.create_run_for_job(job, tags=tags, status=status, remote_job_origin=origin, job_code_origin=code)


def switch(instance: dg.DagsterInstance, status: InstigatorStatus, name: str = SENSOR) -> InstigatorState:
    """Switch a sensor, as the UI does."""
    origin = RemoteInstigatorOrigin(repository_origin=REPOSITORY, instigator_name=name)
    state = InstigatorState(origin, InstigatorType.SENSOR, status, SensorInstigatorData(min_interval=30))
    known = instance.get_instigator_state(state.instigator_origin_id, state.selector_id)
    return instance.update_instigator_state(state) if known else instance.add_instigator_state(state)


def tick(instance: dg.DagsterInstance, state: InstigatorState, ago: float = 5, error: str | None = None) -> None:
    """Keep a tick of a sensor, as the daemon does; a failed one as it is wrapped there."""
    cause = SerializableErrorInfo(f"stepacc_dagster.errors.UnreachableError: {error}\n", [], "UnreachableError")
    wrapped = SerializableErrorInfo("dagster._core.errors.SensorExecutionError: Error occurred\n", [], "E", cause)
    instance.create_tick(
        TickData(
            state.instigator_origin_id,
            state.instigator_name,
            InstigatorType.SENSOR,
            TickStatus.FAILURE if error else TickStatus.SKIPPED,
            time.time() - ago,
            error=wrapped if error else None,
            selector_id=state.selector_id,
        )
    )


def snapshot(*engines: sa.Engine, folder: Path) -> list[str]:
    """Return every row of every table, and every file of a folder with its content."""
    rows: list[str] = []
    for engine in engines:
        with engine.connect() as connection:
            tables = connection.execute(
                sa.text(
                    "SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) FROM pg_tables "
                    "WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1"
                )
            ).scalars()
            for table in list(tables):
                found = connection.execute(sa.text(f"SELECT ctid::text, t::text FROM {table} t ORDER BY 1"))  # noqa: S608
                rows += [f"{table} {place} {row}" for place, row in found]
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return [*rows, *(f"{path} {path.read_bytes()!r}" for path in files)]


@contextmanager
def role(url: str, *grants: str) -> Iterator[str]:
    """Create a user with rights, each as `SELECT ON TABLE stepacc.traces`; yield the URL by which it connects."""
    parsed = sa.make_url(url)
    name = f"r_{parsed.database}"
    admin = sa.create_engine(parsed, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with admin.connect() as connection:
        connection.exec_driver_sql(f"CREATE ROLE {name} LOGIN PASSWORD '{_PASSWORD}'")
        try:
            for grant in grants:
                connection.exec_driver_sql(f"GRANT {grant} TO {name}")
            yield parsed.set(username=name, password=_PASSWORD).render_as_string(hide_password=False)
        finally:
            connection.exec_driver_sql(f"DROP OWNED BY {name}")
            connection.exec_driver_sql(f"DROP ROLE {name}")
    admin.dispose()
