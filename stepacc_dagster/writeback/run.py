"""Writing the current scores of a source back, as far as their destination does not have them yet."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa

from stepacc_core.errors import ConfigError
from stepacc_dagster.evaluators import Evaluator
from stepacc_dagster.export.choice import Kind
from stepacc_dagster.sources import Source
from stepacc_dagster.storage.locks import lock
from stepacc_dagster.storage.write_backs import due_scores, note_written
from stepacc_dagster.writeback.delivery import Delivered, deliver
from stepacc_dagster.writeback.destinations import destination_name, opened_destination
from stepacc_dagster.writeback.settings import WriteBackSettings

_PAGE = 500
"""Scores of one transaction, which holds the lock while they are sent."""
_KEPT_PROBLEMS = 20


@dataclass(slots=True)
class WrittenBack:
    """What was written back.

    Attributes:
        destination: kind and address of the server.
        written: scores that it has now.
        refused: scores that it does not take.
        problems: what it said of the first ones of them, and of others that it took.
    """

    destination: str
    written: int = 0
    refused: int = 0
    problems: list[str] = field(default_factory=list)

    def add(self, delivered: Delivered) -> None:
        """Add what became of some more scores."""
        self.written += len(delivered.written)
        self.refused += len(delivered.refused)
        told = [
            f"{score.partition_type} {score.partition_id}, {score.metric}: {said}" for score, said in delivered.refused
        ]
        self.problems = [*self.problems, *told, *delivered.remarks][:_KEPT_PROBLEMS]


def written_kinds(settings: WriteBackSettings, evaluators: Sequence[Evaluator]) -> tuple[Kind, ...]:
    """Return which scores of a source are written back: by the versions and configs it has now.

    Raises:
        ConfigError: the settings name a metric that the source has not.
    """
    known = [name for evaluator in evaluators for name in {evaluator.name: None, **dict.fromkeys(evaluator.row_names)}]
    for name in settings.metrics:
        if name not in known:
            msg = f"write_back.metrics names {name!r}, of which there are no scores; use {', '.join(known)}."
            raise ConfigError(msg, "write_back")
    return tuple(
        Kind(name, evaluator.metric.manifest.version, evaluator.config_hash)
        for evaluator in evaluators
        for name in evaluator.row_names
        if not settings.metrics or {name, evaluator.name} & set(settings.metrics)
    )


def write_back(
    engine: sa.Engine,
    source: Source,
    settings: WriteBackSettings,
    evaluators: Sequence[Evaluator],
    tell: Callable[[str], None] = lambda _: None,
) -> WrittenBack:
    """Write the scores that the destination does not have yet; those of other versions and configs stay as they are.

    Args:
        engine: the database.
        source: the source.
        settings: its destination.
        evaluators: its metrics and their configs.
        tell: told of each page of scores in a sentence.

    Raises:
        WriteBackError: the server cannot be used; what was written until then is noted, and is not sent again.
    """
    result = WrittenBack(destination_name(settings))
    checked = False
    with opened_destination(settings, source.name) as destination:
        for kind in written_kinds(settings, evaluators):
            after = 0
            while True:
                with engine.begin() as conn:
                    # Two runs at once would both find nothing there, and MLflow would have everything twice.
                    lock(conn, "write_back", source.name, result.destination)
                    due = due_scores(
                        conn,
                        source.name,
                        result.destination,
                        metric=kind.metric,
                        metric_version=kind.metric_version,
                        config_hash=kind.config_hash,
                        after=after,
                        most=_PAGE,
                    )
                    if not due:
                        break
                    if not checked:
                        destination.check()
                        checked = True
                    delivered = deliver(destination, due)
                    note_written(conn, source.name, result.destination, delivered.written)
                result.add(delivered)
                tell(f"{kind}: {len(delivered.written)} of {len(due)} scores written to {result.destination}")
                if delivered.stopped is not None:
                    raise delivered.stopped
                after = due[-1].score_id
    return result
