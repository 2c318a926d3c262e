"""A permutation test of whether scores fell, task by task.

Under the null hypothesis that a task's runs before and after come from one distribution, which of them are called
"after" is arbitrary. So the labels are exchanged within each task, and never across tasks, which makes a hard task no
evidence against anybody. With one run of each task on each side it is the paired test by sign flips; with one task the
two-sample test, and of scores that are 0 or 1 Fisher's exact test.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, fsum
from typing import Any

from stepacc_core.comparison.observations import mean

RESAMPLES = 9_999
_ENUMERATED = 20_000
"""Ways to exchange the labels up to which all of them are tried."""
_LARGE = 500
"""Different scores, counted stratum by stratum, from which the permutation distribution is normal for all practical
purposes. Drawing from it takes time in proportion to this number."""
_SEED = 20_261_130
_TIE = 1e-9
"""Mean changes closer than this are the same; they differ by rounding only."""


@dataclass(frozen=True, slots=True)
class Stratum:
    """The scores of one task, or of one occurrence, on both sides; at least one each."""

    before: tuple[float, ...]
    after: tuple[float, ...]

    @property
    def ways(self) -> int:
        """In how many ways the labels can be exchanged."""
        return comb(len(self.before) + len(self.after), len(self.after))


def mean_change(strata: Sequence[Stratum]) -> float:
    """Return the mean over the strata of the mean after less the mean before."""
    return mean(mean(each.after) - mean(each.before) for each in strata)


def smallest_p(strata: Sequence[Stratum]) -> float:
    """Return the smallest p value that so many runs can give, whatever their scores: below it nothing can be told."""
    ways = 1
    for each in strata:
        ways *= each.ways
        if ways > RESAMPLES:
            return 1 / (RESAMPLES + 1)
    return 1 / ways


def p_of_drop(strata: Sequence[Stratum], margin: float = 0.0, resamples: int = RESAMPLES) -> float:
    """Return the one-sided p value of the null hypothesis that the scores fell by no more than a margin.

    All ways to exchange the labels are tried where there are at most 20,000, so that the p value is exact; a seeded
    draw of `resamples` of them up to 500 different scores; and the normal distribution with the variance of the
    permutations beyond. With a margin the later scores are raised by it first, which makes the test approximate.

    Args:
        strata: at least one.
        margin: 0 or more, in units of the score.
        resamples: how many are drawn.
    """
    import numpy as np  # noqa: PLC0415 (slow to load)

    raised = [Stratum(each.before, tuple(score + margin for score in each.after)) for each in strata]
    observed = mean_change(raised) * len(raised)
    ways = 1
    for each in raised:
        ways = min(ways * each.ways, _ENUMERATED + 1)
    if ways <= _ENUMERATED:
        return float(np.mean(_enumerated(raised) <= observed + _TIE))
    if sum(len({*each.before, *each.after}) for each in raised) > _LARGE:
        return _normal(raised, observed)
    drawn = _drawn(raised, resamples)
    return float((np.sum(drawn <= observed + _TIE) + 1) / (resamples + 1))


def _enumerated(strata: Sequence[Stratum]) -> Any:
    """Return the summed change of each way to exchange the labels."""
    import numpy as np  # noqa: PLC0415 (slow to load)

    totals = np.zeros(1)
    for each in strata:
        totals = np.add.outer(totals, _all_changes(each)).ravel()
    return totals


def _drawn(strata: Sequence[Stratum], resamples: int) -> Any:
    """Return the summed change of a seeded draw of ways to exchange the labels."""
    import numpy as np  # noqa: PLC0415 (slow to load)

    rng = np.random.default_rng(_SEED)
    totals = np.zeros(resamples)
    for each in strata:
        if each.ways <= _ENUMERATED:
            totals += rng.choice(_all_changes(each), resamples)
            continue
        values, counts = np.unique([*each.before, *each.after], return_counts=True)
        chosen = rng.multivariate_hypergeometric(counts, len(each.after), resamples, method="marginals")
        totals += _change(float(values @ counts), chosen @ values, each)
    return totals


def _all_changes(stratum: Stratum) -> Any:
    """Return the change of each way to exchange the labels of one stratum."""
    import numpy as np  # noqa: PLC0415 (slow to load)

    values = np.asarray([*stratum.before, *stratum.after])
    chosen = np.asarray(list(combinations(range(len(values)), len(stratum.after))))
    return _change(values.sum(), values[chosen].sum(axis=1), stratum)


def _change(total: Any, after: Any, stratum: Stratum) -> Any:
    return after / len(stratum.after) - (total - after) / len(stratum.before)


def _normal(strata: Sequence[Stratum], observed: float) -> float:
    from scipy import stats  # noqa: PLC0415 (slow to load)

    variance = fsum(map(_variance, strata))
    return float(stats.norm.cdf(observed, scale=variance**0.5)) if variance else 1.0


def _variance(stratum: Stratum) -> float:
    """Return the variance of a stratum's change over all ways to exchange its labels."""
    values = [*stratum.before, *stratum.after]
    middle = mean(values)
    spread = fsum((value - middle) ** 2 for value in values) / (len(values) - 1)
    return spread * (1 / len(stratum.before) + 1 / len(stratum.after))
