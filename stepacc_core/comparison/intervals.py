"""How far a mean change can be trusted: an interval for it, seeded, so that equal data give equal output."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from typing import Any, Literal

from stepacc_core.comparison.observations import mean
from stepacc_core.comparison.pairing import Pair, scores

Method = Literal["exact", "bootstrap", "normal"]
Unit = Literal["pairs", "runs"]

CONFIDENCE = 0.95
_RESAMPLES = 9_999
_SEED = 20_261_130
_LARGE = 2_000
"""Scores from which the mean is normal for all practical purposes, and a bootstrap only slow."""
_CELLS = 2_000_000
"""Numbers drawn at a time, which bounds the memory of a bootstrap."""


@dataclass(frozen=True, slots=True)
class Change:
    """A mean change over pairs with its 95 % interval.

    Attributes:
        mean: mean over the pairs of the second side less the first; a task counts once however often it ran.
        low: lower end of the interval.
        high: upper end.
        method: `exact` (binomial, conservative), `bootstrap` (bias-corrected and accelerated) or `normal`.
        unit: what the interval takes as drawn at random: the pairs, or the runs within each pair.
    """

    mean: float
    low: float
    high: float
    method: Method
    unit: Unit


def change_over(pairs: Sequence[Pair]) -> Change | None:
    """Return the mean change over pairs, with an interval; None without any pair.

    Where every pair has two runs or more on both sides the runs are resampled within their pair: these tasks, other
    runs. Else the pairs are resampled: other traces, or other tasks. Changes that are all -1, 0 or 1 (as of scores that
    are 0 or 1) get an exact interval: the shares that rose and that fell, each by Clopper and Pearson at half the
    error, which together cover at least 95 %. So do changes without any spread, of which a bootstrap would say that
    nothing else can happen; scores lie within 0 and 1 for that.
    """
    if not pairs:
        return None
    changes = [pair.change for pair in pairs]
    middle = mean(changes)
    samples = [values for pair in pairs for values in (scores(pair.after), scores(pair.before))]
    if all(len(values) > 1 for values in samples) and any(_has_spread(values) for values in samples):
        return Change(middle, *_of_runs(samples, middle), unit="runs")
    if set(changes) <= {-1.0, 0.0, 1.0}:
        rose = _share(sum(change > 0 for change in changes), len(changes))
        fell = _share(sum(change < 0 for change in changes), len(changes))
        return Change(middle, rose[0] - fell[1], rose[1] - fell[0], "exact", "pairs")
    if not _has_spread(changes):
        _, other = _share(0, len(changes))
        return Change(middle, middle - other * (1 + middle), middle + other * (1 - middle), "exact", "pairs")
    return Change(middle, *_of_changes(changes, middle), unit="pairs")


def _of_changes(changes: Sequence[float], middle: float) -> tuple[float, float, Method]:
    if len(changes) > _LARGE:
        return _normal(middle, _variance(changes) / len(changes))
    return _bootstrap([changes])


def _of_runs(samples: Sequence[Sequence[float]], middle: float) -> tuple[float, float, Method]:
    if sum(map(len, samples)) > _LARGE:
        pairs = len(samples) // 2
        return _normal(middle, fsum(_variance(values) / len(values) for values in samples) / pairs**2)
    return _bootstrap(samples)


def _bootstrap(samples: Sequence[Sequence[float]]) -> tuple[float, float, Method]:
    import numpy as np  # noqa: PLC0415 (slow to load)
    from scipy import stats  # noqa: PLC0415 (slow to load)

    signs = [1.0] if len(samples) == 1 else [1.0, -1.0] * (len(samples) // 2)
    pairs = max(1, len(samples) // 2)

    def mean_change(*drawn: Any, axis: int = -1) -> Any:
        return sum(sign * each.mean(axis=axis) for sign, each in zip(signs, drawn, strict=True)) / pairs

    def interval(method: Literal["BCa", "percentile"]) -> tuple[float, float]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a BCa that cannot be had, which is NaN then
            found = stats.bootstrap(
                [np.asarray(values, dtype=float) for values in samples],
                mean_change,
                n_resamples=_RESAMPLES,
                batch=max(1, _CELLS // max(map(len, samples))),
                vectorized=True,
                confidence_level=CONFIDENCE,
                method=method,
                rng=np.random.default_rng(_SEED),
            ).confidence_interval
        return float(found.low), float(found.high)

    low, high = interval("BCa")
    if not low <= high:
        low, high = interval("percentile")
    return low, high, "bootstrap"


def _normal(middle: float, variance: float) -> tuple[float, float, Method]:
    from scipy import stats  # noqa: PLC0415 (slow to load)

    half = float(stats.norm.ppf((1 + CONFIDENCE) / 2)) * sqrt(variance)
    return middle - half, middle + half, "normal"


def _share(count: int, total: int) -> tuple[float, float]:
    """Return the interval of a share at half the error, so that two of them together have the whole."""
    from scipy import stats  # noqa: PLC0415 (slow to load)

    found = stats.binomtest(count, total).proportion_ci(1 - (1 - CONFIDENCE) / 2, method="exact")
    return float(found.low), float(found.high)


def _has_spread(values: Sequence[float]) -> bool:
    return min(values) != max(values)


def _variance(values: Sequence[float]) -> float:
    middle = mean(values)
    return fsum((value - middle) ** 2 for value in values) / (len(values) - 1)
