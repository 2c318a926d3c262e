"""The job and the schedule of a source."""

import datetime as dt

import dagster as dg

from stepacc_dagster.catalog import SourceKeys
from stepacc_dagster.pools import ensure_pool_limit
from stepacc_dagster.sources import Evaluator, Source
from stepacc_dagster.windows import window_containing

_NANOSECONDS = 1_000_000_000

RANGE_START = "dagster/asset_partition_range_start"
RANGE_END = "dagster/asset_partition_range_end"
"""Tags by which Dagster is told the partitions of a run that has several."""


def job_name(source: Source) -> str:
    """Return the name of the job that ingests and scores a source."""
    return f"{source.name}_evaluation"


def run_tags(source: Source, evaluator: Evaluator, *, trigger: str, partitions: int) -> dict[str, str]:
    """Return the tags that make runs of a source easy to find, and the longest time such a run may take.

    The time limit of the manifest is for one partition, so a run of several gets that many times as much.
    """
    manifest = evaluator.metric.manifest
    return {
        "stepacc/source": source.name,
        "stepacc/metric": manifest.name,
        "stepacc/metric_version": manifest.version,
        "stepacc/trigger": trigger,
        "dagster/max_runtime": str(manifest.execution.timeout_seconds * partitions),
    }


def build_automation(source: Source, evaluator: Evaluator) -> dg.Definitions:
    """Build the job that ingests and scores partitions, and the schedule that runs it for each closed window."""
    keys = SourceKeys(source, evaluator)
    job = dg.define_asset_job(
        job_name(source),
        selection=dg.AssetSelection.assets(keys.canonical_traces, keys.scores, keys.metadata),
        tags=run_tags(source, evaluator, trigger="job", partitions=source.max_partitions_per_run),
        description=f"Ingest the traces of `{source.name}` and score them by `{evaluator.metric.manifest.name}`.",
    )
    hourly = source.partitions == "hourly"
    length = dt.timedelta(hours=1) if hourly else dt.timedelta(days=1)

    @dg.schedule(
        name=f"{source.name}_{source.partitions}",
        job=job,
        cron_schedule="20 * * * *" if hourly else "0 1 * * *",
        execution_timezone="UTC",
        description="Evaluates the window that closed last.",
    )
    def evaluate_closed_window(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        closed = context.scheduled_execution_time - length
        window = window_containing(int(closed.timestamp()) * _NANOSECONDS, source.partitions)
        if closed.replace(tzinfo=None) < source.start:
            return dg.SkipReason(f"Window {window.key} lies before the source's start_date {source.start_date}.")
        ensure_pool_limit(context.instance, evaluator.metric.manifest)
        tags = run_tags(source, evaluator, trigger="schedule", partitions=1)
        return dg.RunRequest(run_key=window.key, partition_key=window.key, tags=tags)

    return dg.Definitions(jobs=[job], schedules=[evaluate_closed_window])
