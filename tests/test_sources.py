"""Settings of a source: what is refused, and in which words."""

from typing import Any

import pytest

from stepacc_core.errors import ConfigError
from stepacc_core.metrics import registry
from stepacc_dagster.evaluators import evaluator_of
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
