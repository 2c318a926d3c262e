"""What a report tells, read from the tables, before any of it is drawn."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from stepacc_core.model import PartitionType


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """The scores of one period by one version and config.

    `period` is a day, or an hour of a short range (`2026-11-30-14:00`); `version` is the label of version and config.
    """

    period: str
    version: str
    scored: int
    mean: float


@dataclass(frozen=True, slots=True)
class Bin:
    """Scores from `low` up to, but without, `high`; the last bin holds those that are exactly 1."""

    label: str
    count: int


@dataclass(frozen=True, slots=True)
class StepCount:
    """A step, or a pair of an expected and an observed one, with how often and in how many occurrences."""

    expected: str | None
    observed: str | None
    count: int
    occurrences: int


@dataclass(frozen=True, slots=True)
class StepFaults:
    """The steps that most often go wrong, the most frequent first."""

    missing: tuple[StepCount, ...] = ()
    extra: tuple[StepCount, ...] = ()
    substituted: tuple[StepCount, ...] = ()
    confusions: tuple[StepCount, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is anything to show."""
        return bool(self.missing or self.extra or self.substituted)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why occurrences have no score: a failure code or a reason, with one of them as an example.

    `message` is that of a failure, perhaps of another one than the example; None for what is not applicable.
    """

    status: str
    code: str
    count: int
    message: str | None
    example_id: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """What became of the occurrences.

    `skipped` and `unsettled` are None where no window was scored by this version and config since they are counted.
    Unlike all other figures they are counted per window, traces and sessions together.
    """

    scored: int
    reasons: tuple[Reason, ...]
    skipped: int | None
    unsettled: int | None

    @property
    def failed(self) -> int:
        """Occurrences that could not be scored."""
        return sum(reason.count for reason in self.reasons if reason.status == "failed")

    @property
    def not_applicable(self) -> int:
        """Occurrences to which the metric does not apply."""
        return sum(reason.count for reason in self.reasons if reason.status == "not_applicable")

    @property
    def share(self) -> float | None:
        """Scored occurrences as a share of all that have a row; None without any."""
        rows = self.scored + self.failed + self.not_applicable
        return self.scored / rows if rows else None


@dataclass(frozen=True, slots=True)
class TaskScores:
    """The scores of one task; `task_id` is None for the occurrences that name none."""

    task_id: str | None
    scored: int
    unscored: int
    mean: float | None
    lowest: float | None


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks with the worst means, and how many there are in all."""

    worst: tuple[TaskScores, ...]
    total: int


@dataclass(frozen=True, slots=True)
class WorstScore:
    """A scored occurrence with the reasons of its score; `measured_against` says in words what set the expectation."""

    partition_id: str
    task_id: str | None
    window_key: str
    score: float
    run_id: str | None
    measured_against: str
    trace_id: str | None
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MemberMean:
    """One member of a metric's family."""

    name: str
    scored: int
    mean: float | None


@dataclass(frozen=True, slots=True)
class View:
    """The scores of traces, or of sessions, by one metric in the version and config the source has now."""

    metric: str
    headline: str
    display_name: str
    version: str
    config_hash: str
    partition_type: PartitionType
    lower_is_better: bool
    mean: float | None
    trend: tuple[TrendPoint, ...]
    bins: tuple[Bin, ...]
    coverage: Coverage
    faults: StepFaults
    tasks: Tasks
    worst: tuple[WorstScore, ...]
    members: tuple[MemberMean, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """All views of a source over its windows from `first` to `last`; None where it has none."""

    source: str
    first: str | None
    last: str | None
    made_at: datetime
    views: tuple[View, ...]
