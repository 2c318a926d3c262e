"""The assets of a source: what it reads, the canonical traces, the scores of its metrics, and what is made of them."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

import dagster as dg
import sqlalchemy as sa

from stepacc_dagster import run_metadata
from stepacc_dagster.catalog import (
    SourceKeys,
    canonical_spec,
    external_specs,
    refuse_asset_settings,
    score_op,
    score_specs,
)
from stepacc_dagster.catalog_derived import report_spec, summaries_spec, written_back_spec
from stepacc_dagster.checks import check_results, check_specs
from stepacc_dagster.evaluators import Evaluator, evaluators_of, summarised_metrics
from stepacc_dagster.failures import is_transient, sentence
from stepacc_dagster.ingest import WindowIngest, ingest_window, observe
from stepacc_dagster.opening import opened_store
from stepacc_dagster.partition_loop import Outcome, PartitionStep, data_version, run_partitions, seconds_to_wait
from stepacc_dagster.pools import ensure_pool_limit, pool_of
from stepacc_dagster.report.files import UI_URL_VARIABLE, report_path, write_report
from stepacc_dagster.resources import StepaccDatabase, resource_key
from stepacc_dagster.run_labels import tag_run
from stepacc_dagster.scoring import score_window
from stepacc_dagster.sources import Source, reader_version
from stepacc_dagster.storage.feeds import follow_annotations
from stepacc_dagster.storage.lineage import used_revisions
from stepacc_dagster.storage.metric_configs import note_config
from stepacc_dagster.storage.summaries import summarise
from stepacc_dagster.stores.base import TraceStore
from stepacc_dagster.stores.errors import UnfollowableError
from stepacc_dagster.tally import WindowTally
from stepacc_dagster.upstream import Upstream, upstream
from stepacc_dagster.windows import Window
from stepacc_dagster.writeback.run import write_back, written_kinds
from stepacc_dagster.writeback.settings import WriteBackSettings


def build_ingest_asset(source: Source, keys: SourceKeys) -> dg.AssetsDefinition:
    """Build the asset that turns raw spans into canonical traces."""
    version = reader_version(source)

    @dg.multi_asset(
        name=f"{source.name}__ingest",
        specs=[canonical_spec(source, keys, version)],
        backfill_policy=dg.BackfillPolicy.multi_run(source.max_partitions_per_run),
        required_resource_keys={resource_key(source)},
    )
    def ingest(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[None]]:
        with (
            _ready(context, source, keys) as (engine, store),
            upstream(context, keys.agent_traces, "New or changed traces") as agent_traces,
        ):

            def work(window: Window) -> Outcome:
                found = ingest_window(engine, store, source, window)
                context.log.info("%s: %d traces, %d spans", window.key, found.ingested.traces, found.ingested.spans)
                if found.news:
                    _tell_of_traces(agent_traces, window, found)
                return Outcome({keys.canonical_traces: run_metadata.ingest_metadata(found.ingested)}, found.content)

            outcomes = run_partitions(context, _step(source, [keys.canonical_traces], version, work))
        yield dg.MaterializeResult(keys.canonical_traces, data_version=data_version(version, outcomes))

    return ingest


def build_score_assets(source: Source, keys: SourceKeys, evaluator: Evaluator) -> dg.AssetsDefinition:
    """Build the score table and the metadata table of one metric of a source as one multi-asset."""
    manifest, own = evaluator.metric.manifest, keys.of(evaluator.name)
    version = evaluator.code_version

    @dg.multi_asset(
        name=score_op(source, manifest),
        specs=score_specs(source, keys, evaluator),
        check_specs=check_specs(own.scores, manifest),
        pool=pool_of(manifest),
        backfill_policy=dg.BackfillPolicy.multi_run(source.max_partitions_per_run),
        required_resource_keys={resource_key(source)},
    )
    def score(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
        ensure_pool_limit(context.instance, manifest)
        tallies: dict[str, WindowTally] = {}
        with (
            _database(context, source, keys) as engine,
            upstream(context, own.annotations, "Annotations behind new scores") as annotations,
        ):
            with engine.begin() as connection:
                follow_annotations(connection, source.name)
                note_config(
                    connection,
                    metric=evaluator.name,
                    metric_version=manifest.version,
                    config_hash=evaluator.config_hash,
                    row_names=evaluator.row_names,
                    config=evaluator.settings,
                )

            def work(window: Window) -> Outcome:
                scores = score_window(engine, source, evaluator, window, context.run.run_id)
                with engine.connect() as connection:
                    revisions = used_revisions(connection, scores.tally.revisions)
                tallies[window.key] = scores.tally
                if scores.news:
                    _tell_of_annotations(annotations, window, scores.tally)
                context.log.info("%s: %d of %d scored", window.key, scores.tally.scored, scores.tally.occurrences)
                shown = run_metadata.score_metadata(scores, source, evaluator, revisions)
                rows = {"dagster/partition_row_count": scores.tally.rows * len(evaluator.row_names)}
                return Outcome({own.scores: shown, own.metadata: rows}, str(scores.tally.evaluations))

            outcomes = run_partitions(context, _step(source, own.made, version, work))
        for key in own.made:
            yield dg.MaterializeResult(key, data_version=data_version(version, outcomes))
        yield from check_results(own.scores, manifest, tallies)

    return score


def build_summaries_asset(source: Source, keys: SourceKeys, evaluators: Sequence[Evaluator]) -> dg.AssetsDefinition:
    """Build the asset that summarises the repeated runs of tasks."""
    metrics = summarised_metrics(source, evaluators)

    @dg.multi_asset(
        name=f"{source.name}__task_summaries",
        specs=[summaries_spec(source, keys, evaluators)],
        required_resource_keys={resource_key(source)},
    )
    def summaries(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
        with (
            _database(context, source, keys) as engine,
            _told_to_dagster(context, source),
            engine.begin() as connection,
        ):
            found = summarise(connection, source.name, metrics, source.summaries.ks)
        context.log.info("%d summaries of %d tasks, %d of them changed", found.summaries, found.tasks, found.changed)
        return dg.MaterializeResult(keys.task_summaries, metadata=run_metadata.summaries_metadata(found))

    return summaries


def build_report_asset(
    source: Source, keys: SourceKeys, key: dg.AssetKey, evaluators: Sequence[Evaluator]
) -> dg.AssetsDefinition:
    """Build the asset that keeps the report of a source in its folder."""

    @dg.multi_asset(
        name=f"{source.name}__report",
        specs=[report_spec(source, keys, key, evaluators)],
        required_resource_keys={resource_key(source)},
    )
    def report(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
        with (
            _database(context, source, keys) as engine,
            _told_to_dagster(context, source),
            engine.connect() as connection,
        ):
            path = report_path(str(source.report_folder), source.name)
            written = write_report(connection, source, evaluators, path, dagster_url=os.environ.get(UI_URL_VARIABLE))
        context.log.info("%s: %d scores", written.path, written.scored)
        return dg.MaterializeResult(key, metadata=run_metadata.report_metadata(written))

    return report


def build_write_back_asset(
    source: Source,
    settings: WriteBackSettings,
    keys: SourceKeys,
    key: dg.AssetKey,
    evaluators: Sequence[Evaluator],
) -> dg.AssetsDefinition:
    """Build the asset that writes scores back to where the traces came from.

    A score that the server refuses is told in metadata and log and does not fail the run; it is sent again by the next.
    """

    @dg.multi_asset(
        name=f"{source.name}__written_back",
        specs=[written_back_spec(source, settings, keys, key, written_kinds(settings, evaluators))],
        required_resource_keys={resource_key(source)},
    )
    def written_back(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
        with _database(context, source, keys) as engine, _told_to_dagster(context, source):
            result = write_back(engine, source, settings, evaluators, context.log.info)
        for problem in result.problems:
            context.log.warning("%s", problem)
        return dg.MaterializeResult(key, metadata=run_metadata.written_back_metadata(result))

    return written_back


def build_evaluation_assets(
    source: Source, evaluators: Sequence[Evaluator] | None = None
) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    """Build all assets of a source, for a project that wants no more than these of `build_evaluation_definitions`.

    Add them to your `Definitions` together with the resource `StepaccDatabase` under `resource_key(source)`.

    Args:
        source: the source's settings.
        evaluators: its metrics and their configs; resolved from the settings where left out.
    """
    evaluators = evaluators or evaluators_of(source)
    refuse_asset_settings(source)
    keys = SourceKeys(source, evaluators)
    written_back = (
        []
        if source.write_back is None or keys.written_back is None
        else [build_write_back_asset(source, source.write_back, keys, keys.written_back, evaluators)]
    )
    return [
        *external_specs(source, keys),
        build_ingest_asset(source, keys),
        *(build_score_assets(source, keys, evaluator) for evaluator in evaluators),
        build_summaries_asset(source, keys, evaluators),
        *([] if keys.report is None else [build_report_asset(source, keys, keys.report, evaluators)]),
        *written_back,
    ]


@contextmanager
def _database(context: dg.AssetExecutionContext, source: Source, keys: SourceKeys) -> Iterator[sa.Engine]:
    """Give the database of a source, once the run is found by its tags."""
    database: StepaccDatabase = getattr(context.resources, resource_key(source))
    with ExitStack() as stack:
        with _told_to_dagster(context, source):
            tag_run(context, source, keys)
            engine = stack.enter_context(database.engine())
        yield engine


@contextmanager
def _ready(
    context: dg.AssetExecutionContext, source: Source, keys: SourceKeys
) -> Iterator[tuple[sa.Engine, TraceStore]]:
    """Give the database and the source's store, once it is noted what changed in the store."""
    with _database(context, source, keys) as engine, ExitStack() as stack:
        with _told_to_dagster(context, source):
            store = stack.enter_context(opened_store(source, engine))
            with suppress(UnfollowableError):  # what is asked for is ingested all the same
                observe(engine, store, source)
        yield engine, store


@contextmanager
def _told_to_dagster(context: dg.AssetExecutionContext, source: Source) -> Iterator[None]:
    """Ask for another try of the step after an error that may pass, and end it in a sentence after any other.

    Steps have no retry policy: Dagster would follow it when a run is terminated too, by somebody or by its time limit,
    and such a run would go on.
    """
    try:
        yield
    except Exception as error:
        retry, attempt = source.retry, context.retry_number
        if is_transient(error) and attempt < retry.max_retries:
            raise dg.RetryRequested(retry.max_retries, seconds_to_wait(retry, attempt)) from error
        raise dg.Failure(description=sentence(error), allow_retries=False) from error


def _tell_of_traces(asset: Upstream, window: Window, found: WindowIngest) -> None:
    """Tell Dagster what the store has: it knows nothing of tables that others write."""
    traces = {"traces": found.ingested.traces}
    rows = {"dagster/partition_row_count": found.raw_spans}
    asset.tell(window.key, found.content, {**rows, **traces}, {"spans": found.raw_spans, **traces})


def _tell_of_annotations(asset: Upstream, window: Window, tally: WindowTally) -> None:
    counts = {"annotated_occurrences": tally.annotated}
    revisions = {"annotation_revisions": len(tally.revisions)}
    asset.tell(window.key, str(tally.in_force), {**counts, **revisions}, counts)


def _step(
    source: Source, asset_keys: Sequence[dg.AssetKey], code_version: str, work: Callable[[Window], Outcome]
) -> PartitionStep:
    return PartitionStep(asset_keys, code_version, source.partitions, source.retry, work)
