"""Scoring: the partitions of one window are evaluated and stored, in one transaction."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from stepacc_core.errors import ResultError
from stepacc_core.metrics import Evaluation, Evaluations, reads_content
from stepacc_core.model import CanonicalPartition, PartitionType
from stepacc_core.policy import apply_policy
from stepacc_dagster.errors import PartitionTimeoutError, ScorerError
from stepacc_dagster.evaluators import Evaluator
from stepacc_dagster.failures import is_transient, kept, sentence
from stepacc_dagster.sources import Source, scoring_rules
from stepacc_dagster.storage.copy import closed
from stepacc_dagster.storage.partitions import Wanted, load_session_partitions, load_trace_partitions
from stepacc_dagster.storage.score_rows import ScoreRow
from stepacc_dagster.storage.scores import Written, retire_scores, write_scores
from stepacc_dagster.storage.settling import Settling, Unsettled, unsettled
from stepacc_dagster.storage.work import Evaluated, ScoredCounts, content_of, note_scored, note_scoring_failed
from stepacc_dagster.tally import WindowTally
from stepacc_dagster.time_limit import TimeLimit
from stepacc_dagster.windows import Window

_CLOCK = sa.text("SELECT clock_timestamp()")
_LOADERS: dict[
    PartitionType, Callable[[sa.Connection, str, Window, Settling, Wanted], Iterator[CanonicalPartition]]
] = {
    "trace": load_trace_partitions,
    "session": load_session_partitions,
}


@dataclass(frozen=True, slots=True)
class WindowScores:
    """What the scoring of a window found and wrote.

    Attributes:
        tally: counts over the occurrences that have settled.
        written: evaluations that are new, and those that were confirmed.
        retired: scores that ceased to be current.
        unsettled: the occurrences that are still going on, which are scored once they have settled.
    """

    tally: WindowTally
    written: Written
    retired: int
    unsettled: Unsettled

    @property
    def news(self) -> bool:
        """Whether any score is another than before."""
        return self.written.inserted > 0 or self.retired > 0


def score_window(engine: sa.Engine, source: Source, evaluator: Evaluator, window: Window, run_id: str) -> WindowScores:
    """Evaluate every trace and session of a window that has settled, and store the evaluations.

    Running it again confirms the rows that are there; an occurrence that cannot be scored gets a row that says why and
    costs the others nothing. What has settled is told by the database's clock. What fails is noted with the window.

    Raises:
        PartitionTimeoutError: the window took longer than the manifest allows.
        ScorerError: the metric raised an error.
        sqlalchemy.exc.DBAPIError: a database failed. In all cases nothing of the window was changed.
    """
    manifest = evaluator.metric.manifest
    rules = scoring_rules(source)
    evaluated = Evaluated(
        source.name, window.key, manifest.name, manifest.version, evaluator.config_hash, rules, run_id
    )
    seen = _Seen()
    try:
        return _score(engine, source, evaluator, window, evaluated, seen)
    except Exception as error:
        with kept(error), engine.begin() as connection:
            final = not is_transient(error)
            note_scoring_failed(connection, evaluated, seen.content, sentence(error), final=final)
        raise


@dataclass(slots=True)
class _Seen:
    """What a scoring saw of its window: the number of its content, and what had not settled."""

    content: int = 0
    unsettled: Unsettled = field(default_factory=lambda: Unsettled(0, None))


def _score(  # noqa: PLR0913, PLR0917 (one call, to keep the try above short)
    engine: sa.Engine,
    source: Source,
    evaluator: Evaluator,
    window: Window,
    evaluated: Evaluated,
    seen: _Seen,
) -> WindowScores:
    lower_is_better = evaluator.metric.manifest.direction == "lower_is_better"
    tally = WindowTally(lower_is_better=lower_is_better, policy=source.step_policy)
    names = {"metric_version": evaluated.metric_version, "config_hash": evaluated.config_hash}
    with engine.begin() as writer, engine.connect() as reader:
        settling = source.settling.at(reader.execute(_CLOCK).scalar_one())
        reader.rollback()
        limit = _limit(evaluator, window)
        wanted = Wanted(evaluator.annotation_key, content=reads_content(evaluator.metric))
        read = _partitions(reader, source, window, settling, wanted, seen)
        with closed(read) as partitions, limit.watched():
            rows = _rows(_in_time(partitions, limit), source, evaluator, tally, limit)
            written = write_scores(
                writer, source.name, window, metric=evaluated.metric, **names, run_id=evaluated.run_id, rows=rows
            )
        retired = retire_scores(writer, source.name, window, metrics=evaluator.row_names, **names, settling=settling)
        counts = ScoredCounts(tally.scored, tally.failed.total(), tally.not_applicable.total(), tally.skipped)
        note_scored(writer, evaluated, seen.content, counts, seen.unsettled)
    return WindowScores(tally, written, retired, seen.unsettled)


def _partitions(  # noqa: PLR0913, PLR0917 (what is read)
    reader: sa.Connection, source: Source, window: Window, settling: Settling, wanted: Wanted, seen: _Seen
) -> Iterator[CanonicalPartition]:
    # One snapshot for all: an ingest or an annotation that commits in between is seen whole or not at all.
    reader.execution_options(isolation_level="REPEATABLE READ")
    seen.content = content_of(reader, source.name, window.key, wanted.key)
    seen.unsettled = unsettled(reader, source.name, window.key, settling, source.partition_types)
    for partition_type in source.partition_types:
        yield from _LOADERS[partition_type](reader, source.name, window, settling, wanted)


def _limit(evaluator: Evaluator, window: Window) -> TimeLimit:
    manifest = evaluator.metric.manifest
    seconds = manifest.execution.timeout_seconds
    return TimeLimit(seconds, lambda: PartitionTimeoutError(manifest.name, window.key, seconds))


def _in_time(partitions: Iterator[CanonicalPartition], limit: TimeLimit) -> Iterator[CanonicalPartition]:
    """Pass partitions on, and look at the time after each.

    Time begins with the first: nobody is to blame for the wait until another run's lock is free.
    """
    limit.begin()
    for partition in partitions:
        yield partition
        limit.check()


def _evaluate(evaluator: Evaluator, evaluations: Evaluations[Any], partition: CanonicalPartition) -> Evaluation:
    try:
        return _of_family(evaluator, evaluations.of(partition))
    except Exception as error:
        occurrence = f"{partition.partition_type} `{partition.partition_id}`"
        raise ScorerError(evaluator.metric.manifest.name, occurrence, error) from error


def _of_family(evaluator: Evaluator, evaluation: Evaluation) -> Evaluation:
    """Refuse members that the manifest does not name: nobody would find their rows, and none would be retired."""
    given = tuple(member.name for member in evaluation.result.family)
    named = evaluator.metric.manifest.family
    if given and given != named:
        msg = f"The result has the members {list(given)}; give those of the manifest's family, {list(named)}, in order."
        raise ResultError(msg)
    return evaluation


def _rows(
    partitions: Iterator[CanonicalPartition],
    source: Source,
    evaluator: Evaluator,
    tally: WindowTally,
    limit: TimeLimit,
) -> Iterator[ScoreRow]:
    manifest = evaluator.metric.manifest
    evaluations = Evaluations(evaluator.metric, evaluator.config)
    annotated_only = manifest.annotation_key is not None
    for partition in partitions:
        with limit:
            evaluation = _evaluate(evaluator, evaluations, apply_policy(partition, source.step_policy))
        skips = annotated_only and source.partition_types[partition.partition_type] == "skip"
        if skips and evaluation.reference is None:
            tally.skip()
            continue
        tally.add(partition, evaluation)
        yield from ScoreRow.all_of(manifest, partition, evaluation)
