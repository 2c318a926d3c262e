"""A command or a run's process that was killed blocks no later run: its run is ended and its pool slot freed."""

import subprocess
import sys

import dagster as dg
import pytest
import sqlalchemy as sa

from stepacc_dagster.local.dead_runs import end_dead_runs, is_dead, process_tags
from stepacc_dagster.local.executor import noted_in_process_executor
from tests.integration.evaluation_access import Workshop
from tests.integration.evaluation_samples import MONDAY, agent_trace

POOL = "stepacc_step_accuracy"
_SAY_TAGS = "from stepacc_dagster.local.dead_runs import process_tags; print(*process_tags().values(), end='')"


@dg.op
def _noted_process(context: dg.OpExecutionContext) -> None:
    """Say what is noted with the run."""
    noted = context.instance.get_run_by_id(context.run_id)
    assert noted is not None
    [(name, value)] = process_tags(context.run_id).items()
    assert noted.tags[name] == value


@dg.job(executor_def=noted_in_process_executor)
def _noted() -> None:
    """A job of one step."""
    _noted_process()


@pytest.fixture
def workshop(dagster_instance: dg.DagsterInstance, migrated_engine: sa.Engine) -> Workshop:
    """A workshop with one trace."""
    workshop = Workshop(dagster_instance, migrated_engine)
    workshop.land(agent_trace("t", MONDAY, "search"))
    return workshop


def _started_run(workshop: Workshop, tag: str) -> dg.DagsterRun:
    """A run that has begun and holds the only slot of the pool."""
    job = workshop.evaluation()._job
    (name,) = process_tags()
    run = workshop.instance.create_run_for_job(job, tags={name: tag}, status=dg.DagsterRunStatus.STARTED)
    storage = workshop.instance.event_log_storage
    storage.set_concurrency_slots(POOL, 1)
    assert storage.claim_concurrency_slot(POOL, run.run_id, "step").is_claimed
    return run


def test_the_run_of_a_killed_command_is_ended_and_the_next_one_gets_its_slot(workshop: Workshop) -> None:
    dead = subprocess.run([sys.executable, "-c", _SAY_TAGS], capture_output=True, text=True, check=True).stdout
    run = _started_run(workshop, dead)

    outcome = workshop.run(MONDAY)

    assert outcome.error is None
    ended = workshop.instance.get_run_by_id(run.run_id)
    assert ended is not None
    assert ended.status is dg.DagsterRunStatus.FAILURE


@pytest.mark.parametrize("place", ["here", "another machine"])
def test_a_run_that_may_be_alive_is_left_alone(workshop: Workshop, place: str) -> None:
    (own,) = process_tags().values()
    run = _started_run(workshop, own if place == "here" else "elsewhere 1 1")

    assert end_dead_runs(workshop.instance) == []
    kept = workshop.instance.get_run_by_id(run.run_id)
    assert kept is not None
    assert kept.status is dg.DagsterRunStatus.STARTED


def test_the_process_of_a_local_run_is_noted_before_its_first_step(dagster_instance: dg.DagsterInstance) -> None:
    with dg.execute_job(dg.reconstructable(_noted), dagster_instance, run_config={"execution": {"config": {}}}) as done:
        assert done.success


@pytest.mark.parametrize("run_of", ["a command", "the daemon"])
def test_a_run_that_is_executed_again_is_not_dead_by_the_process_of_the_first(workshop: Workshop, run_of: str) -> None:
    """Dagster hands the tags of a run on to the one that follows it, before that has a process."""
    dead = subprocess.run([sys.executable, "-c", _SAY_TAGS], capture_output=True, text=True, check=True).stdout
    job, (name,) = workshop.evaluation()._job, process_tags()
    first = workshop.instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED)
    tag = {name: dead if run_of == "a command" else f"{dead} {first.run_id}"}
    workshop.instance.add_run_tags(first.run_id, tag)
    again = workshop.instance.create_run_for_job(
        job, tags=tag, status=dg.DagsterRunStatus.STARTING, root_run_id=first.run_id, parent_run_id=first.run_id
    )
    assert end_dead_runs(workshop.instance) == [first.run_id]
    workshop.instance.add_run_tags(again.run_id, {name: f"{dead} {again.run_id}"})
    noted = workshop.instance.get_run_by_id(again.run_id)
    assert noted is not None
    assert is_dead(noted)
