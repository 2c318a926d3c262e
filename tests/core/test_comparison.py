"""Pairs, intervals and tests of two sides of scores."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from math import comb, isclose

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from stepacc_core.comparison.baselines import compare
from stepacc_core.comparison.causes import causes
from stepacc_core.comparison.diff import diff
from stepacc_core.comparison.intervals import change_over
from stepacc_core.comparison.observations import Counts, Observation, Selection
from stepacc_core.comparison.pairing import Pair, pair_occurrences, pair_tasks
from stepacc_core.comparison.permutation import Stratum, p_of_drop, smallest_p
from stepacc_core.errors import ConfigError, ResultError

SIDE = Selection("shop", "agent.step_accuracy", "1.0.0", "aaaa", "trace")


def run(
    ident: str, score: float | None, task: str | None = None, reference: str | None = "r", **more: str
) -> Observation:
    """A run of a task, scored or failed."""
    status = "failed" if score is None else "scored"
    return Observation("trace", ident, status, score, task, reference, **more)  # type: ignore[arg-type]


def runs(task: str, side: str, *scores: float, reference: str | None = "r") -> list[Observation]:
    """Runs of one task."""
    return [run(f"{task}{side}{place}", score, task, reference) for place, score in enumerate(scores)]


observations = st.lists(
    st.builds(
        run,
        st.sampled_from([f"t{place}" for place in range(8)]),
        st.none() | st.sampled_from([0.0, 0.25, 1.0]),
        st.sampled_from([None, "a", "b"]),
        st.sampled_from(["r", "s", None]),
    ),
    unique_by=lambda each: each.partition_id,
    max_size=8,
)


def test_only_what_is_scored_has_a_score() -> None:
    with pytest.raises(ResultError, match="trace `x` is failed and has the score 0"):
        Observation("trace", "x", "failed", 0.0)
    with pytest.raises(ResultError):
        Observation("trace", "x", "scored")


def test_a_failure_is_counted_and_never_a_zero() -> None:
    assert Counts.of([run("a", 1.0), run("b", None)]) == Counts(1, 1, 0, 1.0)
    assert Counts.of([run("a", None)]).mean is None


def test_occurrences_pair_with_themselves_and_only_against_the_same_expectation() -> None:
    before = [run("a", 0.0), run("b", 0.5), run("c", 1.0), run("d", None), run("e", 1.0)]
    after = [run("a", 1.0), run("b", 0.5, reference="other"), run("d", 1.0), run("c", None)]

    found = pair_occurrences(before, after)

    assert [(pair.name, pair.change) for pair in found.pairs] == [("a", 1.0)]
    assert [(pair.name, pair.change) for pair in found.other_reference] == [("b", 0.0)]
    assert [each.partition_id for each in found.before_only] == ["c", "e"]
    assert [each.partition_id for each in found.after_only] == ["d"]


def test_tasks_pair_by_their_runs_and_a_task_counts_once() -> None:
    before = [*runs("buy", "x", 1.0, 1.0, 0.0), *runs("sell", "x", 1.0), run("lone", 1.0)]
    after = [*runs("buy", "y", 0.0), *runs("sell", "y", 1.0, 0.5), *runs("new", "y", 1.0)]

    found = pair_tasks(before, after)

    assert [(pair.name, round(pair.change, 3)) for pair in found.pairs] == [("buy", -0.667), ("sell", -0.25)]
    assert [each.partition_id for each in found.before_only] == ["lone"]
    assert [each.task_id for each in found.after_only] == ["new"]
    change = change_over(found.pairs)
    assert change is not None
    assert isclose(change.mean, (-2 / 3 - 0.25) / 2)


def test_runs_of_a_task_against_several_expectations_pair_with_those_of_the_same() -> None:
    before = [*runs("buy", "x", 1.0), *runs("buy", "old", 0.0, reference="old")]
    after = [*runs("buy", "y", 0.5), *runs("buy", "new", 0.0, reference="new")]

    found = pair_tasks(before, after)

    assert [pair.change for pair in found.pairs] == [-0.5]
    [other] = found.other_reference
    assert ([each.reference_hash for each in other.before], [each.reference_hash for each in other.after]) == (
        ["old"],
        ["new"],
    )


def test_the_same_expectation_by_another_revision_pairs_and_is_counted() -> None:
    def annotated(ident: str, annotation: int) -> Observation:
        return Observation("trace", ident, "scored", 1.0, None, "r", None, annotation)

    found = pair_occurrences([annotated("a", 1), annotated("b", 1)], [annotated("a", 3), annotated("b", 1)])

    assert (len(found.pairs), found.other_revisions) == (2, 1)


@given(before=observations, after=observations)
def test_every_score_is_in_exactly_one_place_and_the_order_is_nothing(
    before: list[Observation], after: list[Observation]
) -> None:
    for pairing in (pair_occurrences, pair_tasks):
        found = pairing(before, after)
        both = (*found.pairs, *found.other_reference)
        left = [each for pair in both for each in pair.before] + list(found.before_only)
        right = [each for pair in both for each in pair.after] + list(found.after_only)
        assert sorted(each.partition_id for each in left) == sorted(
            e.partition_id for e in before if e.score is not None
        )
        assert sorted(each.partition_id for each in right) == sorted(
            e.partition_id for e in after if e.score is not None
        )
        assert all(e.reference_hash == pair.before[0].reference_hash for pair in found.pairs for e in pair.after)
        assert pairing(before[::-1], after[::-1]) == found
        turned = pairing(after, before)
        assert sorted(-pair.change for pair in turned.pairs) == sorted(pair.change for pair in found.pairs)


def test_causes_name_what_differs_and_blame_a_version_only_where_nothing_else_does() -> None:
    newer = Selection("shop", "agent.step_accuracy", "2.0.0", "bbbb", "trace")
    old = run("a", 0.0, steps_hash="s")

    assert causes(old, run("a", 1.0, steps_hash="s"), SIDE, newer) == ("version",)
    assert causes(old, run("a", 1.0, steps_hash="t"), SIDE, newer) == ("steps",)
    assert causes(old, run("a", 1.0, None, "other", steps_hash="t"), SIDE, newer) == ("reference", "steps")
    assert causes(old, run("a", 1.0, steps_hash="s"), SIDE, SIDE) == ("unknown",)


def test_of_the_runs_of_a_task_those_stand_for_it_that_show_the_change() -> None:
    later = Selection("shop", "agent.step_accuracy", "1.0.0", "aaaa", "trace", "2026-11-02", "2026-11-02")
    earlier = Selection("shop", "agent.step_accuracy", "1.0.0", "aaaa", "trace", "2026-11-01", "2026-11-01")
    fell = [*runs("fell", "x", 1.0, 0.5)], [*runs("fell", "y", 0.75, 0.25)]
    rose = [*runs("rose", "x", 0.5, 0.0)], [*runs("rose", "y", 0.5, 1.0)]

    found = diff(earlier, later, [*fell[0], *rose[0]], [*fell[1], *rose[1]], passes_at=0.75)

    assert [(each.pair.name, each.before.score, each.after.score, each.flip) for each in found.changed] == [
        ("rose", 0.0, 1.0, "mended"),
        ("fell", 1.0, 0.25, "broke"),
    ]
    assert found.differs == ("windows",)
    with pytest.raises(ConfigError, match="The sides share windows"):
        diff(earlier, replace(earlier, last="2026-11-03"), [], [])
    with pytest.raises(ConfigError, match="Both sides are shop"):
        diff(earlier, earlier, [], [])


def pairs_of(changes: Sequence[float]) -> list[Pair]:
    """Pairs of one run each that change by so much."""
    return [
        Pair(f"{place}", None, (run(f"{place}", 0.5 - change / 2),), (run(f"{place}", 0.5 + change / 2),))
        for place, change in enumerate(changes)
    ]


def test_scores_of_0_and_1_get_an_exact_interval_also_where_nothing_changed() -> None:
    nothing = change_over(pairs_of([0.0] * 20))
    assert nothing is not None
    assert (nothing.mean, nothing.method) == (0.0, "exact")
    assert isclose(nothing.high, 1 - (0.05 / 4) ** (1 / 20))
    assert nothing.low == -nothing.high

    rose = change_over(pairs_of([1.0] * 12 + [0.0] * 8))
    assert rose is not None
    assert 0 < rose.low < rose.mean == 0.6 < rose.high <= 1

    one = change_over(pairs_of([0.25]))
    assert one is not None
    assert one.low < -0.9
    assert one.high > 0.9
    assert change_over([]) is None


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from([-1.0, -0.5, -0.1, 0.0, 0.2, 0.75]), min_size=2, max_size=30))
def test_an_interval_holds_its_mean_and_equal_data_give_equal_output(changes: list[float]) -> None:
    found = change_over(pairs_of(changes))
    assert found is not None
    assert found.low <= found.mean + 1e-9
    assert found.high >= found.mean - 1e-9
    again = change_over(pairs_of(changes))
    assert again == found


def test_the_exact_interval_covers_what_it_promises() -> None:
    """Over paired scores of 0 or 1 with a true change of -0.1, in at least 95 % of 150 data sets."""
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(150):
        changes = list(map(float, rng.choice([-1, 0, 1], 40, p=[0.2, 0.7, 0.1])))
        found = change_over(pairs_of(changes))
        assert found is not None
        assert found.method == "exact"
        covered += found.low <= -0.1 <= found.high
    assert covered >= 143


def test_the_bootstrap_covers_about_what_it_promises() -> None:
    rng = np.random.default_rng(2)
    covered = 0
    for _ in range(100):
        found = change_over(pairs_of(list(map(float, rng.choice([-0.5, -0.25, 0.0, 0.25], 40)))))
        assert found is not None
        assert found.method == "bootstrap"
        covered += found.low <= -0.125 <= found.high
    assert 88 <= covered <= 100


def test_the_runs_are_drawn_within_their_task_where_there_are_several() -> None:
    """A hard and an easy task differ by much, which says nothing about a change."""
    pairing = pair_tasks(
        [*runs("hard", "x", 0.0, 0.1, 0.0, 0.1), *runs("easy", "x", 1.0, 0.9, 1.0, 0.9)],
        [*runs("hard", "y", 0.1, 0.2, 0.1, 0.2), *runs("easy", "y", 0.6, 0.5, 0.6, 0.5)],
    )
    found = change_over(pairing.pairs)
    assert found is not None
    assert (found.method, found.unit) == ("bootstrap", "runs")
    assert found.high - found.low < 0.15


def test_many_pairs_get_a_normal_interval_close_to_the_bootstrap() -> None:
    rng = np.random.default_rng(3)
    changes = list(map(float, rng.uniform(-0.5, 0.4, 2500)))
    large = change_over(pairs_of(changes))
    assert large is not None
    assert large.method == "normal"
    assert isclose(large.high - large.mean, 1.96 * np.std(changes) / 50, rel_tol=0.01)


def by_force(strata: Sequence[Stratum]) -> float:
    """The p value by trying everything, one way at a time."""

    def change(before: Sequence[float], after: Sequence[float]) -> float:
        return sum(after) / len(after) - sum(before) / len(before)

    totals = [0.0]
    for each in strata:
        values = [*each.before, *each.after]
        changes = [
            change(
                [value for place, value in enumerate(values) if place not in chosen],
                [values[place] for place in chosen],
            )
            for chosen in combinations(range(len(values)), len(each.after))
        ]
        totals = [total + one for total in totals for one in changes]
    observed = sum(change(each.before, each.after) for each in strata)
    return sum(total <= observed + 1e-9 for total in totals) / len(totals)


values = st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=3).map(tuple)


@given(st.lists(st.builds(Stratum, values, values), min_size=1, max_size=3))
def test_the_exact_p_value_is_that_of_trying_everything(strata: list[Stratum]) -> None:
    assert isclose(p_of_drop(strata), by_force(strata))
    assert p_of_drop(strata) >= smallest_p(strata) - 1e-12


def test_the_test_is_fishers_for_one_task_of_zeros_and_ones_and_the_sign_test_for_pairs() -> None:
    one = Stratum((1.0,) * 6 + (0.0,) * 2, (1.0,) * 2 + (0.0,) * 5)
    fisher = stats.fisher_exact(np.array([[2, 5], [6, 2]]), alternative="less").pvalue
    assert isclose(p_of_drop([one]), fisher)

    pairs = [Stratum((1.0,), (0.0,))] * 7 + [Stratum((0.0,), (1.0,))] * 2 + [Stratum((1.0,), (1.0,))]
    assert isclose(p_of_drop(pairs), stats.binomtest(7, 9, alternative="greater").pvalue)
    assert smallest_p(pairs) == 1 / 2**10
    assert smallest_p([one]) == 1 / comb(15, 7)


def test_the_drawn_and_the_normal_p_value_agree_with_the_exact_one() -> None:
    rng = np.random.default_rng(4)
    small = [Stratum((rng.random(), rng.random()), (rng.random(), rng.random())) for _ in range(5)]
    more = small + [Stratum((0.5,), (0.5,))] * 12  # which changes no p value, and is too much to enumerate
    assert abs(p_of_drop(more) - p_of_drop(small)) < 0.015
    assert p_of_drop(more) == p_of_drop(more)

    levels = [
        Stratum(tuple(map(float, rng.integers(0, 11, 20))), tuple(map(float, rng.integers(0, 11, 20))))
        for _ in range(40)
    ]
    distinct = [
        Stratum(tuple(score + 1e-6 * rng.random() for score in each.before), each.after) for each in levels
    ]  # too many different scores to draw
    assert p_of_drop(levels) != p_of_drop(distinct)
    assert abs(p_of_drop(levels) - p_of_drop(distinct)) < 0.015


def simulated(
    rng: np.random.Generator, drop: float, tasks: int, count: int
) -> tuple[list[Observation], list[Observation]]:
    """Runs of tasks of varying difficulty, which pass a share of the time and later by `drop` less often."""
    before: list[Observation] = []
    after: list[Observation] = []
    for place, rate in enumerate(np.linspace(0.6, 0.95, tasks)):
        before += runs(f"task{place}", "x", *map(float, rng.random(count) < rate))
        after += runs(f"task{place}", "y", *map(float, rng.random(count) < rate - drop))
    return before, after


def rejected(drop: float, *, tasks: int = 5, count: int = 6, sets: int = 200, margin: float = 0.0) -> float:
    """The share of data sets in which a drop is told, overall or of a task."""
    rng = np.random.default_rng(20261130)
    told = 0
    for _ in range(sets):
        found = compare(*simulated(rng, drop, tasks, count), margin=margin)
        assert found.p is not None
        told += found.p <= found.alpha or bool(found.worse_tasks)
    return told / sets


def test_no_drop_is_told_of_no_more_often_than_alpha_allows() -> None:
    """At alpha 0.05, overall and tasks together; the bound leaves room for the noise of 200 data sets."""
    assert rejected(0.0) <= 0.08


def test_a_true_drop_is_told() -> None:
    """A pass rate that falls by 0.5 in each of 5 tasks with 6 runs a side is nearly always told."""
    assert rejected(0.5) >= 0.9


def test_a_drop_within_the_margin_is_hardly_ever_told_and_a_larger_one_is() -> None:
    assert rejected(0.1, margin=0.1) <= 0.08
    assert rejected(0.6, margin=0.1, sets=100) >= 0.9


def test_one_task_that_falls_is_named_among_many_that_do_not() -> None:
    rng = np.random.default_rng(5)
    before, after = simulated(rng, 0.0, 10, 20)
    before += runs("broken", "x", *[1.0] * 20)
    after += runs("broken", "y", *[0.0] * 20)

    found = compare(before, after)

    assert [each.task for each in found.worse_tasks] == ["broken"]
    assert found.alpha == 0.025


def test_runs_that_are_in_the_baseline_too_are_no_new_runs() -> None:
    before = runs("buy", "x", 1.0, 1.0, 1.0)
    found = compare(before, [*before, *runs("buy", "y", 0.0, 0.0, 0.0)])
    assert (found.pairing.by, found.repeated) == ("task", 3)
    assert found.mean_change == -1.0

    reread = [run(each.partition_id, 0.0, each.task_id) for each in before]
    again = compare(before, reread)
    assert (again.pairing.by, again.repeated, again.p) == ("occurrence", 0, 1 / 8)


def test_a_task_of_which_nothing_is_scored_any_more_is_named() -> None:
    before = [*runs("buy", "x", 1.0), *runs("sell", "x", 1.0)]
    assert compare(before, runs("buy", "y", 1.0)).missing_tasks == ("sell",)
