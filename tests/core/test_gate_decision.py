"""What a gate decides, and the sentence it gives."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepacc_core.comparison.baselines import Baseline
from stepacc_core.comparison.forbidden import Forbidden, ForbiddenSearch, forbidden_in
from stepacc_core.comparison.gate import Criteria, Decision, Evidence, as_option, decide
from stepacc_core.comparison.observations import Observation, Selection
from stepacc_core.errors import ConfigError
from tests.core.test_comparison import run, runs

NOW = Selection("shop", "agent.step_accuracy", "2.0.0", "c0ffee00", "trace", "2026-11-02", "2026-11-03")
THEN = Selection("shop", "agent.step_accuracy", "2.0.0", "c0ffee00", "trace", "2026-11-01", "2026-11-01")


def judged(observations: list[Observation], without_row: int = 0, **criteria: Any) -> Decision:
    """The decision over scores of traces."""
    return decide(Criteria(**criteria), Evidence(NOW, tuple(observations), without_row))


def against(before: list[Observation], now: list[Observation], then: Selection = THEN, **criteria: Any) -> Decision:
    """The decision over scores that are compared with a baseline."""
    baseline = Baseline("good", 1, then, tuple(before))
    return decide(Criteria(against_baseline=True, **criteria), Evidence(NOW, tuple(now)), baseline)


def test_a_floor_passes_from_its_value_on_and_says_why_in_one_sentence() -> None:
    scores = [run("a", 1.0), run("b", 0.5)]

    assert judged(scores, min_mean=0.75).reason == (
        "The gate passed: 2 traces scored; the mean 0.750 is at least 0.75."
    )
    failed = judged(scores, min_mean=0.76)
    assert not failed.passed
    assert failed.reason == "The gate failed: the mean 0.750 is below 0.76."


def test_a_mean_that_misses_by_little_is_shown_with_the_digits_that_tell_and_rounding_is_no_miss() -> None:
    assert judged([run("a", 0.8999)], min_mean=0.9).reason == "The gate failed: the mean 0.8999 is below 0.9."
    assert judged([run(f"{n}", 0.1) for n in range(3)] + [run("x", 0.7)], min_mean=0.25).passed


def test_failures_lower_the_coverage_and_never_the_mean() -> None:
    decision = judged([run("a", 1.0), run("b", None)], without_row=2, min_mean=1.0, min_coverage=0.5)

    assert [outcome.status for outcome in decision.outcomes] == ["passed", "passed", "failed"]
    assert decision.coverage == 0.25
    assert decision.reason == (
        "The gate failed: the coverage 0.250 is below 0.5: 1 of 4 have a score (1 failed, 2 without an evaluation)."
    )


@given(
    without_row=st.integers(0, 3),
    failed=st.integers(0, 3),
    min_mean=st.none() | st.sampled_from([0.0, 0.5]),
    min_coverage=st.none() | st.sampled_from([0.0, 0.5]),
    no_forbidden=st.booleans(),
    against_baseline=st.booleans(),
)
def test_nothing_scored_never_passes(without_row: int, failed: int, **criteria: Any) -> None:
    evidence = Evidence(NOW, tuple(run(f"{n}", None) for n in range(failed)), without_row, forbidden=ForbiddenSearch())
    baseline = Baseline("good", 1, THEN, tuple(runs("buy", "x", 1.0)))
    try:
        asked = Criteria(**criteria)
    except ConfigError:
        return
    decision = decide(asked, evidence, baseline)

    assert not decision.passed
    assert decision.reason.startswith("The gate failed: ")


@given(
    scores=st.lists(st.none() | st.floats(0, 1), max_size=12),
    floor=st.floats(0, 1),
    coverage=st.floats(0, 1),
    without_row=st.integers(0, 5),
)
def test_the_gate_opens_exactly_where_floor_and_coverage_are_met(
    scores: list[float | None], floor: float, coverage: float, without_row: int
) -> None:
    decision = judged(
        [run(f"{n}", score) for n, score in enumerate(scores)], without_row, min_mean=floor, min_coverage=coverage
    )
    given = [score for score in scores if score is not None]
    known = len(scores) + without_row
    met = bool(given) and decision.counts.mean is not None and decision.counts.mean >= floor - 1e-9
    assert decision.passed is (met and len(given) / known >= coverage - 1e-9)
    if given:
        assert decision.counts.mean == pytest.approx(sum(given) / len(given))


def test_forbidden_steps_fail_the_gate_and_a_metric_that_does_not_look_is_refused() -> None:
    def decided(search: ForbiddenSearch | None) -> Decision:
        return decide(Criteria(no_forbidden=True), Evidence(NOW, (run("a", 1.0),), 0, search))

    assert decided(ForbiddenSearch(looked_at=1)).passed
    failed = decided(ForbiddenSearch((Forbidden("a", ("delete_order", "cancel > charge")),), looked_at=1))
    assert failed.reason == "The gate failed: forbidden steps ran in trace a: delete_order, cancel > charge."
    refused = decided(None)
    assert (refused.passed, refused.outcomes[-1].status) == (False, "refused")
    assert "gate a member of agent.trajectory_match" in refused.reason


def test_what_was_not_looked_at_does_not_count_silently_as_without_forbidden_steps() -> None:
    search = ForbiddenSearch((), looked_at=2, failed=3, erased=1, without_row=4)
    decision = decide(Criteria(no_forbidden=True), Evidence(NOW, (run("a", 1.0), run("b", 1.0)), 4, search))

    assert decision.reason == (
        "The gate passed: 2 traces scored; no forbidden step ran in 2 scored traces, and nothing is known of 8 more "
        "(3 failed, 1 erased, 4 without an evaluation)."
    )
    assert not decide(Criteria(no_forbidden=True), Evidence(NOW, (run("a", 1.0),), 0, ForbiddenSearch())).passed


def test_what_is_refused_is_named_as_it_was_typed() -> None:
    with pytest.raises(ConfigError, match=r"`min_mean` is nan; use 0 to 1\."):
        Criteria(min_mean=math.nan)
    with pytest.raises(ConfigError, match=r"`--min-mean` is nan; use 0 to 1\."):
        Criteria(min_mean=math.nan, spelled=as_option)
    with pytest.raises(ConfigError, match=r"`--min-mean`, `--min-coverage`, `--min-scored`, `--no-forbidden`, `--base"):
        Criteria(spelled=as_option)


def test_forbidden_steps_are_read_from_metadata_and_their_absence_is_not_no_forbidden_steps() -> None:
    assert forbidden_in({"forbidden": ["delete", ["cancel", "charge"]]}) == ("delete", "cancel > charge")
    assert forbidden_in({"forbidden": []}) == ()
    assert forbidden_in({"steps": []}) is None


def test_a_drop_beyond_noise_fails_and_one_within_passes() -> None:
    before = [run_ for task in "abcde" for run_ in runs(task, "x", 1.0, 1.0, 1.0, 1.0)]
    worse = [run_ for task in "abcde" for run_ in runs(task, "y", 0.0, 1.0, 0.0, 0.0)]
    noisy = [*worse[4:5], *[run_ for task in "abcde" for run_ in runs(task, "z", 1.0, 1.0, 1.0)]]

    failed = against(before, worse)
    assert not failed.passed
    assert failed.reason.startswith(
        "The gate failed: the scores fell by 0.750 on average over 5 tasks (20 of 20 scores) since baseline good, "
        "which is beyond noise"
    )
    passed = against(before, noisy)
    assert passed.passed
    assert "since baseline good, which is within noise (p = " in passed.reason


def test_the_margin_lets_scores_fall_by_so_much() -> None:
    before = [run_ for task in "abcdef" for run_ in runs(task, "x", 1.0, 1.0, 1.0)]
    lower = [run_ for task in "abcdef" for run_ in runs(task, "y", 0.9, 0.9, 0.9)]

    assert not against(before, lower).passed
    assert against(before, lower, margin=0.15).passed
    assert not against(before, lower, margin=0.05).passed


def test_a_drop_that_so_few_runs_cannot_tell_from_noise_does_not_pass() -> None:
    few = against([*runs("a", "x", 1.0), *runs("b", "x", 1.0)], [*runs("a", "y", 0.0), *runs("b", "y", 1.0)])
    assert not few.passed
    assert (
        "so few runs cannot tell that from noise (the smallest p they can give is 0.25); score more runs" in few.reason
    )
    same = against([*runs("a", "x", 1.0), *runs("b", "x", 1.0)], [*runs("a", "y", 1.0), *runs("b", "y", 1.0)])
    assert same.passed


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"metric_version": "1.0.0"}, "version 1.0.0 and now 2.0.0"),
        ({"config_hash": "beef"}, "config beef and now c0ffee00"),
        ({"metric": "trajectory_match.f1"}, "metric trajectory_match.f1 and now agent.step_accuracy"),
        ({"partition_type": "session"}, "type session and now trace"),
    ],
)
def test_a_baseline_of_another_version_or_config_is_refused_with_the_way_out(
    changed: dict[str, Any], said: str
) -> None:
    then = Selection(**{**{name: getattr(THEN, name) for name in THEN.__slots__}, **changed})
    decision = against(runs("a", "x", 1.0), runs("a", "y", 1.0), then)

    assert (decision.passed, decision.outcomes[-1].status, decision.against) == (False, "refused", None)
    assert said in decision.reason
    assert "`stepacc gate baseline set good ...`" in decision.reason


def test_a_revised_expectation_is_refused_unless_it_is_to_be_left_out() -> None:
    before = [*runs("a", "x", 1.0, 1.0), *runs("b", "x", 1.0, 1.0, reference="old")]
    now = [*runs("a", "y", 1.0, 1.0), *runs("b", "y", 0.0, 0.0, reference="new")]

    refused = against(before, now)
    assert refused.outcomes[-1].status == "refused"
    assert "the expectation of b was revised since baseline good was set" in refused.reason
    assert "(`shared_references`)" in refused.reason
    assert "(`--shared-references`)" in against(before, now, spelled=as_option).reason
    assert against(before, now, shared_references=True).passed


@pytest.mark.parametrize("score", [math.nan, 2.0, -0.5, math.inf])
def test_scores_that_are_none_open_no_gate(score: float) -> None:
    good = runs("a", "x", *[number / 1000 for number in range(600)])
    bad = [*good, *runs("b", "y", score)]

    decision = judged(bad, min_scored=2, min_coverage=0.5)
    assert not decision.passed
    assert f"of 601 scores, 1 does not lie from 0 to 1 (trace {bad[-1].partition_id} has {score:g})" in decision.reason
    assert against(bad, runs("a", "y", *[1.0] * 9)).outcomes[-1].status == "refused"


def test_runs_that_have_the_old_expectation_still_do_not_stand_for_those_with_the_revised_one() -> None:
    before = runs("a", "x", 1.0, 1.0)
    now = [*runs("a", "y", 1.0), *runs("a", "z", 0.0, 0.0, 0.0, reference="new")]

    refused = against(before, now)
    assert refused.outcomes[-1].status == "refused"
    assert "the expectation of a was revised since baseline good was set" in refused.reason
    assert against(before, now, shared_references=True).passed


def test_tasks_of_the_baseline_without_a_score_are_named_and_fail_where_that_is_asked() -> None:
    before = [*runs("a", "x", 1.0), *runs("gone", "x", 1.0)]
    now = [*runs("a", "y", 1.0), *runs("new", "y", 0.0, 0.0)]

    passed = against(before, now)
    assert passed.reason == (
        "The gate passed: 3 traces scored; the scores changed by +0.000 on average over 1 task (1 of 3 scores, none of "
        "task gone) since baseline good."
    )
    failed = against(before, now, all_tasks=True)
    assert failed.reason == "The gate failed: of task gone of baseline good nothing is scored now."


def test_scores_without_a_counterpart_in_the_baseline_do_not_pass() -> None:
    assert against(runs("a", "x", 1.0), runs("b", "y", 1.0)).reason == (
        "The gate failed: no score has a counterpart in baseline good, of its traces or of its tasks."
    )


@given(st.permutations([run_ for task in "abc" for run_ in runs(task, "y", 1.0, 0.5, 0.0, 0.5)]))
def test_the_order_of_the_scores_is_nothing(now: list[Observation]) -> None:
    before = [run_ for task in "abc" for run_ in runs(task, "x", 1.0, 1.0, 0.5, 1.0)]
    assert against(before, now).reason == against(before, sorted(now, key=lambda each: each.partition_id)).reason


@pytest.mark.parametrize(
    ("criteria", "setting"),
    [
        ({}, None),
        ({"min_mean": 1.1}, "min_mean"),
        ({"min_coverage": -0.1}, "min_coverage"),
        ({"min_mean": 0.5, "margin": -0.1}, "margin"),
        ({"min_mean": 0.5, "alpha": 0}, "alpha"),
        ({"min_mean": 0.5, "alpha": 0.6}, "alpha"),
        ({"min_scored": 0}, "min_scored"),
        ({"min_mean": float("nan")}, "min_mean"),
    ],
)
def test_criteria_that_cannot_be_met_or_say_nothing_are_refused(criteria: dict[str, Any], setting: str | None) -> None:
    with pytest.raises(ConfigError) as refused:
        Criteria(**criteria)
    assert refused.value.setting == setting
    assert refused.value.message.endswith(".")
