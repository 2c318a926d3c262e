"""A command that was killed blocks no later one: its run is ended and its pool slot freed."""

import subprocess
import sys

import dagster as dg
import pytest
import sqlalchemy as sa

from stepacc_dagster.local.dead_runs import end_dead_runs, process_tags
from tests.integration.evaluation_access import Workshop
from tests.integration.evaluation_samples import MONDAY, agent_trace

POOL = "stepacc_step_accuracy"
_SAY_TAGS = "from stepacc_dagster.local.dead_runs import process_tags; print(*process_tags().values(), end='')"


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
