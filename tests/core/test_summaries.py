"""What repeated runs of a task amount to: intervals and chances, against values worked out by hand and by counting."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepacc_core.errors import ConfigError
from stepacc_core.summaries import SummarySettings, TaskRuns, pass_at, pass_hat, statistics, wilson


def test_five_runs_with_four_passes() -> None:
    """The contract's own figures: pass@2 is 1.0, pass^2 0.6, the interval about 0.376 to 0.964."""
    found = statistics(TaskRuns(7, 5, 1, 1, 4, 0.8), (1, 2, 3, 5, 6))
    assert found.pass_rate == 0.8
    assert found.interval is not None
    assert (round(found.interval.low, 3), round(found.interval.high, 3)) == (0.376, 0.964)
    assert found.pass_at == {1: pytest.approx(0.8), 2: 1.0, 3: 1.0, 5: 1.0, 6: None}
    assert found.pass_hat == {1: 0.8, 2: 0.6, 3: 0.4, 5: 0.0, 6: None}


def test_without_a_scored_run_nothing_is_known() -> None:
    """Runs that failed are counted, and are no zeros."""
    found = statistics(TaskRuns(2, 0, 2, 0, 0, None), (1, 2))
    assert (found.pass_rate, found.interval) == (None, None)
    assert found.pass_at == found.pass_hat == {1: None, 2: None}


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.integers(1, 8))
def test_the_chances_are_those_of_drawing(runs: list[bool], k: int) -> None:
    """pass@k and pass^k are the shares of all draws of k runs in which any, and all, pass."""
    draws = list(combinations(runs, k))
    any_pass, all_pass = pass_at(k, sum(runs), len(runs)), pass_hat(k, sum(runs), len(runs))
    if not draws:
        assert any_pass is None
        assert all_pass is None
    else:
        assert any_pass == pytest.approx(sum(map(any, draws)) / len(draws))
        assert all_pass == pytest.approx(sum(map(all, draws)) / len(draws))


@given(st.integers(1, 60), st.data())
def test_the_interval_holds_the_rate(n: int, data: st.DataObject) -> None:
    """It lies within 0 and 1, around the rate, and has width even where all runs pass or none does."""
    passes = data.draw(st.integers(0, n))
    found = wilson(passes, n)
    assert 0 <= found.low <= passes / n + 1e-12
    assert passes / n - 1e-12 <= found.high <= 1
    assert found.low < found.high


def test_what_a_pass_is() -> None:
    """The best score alone, unless a threshold says otherwise."""
    settings = SummarySettings(pass_thresholds={"agent.step_accuracy": 0.8})
    assert settings.pass_threshold("agent.step_accuracy", lower_is_better=False) == 0.8
    assert settings.pass_threshold("trajectory_match.passed", lower_is_better=False) == 1
    assert settings.pass_threshold("acme.cost", lower_is_better=True) == 0


@pytest.mark.parametrize("ks", [(0,), (1, 1), (2, -1)])
def test_numbers_of_runs_that_there_cannot_be_are_refused(ks: tuple[int, ...]) -> None:
    """The sentence shows them."""
    with pytest.raises(ConfigError, match=r"summaries\.k is \[.*each 1 or more"):
        SummarySettings(ks=ks)
