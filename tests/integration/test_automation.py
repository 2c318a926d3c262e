"""The job and the schedule of a source."""

from datetime import UTC, datetime
from typing import Any

import dagster as dg
import pytest

from stepacc_core import get_metric
from stepacc_dagster import build_evaluation_definitions
from tests.integration.evaluation_access import support_source
from tests.integration.evaluation_samples import SOURCE

EXECUTION = get_metric("agent.step_accuracy").manifest.execution


def tick(instance: dg.DagsterInstance, moment: datetime, **settings: Any) -> list[dg.RunRequest] | str:
    """Evaluate the source's schedule at a moment; return its requests, or why it skips."""
    definitions = build_evaluation_definitions(support_source(**settings))
    [schedule] = definitions.schedules or []
    assert isinstance(schedule, dg.ScheduleDefinition)
    context = dg.build_schedule_context(
        instance, scheduled_execution_time=moment, repository_def=definitions.get_repository_def()
    )
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
    dagster_instance: dg.DagsterInstance, kind: str, moment: datetime, partition: str
) -> None:
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
        (SOURCE, name) for name in ("canonical_traces", "step_accuracy_scores", "step_accuracy_metadata")
    }
    assert job.tags["dagster/max_runtime"] == str(4 * EXECUTION.timeout_seconds)
    assert job.tags["stepacc/trigger"] == "job"
    assert job.partitions_def is not None
    assert job.partitions_def.get_first_partition_key() == "2025-11-01"
