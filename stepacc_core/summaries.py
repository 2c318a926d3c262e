"""Summaries of repeated runs of a task (contract of `agent.trajectory_match`, section 6).

Runs are summarised per task, metric version, config and reference revision: whoever counts them sees to that. Pure
functions of counts; the statistics are scipy's and the standard library's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import comb

from stepacc_core.errors import ConfigError

SUMMARIES_VERSION = "1"
"""Version of what is computed here; raised when the same runs would give another summary."""

_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class SummarySettings:
    """How runs are summarised.

    Attributes:
        ks: for which numbers of runs pass@k and pass^k are given; each 1 or more, in the order shown.
        pass_thresholds: by name of a metric or member, the score from which a run passes (up to which, where lower is
            better). 1 where none is given, and 0 where lower is better: nothing short of the best score passes.

    Raises:
        ConfigError: a k is below 1 or stands twice.
    """

    ks: tuple[int, ...] = (1, 2, 3, 5)
    pass_thresholds: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse numbers of runs that there cannot be."""
        if len(set(self.ks)) < len(self.ks) or any(k < 1 for k in self.ks):
            msg = f"summaries.k is {list(self.ks)}; give numbers of runs, each 1 or more and each once."
            raise ConfigError(msg, "summaries.k")

    def pass_threshold(self, metric: str, *, lower_is_better: bool) -> float:
        """Return the score from which, or up to which, a run passes by a metric or member."""
        return self.pass_thresholds.get(metric, 0.0 if lower_is_better else 1.0)


@dataclass(frozen=True, slots=True)
class TaskRuns:
    """What became of the runs of a task: all of them, and those that were scored, failed or passed."""

    n: int
    n_scored: int
    n_failed: int
    n_not_applicable: int
    passes: int
    mean: float | None


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval of a rate; 0 <= low <= high <= 1."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class RunStatistics:
    """What the runs of a task tell of the next ones.

    Attributes:
        pass_rate: passes of the scored runs; None where none is scored.
        interval: its Wilson 95 % interval; None where none is scored.
        pass_at: by k, the chance that at least one of k runs passes; None with fewer than k scored.
        pass_hat: by k, the chance that all of k runs pass; None with fewer than k scored.
    """

    pass_rate: float | None
    interval: Interval | None
    pass_at: Mapping[int, float | None]
    pass_hat: Mapping[int, float | None]


def statistics(runs: TaskRuns, ks: Sequence[int]) -> RunStatistics:
    """Return the pass rate with its interval, pass@k and pass^k; runs without a score count for none of them."""
    n, passes = runs.n_scored, runs.passes
    return RunStatistics(
        pass_rate=passes / n if n else None,
        interval=wilson(passes, n) if n else None,
        pass_at={k: pass_at(k, passes, n) for k in ks},
        pass_hat={k: pass_hat(k, passes, n) for k in ks},
    )


@lru_cache(maxsize=4096)
def wilson(passes: int, n: int) -> Interval:
    """Return the Wilson 95 % interval of a pass rate over n runs, n at least 1 (Wilson 1927, by scipy)."""
    from scipy.stats import binomtest  # noqa: PLC0415 (a second of waiting, which no other use of the core pays for)

    found = binomtest(passes, n).proportion_ci(confidence_level=_CONFIDENCE, method="wilson")
    return Interval(float(found.low), float(found.high))


def pass_at(k: int, passes: int, n: int) -> float | None:
    """Return pass@k: the chance that of k of the n runs, drawn without putting back, at least one passes.

    That is the unbiased estimate of Chen et al. 2021, "Evaluating large language models trained on code". None with
    fewer than k runs.
    """
    return None if n < k else 1 - comb(n - passes, k) / comb(n, k)


def pass_hat(k: int, passes: int, n: int) -> float | None:
    """Return pass^k: the chance that of k of the n runs, drawn without putting back, all pass.

    That is the estimate of Yao et al. 2024, "tau-bench". None with fewer than k runs.
    """
    return None if n < k else comb(passes, k) / comb(n, k)
