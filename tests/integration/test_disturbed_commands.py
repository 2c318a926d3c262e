"""Commands disturbed: killed, without their database, or twice at once; the same command again does what is left."""

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepacc_dagster.definitions import load_sources
from stepacc_dagster.local.postgres import throwaway_postgres
from stepacc_dagster.local.server import LocalPostgres
from tests.integration.conftest import Server
from tests.integration.disturbed_access import (
    Rows,
    assert_undisturbed,
    due,
    furnish,
    held_slots,
    undisturbed,
    unfinished,
)
from tests.integration.disturbed_processes import Stage, configure, open_stage, own_metrics, until
from tests.integration.evaluation_access import open_workshop
from tests.integration.evaluation_samples import MONDAY, TUESDAY, WEDNESDAY
from tests.integration.gated_metric import PATIENT
from tests.integration.test_cli_dev import needs_proc

pytestmark = [needs_proc, pytest.mark.slow, pytest.mark.timeout(600)]

SOURCES = KILLED, STOPPED, TWICE = "killed", "stopped", "twice"
POOL = "stepacc_patient_accuracy"
RANGE = ("--from", MONDAY, "--to", WEDNESDAY)


@pytest.fixture(scope="module")
def staged(server: Server, _migrated_template: str, _dagster_template: str) -> Iterator[tuple[Stage, Rows]]:
    """Sources of which nothing was ingested yet, a pool with one place, and the rows of an undisturbed run."""
    with tempfile.TemporaryDirectory(prefix="stepacc-test-") as folder:
        home = Path(folder)
        home.chmod(0o755)
        for name in SOURCES:
            configure(home, name, PATIENT, retry={"max_retries": 10, "delay_seconds": 0.1})
        with own_metrics(home), open_workshop(server, _migrated_template, _dagster_template) as workshop:
            expected = undisturbed(workshop, load_sources(home / "defs"))
        with throwaway_postgres() as postgres, open_stage(home, postgres) as stage:
            with stage.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.exec_driver_sql("ALTER SYSTEM SET synchronous_commit = on")  # as servers that matter have it
                connection.exec_driver_sql("SELECT pg_reload_conf()")
            stage.instance.event_log_storage.set_concurrency_slots(POOL, 1)
            furnish(stage.engine, *SOURCES)
            yield stage, expected


def gate(source: str) -> str:
    """Return the trace of the second of three days at which a run of a source is held up."""
    return f"{source} {TUESDAY} good"


def done(stage: Stage, *arguments: str) -> str:
    """Run a command that is to succeed; return what it said."""
    with stage.command(*arguments) as process:
        out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    return out + err


def kill_and_start(server: LocalPostgres) -> None:
    """Kill the first process of a server, with which all others end, and start it as whoever watches over it would."""
    os.kill(int((server.data / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
    for left in server.folder.glob(".s.PGSQL.*.lock"):
        left.unlink()
    server.start()


def settled(stage: Stage, expected: Rows, source: str) -> None:
    """See that the rows of a source are those of an undisturbed run, and that nothing is left over."""
    assert_undisturbed(stage.engine, expected, source)
    assert not due(stage.engine, [each for each in stage.sources if each.name == source])
    assert unfinished(stage.instance) == []
    assert held_slots(stage.instance) == []


def test_a_command_killed_in_the_middle_of_a_partition_is_run_again_and_does_the_rest(
    staged: tuple[Stage, Rows],
) -> None:
    """What it had done stays, and is not done again; its run is ended and its place in the pool is free."""
    stage, expected = staged
    stage.gates.close(gate(KILLED))
    with stage.command("materialize", "--source", KILLED, *RANGE) as process:
        assert stage.gates.reached(gate(KILLED)) == process.pid
        process.kill()
        process.wait(30)
    stage.gates.open(gate(KILLED))
    assert unfinished(stage.instance)
    assert held_slots(stage.instance)
    stored = "SELECT partition_id, confirmed_at FROM stepacc.scores WHERE source = :source AND window_key = :key"
    before = stage.rows(stored, source=KILLED, key=MONDAY)
    assert before
    assert not stage.rows(stored, source=KILLED, key=TUESDAY)

    said = done(stage, "backfill", "--source", KILLED, "--how", "here")
    assert "2 partitions of" in said
    assert stage.rows(stored, source=KILLED, key=MONDAY) == before
    settled(stage, expected, KILLED)


def test_postgres_killed_in_the_middle_of_copy_and_started_again_costs_a_command_a_retry(
    staged: tuple[Stage, Rows],
) -> None:
    """The whole server, which has the tables of Dagster too."""
    stage, expected = staged
    stage.gates.close(gate(STOPPED))
    with stage.command("materialize", "--source", STOPPED, *RANGE) as process:
        stage.gates.reached(gate(STOPPED))
        assert stage.rows("""SELECT 1 FROM pg_stat_activity WHERE query LIKE 'COPY "staged_scores"%'""") == [(1,)]
        stage.crash(lambda: kill_and_start(stage.server))
        stage.gates.open(gate(STOPPED))
        _, said = process.communicate(timeout=200)
    assert process.returncode == 0, said
    settled(stage, expected, STOPPED)


def test_two_backfills_of_one_range_at_once_leave_each_row_once(staged: tuple[Stage, Rows]) -> None:
    stage, expected = staged
    stage.instance.event_log_storage.set_concurrency_slots(POOL, 2)
    stage.gates.close(gate(TWICE))
    command = ("backfill", "--source", TWICE, "--only", "all", "--how", "here", *RANGE)
    with stage.command(*command) as one, stage.command(*command) as another:
        stage.gates.reached(gate(TWICE))
        waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        until(lambda: stage.rows(waits)[0][0], "the other one waits for its turn")
        stage.gates.open(gate(TWICE))
        for process in (one, another):
            _, said = process.communicate(timeout=200)
            assert process.returncode == 0, said
    settled(stage, expected, TWICE)
