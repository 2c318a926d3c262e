"""One code location, unchanged, by each executor: the scores are those of a run in one process.

Celery has two workers, one of which is killed in the middle of a backfill.
"""

import json
import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import dagster as dg
import pytest

from stepacc_dagster.automation import RANGE_END, RANGE_START
from stepacc_dagster.definitions import load_sources
from tests.deploy.project_access import DEPLOY, Project
from tests.deploy.servers import needs, running_redis
from tests.integration.conftest import Server
from tests.integration.disturbed_access import (
    WEEK,
    Rows,
    assert_undisturbed,
    due,
    furnish,
    held_slots,
    undisturbed,
    unfinished,
)
from tests.integration.disturbed_processes import configure, open_stage, own_metrics, until
from tests.integration.evaluation_access import open_workshop
from tests.integration.evaluation_samples import TUESDAY
from tests.integration.gated_metric import PATIENT
from tests.integration.test_cli_dev import needs_proc

pytestmark = [needs_proc, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(600)]

APART, SPREAD = "apart", "spread"
"""Sources, named for how their steps are taken: by processes of one run, and by workers on machines."""
WORKERS = "one", "two"
WORKSPACE = ("-w", str(DEPLOY / "workspace.yaml"))


@dataclass(frozen=True)
class Scene:
    """A project over its stage, and the rows of an undisturbed run."""

    project: Project
    expected: Rows

    def runs(self, source: str) -> list[dg.DagsterRun]:
        """Return the runs of a source."""
        return list(self.project.stage.instance.get_runs(dg.RunsFilter(tags={"stepacc/source": source})))

    def ends_well(self, source: str) -> None:
        """See that all is done, that the rows are those of a run in one process, and that nothing is left over."""
        stage = self.project.stage
        assert not due(stage.engine, [each for each in stage.sources if each.name == source])
        assert_undisturbed(stage.engine, self.expected, source)
        assert not unfinished(stage.instance)
        until(lambda: not held_slots(stage.instance), "no run holds a slot")


@pytest.fixture(scope="module")
def scene(server: Server, _migrated_template: str, _dagster_template: str) -> Iterator[Scene]:
    """The project with two sources, of which nothing was ingested yet."""
    with tempfile.TemporaryDirectory(prefix="stepacc-test-") as folder, ExitStack() as stack:
        home = Path(folder)
        home.chmod(0o755)
        for name in (APART, SPREAD):
            configure(home, name, PATIENT, follow={"enabled": False}, max_partitions_per_run=2)
        with own_metrics(home), open_workshop(server, _migrated_template, _dagster_template) as workshop:
            sources = [replace(each, max_partitions_per_run=len(WEEK)) for each in load_sources(home / "defs")]
            expected = undisturbed(workshop, sources)
        stage = stack.enter_context(open_stage(home))
        furnish(stage.engine, APART, SPREAD)
        yield Scene(Project(stage), expected)


def test_a_process_for_each_step(scene: Scene) -> None:
    project = scene.project
    tags = {RANGE_START: WEEK[0], RANGE_END: WEEK[-1]}
    command = (
        "dagster",
        "job",
        "execute",
        "-m",
        "evals.definitions",
        "-j",
        f"{APART}_evaluation",
        "--tags",
        json.dumps(tags),
    )
    with project.process(*command, log="job.log", EVALS_EXECUTOR="multiprocess") as process:
        assert process.wait(200) == 0, project.said("job.log")
    [run] = scene.runs(APART)
    done = project.steps(run, dg.DagsterEventType.STEP_SUCCESS)
    assert len(done) > 1
    assert project.steps(run, dg.DagsterEventType.STEP_WORKER_STARTED) == done
    scene.ends_well(APART)


@needs("redis-server", "redis-server")
def test_workers_of_celery_one_of_which_is_killed_in_the_middle_of_a_backfill(scene: Scene) -> None:
    """It costs time only: the other worker takes the step, the run goes on, and no run has to be begun again."""
    project, gates = scene.project, scene.project.stage.gates
    gate = f"{SPREAD} {TUESDAY} good"
    gates.close(gate)
    with running_redis() as redis, ExitStack() as stack:
        project.environment |= {
            "EVALS_EXECUTOR": "celery",
            "EVALS_CELERY_BROKER": f"{redis}/0",
            "EVALS_CELERY_BACKEND": f"{redis}/1",
        }
        start = ("dagster-celery", "worker", "start", "-A", "dagster_celery.app", "-y", str(project.celery))
        for name in WORKERS:
            stack.enter_context(project.process(*start, "-n", name, "--", "--concurrency", "1", log=f"{name}.log"))
        stack.enter_context(project.process("dagster-daemon", "run", *WORKSPACE, log="daemon.log"))
        backfill = stack.enter_context(project.stage.command("backfill", "--source", SPREAD, "--how", "daemon"))
        killed = gates.reached(gate)
        [held] = [run for run in scene.runs(SPREAD) if run.tags.get(RANGE_START) == WEEK[0]]
        assert held.run_id in held_slots(project.stage.instance)
        os.killpg(os.getpgid(killed), signal.SIGKILL)  # the process of the step and its worker, as a machine goes down
        gates.open(gate)
        _, err = backfill.communicate(timeout=200)
        assert backfill.returncode == 0, err
    taken = project.steps(held, dg.DagsterEventType.ENGINE_EVENT, "in celery worker")
    assert taken.keys() == project.steps(held, dg.DagsterEventType.STEP_SUCCESS).keys()
    assert taken[f"{SPREAD}__patient_accuracy"] > 1
    assert {run.status for run in scene.runs(SPREAD)} == {dg.DagsterRunStatus.SUCCESS}
    assert all(run.parent_run_id is None for run in scene.runs(SPREAD))
    scene.ends_well(SPREAD)
