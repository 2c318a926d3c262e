"""Running a step over several partitions so that each has its own fate.

A run that Dagster gives several partitions is all or nothing by default. Here every partition is worked on by itself;
at the end the good ones are recorded and only the bad ones count as failed, so that re-execution from failure, of the
run or of its backfill, takes just those.
"""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import dagster as dg

from stepacc_core.fingerprint import fingerprint
from stepacc_dagster.failures import is_transient, sentence
from stepacc_dagster.sources import PartitionKind, RetrySettings
from stepacc_dagster.windows import Window, window_of

_CODE_VERSION, _DATA_VERSION = "dagster/code_version", "dagster/data_version"
_NAMED = 5
"""Failed partitions that the failure's sentence names."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one partition: metadata for each asset key, and a fingerprint of its data."""

    metadata: Mapping[dg.AssetKey, Mapping[str, Any]]
    fingerprint: str


@dataclass(frozen=True, slots=True)
class PartitionStep:
    """A step over partitions: its assets, the version of its code, its retries, and the work on one window."""

    asset_keys: Sequence[dg.AssetKey]
    code_version: str
    kind: PartitionKind
    retry: RetrySettings
    work: Callable[[Window], Outcome]


def run_partitions(context: dg.AssetExecutionContext, step: PartitionStep) -> dict[str, Outcome]:
    """Work on every partition of the run and record what became of each.

    Partitions that met a transient error are tried again, by themselves, as often as the settings say; what went well
    is not done twice, neither in this run nor in one that is executed again from failure.

    Returns:
        The outcomes by partition key, when all partitions went well.

    Raises:
        dagster.Failure: partitions failed for good; the others are recorded as materialised.
    """
    done = _done_before(context, step)
    failed: dict[str, Exception] = {}
    pending = [key for key in context.partition_keys if key not in done]
    for attempt in range(step.retry.max_retries + 1):
        for key in pending:
            try:
                done[key] = _told(step.work(window_of(key, step.kind)), attempt + 1)
                failed.pop(key, None)
            except Exception as error:
                context.log.exception("Partition %s failed", key)
                failed[key] = error
        pending = [key for key, error in failed.items() if is_transient(error)]
        if not pending or attempt == step.retry.max_retries:
            break
        wait = seconds_to_wait(step.retry, attempt)
        context.log.warning("%d partitions met an error that may pass; tried again in %.1f s", len(pending), wait)
        time.sleep(wait)
    if failed:
        _record_good_partitions(context, step, done)
        raise _failure(failed, len(context.partition_keys))
    for key, outcome in done.items():
        for asset_key, metadata in outcome.metadata.items():
            context.add_asset_metadata(metadata=metadata, asset_key=asset_key, partition_key=key)
    return done


def seconds_to_wait(retry: RetrySettings, attempt: int) -> float:
    """Return how long to wait after the tries numbered 0, 1, 2, ...: twice as long each time, give or take a half."""
    return retry.delay_seconds * (1 << attempt) * random.uniform(0.5, 1.5)  # noqa: S311 (only to part the tries)


def data_version(code_version: str, outcomes: Mapping[str, Outcome]) -> dg.DataVersion:
    """Return the version of a run's data; Dagster takes one for all partitions of a run.

    It begins with the code version, since this is the one version tag that Dagster can look up for all partitions.
    """
    data = fingerprint({key: outcome.fingerprint for key, outcome in outcomes.items()})
    return dg.DataVersion(f"{code_version}:{data}")


def _done_before(context: dg.AssetExecutionContext, step: PartitionStep) -> dict[str, Outcome]:
    """Return what a run recorded of its good partitions from whose failure this one goes on; nothing for any other run.

    What was recorded by another version of the code is done again.
    """
    run = context.run
    if run.parent_run_id is None or not run.is_resume_retry:
        return {}
    recorded: dict[str, dict[dg.AssetKey, dg.AssetMaterialization]] = {}
    for entry in context.instance.all_logs(run.parent_run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION):
        made = entry.asset_materialization
        if made and made.partition and (made.tags or {}).get(_CODE_VERSION) == step.code_version:
            recorded.setdefault(made.partition, {})[made.asset_key] = made
    return {
        key: Outcome(
            {asset: made[asset].metadata for asset in step.asset_keys},
            (made[step.asset_keys[0]].tags or {}).get(_DATA_VERSION, ""),
        )
        for key, made in recorded.items()
        if made.keys() >= set(step.asset_keys)
    }


def _told(outcome: Outcome, attempts: int) -> Outcome:
    if attempts == 1:
        return outcome
    return replace(outcome, metadata={key: {**said, "attempts": attempts} for key, said in outcome.metadata.items()})


def _record_good_partitions(
    context: dg.AssetExecutionContext, step: PartitionStep, done: Mapping[str, Outcome]
) -> None:
    for key, outcome in done.items():
        for asset_key in step.asset_keys:
            context.log_event(
                dg.AssetMaterialization(
                    asset_key,
                    partition=key,
                    metadata=outcome.metadata.get(asset_key, {}),
                    tags={
                        _CODE_VERSION: step.code_version,
                        _DATA_VERSION: data_version(step.code_version, {key: outcome}).value,
                    },
                )
            )


def _failure(failed: Mapping[str, Exception], total: int) -> dg.Failure:
    said = {key: sentence(error) for key, error in failed.items()}
    named = " ".join(f"{key}: {text}" for key, text in list(said.items())[:_NAMED])
    more = f" And {len(failed) - _NAMED} more." if len(failed) > _NAMED else ""
    return dg.Failure(
        description=f"{len(failed)} of {total} partitions failed, the others are stored. {named}{more}",
        metadata={"failed_partitions": dg.MetadataValue.json(said)},
        allow_retries=False,
    )
