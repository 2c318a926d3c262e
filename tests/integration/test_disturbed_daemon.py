"""`stepacc dev` disturbed: the scores end as those of an undisturbed run, and no run, slot or process is left over.

First the daemon is killed with all that it started, in the middle of a backfill and of a look of a sensor, and
`stepacc dev` is started again. All else is done to this second one: what heals there, the daemon heals.
"""

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import pytest
import sqlalchemy as sa

from stepacc_dagster.automation import RANGE_END, RANGE_START
from stepacc_dagster.definitions import load_sources
from stepacc_dagster.local.dead_runs import process_tags
from stepacc_dagster.storage.locks import lock
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
from tests.integration.disturbed_processes import Dev, Stage, configure, open_stage, own_metrics, until
from tests.integration.evaluation_access import open_workshop
from tests.integration.evaluation_samples import MONDAY, TUESDAY, WEDNESDAY
from tests.integration.gated_metric import HASTY, PATIENT
from tests.integration.test_cli_dev import needs_proc

pytestmark = [needs_proc, pytest.mark.slow, pytest.mark.timeout(900)]

BACKFILLED, LAUNCHED, KILLED, LATE, CUT_OFF = "backfilled", "launched", "killed", "late", "cut_off"
"""Sources, named for what becomes of a run of theirs; the sensor follows all but the first."""
_TICK = 7_701
"""The number of an advisory lock of these tests."""
# A look has launched its run, and is about to save that it did.
_HOLD_LOOK = (
    f"""
    CREATE FUNCTION dagster.hold_look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF EXISTS (SELECT 1 FROM dagster.run_tags WHERE key = 'stepacc/source' AND value = '{LAUNCHED}') THEN
            PERFORM pg_advisory_xact_lock({_TICK});
        END IF;
        RETURN NEW;
    END $$
    """,  # noqa: S608 (names of this module)
    """
    CREATE TRIGGER hold_look BEFORE UPDATE ON dagster.job_ticks FOR EACH ROW EXECUTE FUNCTION dagster.hold_look()
    """,
)
# What stays wrong with one window, so that its part of a backfill fails however often it is tried.
_REFUSE = (
    f"""
    CREATE FUNCTION stepacc.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.source = '{BACKFILLED}' AND NEW.window_key = '{WEDNESDAY}' THEN
            RAISE EXCEPTION 'refused' USING ERRCODE = '23514';
        END IF;
        RETURN NEW;
    END $$
    """,
    "CREATE TRIGGER refuse BEFORE INSERT ON stepacc.scores FOR EACH ROW EXECUTE FUNCTION stepacc.refuse()",
)
_WAITERS = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = :number"
_COPYING = """SELECT pid FROM pg_stat_activity WHERE query LIKE 'COPY "staged_scores"%'"""
_FROM_FAILURE = """mutation ($id: String!) {
    reexecutePartitionBackfill(reexecutionParams: {parentRunId: $id, strategy: FROM_FAILURE}) {
        __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message }
    }
}"""


def gate(source: str) -> str:
    """Return the trace of the second of three days at which a run of a source is held up."""
    return f"{source} {TUESDAY} good"


@dataclass
class Scene:
    """A stage on which the daemon was killed once and `stepacc dev` runs again."""

    stage: Stage
    expected: Rows
    dev: Dev
    backfill: "subprocess.Popen[str]"
    held_up: sa.Connection
    killed: "Killed"

    def runs(self, source: str) -> list[dg.DagsterRun]:
        """Return the runs of a source, the newest first."""
        return list(self.stage.instance.get_runs(dg.RunsFilter(tags={"stepacc/source": source})))

    def failed(self, source: str) -> list[dg.DagsterRun]:
        """Return the runs of a source that failed."""
        return [run for run in self.runs(source) if run.status is dg.DagsterRunStatus.FAILURE]

    def heals(self, source: str) -> None:
        """Wait until all is well with a source, and see that it is as though nothing had happened."""
        sources = [each for each in self.stage.sources if each.name == source]
        until(lambda: not due(self.stage.engine, sources), f"{source} is up to date")
        until(lambda: all(run.is_finished for run in self.runs(source)), f"no run of {source} goes on")
        assert_undisturbed(self.stage.engine, self.expected, source)


@dataclass(frozen=True)
class Killed:
    """What was seen when the daemon had just been killed, and `stepacc dev` had ended by that."""

    code: int
    said: str
    unfinished: list[str]
    slots: list[str]
    windows: list[str]


@pytest.fixture(scope="module")
def scene(server: Server, _migrated_template: str, _dagster_template: str) -> Iterator[Scene]:
    """Kill the daemon in the middle of a backfill and of a look, and start `stepacc dev` again."""
    with tempfile.TemporaryDirectory(prefix="stepacc-test-") as folder, ExitStack() as stack:
        home = Path(folder)
        home.chmod(0o755)
        for name in (BACKFILLED, LAUNCHED, KILLED, LATE, CUT_OFF):
            follow = {"enabled": False} if name == BACKFILLED else {"interval_seconds": 1}
            configure(home, name, HASTY if name == LATE else PATIENT, follow=follow)
        with own_metrics(home), open_workshop(server, _migrated_template, _dagster_template) as workshop:
            expected = undisturbed(workshop, load_sources(home / "defs"))
        stage = stack.enter_context(open_stage(home))
        for statement in (*_HOLD_LOOK, *_REFUSE):
            stage.execute(statement)
        furnish(stage.engine, BACKFILLED, LAUNCHED)
        for name in (BACKFILLED, LAUNCHED):
            stage.gates.close(gate(name))
        command = ("backfill", "--source", BACKFILLED, "--how", "daemon")
        backfill = stack.enter_context(stage.command(*command))
        until(stage.instance.get_backfills, "a backfill is asked for")
        killed = _kill_the_daemon(stage)
        for name in (BACKFILLED, LAUNCHED):
            stage.gates.open(gate(name))
        stage.execute("DROP TRIGGER hold_look ON dagster.job_ticks")

        stage.gates.close(gate(KILLED))
        held_up = stack.enter_context(stage.engine.connect())
        lock(held_up, "ingest", LATE, MONDAY)
        furnish(stage.engine, KILLED, LATE)
        dev = stack.enter_context(stage.dev())
        yield Scene(stage, expected, dev, backfill, held_up, killed)


def _kill_the_daemon(stage: Stage) -> Killed:
    with stage.engine.connect() as holder, stage.dev() as dev:
        holder.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_TICK})")
        for name in (BACKFILLED, LAUNCHED):
            stage.gates.reached(gate(name))
        until(lambda: stage.rows(_WAITERS, number=_TICK)[0][0], "a look is about to save what it launched")
        [daemon] = stage.processes("dagster._daemon")
        os.killpg(daemon, signal.SIGKILL)
        code = dev.process.wait(60)
    scored = [key for (key,) in stage.rows("SELECT DISTINCT window_key FROM stepacc.scores")]
    return Killed(code, dev.log.read_text(), unfinished(stage.instance), held_slots(stage.instance), scored)


def test_a_killed_daemon_ends_the_command_and_its_runs_are_ended_when_it_is_started_again(scene: Scene) -> None:
    killed, [first, *_] = scene.killed, scene.runs(BACKFILLED)[::-1]
    assert killed.code == 1
    assert killed.said.splitlines()[-1].startswith("Error: A Dagster process ended by itself with exit code -9")
    assert f"{first.run_id} STARTED" in killed.unfinished
    assert first.run_id in killed.slots
    assert killed.windows == [MONDAY]  # what was done before stays
    assert "killed, which is noted as failed" in scene.dev.log.read_text()
    ended = scene.stage.instance.get_run_by_id(first.run_id)
    assert ended is not None
    assert ended.status is dg.DagsterRunStatus.FAILURE
    assert first.run_id not in held_slots(scene.stage.instance)


def test_a_run_that_takes_too_long_is_ended_with_its_process_and_another_one_does_the_rest(scene: Scene) -> None:
    """It waits for somebody who holds a window and does not go on; nobody ends it but its time limit."""
    late = until(lambda: scene.failed(LATE), "the run has failed")[-1]
    [said] = scene.stage.instance.all_logs(late.run_id, of_type=dg.DagsterEventType.RUN_FAILURE)
    assert "Exceeded maximum runtime of 9 seconds" in said.message
    [tag] = process_tags()
    process = Path("/proc", late.tags[tag].split()[1])
    until(lambda: not process.exists(), "its process has ended")
    scene.held_up.rollback()
    scene.heals(LATE)


def test_a_run_worker_killed_in_the_middle_of_a_partition_costs_time_only(scene: Scene) -> None:
    """The partitions before it stay; the rest is done by another run, for which nobody has to ask."""
    worker = scene.stage.gates.reached(gate(KILLED))
    scored = "SELECT DISTINCT window_key FROM stepacc.scores WHERE source = :source"
    assert scene.stage.rows(scored, source=KILLED) == [(MONDAY,)]
    os.kill(worker, signal.SIGKILL)
    scene.stage.gates.open(gate(KILLED))
    until(lambda: scene.failed(KILLED), "the run of the killed worker has failed")
    assert scene.stage.rows(scored, source=KILLED)[0] == (MONDAY,)
    scene.heals(KILLED)


def test_a_look_that_died_after_launching_and_before_saving_costs_nothing(scene: Scene) -> None:
    """What it launched is not launched again, and goes on or is done again."""
    scene.heals(LAUNCHED)
    launched = [run.tags["dagster/run_key"] for run in scene.runs(LAUNCHED) if run.parent_run_id is None]
    assert len(launched) == len(set(launched))


def test_postgres_killed_in_the_middle_of_copy_costs_a_retry_only(scene: Scene) -> None:
    """One of its processes, as by the system when memory is short: then Postgres ends all, and recovers."""
    scene.stage.gates.close(gate(CUT_OFF))
    furnish(scene.stage.engine, CUT_OFF)
    scene.stage.gates.reached(gate(CUT_OFF))
    [(backend,)] = scene.stage.rows(_COPYING)
    scene.stage.crash(lambda: os.kill(backend, signal.SIGKILL))
    scene.stage.gates.open(gate(CUT_OFF))
    scene.heals(CUT_OFF)
    assert scene.dev.process.poll() is None


def test_a_backfill_whose_daemon_was_killed_comes_to_its_end_and_from_failure_takes_what_failed(scene: Scene) -> None:
    """One of its windows is refused by the database for good; the command that asked for it says which."""
    _, said = scene.backfill.communicate(timeout=120)
    assert scene.backfill.returncode == 1
    assert f"{WEDNESDAY} failed: The database says: refused." in said
    [backfill] = scene.stage.instance.get_backfills()
    assert backfill.status.value == "COMPLETED_FAILED"
    [source] = [each for each in scene.stage.sources if each.name == BACKFILLED]
    assert set(due(scene.stage.engine, [source])) == {(BACKFILLED, WEDNESDAY)}

    scene.stage.execute("DROP TRIGGER refuse ON stepacc.scores")
    before = {run.run_id for run in scene.runs(BACKFILLED)}
    answer = scene.dev.ask(_FROM_FAILURE, id=backfill.backfill_id)["reexecutePartitionBackfill"]
    assert answer["__typename"] == "LaunchBackfillSuccess", answer
    scene.heals(BACKFILLED)
    [again] = [run for run in scene.runs(BACKFILLED) if run.run_id not in before and _scores(run)]
    single = again.tags.get("dagster/partition")
    assert (again.tags.get(RANGE_START, single), again.tags.get(RANGE_END, single)) == (WEDNESDAY, WEDNESDAY)
    assert {key.path[-1] for key in again.asset_selection or ()} - {"task_summaries"} == {
        "patient_accuracy_scores",
        "patient_accuracy_metadata",
    }


def _scores(run: dg.DagsterRun) -> bool:
    """Tell whether a run scores, and does not just summarise."""
    return any(key.path[-1].endswith("_scores") for key in run.asset_selection or ())


def test_nothing_is_left_over(scene: Scene) -> None:
    instance = scene.stage.instance
    until(lambda: not unfinished(instance), "every run has ended")
    until(lambda: not held_slots(instance), "no run holds a slot")
    assert not due(scene.stage.engine, scene.stage.sources)
    scene.dev.process.send_signal(signal.SIGTERM)
    assert scene.dev.process.wait(60) == 0
    assert scene.stage.processes("") == []
