"""What is said of a score that is written back, and which settings are refused, without any server."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from stepacc_core.errors import ConfigError
from stepacc_dagster.component import StepAccuracyComponent
from stepacc_dagster.sources import Source
from stepacc_dagster.storage.write_backs import DueScore
from stepacc_dagster.writeback import entries
from stepacc_dagster.writeback.mlflow import assessment, is_same
from stepacc_dagster.writeback.phoenix import annotation

PAGE = (Path(__file__).parents[1] / "docs" / "export.md").read_text()


def due(**fields: Any) -> DueScore:
    """A score that is due."""
    blank: dict[str, Any] = dict.fromkeys(DueScore.__slots__)
    told = {
        "score_id": 1,
        "partition_type": "trace",
        "partition_id": "a",
        "trace_id": "a",
        "metric": "agent.step_accuracy",
        "metric_version": "2.0.0",
        "config_hash": "0123456789",
        "status": "scored",
        "score": 0.5,
        "evaluated_at": datetime(2026, 11, 30, tzinfo=UTC),
        "is_there": False,
    }
    return DueScore(**{**blank, **told, **fields})


TEXT = st.sampled_from(["a", "b", "ab", "2.0.0", "2.0.1"])
IDENTITY = st.fixed_dictionaries(
    {
        "partition_type": st.sampled_from(["trace", "session"]),
        "partition_id": TEXT,
        "metric": TEXT,
        "metric_version": TEXT,
        "config_hash": TEXT,
    }
)


@given(IDENTITY, IDENTITY, st.floats(0, 1))
def test_two_scores_are_in_one_place_only_if_they_are_of_the_same(
    one: dict[str, str], other: dict[str, str], score: float
) -> None:
    first, second = due(**one), due(**other, score=score, score_id=2)
    assert (entries.stable_id("s", first) == entries.stable_id("s", second)) == (one == other)
    # MLflow keeps them with their trace, so that its id need not tell them apart
    assert is_same(assessment("s", second), assessment("s", first)) == (_in_mlflow(one) == _in_mlflow(other))


def _in_mlflow(identity: dict[str, str]) -> list[str | None]:
    session = identity["partition_id"] if identity["partition_type"] == "session" else None
    return [session, *(identity[name] for name in ("metric", "metric_version", "config_hash"))]


@pytest.mark.parametrize(
    ("fields", "label"),
    [
        ({"score": 0.0}, None),
        ({"score": None, "status": "failed", "code": "too_large"}, "failed: too_large"),
        (
            {"score": None, "status": "not_applicable", "reason": "no_required_kinds"},
            "not applicable: no_required_kinds",
        ),
        ({"score": float("nan")}, "no number: nan"),
    ],
)
def test_what_has_no_number_says_why_and_never_a_zero(fields: dict[str, Any], label: str | None) -> None:
    told = annotation("s", due(**fields))["result"]
    assert told.get("label") == label
    assert ("score" in told) == (label is None)
    feedback = assessment("s", due(**fields))["feedback"]
    assert ("value" in feedback, "error" in feedback) == (label is None, label is not None)


def test_ids_of_opentelemetry_and_of_mlflow_are_the_same() -> None:
    plain = "0123456789abcdef" * 2
    assert entries.mlflow_trace_id(plain) == entries.mlflow_trace_id(f"tr-{plain}") == f"tr-{plain}"
    assert entries.otel_trace_id(plain) == entries.otel_trace_id(f"tr-{plain}") == plain
    assert entries.mlflow_trace_id("other") == entries.otel_trace_id("other") == "other"


@pytest.mark.parametrize(
    ("settings", "about"),
    [
        ({"kind": "phoenix", "url": "phoenix:6006"}, "is no http or https address"),
        ({"kind": "phoenix", "url": "http://me:t0p-s3cret@phoenix"}, "names a user or password"),
        ({"kind": "phoenix", "url": "http://phoenix", "api_key": "t0p-s3cret"}, "write_back.phoenix.api_key"),
        ({"kind": "mlflow", "url": "http://mlflow", "username_env": "A"}, "one of username_env and password_env"),
        ({"kind": "none", "url": "http://mlflow"}, "write_back"),
        ({"kind": "otlp", "url": "http://otlp", "metrics": ["agent.none"]}, "write_back.metrics names 'agent.none'"),
    ],
)
def test_settings_that_cannot_work_are_refused_without_repeating_a_secret(settings: dict[str, Any], about: str) -> None:
    component = StepAccuracyComponent(source="shop", start_date="2025-11-01", write_back=settings)
    with pytest.raises(ConfigError, match=re.escape(about)) as caught:
        component.build_defs(None)  # type: ignore[arg-type] # not read
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("example", re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL))
def test_the_examples_of_the_page_are_taken(example: str) -> None:
    attributes = yaml.safe_load(example)
    attributes = attributes.get("attributes", attributes)
    metrics = [{"name": "agent.step_accuracy"}, {"name": "agent.trajectory_match"}]
    whole = {"source": "shop", "start_date": "2025-11-01", "metrics": metrics, **attributes}
    source: Source = StepAccuracyComponent(**whole).to_source()
    assert source.write_back is not None
    StepAccuracyComponent(**whole).build_defs(None)  # type: ignore[arg-type] # not read
