"""The sensor that follows a source: what changed is noted, and what is out of date is brought up to date.

It looks at tables, not at events: a window that is out of date is asked for, however it came to be so, until it is up
to date. Nothing hangs on the sensor's own cursor, so a look that was lost, twice made or cut short costs nothing but
time.
"""

from collections.abc import Sequence

import dagster as dg
import sqlalchemy as sa

from stepacc_core.errors import StepaccError
from stepacc_dagster.automation import RANGE_END, RANGE_START, job_name, run_tags
from stepacc_dagster.busy import busy_windows
from stepacc_dagster.catalog import SourceKeys
from stepacc_dagster.evaluators import Evaluator
from stepacc_dagster.ingest import observe
from stepacc_dagster.opening import opened_store
from stepacc_dagster.partitions import partitions_of
from stepacc_dagster.pools import ensure_pool_limit
from stepacc_dagster.requests import Ask, RunAsk, runs
from stepacc_dagster.resources import StepaccDatabase, resource_key
from stepacc_dagster.sources import Source, reader_version, scoring_rules
from stepacc_dagster.storage.due import Wanted, due_windows, note_requested
from stepacc_dagster.storage.feeds import follow_annotations
from stepacc_dagster.storage.locks import lock
from stepacc_dagster.stores.errors import UnfollowableError


def sensor_name(source: Source) -> str:
    """Return the name of the sensor that follows a source."""
    return f"{source.name}_changes"


def build_changes_sensor(source: Source, evaluators: Sequence[Evaluator]) -> dg.SensorDefinition:
    """Build the sensor that follows a source's store and annotations."""
    running = dg.DefaultSensorStatus.RUNNING if source.follow.enabled else dg.DefaultSensorStatus.STOPPED

    @dg.sensor(
        name=sensor_name(source),
        job_name=job_name(source),
        minimum_interval_seconds=source.follow.interval_seconds,
        default_status=running,
        required_resource_keys={resource_key(source)},
        description=(
            "Asks the store which windows changed, and brings these up to date, and those whose annotations, metric "
            "version or config changed or whose traces have settled; each by the metrics that it is out of date for."
        ),
    )
    def changes(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        database: StepaccDatabase = getattr(context.resources, resource_key(source))
        with database.engine() as engine:
            unread = _observed(engine, source)
            asked = requested_runs(context.instance, engine, source, evaluators)
        if unread is not None:
            context.log.error("%s", unread)  # annotations and the metric are followed all the same
        if not asked:
            if unread is not None and not isinstance(unread, UnfollowableError):
                raise unread
            return dg.SkipReason(str(unread or "Everything is up to date, or being brought up to date."))
        for evaluator in evaluators:
            ensure_pool_limit(context.instance, evaluator.metric.manifest)
        return dg.SensorResult(run_requests=[_run_request(source, evaluators, run) for run in asked])

    return changes


def _observed(engine: sa.Engine, source: Source) -> Exception | None:
    """Note what changed; return the error of a store that cannot be followed."""
    with engine.begin() as connection:
        follow_annotations(connection, source.name)
    try:
        with opened_store(source, engine) as store:
            observe(engine, store, source)
    except (StepaccError, sa.exc.DBAPIError) as error:
        return error
    return None


def requested_runs(
    instance: dg.DagsterInstance, engine: sa.Engine, source: Source, evaluators: Sequence[Evaluator]
) -> list[RunAsk]:
    """Choose the runs that bring windows up to date, and note that they were asked for.

    Windows that an unfinished run works on are left to it.
    """
    keys = partitions_of(source).get_partition_keys()
    if not keys:
        return []
    wanted = [wanted_of(source, evaluator, keys) for evaluator in evaluators]
    busy = busy_windows(instance, source, SourceKeys(source, evaluators))
    size, limit = source.max_partitions_per_run, source.follow.max_runs
    with engine.begin() as connection:
        lock(connection, "requests", source.name)
        due = due_windows(connection, wanted, rescore=source.follow.rescore, busy=busy, limit=size * limit)
        asked = runs(map(Ask.of, due), keys, size=size, limit=limit)
        note_requested(
            connection,
            source.name,
            [{"key": ask.key, "token": ask.token, "attempt": ask.attempt} for run in asked for ask in run.asks],
        )
    return asked


def wanted_of(source: Source, evaluator: Evaluator, keys: Sequence[str]) -> Wanted:
    """Return what the windows of some neighbouring partitions should have been worked on with, for one metric."""
    manifest = evaluator.metric.manifest
    return Wanted(
        source.name,
        reader_version(source),
        manifest.name,
        manifest.version,
        evaluator.config_hash,
        evaluator.annotation_key,
        scoring_rules(source),
        first=keys[0],
        last=keys[-1],
    )


def _run_request(source: Source, evaluators: Sequence[Evaluator], run: RunAsk) -> dg.RunRequest:
    keys = SourceKeys(source, evaluators)
    scores = keys.scored(run.metrics)
    chosen = [evaluator for evaluator in evaluators if evaluator.name in run.metrics]
    tags = run_tags(source, chosen, trigger="changes", partitions=len(run.keys))
    selection = [keys.canonical_traces, *scores] if run.ingest else scores
    if len(run.keys) == 1:
        return dg.RunRequest(run_key=run.run_key, partition_key=run.keys[0], tags=tags, asset_selection=selection)
    tags |= {RANGE_START: run.keys[0], RANGE_END: run.keys[-1]}
    return dg.RunRequest(run_key=run.run_key, tags=tags, asset_selection=selection)
