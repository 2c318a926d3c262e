"""Evaluating many occurrences by one metric, where agents take the same steps again and again."""

from collections.abc import Hashable
from typing import Generic, Protocol, runtime_checkable

from pydantic import BaseModel

from stepacc_core.metrics.base import ConfigT, Evaluation, Metric, evaluate
from stepacc_core.model import CanonicalPartition

_KEPT = 1_000
"""Evaluations that are kept at most; then all are dropped."""


@runtime_checkable
class Repeats(Protocol):
    """A metric whose evaluations repeat: all that one holds, its metadata included, follows from less than a trace."""

    def alike(self, partition: CanonicalPartition, config: BaseModel) -> Hashable | None:
        """Return what the evaluation of an occurrence follows from; None where it is too large to be kept, or alone.

        Occurrences with equal answers have equal evaluations, if they are scored at all.
        """


class Evaluations(Generic[ConfigT]):
    """Evaluates occurrences by a metric and a config, those that are alike once.

    Evaluations of alike occurrences are one object: whoever changes its metadata changes it for all.
    """

    def __init__(self, metric: Metric[ConfigT], config: ConfigT) -> None:
        self._metric = metric
        self._config = config
        self._alike = metric.alike if isinstance(metric, Repeats) else None
        self._kept: dict[Hashable, Evaluation] = {}

    def of(self, partition: CanonicalPartition) -> Evaluation:
        """Return what `evaluate` returns."""
        alike = self._alike(partition, self._config) if self._alike else None
        if alike is None:
            return evaluate(self._metric, partition, self._config)
        evaluation = self._kept.get(alike)
        if evaluation is None:
            evaluation = evaluate(self._metric, partition, self._config)
            if evaluation.result.status == "scored":  # what a failure says names its occurrence
                if len(self._kept) >= _KEPT:
                    self._kept.clear()
                self._kept[alike] = evaluation
        return evaluation
