"""Settings of a source: what is refused, and in which words."""

from typing import Any

import pytest

from stepacc_core.errors import ConfigError, StepaccError
from stepacc_core.metrics import registry
from stepacc_core.summaries import SummarySettings
from stepacc_dagster.evaluators import evaluator_of, evaluators_of
from stepacc_dagster.sources import MetricChoice, RetrySettings, Source
from tests.integration.evaluation_samples import ToyMetric


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"name": "two words"}, "Source name 'two words' is not allowed; use a letter, then letters, digits"),
        ({"name": "1st"}, "Source name '1st' is not allowed"),
        ({"name": ""}, "Source name '' is not allowed"),
        ({"name": "é"}, "Source name 'é' is not allowed"),
        ({"start_date": "soon"}, "start_date 'soon' of source `s` is no date; write it as 2026-01-31"),
        ({"start_date": "2026-02-30"}, "is no date"),
        ({"start_date": "20260131"}, "is no date"),
        ({"start_date": "2026-W05-6"}, "is no date"),
        ({"start_date": "2026-01-31T00:00"}, "is no date"),
        ({"partitions": "weekly"}, "partitions of source `s` is 'weekly'; use 'daily' or 'hourly'."),
        ({"partition_types": {}}, "Source `s` scores nothing; list `trace`, `session` or both"),
        ({"partition_types": {"task": "fail"}}, "partition_types of source `s` is 'task'; use 'trace' or 'session'."),
        ({"partition_types": {"trace": "drop"}}, "unannotated of source `s` is 'drop'; use 'fail' or 'skip'."),
        ({"end_offset": 2}, "end_offset of source `s` is 2; use 0 or 1."),
        ({"end_offset": -1}, "end_offset of source `s` is -1; use 0 or 1."),
        ({"max_partitions_per_run": 0}, "max_partitions_per_run of source `s` is 0; use 1 or more."),
        ({"trace_url": "https://x.example.org/t"}, "trace_url 'https://x.example.org/t' has no {trace_id}"),
        ({"retry": RetrySettings(max_retries=-1)}, "retry.max_retries of source `s` is -1; use 0 or more."),
        ({"retry": RetrySettings(delay_seconds=-0.5)}, "retry.delay_seconds of source `s` is -0.5; use 0 or more."),
        (
            {"metric": MetricChoice("a.b"), "metrics": (MetricChoice("a.c"),)},
            "Source `s` has both metric and metrics; list 'a.b' under metrics with the others",
        ),
        (
            {"metrics": (MetricChoice("a.b"), MetricChoice("a.b", "1.0.0"))},
            "Source `s` lists metric 'a.b' twice; list each metric once, by one version.",
        ),
    ],
)
def test_a_setting_that_cannot_work_is_refused_in_words(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as error:
        Source(**{"name": "s", "start_date": "2026-01-31", **settings})
    assert sentence in str(error.value)


def test_what_a_metric_does_not_score_cannot_be_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    metric = ToyMetric("acme.traces_only", lambda _: pytest.fail("nothing is scored here"))
    metric.manifest = metric.manifest.model_copy(update={"partition_types": ("trace",)})
    monkeypatch.setattr(registry, "_METRICS", {("acme.traces_only", "0.1.0"): metric})
    choice = MetricChoice("acme.traces_only")
    assert evaluator_of(Source("s", "2026-01-31", metric=choice)).code_version.startswith("0.1.0-")
    with pytest.raises(
        ConfigError, match=r"`acme.traces_only` scores no sessions, which source `s` lists .*; list trace"
    ):
        evaluator_of(Source("s", "2026-01-31", metric=choice, partition_types={"trace": "fail", "session": "skip"}))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({}, {"scoring_method": "edit_distance"}, True),
        ({}, {"scoring_method": "strict_position"}, False),
        ({}, {"expected_steps": ["a"]}, True),
        ({}, {"metric_name": "ours", "annotations": {"t": {"expected_steps": "[]"}}}, True),
    ],
)
def test_the_code_version_changes_with_what_decides_a_score_and_nothing_else(
    one: dict[str, Any], other: dict[str, Any], *, same: bool
) -> None:
    versions = [
        evaluator_of(Source("s", "2026-01-31", metric=MetricChoice(config=config))).code_version
        for config in (one, other)
    ]
    assert (versions[0] == versions[1]) == same


STEPS, MATCH = MetricChoice("agent.step_accuracy"), MetricChoice("agent.trajectory_match")


def scored_by(*metrics: MetricChoice, **settings: Any) -> Source:
    return Source("s", "2026-01-31", metrics=metrics, **settings)


def test_a_source_has_one_metric_or_several_and_each_is_found_by_its_name_or_that_of_a_member() -> None:
    assert [each.name for each in evaluators_of(Source("s", "2026-01-31"))] == ["agent.step_accuracy"]
    both = scored_by(STEPS, MATCH)
    assert [each.name for each in evaluators_of(both)] == [STEPS.name, MATCH.name]
    assert evaluator_of(both, "trajectory_match.f1").name == MATCH.name
    assert evaluator_of(both, MATCH.name).headline == "trajectory_match.passed"
    with pytest.raises(ConfigError, match=r"Name a metric of `s`; it is scored by `agent.step_accuracy`, `agent.traj"):
        evaluator_of(both)
    with pytest.raises(ConfigError, match=r"Source `s` is not scored by `agent.none`; it is scored by"):
        evaluator_of(both, "agent.none")


def test_metrics_whose_assets_or_rows_would_have_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    known = dict(registry._METRICS)
    for name in ("acme.step_accuracy", "trajectory_match.f1"):
        known[name, "0.1.0"] = ToyMetric(name, lambda _: pytest.fail("nothing is scored here"))
    monkeypatch.setattr(registry, "_METRICS", known)
    for pair, both in (
        ((STEPS, MetricChoice("acme.step_accuracy")), "step_accuracy"),
        ((MATCH, MetricChoice("trajectory_match.f1")), "trajectory_match.f1"),
    ):
        with pytest.raises(ConfigError, match=rf"would both write `{both}`; score by one of them here") as error:
            evaluators_of(scored_by(*pair))
        assert error.value.setting == "metrics.1.name"


@pytest.mark.parametrize(
    ("choice", "setting"),
    [
        (MetricChoice("agent.none"), "metrics.1.name"),
        (MetricChoice("agent.trajectory_match", "9.9.9"), "metrics.1.version"),
        (MetricChoice("agent.trajectory_match", config={"x": 1}), "metrics.1.config"),
    ],
)
def test_what_is_wrong_with_one_of_several_metrics_is_told_with_its_place(choice: MetricChoice, setting: str) -> None:
    with pytest.raises(StepaccError) as error:
        evaluators_of(scored_by(STEPS, choice))
    assert getattr(error.value, "setting", None) == setting


def test_a_threshold_for_what_the_source_has_no_scores_of_is_refused() -> None:
    fitting = SummarySettings(pass_thresholds={"trajectory_match.f1": 0.9})
    assert evaluators_of(scored_by(STEPS, MATCH, summaries=fitting))
    with pytest.raises(
        ConfigError, match=r"names 'trajectory_match.f1', of which it has no scores; use agent.step_acc"
    ):
        evaluators_of(scored_by(STEPS, summaries=fitting))
