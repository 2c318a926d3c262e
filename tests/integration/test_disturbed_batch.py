"""A run over several windows of which some fail: the others stay, and again from failure it takes just what failed."""

from collections.abc import Callable, Iterator, Mapping

import dagster as dg
import pytest
import sqlalchemy as sa

from stepacc_core import CanonicalPartition, Result, register
from stepacc_core.metrics import registry
from stepacc_dagster import build_evaluation_definitions
from stepacc_dagster.automation import RANGE_END, RANGE_START, job_name
from stepacc_dagster.definitions import local_settings
from stepacc_dagster.sources import MetricChoice
from tests.integration.evaluation_access import Workshop, materializations, support_source
from tests.integration.evaluation_samples import MONDAY, TUESDAY, WEDNESDAY, ToyMetric, agent_trace

METRIC = "acme.moody"
WEEK = (MONDAY, TUESDAY, WEDNESDAY)
RANGE = {RANGE_START: MONDAY, RANGE_END: WEDNESDAY}
FROM_FAILURE = {"dagster/is_resume_retry": "true"}
"""What Dagster says to a run that goes on from the failure of another."""
ASSETS = ("moody_scores", "moody_metadata")

broken: set[str] = set()
"""Windows for which the metric fails."""
scored: list[str] = []
"""Windows that were scored, in order."""


def moody(partition: CanonicalPartition) -> Result:
    """Score a trace, which is called like its window, unless that is broken."""
    scored.append(partition.partition_id)
    if partition.partition_id in broken:
        msg = "no mood for this one"
        raise ValueError(msg)
    return Result("scored", 0.5)


def _job(version: str) -> dg.JobDefinition:
    source = support_source(metric=MetricChoice(METRIC, version))
    definitions = dg.Definitions.merge(local_settings(), build_evaluation_definitions(source))
    return definitions.resolve_job_def(job_name(source))


def moody_job() -> dg.JobDefinition:
    """The job of the source, as a code location has it."""
    return _job("0.1.0")


def newer_moody_job() -> dg.JobDefinition:
    """The same with another version of the metric."""
    return _job("0.2.0")


@pytest.fixture
def workshop(
    dagster_instance: dg.DagsterInstance, migrated_engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Workshop]:
    """A trace a day."""
    monkeypatch.setattr(registry, "_METRICS", dict(registry._METRICS))
    for version in ("0.1.0", "0.2.0"):
        metric = ToyMetric(METRIC, moody)
        metric.manifest = metric.manifest.model_copy(update={"version": version})
        register(metric)
    workshop = Workshop(dagster_instance, migrated_engine)
    workshop.land(*(agent_trace(key, key, "search") for key in WEEK))
    for seen in (broken, scored):
        seen.clear()
    yield workshop
    broken.clear()


def run(
    workshop: Workshop,
    after: dg.DagsterRun | None = None,
    job: Callable[[], dg.JobDefinition] = moody_job,
    tags: Mapping[str, str] | None = None,
) -> dg.DagsterRun:
    """Execute the job over all windows, or go on where another run failed; return the run."""
    scored.clear()
    options = dg.ReexecutionOptions.from_failure(after.run_id, workshop.instance) if after else None
    with dg.execute_job(
        dg.reconstructable(job),
        workshop.instance,
        tags={**RANGE, **(tags or {})},
        reexecution_options=options,
        run_config={"loggers": {"silent": {}}},
    ) as done:
        found = workshop.instance.get_run_by_id(done.run_id)
    assert found is not None
    return found


def said(workshop: Workshop, asset: str, key: str) -> dict[str, object]:
    """Return what Dagster shows of a partition."""
    newest, *_ = materializations(workshop.instance, asset, key)
    return {name: value.value for name, value in newest.metadata.items()}


def test_a_run_again_from_failure_takes_exactly_what_failed(workshop: Workshop) -> None:
    """Also once more, when that failed again in part; what Dagster shows of the others is what it showed before."""
    broken.update((MONDAY, WEDNESDAY))
    first = run(workshop)
    assert first.status is dg.DagsterRunStatus.FAILURE
    before = workshop.rows("SELECT confirmed_at FROM stepacc.scores")
    shown = {asset: said(workshop, asset, TUESDAY) for asset in ASSETS}

    broken.remove(MONDAY)
    second = run(workshop, first, tags=FROM_FAILURE)
    assert second.status is dg.DagsterRunStatus.FAILURE
    assert scored == [MONDAY, WEDNESDAY]

    broken.clear()
    third = run(workshop, second, tags=FROM_FAILURE)
    assert third.status is dg.DagsterRunStatus.SUCCESS
    assert scored == [WEDNESDAY]
    assert workshop.rows("SELECT confirmed_at FROM stepacc.scores WHERE window_key = :key", key=TUESDAY) == before
    assert {row.window_key for row in workshop.current()} == set(WEEK)
    evaluation = workshop.evaluation(name=METRIC)
    for asset in ASSETS:
        assert workshop.statuses(asset, evaluation) == dict.fromkeys(WEEK, "MATERIALIZED")
        assert said(workshop, asset, TUESDAY) == shown[asset]
        assert said(workshop, asset, WEDNESDAY).keys() == said(workshop, asset, TUESDAY).keys()


def test_a_run_that_does_not_go_on_from_failure_takes_all(workshop: Workshop) -> None:
    broken.add(TUESDAY)
    first = run(workshop)
    broken.clear()
    assert run(workshop).status is dg.DagsterRunStatus.SUCCESS
    assert scored == list(WEEK)
    assert run(workshop, first).status is dg.DagsterRunStatus.SUCCESS
    assert scored == list(WEEK)


def test_what_another_version_of_the_code_did_is_done_again(workshop: Workshop) -> None:
    broken.add(TUESDAY)
    first = run(workshop)
    broken.clear()
    assert run(workshop, first, newer_moody_job, tags=FROM_FAILURE).status is dg.DagsterRunStatus.SUCCESS
    assert scored == list(WEEK)


def test_what_failed_while_traces_were_ingested_is_taken_again_alone(workshop: Workshop) -> None:
    workshop.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF NEW.window_key = '{TUESDAY}' THEN RAISE EXCEPTION 'refused' USING ERRCODE = '23514'; END IF; "
        "RETURN NEW; END $$"
    )
    workshop.execute("CREATE TRIGGER refuse BEFORE INSERT ON stepacc.traces FOR EACH ROW EXECUTE FUNCTION refuse()")
    first = run(workshop)
    assert (first.status, scored) == (dg.DagsterRunStatus.FAILURE, [])
    ingested = "SELECT window_key, ingested_at FROM stepacc.windows WHERE window_key <> :key ORDER BY 1"
    before = workshop.rows(ingested, key=TUESDAY)
    workshop.execute("DROP TRIGGER refuse ON stepacc.traces")
    assert run(workshop, first, tags=FROM_FAILURE).status is dg.DagsterRunStatus.SUCCESS
    assert workshop.rows(ingested, key=TUESDAY) == before
    assert scored == list(WEEK)
    assert {row.window_key for row in workshop.current()} == set(WEEK)
