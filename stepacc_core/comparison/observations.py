"""What is compared: scores of one metric version and config, and what each was measured against."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import fsum

from stepacc_core.errors import ResultError
from stepacc_core.model import PartitionType, Status

SHOWN_HASH = 8
"""Characters of a config's hash that people are shown."""

OLDEST, NEWEST = "", "~"
"""What stands for the first and the last window there is; never shown to anybody."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The evaluation of one trace or session by one version and config of a metric.

    Attributes:
        partition_id: id of the trace or session.
        score: only when `status` is `scored`; a failure is never a 0.
        reference_hash: hash of the expectation it was measured against; None where there was none.
        steps_hash: hash of what the metric read of it.
        annotation_id: the annotation revision that set the expectation.
        score_id: id of the stored evaluation; None where it is not stored.

    Raises:
        ResultError: the score does not go with the status.
    """

    partition_type: PartitionType
    partition_id: str
    status: Status
    score: float | None = None
    task_id: str | None = None
    reference_hash: str | None = None
    steps_hash: str | None = None
    annotation_id: int | None = None
    score_id: int | None = None

    def __post_init__(self) -> None:
        """Refuse a score without its status, and the reverse."""
        if (self.score is not None) is not (self.status == "scored"):
            msg = (
                f"{self.partition_type} `{self.partition_id}` is {self.status} and has the score {self.score!r}; only "
                "what is scored has one."
            )
            raise ResultError(msg)

    @property
    def occurrence(self) -> tuple[PartitionType, str]:
        """What was evaluated."""
        return self.partition_type, self.partition_id


@dataclass(frozen=True, slots=True)
class Selection:
    """Scores that may be put into one mean: of one source, metric, version, config and type of occurrence.

    `first` and `last` are the keys of the first and last window, both included; the empty text and `~` stand for the
    oldest and the newest there is. Metric, version and config are empty where nothing is there that has any.
    """

    source: str
    metric: str
    metric_version: str
    config_hash: str
    partition_type: PartitionType
    first: str = OLDEST
    last: str = NEWEST

    @property
    def bounds(self) -> tuple[str | None, str | None]:
        """The keys of the first and last window; None for the oldest and the newest there is."""
        return self.first or None, None if self.last == NEWEST else self.last

    def document(self) -> dict[str, str | None]:
        """Return the selection as JSON values, null where there is none."""
        first, last = self.bounds
        named = {name: getattr(self, name) or None for name in self.__slots__}
        return {**named, "first": first, "last": last}

    @property
    def windows(self) -> str:
        """The windows in words."""
        if self.first and self.first == self.last:
            return self.first
        begin = f"from {self.first}" if self.first else ""
        end = f"to {self.last}" if self.last != NEWEST else ""
        return " ".join(part for part in (begin, end) if part) or "all windows"

    def __str__(self) -> str:
        """Name the selection as a message would."""
        metric = f"{self.metric} {self.metric_version}".strip()
        config = f"config {self.config_hash[:SHOWN_HASH]}" if self.config_hash else ""
        parts = (self.source, metric, config, f"{self.partition_type}s", self.windows)
        return ", ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class Counts:
    """How many observations have which status, and the mean of the scores; None where nothing is scored."""

    scored: int
    failed: int
    not_applicable: int
    mean: float | None

    @classmethod
    def of(cls, observations: Iterable[Observation]) -> "Counts":
        """Count observations."""
        counts: dict[Status, int] = {"scored": 0, "failed": 0, "not_applicable": 0}
        scores = []
        for each in observations:
            counts[each.status] += 1
            if each.score is not None:
                scores.append(each.score)
        return cls(**counts, mean=mean(scores) if scores else None)

    @property
    def total(self) -> int:
        """All of them."""
        return self.scored + self.failed + self.not_applicable


def mean(values: Iterable[float]) -> float:
    """Return the mean of at least one value; in whatever order they come, the same."""
    listed = list(values)
    if len(listed) == 1:
        return float(listed[0])
    return fsum(listed) / len(listed)


def out_of_range(observations: Iterable[Observation]) -> str:
    """Say which scores do not lie from 0 to 1, NaN among them; empty where all do."""
    found = [each for each in observations if each.score is not None and not 0 <= each.score <= 1]
    if not found:
        return ""
    first = f"{found[0].partition_type} {found[0].partition_id} has {found[0].score:g}"
    return f"{len(found)} {'does' if len(found) == 1 else 'do'} not lie from 0 to 1 ({first})"
