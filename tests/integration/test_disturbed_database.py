"""Postgres without room or time: what is stored is whole, and once that is mended the same command does the rest.

The disk that fills up is a small file system of these tests. Where the machine lets nobody mount one, only a trigger
that raises the same error is left. The time limit is Postgres' own.
"""

import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sa

from stepacc_core import CanonicalPartition, Result, register
from stepacc_core.metrics import registry
from stepacc_core.metrics.step_accuracy import Config
from stepacc_dagster.database import URL_VARIABLE
from stepacc_dagster.definitions import load_sources
from stepacc_dagster.local.instance import local_instance
from stepacc_dagster.local.postgres import throwaway_postgres
from stepacc_dagster.local.server import LocalPostgres
from stepacc_dagster.sources import Source
from stepacc_dagster.storage.schema import upgrade
from tests.cli_access import Said, stepacc
from tests.integration.conftest import Server, opened
from tests.integration.disturbed_access import (
    Rows,
    assert_undisturbed,
    due,
    furnish,
    held_slots,
    undisturbed,
    unfinished,
)
from tests.integration.disturbed_processes import configure, own_metrics
from tests.integration.evaluation_access import open_workshop
from tests.integration.evaluation_samples import MONDAY, SOURCE, TUESDAY, WEDNESDAY
from tests.integration.gated_metric import PATIENT, Gated

RANGE = ("--from", MONDAY, "--to", WEDNESDAY)
TEMPORARY = "temporary tables"
FULL = "No space left on device"
LATE = "The database says: canceling statement due to statement timeout."
Hook = Callable[[CanonicalPartition], object]


class _Hooked(Gated):
    """The metric of these tests, which does something else before it scores."""

    def __init__(self) -> None:
        super().__init__(PATIENT, "patient")
        self.hook: Hook = lambda _: None

    def score(self, partition: CanonicalPartition, config: Config | None = None) -> Result:
        """Score an occurrence."""
        self.hook(partition)
        return super().score(partition, config)


@dataclass(frozen=True)
class Disk:
    """A file system with little room, which holds a tablespace."""

    filler: Path

    def fill(self) -> None:
        """Leave no room at all."""
        with self.filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"\0" * 4_096)
            except OSError:
                return

    def free(self) -> None:
        """Leave some room again."""
        self.filler.unlink(missing_ok=True)


def autocommit(engine: sa.Engine) -> sa.Connection:
    """Return a connection for statements that cannot be undone."""
    return engine.connect().execution_options(isolation_level="AUTOCOMMIT")


@dataclass(frozen=True)
class Place:
    """A source in a database of the test's own, which is worked on by commands in this process."""

    home: Path
    url: str
    engine: sa.Engine
    metric: _Hooked
    expected: Rows

    def execute(self, *statements: str) -> None:
        """Run statements, as somebody at the database might; what they set holds for new connections."""
        with autocommit(self.engine) as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)
        self.engine.dispose()

    def setting(self, value: str) -> None:
        """Set something for the whole database."""
        self.execute(f'ALTER DATABASE "{self.engine.url.database}" {value}')

    def put_on_small_disk(self, what: str) -> None:
        """Move a table there, in which few rows fill a page, or whatever temporary tables come to be."""
        if what == TEMPORARY:
            self.setting("SET temp_tablespaces = small")
        else:
            self.execute(f"ALTER TABLE stepacc.{what} SET TABLESPACE small, SET (fillfactor = 10)")

    def due(self) -> dict[str, str]:
        """Return the windows that are out of date, or whose last attempt failed, and why."""
        return {key: why for (_, key), why in due(self.engine, self.sources).items()}

    @property
    def sources(self) -> list[Source]:
        """The source."""
        return load_sources(self.home / "defs")

    def ends_well(self, *command: str, history: bool = True) -> None:
        """Run a command that is to do all that is left, and see that all is as though nothing had happened."""
        said = stepacc(*command)
        assert said.code == 0, said.err
        assert_undisturbed(self.engine, self.expected, SOURCE, history=history)
        assert self.due() == {}
        with local_instance(self.home, self.url) as instance:
            assert unfinished(instance) == held_slots(instance) == []


@pytest.fixture(scope="module")
def postgres() -> Iterator[LocalPostgres]:
    """A server of these tests' own."""
    with throwaway_postgres() as server:
        yield server


@pytest.fixture(scope="module")
def disk(postgres: LocalPostgres) -> Iterator[Disk]:
    """A small disk with a tablespace `small` of the server."""
    folder = postgres.folder / "small"
    folder.mkdir()
    owner = f"uid={postgres.account.uid},gid={postgres.account.gid}"
    mount = ["mount", "-t", "tmpfs", "-o", f"size=2m,mode=0700,{owner}", "stepacc-test", str(folder)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("this user may not mount a small file system")
    try:
        (folder / "space").mkdir(mode=0o700)
        postgres.account.give(folder / "space")
        with opened(postgres.url("postgres")) as engine, autocommit(engine) as connection:
            connection.exec_driver_sql(f"CREATE TABLESPACE small LOCATION '{folder / 'space'}'")
        yield Disk(folder / "filler")
    finally:
        postgres.stop("immediate")
        subprocess.run(["umount", str(folder)], check=True)  # noqa: S607 (found like any program)


@pytest.fixture(scope="module")
def expected(
    server: Server, _migrated_template: str, _dagster_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Rows:
    """The rows of an undisturbed run."""
    home = tmp_path_factory.mktemp("undisturbed")
    configure(home, SOURCE, PATIENT)
    with own_metrics(home), open_workshop(server, _migrated_template, _dagster_template) as workshop:
        return undisturbed(workshop, load_sources(home / "defs"))


@pytest.fixture
def place(
    postgres: LocalPostgres,
    expected: Rows,
    dagster_storage: None,  # noqa: ARG001 (where Dagster keeps its runs)
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Place]:
    """A furnished source of which nothing was ingested yet."""
    configure(tmp_path, SOURCE, PATIENT)
    with own_metrics(tmp_path), Server(postgres.url("postgres")).database() as url, opened(url) as engine:
        metric = _Hooked()
        registry._METRICS.pop((PATIENT, metric.manifest.version))
        register(metric)
        upgrade(engine)
        furnish(engine, SOURCE)
        monkeypatch.setenv(URL_VARIABLE, url)
        monkeypatch.setenv("STEPACC_HOME", str(tmp_path))
        yield Place(tmp_path, url, engine, metric, expected)


def windows(place: Place, table: str) -> list[str]:
    """Return the windows that a table has rows of."""
    with place.engine.connect() as connection:
        return list(connection.scalars(sa.text(f"SELECT DISTINCT window_key FROM stepacc.{table} ORDER BY 1")))  # noqa: S608


def refused(said: Said, sentence: str, *keys: str) -> None:
    """See that a command said of just these windows that they failed, in a sentence each."""
    assert said.code == 1
    assert "Traceback" not in said.err
    [line] = [line for line in said.err.splitlines() if " of 3 partitions failed" in line]
    assert f"{len(keys)} of 3 partitions failed, the others are stored." in line
    for key in keys:
        assert f"{key}: The database says: " in line
    assert line.count(sentence) == len(keys)


@pytest.mark.parametrize("what", [TEMPORARY, "scores"])
def test_a_disk_that_fills_up_while_scores_are_written_leaves_whole_windows_and_the_rest_is_done_once_there_is_room(
    place: Place, disk: Disk, what: str
) -> None:
    """In the middle of COPY, where temporary tables have no room, or in the middle of the INSERT after it."""
    place.put_on_small_disk(what)
    seen: list[str] = []

    def fill_on_tuesday(partition: CanonicalPartition) -> None:
        seen.append(partition.partition_id)
        if partition.partition_id == f"{SOURCE} {TUESDAY} bad":
            disk.fill()

    place.metric.hook = fill_on_tuesday
    try:
        refused(stepacc("materialize", *RANGE), FULL, TUESDAY, WEDNESDAY)
        assert seen.count(f"{SOURCE} {TUESDAY} bad") == 3  # it is tried again: room may come
        assert windows(place, "scores") == [MONDAY]
        assert set(place.due()) == {TUESDAY, WEDNESDAY}
    finally:
        disk.free()
    place.metric.hook = lambda _: None
    place.ends_well("materialize", *RANGE)


def test_room_that_is_made_in_time_costs_a_retry_only(place: Place, disk: Disk) -> None:
    place.put_on_small_disk(TEMPORARY)
    times: list[str] = []

    def fill_once(partition: CanonicalPartition) -> None:
        if partition.partition_id == f"{SOURCE} {TUESDAY} bad":
            times.append(partition.partition_id)
            (disk.fill if len(times) == 1 else disk.free)()

    place.metric.hook = fill_once
    try:
        place.ends_well("materialize", *RANGE)
    finally:
        disk.free()
    assert len(times) == 2


@pytest.mark.parametrize("what", [TEMPORARY, "spans"])
def test_a_full_disk_while_traces_are_ingested_leaves_whole_windows_and_the_rest_is_done_once_there_is_room(
    place: Place, disk: Disk, what: str
) -> None:
    assert stepacc("ingest", "--from", MONDAY, "--to", MONDAY).code == 0
    place.put_on_small_disk(what)
    disk.fill()
    failed = (MONDAY, TUESDAY, WEDNESDAY) if what == TEMPORARY else (TUESDAY, WEDNESDAY)
    try:
        refused(stepacc("ingest", *RANGE), FULL, *failed)
        assert windows(place, "traces") == [MONDAY]
        assert windows(place, "scores") == []
        assert set(place.due()) == {MONDAY, TUESDAY, WEDNESDAY}
    finally:
        disk.free()
    place.ends_well("backfill")


def test_an_error_that_says_that_the_disk_is_full_is_tried_again_and_costs_no_other_window(place: Place) -> None:
    """Raised by a trigger: also where no small disk can be mounted."""
    place.execute(
        "CREATE FUNCTION stepacc.full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF NEW.window_key = '{TUESDAY}' THEN RAISE EXCEPTION '{FULL}' USING ERRCODE = '53100'; END IF; "
        "RETURN NEW; END $$",
        "CREATE TRIGGER disk_full BEFORE INSERT ON stepacc.scores FOR EACH ROW EXECUTE FUNCTION stepacc.full()",
    )
    refused(stepacc("materialize", *RANGE), FULL, TUESDAY)
    assert windows(place, "scores") == [MONDAY, WEDNESDAY]
    place.execute("DROP TRIGGER disk_full ON stepacc.scores")
    place.ends_well("backfill")


def test_a_statement_beyond_postgres_time_limit_fails_its_window_which_is_not_tried_again_by_itself(
    place: Place,
) -> None:
    """COPY takes as long as the metric; trying again would take as long, and the limit is somebody's will."""
    place.setting("SET statement_timeout = '1s'")
    times: list[str] = []

    def slow_on_tuesday(partition: CanonicalPartition) -> None:
        if partition.partition_id == f"{SOURCE} {TUESDAY} bad":
            times.append(partition.partition_id)
            time.sleep(1.2)

    place.metric.hook = slow_on_tuesday
    refused(stepacc("materialize", *RANGE), LATE, TUESDAY)
    assert len(times) == 1
    assert windows(place, "scores") == [MONDAY, WEDNESDAY]
    assert place.due() == {TUESDAY: LATE}
    place.setting("RESET statement_timeout")
    place.ends_well("backfill", "--only", "failed")


def test_an_ingest_beyond_postgres_time_limit_fails_its_window_alone(place: Place) -> None:
    place.setting("SET statement_timeout = '1s'")
    place.execute(
        "CREATE FUNCTION stepacc.slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF NEW.window_key = '{TUESDAY}' THEN PERFORM pg_sleep(2); END IF; RETURN NEW; END $$",
        "CREATE TRIGGER slow BEFORE INSERT ON stepacc.traces FOR EACH ROW EXECUTE FUNCTION stepacc.slow()",
    )
    refused(stepacc("ingest", *RANGE), LATE, TUESDAY)
    assert windows(place, "traces") == [MONDAY, WEDNESDAY]
    place.execute("DROP TRIGGER slow ON stepacc.traces")
    place.ends_well("backfill")
