"""Scoring: the partitions of one window are evaluated and stored, in one transaction."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import sqlalchemy as sa

from stepacc_core.metrics import Evaluation, evaluate
from stepacc_core.model import CanonicalPartition, PartitionType
from stepacc_core.policy import apply_policy
from stepacc_dagster.errors import PartitionTimeoutError, ScorerError
from stepacc_dagster.sources import Evaluator, Source
from stepacc_dagster.storage.copy import closed
from stepacc_dagster.storage.partitions import load_session_partitions, load_trace_partitions
from stepacc_dagster.storage.scores import ScoreRow, Written, write_scores
from stepacc_dagster.tally import WindowTally
from stepacc_dagster.windows import Window

_LOADERS: dict[PartitionType, Callable[[sa.Connection, str, Window], Iterator[CanonicalPartition]]] = {
    "trace": load_trace_partitions,
    "session": load_session_partitions,
}


@dataclass(frozen=True, slots=True)
class WindowScores:
    """What the scoring of a window found and wrote."""

    tally: WindowTally
    written: Written


def score_window(engine: sa.Engine, source: Source, evaluator: Evaluator, window: Window, run_id: str) -> WindowScores:
    """Evaluate every trace and session of a window and store the evaluations.

    Running it again confirms the rows that are there; an occurrence that cannot be scored gets a row that says why and
    costs the others nothing.

    Raises:
        PartitionTimeoutError: the window took longer than the manifest allows.
        ScorerError: the metric raised an error.
        sqlalchemy.exc.DBAPIError: a database failed. In all cases nothing of the window was changed.
    """
    tally = WindowTally(lower_is_better=evaluator.metric.manifest.direction == "lower_is_better")
    manifest = evaluator.metric.manifest
    with (
        engine.begin() as writer,
        engine.connect() as reader,
        closed(_partitions(reader, source, window)) as partitions,
    ):
        rows = _rows(_in_time(partitions, evaluator, window), source, evaluator, tally)
        written = write_scores(
            writer,
            source.name,
            window,
            metric=manifest.name,
            metric_version=manifest.version,
            config_hash=evaluator.config_hash,
            run_id=run_id,
            rows=rows,
        )
    return WindowScores(tally, written)


def _partitions(reader: sa.Connection, source: Source, window: Window) -> Iterator[CanonicalPartition]:
    # One snapshot for traces and sessions: an ingest that commits in between is seen whole or not at all.
    reader.execution_options(isolation_level="REPEATABLE READ")
    for partition_type in source.partition_types:
        yield from _LOADERS[partition_type](reader, source.name, window)


def _in_time(
    partitions: Iterator[CanonicalPartition], evaluator: Evaluator, window: Window
) -> Iterator[CanonicalPartition]:
    """Pass partitions on, and look at the time after each.

    Time begins with the first: nobody is to blame for the wait until another run's lock is free.
    """
    manifest = evaluator.metric.manifest
    limit = manifest.execution.timeout_seconds
    deadline = time.monotonic() + limit
    for partition in partitions:
        yield partition
        if time.monotonic() > deadline:
            raise PartitionTimeoutError(manifest.name, window.key, limit)


def _evaluate(evaluator: Evaluator, partition: CanonicalPartition) -> Evaluation:
    try:
        return evaluate(evaluator.metric, partition, evaluator.config)
    except Exception as error:
        occurrence = f"{partition.partition_type} `{partition.partition_id}`"
        raise ScorerError(evaluator.metric.manifest.name, occurrence, error) from error


def _rows(
    partitions: Iterator[CanonicalPartition], source: Source, evaluator: Evaluator, tally: WindowTally
) -> Iterator[ScoreRow]:
    annotated_only = evaluator.metric.manifest.needs_expected_steps
    for partition in partitions:
        evaluation = _evaluate(evaluator, apply_policy(partition, source.step_policy))
        skips = annotated_only and source.partition_types[partition.partition_type] == "skip"
        if skips and evaluation.reference is None:
            tally.skip()
            continue
        tally.add(partition, evaluation)
        yield ScoreRow.of(partition, evaluation)
