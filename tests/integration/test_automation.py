"""The job and the schedule of a source."""

from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg
import pytest
import sqlalchemy as sa

from stepacc_core import get_metric
from stepacc_dagster import build_evaluation_definitions
from stepacc_dagster.automation import RANGE_START
from stepacc_dagster.resources import StepaccDatabase
from stepacc_dagster.sources import FollowSettings, MetricChoice
from stepacc_dagster.storage.work import note_ingested
from tests.integration.evaluation_access import support_source
from tests.integration.evaluation_samples import SOURCE

SCORED = ["step_accuracy_scores", "step_accuracy_metadata"]
EXECUTION = get_metric("agent.step_accuracy").manifest.execution


def tick(instance: dg.DagsterInstance, moment: datetime, **settings: Any) -> list[dg.RunRequest] | str:
    """Evaluate the source's schedule at a moment; return its requests, or why it skips."""
    definitions = build_evaluation_definitions(support_source(**settings))
    [schedule] = definitions.schedules or []
    assert isinstance(schedule, dg.ScheduleDefinition)
    with dg.build_schedule_context(
        instance,
        scheduled_execution_time=moment,
        repository_def=definitions.get_repository_def(),
        resources={f"stepacc_database_{SOURCE}": StepaccDatabase()},
    ) as context:
        data = schedule.evaluate_tick(context)
    return list(data.run_requests or []) or str(data.skip_message)


@pytest.mark.parametrize(
    ("kind", "moment", "partition"),
    [
        ("daily", datetime(2025, 11, 5, 1, tzinfo=UTC), "2025-11-04"),
        ("daily", datetime(2025, 11, 2, 1, tzinfo=UTC), "2025-11-01"),
        ("daily", datetime(2026, 1, 1, 1, tzinfo=UTC), "2025-12-31"),
        ("hourly", datetime(2025, 11, 5, 0, 20, tzinfo=UTC), "2025-11-04-23:00"),
        ("hourly", datetime(2025, 11, 1, 1, 20, tzinfo=UTC), "2025-11-01-00:00"),
    ],
)
def test_a_tick_evaluates_the_window_that_closed_last(
    dagster_instance: dg.DagsterInstance, migrated_engine: sa.Engine, kind: str, moment: datetime, partition: str
) -> None:
    ingested(migrated_engine, kind, datetime(2025, 11, 1, tzinfo=UTC), moment)
    requests = tick(dagster_instance, moment, partitions=kind)
    assert not isinstance(requests, str)
    [request] = requests
    assert (request.partition_key, request.run_key) == (partition, partition)
    assert (
        request.tags.items()
        >= {
            "stepacc/source": SOURCE,
            "stepacc/metric": "agent.step_accuracy",
            "stepacc/trigger": "schedule",
            "dagster/max_runtime": str(EXECUTION.timeout_seconds),
            "dagster/partition": partition,
        }.items()
    )
    limits = {limit.name: limit.limit for limit in dagster_instance.event_log_storage.get_pool_limits()}
    assert limits == {"stepacc_step_accuracy": EXECUTION.max_concurrency}


@pytest.mark.parametrize(
    ("given", "assets", "expected"),
    [
        ({}, ["canonical_traces"], {"metric": "agent.step_accuracy,agent.trajectory_match", "trigger": "manual"}),
        ({}, ["canonical_traces", *SCORED], {"metric": "agent.step_accuracy", "trigger": "manual"}),
        ({"dagster/backfill": "abc"}, SCORED, {"metric": "agent.step_accuracy", "trigger": "backfill"}),
        ({"stepacc/trigger": "ours", "stepacc/metric": "none"}, SCORED, {"metric": "none", "trigger": "ours"}),
    ],
)
def test_a_run_launched_on_the_assets_themselves_gets_the_tags_that_it_lacks(
    dagster_instance: dg.DagsterInstance,
    migrated_engine: sa.Engine,  # noqa: ARG001 (the database of the run)
    given: dict[str, str],
    assets: list[str],
    expected: dict[str, str],
) -> None:
    """As from the UI or by somebody's own job, with or without tags of their own."""
    source = support_source(metrics=(MetricChoice(), MetricChoice("agent.trajectory_match")))
    job = build_evaluation_definitions(source).resolve_implicit_global_asset_job_def()
    keys = [dg.AssetKey([SOURCE, name]) for name in assets]
    result = job.execute_in_process(
        instance=dagster_instance, asset_selection=keys, partition_key="2025-11-03", tags=given
    )
    [run] = dagster_instance.get_runs(dg.RunsFilter(tags={"stepacc/source": SOURCE}))
    assert (run.run_id, run.status) == (result.run_id, dg.DagsterRunStatus.SUCCESS)
    versions = {"agent.step_accuracy": "2.0.0", "agent.step_accuracy,agent.trajectory_match": "2.0.0,1.0.0"}
    version = {"stepacc/metric_version": versions.get(expected["metric"], "2.0.0")}
    assert run.tags.items() >= {**{f"stepacc/{name}": value for name, value in expected.items()}, **version}.items()


def ingested(engine: sa.Engine, kind: str, first: datetime, end: datetime) -> None:
    """Note that all windows from the first to the end were ingested."""
    step, form = (timedelta(hours=1), "%Y-%m-%d-%H:00") if kind == "hourly" else (timedelta(days=1), "%Y-%m-%d")
    keys = [(first + step * n).strftime(form) for n in range((end - first) // step)]
    with engine.begin() as connection:
        for key in keys:
            note_ingested(connection, SOURCE, key, change=0, reader_version="1", traces=0, changed=[])


def test_a_tick_after_a_downtime_takes_the_windows_that_were_missed_too(
    dagster_instance: dg.DagsterInstance, migrated_engine: sa.Engine
) -> None:
    """Newest first, neighbouring ones together, and those that were ingested, empty or not, are left alone."""
    ingested(migrated_engine, "daily", datetime(2025, 11, 1, tzinfo=UTC), datetime(2025, 11, 4, tzinfo=UTC))
    ingested(migrated_engine, "daily", datetime(2025, 11, 6, tzinfo=UTC), datetime(2025, 11, 7, tzinfo=UTC))
    moment = datetime(2025, 11, 12, 1, tzinfo=UTC)
    requests = tick(dagster_instance, moment, max_partitions_per_run=3)
    assert not isinstance(requests, str)
    assert [request.run_key for request in requests] == [
        "2025-11-10...2025-11-11",
        "2025-11-07...2025-11-09",
        "2025-11-04...2025-11-05",
    ]
    assert requests[1].tags[RANGE_START] == "2025-11-07"
    assert requests[1].tags["dagster/max_runtime"] == str(3 * EXECUTION.timeout_seconds)
    bounded = tick(dagster_instance, moment, max_partitions_per_run=3, follow=FollowSettings(max_runs=1))
    assert not isinstance(bounded, str)
    assert [request.run_key for request in bounded] == ["2025-11-10...2025-11-11"]


@pytest.mark.parametrize(
    ("kind", "moment", "window"),
    [
        ("daily", datetime(2025, 11, 1, 1, tzinfo=UTC), "2025-10-31"),
        ("hourly", datetime(2025, 11, 1, 0, 20, tzinfo=UTC), "2025-10-31-23:00"),
    ],
)
def test_a_window_before_the_first_partition_is_skipped_in_words(kind: str, moment: datetime, window: str) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        said = tick(instance, moment, partitions=kind)
    assert said == f"Window {window} lies before the source's start_date 2025-11-01."


@pytest.mark.parametrize(("kind", "cron"), [("daily", "0 1 * * *"), ("hourly", "20 * * * *")])
def test_the_schedule_is_named_runs_the_job_in_utc_and_is_off_until_somebody_turns_it_on(kind: str, cron: str) -> None:
    [schedule] = build_evaluation_definitions(support_source(partitions=kind)).schedules or []
    assert isinstance(schedule, dg.ScheduleDefinition)
    assert (schedule.name, schedule.job_name) == (f"{SOURCE}_{kind}", f"{SOURCE}_evaluation")
    assert (schedule.cron_schedule, schedule.execution_timezone) == (cron, "UTC")
    assert schedule.default_status is dg.DefaultScheduleStatus.STOPPED


def test_the_job_ingests_and_scores_and_its_longest_time_grows_with_the_partitions_of_a_run() -> None:
    job = build_evaluation_definitions(support_source(max_partitions_per_run=4)).resolve_job_def(f"{SOURCE}_evaluation")
    assert {tuple(asset.path) for asset in job.asset_layer.executable_asset_keys} == {
        (SOURCE, name)
        for name in ("canonical_traces", "step_accuracy_scores", "step_accuracy_metadata", "task_summaries")
    }
    assert job.tags["dagster/max_runtime"] == str(4 * EXECUTION.timeout_seconds)
    assert job.tags["stepacc/trigger"] == "job"
    assert job.partitions_def is not None
    assert job.partitions_def.get_first_partition_key() == "2025-11-01"
