"""Manifests and the registry."""

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from stepacc_core import get_metric, register, registered_metrics
from stepacc_core.errors import ConfigError, ManifestError, UnknownMetricError
from stepacc_core.metrics import build_config, config_hash, load_manifest
from stepacc_core.metrics.step_accuracy_config import StepAccuracyConfig, StrictPositionConfig

CASES = Path(__file__).parents[1] / "cases"

FACTS = {
    "manifest_version": "1",
    "kind": "trace_metric",
    "name": "agent.step_accuracy",
    "display_name": "Step Accuracy",
    "version": "2.0.0",
    "metric_type": "pointwise",
    "scorer_contract": "per_row",
    "direction": "higher_is_better",
    "entrypoint": "stepacc_core.metrics.step_accuracy.get_trace_metric",
    "partition_types": ["trace", "session"],
    "required_kinds": [{"anyOf": ["TOOL", "AGENT", "LLM"]}],
    "required_columns": ["expected_steps"],
    "accepts": [{"name": "canonical_partition_v1"}],
    "dependencies": [],
    "unsupported_trace_shapes": [],
    "execution": {
        "emits_metric_family": False,
        "function_name": None,
        "max_concurrency": 4,
        "processing_kind": "cpu",
        "timeout_seconds": 300,
    },
    "family": [],
    "headline": None,
}


def test_the_manifest_states_the_facts_of_the_contract() -> None:
    document = get_metric("agent.step_accuracy").manifest.model_dump(mode="json")

    assert {key: document[key] for key in FACTS} == FACTS
    assert set(document) - set(FACTS) == {"description", "metric_metadata", "config_schema"}
    assert set(document["metric_metadata"]) == {"summary", "methodology", "score_semantics", "worked_example"}


@pytest.mark.parametrize(
    "metric", registered_metrics(), ids=lambda metric: f"{metric.manifest.name} {metric.manifest.version}"
)
def test_the_entrypoint_of_a_manifest_gives_that_metric(metric: Any) -> None:
    module, _, function = metric.manifest.entrypoint.rpartition(".")

    assert getattr(importlib.import_module(module), function)() is metric


def test_the_config_schema_is_that_of_the_contract() -> None:
    generated = _without_descriptions(StepAccuracyConfig.model_json_schema())
    del generated["additionalProperties"]

    assert generated == json.loads((CASES / "step_accuracy.schema.json").read_text())


def test_the_first_version_has_no_scoring_method_in_its_config() -> None:
    assert "scoring_method" not in get_metric("agent.step_accuracy", "1.0.0").manifest.config_schema["properties"]


def test_the_newest_version_is_the_default_and_others_are_asked_for_by_number() -> None:
    assert get_metric("agent.step_accuracy").manifest.version == "2.0.0"
    assert get_metric("agent.step_accuracy", "1.0.0").manifest.version == "1.0.0"
    assert [(metric.manifest.name, metric.manifest.version) for metric in registered_metrics()] == [
        ("agent.step_accuracy", "1.0.0"),
        ("agent.step_accuracy", "2.0.0"),
        ("agent.trajectory_match", "1.0.0"),
    ]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"family": ["m.a"]}, r"field `family`: .*`execution\.emits_metric_family` is true"),
        ({"emits": True}, r"field `family`: .*`execution\.emits_metric_family` is true"),
        ({"emits": True, "family": ["m.a", "m.a"], "headline": "m.a"}, r"field `family`: .*stands twice"),
        ({"emits": True, "family": ["m.a"]}, r"field `headline`: .*one of the members"),
        ({"emits": True, "family": ["m.a"], "headline": "m.b"}, r"field `headline`: .*given 'm\.b'"),
        ({"headline": "m.a"}, r"field `headline`: .*none where there is no family"),
    ],
)
def test_a_family_without_members_or_headline_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], said: str
) -> None:
    document = get_metric("agent.step_accuracy").manifest.model_dump(mode="json", exclude={"config_schema"})
    emits = changes.pop("emits", False)
    document = {**document, **changes, "execution": {**document["execution"], "emits_metric_family": emits}}
    package = f"package_of_{tmp_path.name}"
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").touch()
    (tmp_path / package / "m.yaml").write_text(json.dumps(document), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ManifestError, match=said):
        load_manifest(package, "m.yaml", StepAccuracyConfig)


def test_an_unknown_metric_or_version_is_told_the_known_ones() -> None:
    with pytest.raises(UnknownMetricError, match=r"`agent\.step_acuracy`.*`agent\.step_accuracy`"):
        get_metric("agent.step_acuracy")
    with pytest.raises(UnknownMetricError, match=r"`3\.0\.0`.*1\.0\.0, 2\.0\.0"):
        get_metric("agent.step_accuracy", "3.0.0")


def test_registering_again_changes_nothing_and_another_metric_of_that_version_is_refused() -> None:
    metric = get_metric("agent.step_accuracy")
    register(metric)

    class Impostor:
        manifest = metric.manifest
        config_model = metric.config_model
        reference = metric.reference
        score = metric.score

    with pytest.raises(ConfigError, match="already registered"):
        register(Impostor())


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"scoring_methods": "edit_distance"}, ["`scoring_methods`", "expected_steps", "scoring_method"]),
        ({"scoring_method": "fuzzy"}, ["`scoring_method`", "'fuzzy'", "strict_position", "edit_distance"]),
        ({"expected_steps": []}, ["`expected_steps`", "at least 1"]),
        ({"expected_steps": ["a", ""]}, ["expected_steps[1]", "non-empty"]),
        ({"expected_steps": [[["a"]]]}, ["`expected_steps"]),
        ({"expected_steps": "a"}, ["`expected_steps`", "'a'"]),
        ({"annotations": {"t1": {"expected_steps": ["a"]}}}, ["annotations.t1.expected_steps", "string"]),
        ({"scoring_method": "strict_position", "expected_steps": [["a"]]}, ["group", "strict_position"]),
    ],
)
def test_a_refused_config_names_the_field_the_value_and_what_is_allowed(
    values: dict[str, Any], said: list[str]
) -> None:
    with pytest.raises(ConfigError) as caught:
        build_config(get_metric("agent.step_accuracy"), values)

    assert [part for part in said if part not in str(caught.value)] == []


def test_only_what_decides_the_score_is_in_the_config_hash() -> None:
    plain = config_hash(StepAccuracyConfig())

    assert config_hash(StepAccuracyConfig(expected_steps=["a"], metric_name="other", annotations={})) == plain
    assert config_hash(StepAccuracyConfig(scoring_method="strict_position")) != plain
    assert config_hash(StepAccuracyConfig(), {"entry_agent": "root"}) != plain
    assert config_hash(StrictPositionConfig()) != plain


class _Empty(BaseModel):
    pass


@pytest.mark.parametrize(
    ("path", "said"),
    [("manifests/none.yaml", "cannot be read"), ("py.typed", "no YAML mapping"), ("__init__.py", "no YAML mapping")],
)
def test_a_manifest_that_is_none_is_refused_by_name(path: str, said: str) -> None:
    with pytest.raises(ManifestError, match=said) as caught:
        load_manifest("stepacc_core", path, _Empty)

    assert path in str(caught.value)


def test_a_wrong_field_of_a_manifest_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "toy_metric_package").mkdir()
    (tmp_path / "toy_metric_package" / "__init__.py").touch()
    (tmp_path / "toy_metric_package" / "m.yaml").write_text(json.dumps({**FACTS, "version": "two", "description": "d"}))
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ManifestError, match=r"`m\.yaml`.*`version`.*'two'"):
        load_manifest("toy_metric_package", "m.yaml", _Empty)


def _without_descriptions(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: _without_descriptions(value) for key, value in schema.items() if key != "description"}
    return [_without_descriptions(value) for value in schema] if isinstance(schema, list) else schema
