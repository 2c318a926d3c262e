"""The job and the schedule of a source."""

import datetime as dt
from collections.abc import Iterable, Sequence

import dagster as dg

from stepacc_dagster.catalog import SourceKeys
from stepacc_dagster.evaluators import Evaluator
from stepacc_dagster.partitions import partitions_of
from stepacc_dagster.pools import ensure_pool_limit
from stepacc_dagster.requests import chunks
from stepacc_dagster.resources import StepaccDatabase, resource_key
from stepacc_dagster.sources import Source
from stepacc_dagster.storage.due import ingested_windows
from stepacc_dagster.windows import window_containing

_NANOSECONDS = 1_000_000_000

RANGE_START = "dagster/asset_partition_range_start"
RANGE_END = "dagster/asset_partition_range_end"
"""Tags by which Dagster is told the partitions of a run that has several."""


def job_name(source: Source) -> str:
    """Return the name of the job that ingests and scores a source."""
    return f"{source.name}_evaluation"


def schedule_name(source: Source) -> str:
    """Return the name of the schedule that evaluates a source's closed windows."""
    return f"{source.name}_{source.partitions}"


def run_tags(source: Source, evaluators: Iterable[Evaluator], *, trigger: str, partitions: int) -> dict[str, str]:
    """Return the tags that make runs of a source easy to find, and the longest time such a run may take.

    The time limit of a manifest is for one partition, so a run of several gets that many times as much, and one of
    several metrics the sum of theirs.
    """
    evaluators = tuple(evaluators)
    seconds = sum(evaluator.metric.manifest.execution.timeout_seconds for evaluator in evaluators)
    return {**find_tags(source, evaluators, trigger=trigger), "dagster/max_runtime": str(seconds * partitions)}


def find_tags(source: Source, evaluators: Iterable[Evaluator], *, trigger: str) -> dict[str, str]:
    """Return the tags that make runs of a source easy to find; several metrics stand in one, with a comma between."""
    manifests = [evaluator.metric.manifest for evaluator in evaluators]
    return {
        "stepacc/source": source.name,
        "stepacc/metric": ",".join(manifest.name for manifest in manifests),
        "stepacc/metric_version": ",".join(manifest.version for manifest in manifests),
        "stepacc/trigger": trigger,
    }


def build_automation(source: Source, evaluators: Sequence[Evaluator]) -> dg.Definitions:
    """Build the job that ingests and scores partitions, and the schedule that runs it for each closed window."""
    keys = SourceKeys(source, evaluators)
    named = " and ".join(f"`{evaluator.name}`" for evaluator in evaluators)
    job = dg.define_asset_job(
        job_name(source),
        selection=dg.AssetSelection.assets(*keys.made),
        tags=run_tags(source, evaluators, trigger="job", partitions=source.max_partitions_per_run),
        description=f"Ingest the traces of `{source.name}` and score them by {named}.",
    )
    hourly = source.partitions == "hourly"
    length = dt.timedelta(hours=1) if hourly else dt.timedelta(days=1)

    @dg.schedule(
        name=schedule_name(source),
        job=job,
        cron_schedule="20 * * * *" if hourly else "0 1 * * *",
        execution_timezone="UTC",
        required_resource_keys={resource_key(source)},
        description="Evaluates the window that closed last, and closed ones before it that never were ingested.",
    )
    def evaluate_closed_windows(context: dg.ScheduleEvaluationContext) -> list[dg.RunRequest] | dg.SkipReason:
        closed = context.scheduled_execution_time - length
        window = window_containing(int(closed.timestamp()) * _NANOSECONDS, source.partitions)
        if closed.replace(tzinfo=None) < source.start:
            return dg.SkipReason(f"Window {window.key} lies before the source's start_date {source.start_date}.")
        database: StepaccDatabase = getattr(context.resources, resource_key(source))
        with database.engine() as engine, engine.connect() as connection:
            done = ingested_windows(connection, source.name)
        keys = [key for key in partitions_of(source).get_partition_keys() if key <= window.key]
        missed = [key for key in keys if key not in done and key != window.key]
        for evaluator in evaluators:
            ensure_pool_limit(context.instance, evaluator.metric.manifest)
        runs = chunks([*missed, window.key], keys, source.max_partitions_per_run)[-source.follow.max_runs :]
        return [_run_request(source, evaluators, run) for run in reversed(runs)]

    return dg.Definitions(jobs=[job], schedules=[evaluate_closed_windows])


def _run_request(source: Source, evaluators: Sequence[Evaluator], keys: Sequence[str]) -> dg.RunRequest:
    tags = run_tags(source, evaluators, trigger="schedule", partitions=len(keys))
    if len(keys) == 1:
        return dg.RunRequest(run_key=keys[0], partition_key=keys[0], tags=tags)
    return dg.RunRequest(run_key=f"{keys[0]}...{keys[-1]}", tags=tags | {RANGE_START: keys[0], RANGE_END: keys[-1]})
