"""The gates of a source: what its scores must meet, told by an asset check."""

from dataclasses import dataclass

from stepacc_core.comparison.gate import Criteria
from stepacc_core.errors import ConfigError
from stepacc_core.model import PartitionType


@dataclass(frozen=True, slots=True)
class GateSettings:
    """What the scores of one metric must meet.

    Args:
        metric: name of the metric, or of a member of its family; the source's only metric where left out.
        partition_type: what is judged; traces where the source scores both and nothing is said.
        newest: only the newest windows, so many, that have anything in them; None: all.
        min_mean: least mean of the scores.
        min_coverage: least share of the known occurrences that have a score.
        min_scored: least number of scores.
        no_forbidden: whether no step that a reference forbids may have run.
        baseline: name of a baseline that the scores must be no worse than, beyond noise.
        margin: by how much they may fall below it.
        alpha: chance of failing the baseline where nothing fell.
        all_tasks: whether every task of the baseline must have a score now.
        shared_references: compare only what has the expectation that it had in the baseline.
        blocking: whether what lies downstream of the scores waits for the gate, and is not made where it fails.

    Raises:
        ConfigError: a value is out of its range, or nothing is asked.
    """

    metric: str | None = None
    partition_type: PartitionType | None = None
    newest: int | None = None
    min_mean: float | None = None
    min_coverage: float | None = None
    min_scored: int = 1
    no_forbidden: bool = False
    baseline: str | None = None
    margin: float = 0.0
    alpha: float = 0.05
    all_tasks: bool = False
    shared_references: bool = False
    blocking: bool = False

    def __post_init__(self) -> None:
        """Refuse what no scores can meet."""
        _ = self.criteria
        if self.newest is not None and self.newest < 1:
            msg = f"newest is {self.newest}; use 1 or more windows, or leave it out."
            raise ConfigError(msg, "newest")

    @property
    def criteria(self) -> Criteria:
        """What is asked of the scores."""
        return Criteria(
            min_mean=self.min_mean,
            min_coverage=self.min_coverage,
            min_scored=self.min_scored,
            no_forbidden=self.no_forbidden,
            against_baseline=self.baseline is not None,
            margin=self.margin,
            alpha=self.alpha,
            all_tasks=self.all_tasks,
            shared_references=self.shared_references,
        )
