"""The assets of a source: what it reads, the canonical traces, and the scores of its metric."""

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import dagster as dg
import sqlalchemy as sa

from stepacc_core.fingerprint import fingerprint
from stepacc_dagster import run_metadata
from stepacc_dagster.catalog import SourceKeys, canonical_spec, external_specs, score_specs
from stepacc_dagster.checks import check_results, check_specs
from stepacc_dagster.database import check_reachable, connect_engine, is_transient
from stepacc_dagster.ingest import ingest_window, take_over
from stepacc_dagster.partition_loop import Outcome, PartitionStep, data_version, run_partitions, sentence
from stepacc_dagster.pools import ensure_pool_limit, pool_of
from stepacc_dagster.resources import StepaccDatabase, url_from_environment
from stepacc_dagster.scoring import score_window
from stepacc_dagster.sources import Evaluator, Source
from stepacc_dagster.stores.base import TraceStore
from stepacc_dagster.stores.factory import build_store
from stepacc_dagster.tally import WindowTally
from stepacc_dagster.windows import Window

_READER_VERSION = "1"
"""Version of the reading of traces; raised when the same spans would give other canonical spans."""


def reader_version(source: Source) -> str:
    """Return the code version of a source's canonical traces: that of the reading, and a hash of its settings."""
    settings = dataclasses.asdict(source.read_settings)
    return f"{_READER_VERSION}-{fingerprint(settings)[:12]}"


def resource_key(source: Source) -> str:
    """Return the key of a source's database resource; each source may have a database of its own."""
    return f"stepacc_database_{source.name}"


def build_ingest_asset(source: Source, keys: SourceKeys) -> dg.AssetsDefinition:
    """Build the asset that turns raw spans into canonical traces."""
    version = reader_version(source)

    @dg.multi_asset(
        name=f"{source.name}__ingest",
        specs=[canonical_spec(source, keys, version)],
        backfill_policy=dg.BackfillPolicy.multi_run(source.max_partitions_per_run),
        retry_policy=_retry_policy(source),
        required_resource_keys={resource_key(source)},
    )
    def ingest(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[None]]:
        with _engine(context, source) as engine, _store(source, engine) as store:

            def work(window: Window) -> Outcome:
                ingested, content = ingest_window(engine, store, source, window)
                context.log.info("%s: %d traces, %d spans", window.key, ingested.traces, ingested.spans)
                return Outcome({keys.canonical_traces: run_metadata.ingest_metadata(ingested)}, content)

            outcomes = run_partitions(context, _step(source, [keys.canonical_traces], version, work))
        yield dg.MaterializeResult(keys.canonical_traces, data_version=data_version(version, outcomes))

    return ingest


def build_score_assets(source: Source, keys: SourceKeys, evaluator: Evaluator) -> dg.AssetsDefinition:
    """Build the score table and the metadata table of a source's metric as one multi-asset."""
    manifest = evaluator.metric.manifest
    version = evaluator.code_version

    @dg.multi_asset(
        name=f"{source.name}__{manifest.identifier}",
        specs=score_specs(source, keys, evaluator),
        check_specs=check_specs(keys.scores),
        pool=pool_of(manifest),
        backfill_policy=dg.BackfillPolicy.multi_run(source.max_partitions_per_run),
        retry_policy=_retry_policy(source),
        required_resource_keys={resource_key(source)},
    )
    def score(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
        ensure_pool_limit(context.instance, manifest)
        tallies: dict[str, WindowTally] = {}
        with _engine(context, source) as engine:

            def work(window: Window) -> Outcome:
                scores = score_window(engine, source, evaluator, window, context.run.run_id)
                tallies[window.key] = scores.tally
                context.log.info("%s: %d of %d scored", window.key, scores.tally.scored, scores.tally.occurrences)
                rows = {"dagster/partition_row_count": scores.tally.rows}
                return Outcome(
                    {keys.scores: run_metadata.score_metadata(scores, evaluator), keys.metadata: rows},
                    scores.tally.digest,
                )

            outcomes = run_partitions(context, _step(source, [keys.scores, keys.metadata], version, work))
        for key in (keys.scores, keys.metadata):
            yield dg.MaterializeResult(key, data_version=data_version(version, outcomes))
        yield from check_results(keys.scores, tallies)

    return score


def build_evaluation_assets(source: Source, evaluator: Evaluator) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    """Build all assets of a source, for a project that does without components.

    Add them to your `Definitions` together with the resource `StepaccDatabase` under `resource_key(source)`.
    """
    keys = SourceKeys(source, evaluator)
    return [
        *external_specs(source, keys),
        build_ingest_asset(source, keys),
        build_score_assets(source, keys, evaluator),
    ]


@contextmanager
def _engine(context: dg.AssetExecutionContext, source: Source) -> Iterator[sa.Engine]:
    database: StepaccDatabase = getattr(context.resources, resource_key(source))
    with ExitStack() as stack:
        with _permanent_errors_end_the_step():
            engine = stack.enter_context(database.engine())
        yield engine


@contextmanager
def _store(source: Source, engine: sa.Engine) -> Iterator[TraceStore]:
    """Give the source's store, once the expectations it holds are taken over."""
    with ExitStack() as stack:
        with _permanent_errors_end_the_step():
            if source.store_url_env:
                store_engine = connect_engine(url_from_environment(source.store_url_env))
                stack.callback(store_engine.dispose)
                check_reachable(store_engine)
            else:
                store_engine = engine
            store = build_store(source.store, store_engine, source.name)
            take_over(engine, store, source)
        yield store


@contextmanager
def _permanent_errors_end_the_step() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if is_transient(error):
            raise  # for the retry policy
        raise dg.Failure(description=sentence(error), allow_retries=False) from error


def _retry_policy(source: Source) -> dg.RetryPolicy:
    return dg.RetryPolicy(
        max_retries=source.retry.max_retries,
        delay=source.retry.delay_seconds,
        backoff=dg.Backoff.EXPONENTIAL,
        jitter=dg.Jitter.PLUS_MINUS,
    )


def _step(
    source: Source, asset_keys: list[dg.AssetKey], code_version: str, work: Callable[[Window], Outcome]
) -> PartitionStep:
    return PartitionStep(asset_keys, code_version, source.partitions, source.retry.max_retries, work)
