"""The component and the local code location: what YAML gives, and what a bad file is told."""

import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec

import dagster as dg
import pytest
import yaml
from dagster.components.testing import create_defs_folder_sandbox

from stepacc_core.errors import ConfigError
from stepacc_core.summaries import SummarySettings
from stepacc_dagster import StepAccuracyComponent
from stepacc_dagster.definitions import defs, defs_folder, load_sources
from stepacc_dagster.local.executor import noted_in_process_executor
from stepacc_dagster.local.source import local_source
from stepacc_dagster.sources import MetricChoice, RetrySettings, Source

P = ParamSpec("P")

TYPE = "stepacc_dagster.StepAccuracyComponent"
LEAST = {"source": "support", "start_date": "2025-11-01"}
FULL: dict[str, Any] = {
    **LEAST,
    "partitions": "hourly",
    "end_offset": 0,
    "partition_types": ["trace", "session"],
    "unannotated": {"session": "skip"},
    "metric": "agent.step_accuracy",
    "metric_version": "2.0.0",
    "config": {"scoring_method": "strict_position"},
    "task_id_attributes": ["our.task"],
    "database_url_env": "OUR_URL",
    "trace_url": "https://traces.example.org/{trace_id}",
    "retry": {"max_retries": 1, "delay_seconds": 0.5},
    "max_partitions_per_run": 3,
}


def dagsters_own_warnings(test: Callable[P, None]) -> Callable[P, None]:
    """Let pass what Dagster's own loading of components warns of."""
    for message in (
        ".parse_obj_as. is deprecated",
        ".*(CodeReference|AssetSelection.from_string|SensorDefinition).* is currently in beta",
        ".*load_definitions_from_module.* is currently in preview",
    ):
        test = pytest.mark.filterwarnings(f"ignore:{message}")(test)
    return test


def source_of(attributes: dict[str, Any]) -> Source:
    component = StepAccuracyComponent.from_attributes_dict(attributes=attributes)
    assert isinstance(component, StepAccuracyComponent)
    source: Source = component.to_source()
    return source


def test_two_settings_are_enough_and_the_rest_is_as_documented() -> None:
    assert source_of(LEAST) == Source("support", "2025-11-01")


def test_every_setting_reaches_the_source() -> None:
    assert source_of(FULL) == Source(
        name="support",
        start_date="2025-11-01",
        partitions="hourly",
        end_offset=0,
        partition_types={"trace": "fail", "session": "skip"},
        metric=MetricChoice("agent.step_accuracy", "2.0.0", {"scoring_method": "strict_position"}),
        task_id_attributes=("our.task",),
        database_url_env="OUR_URL",
        trace_url="https://traces.example.org/{trace_id}",
        retry=RetrySettings(1, 0.5),
        max_partitions_per_run=3,
    )


def test_several_metrics_are_a_list_in_place_of_the_one() -> None:
    strict = {"name": "agent.step_accuracy", "version": "2.0.0", "config": {"scoring_method": "strict_position"}}
    summaries = {"k": [1, 4], "pass_thresholds": {"agent.step_accuracy": 0.9}}
    given = {**LEAST, "metrics": [strict, {"name": "agent.trajectory_match"}], "summaries": summaries}
    assert source_of(given) == Source(
        "support",
        "2025-11-01",
        metrics=(
            MetricChoice("agent.step_accuracy", "2.0.0", {"scoring_method": "strict_position"}),
            MetricChoice("agent.trajectory_match"),
        ),
        summaries=SummarySettings((1, 4), {"agent.step_accuracy": 0.9}),
    )


@pytest.mark.parametrize(
    "single", [{"metric": "agent.step_accuracy"}, {"metric_version": "2.0.0"}, {"config": {"a": 1}}]
)
def test_the_list_and_the_single_form_together_are_refused(single: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"Source `support` has metrics and \w+ beside it; give version and config"):
        source_of({**LEAST, "metrics": [{"name": "agent.trajectory_match"}], **single})


@pytest.mark.parametrize(
    ("setting", "expected"),
    [("skip", {"trace": "skip", "session": "skip"}), ({}, {"trace": "fail", "session": "fail"})],
)
def test_unannotated_is_one_value_for_all_types_or_one_for_each(setting: Any, expected: dict[str, str]) -> None:
    both = {**LEAST, "partition_types": ["trace", "session"], "unannotated": setting}
    assert source_of(both).partition_types == expected


def test_numbers_and_names_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRST_DAY", "2025-12-24")
    monkeypatch.setenv("RETRIES", "7")
    source = source_of(
        {
            "source": "support",
            "start_date": "{{ env.FIRST_DAY }}",
            "retry": {"max_retries": "{{ env.RETRIES }}"},
            "max_partitions_per_run": "{{ env.RETRIES }}",
        }
    )
    assert (source.start_date, source.retry.max_retries, source.max_partitions_per_run) == ("2025-12-24", 7, 7)


def schemas() -> dict[str, dict[str, Any]]:
    """The settings as `dg` and editors see them: those of the component under `""`, of nested models by field."""
    schema = StepAccuracyComponent.model().model_json_schema()
    nested = {}
    for name, setting in schema["properties"].items():
        for found in re.findall(r"#/\$defs/(\w+)", json.dumps(setting)):
            nested[name] = schema["$defs"][found]
    return {"": schema, **nested}


SETTINGS = [
    (parent, name, setting) for parent, schema in schemas().items() for name, setting in schema["properties"].items()
]
NAMES = [f"{parent}.{name}".lstrip(".") for parent, name, _ in SETTINGS]


def test_the_nested_settings_are_known_to_the_schema() -> None:
    assert {"retry.max_retries", "assets.owners", "step_policy.ignore", "mappings.kinds", "store"} < set(NAMES)
    assert {name for name in NAMES if "." not in name} == set(StepAccuracyComponent.model_fields)


@pytest.mark.parametrize(("parent", "name", "setting"), SETTINGS, ids=NAMES)
def test_every_setting_is_described_with_an_example_that_works(parent: str, name: str, setting: dict[str, Any]) -> None:
    assert setting["description"].endswith(".")
    [example] = setting["examples"]
    value: Any = {name: example}
    if parent == "mappings":
        value = [{"name": "ours", "kind": "TOOL", "span_name": "run_step"} | value]
    if parent == "metrics":
        value = [{"name": "agent.step_accuracy"} | value]
    if parent == "gates":
        value = [{"min_scored": 2} | value]
    given = {parent: value} if parent else value
    with_partner = {"partition_types": ["trace", "session"], "task_id_attributes": []}
    assert source_of({**LEAST, **with_partner, **given}) is not None


@dagsters_own_warnings
def test_the_component_in_a_project_builds_the_sources_definitions() -> None:
    with create_defs_folder_sandbox() as sandbox:
        path = sandbox.scaffold_component(
            component_cls=StepAccuracyComponent, defs_yaml_contents={"type": TYPE, "attributes": FULL}
        )
        with sandbox.load_component_and_build_defs(defs_path=path) as (component, definitions):
            assert isinstance(component, StepAccuracyComponent)
            keys = {spec.key.to_user_string() for spec in definitions.resolve_all_asset_specs()}
            assert keys == {
                f"support/{name}"
                for name in (
                    "agent_traces",
                    "annotations",
                    "canonical_traces",
                    "step_accuracy_scores",
                    "step_accuracy_metadata",
                    "task_summaries",
                )
            }
            dg.Definitions.validate_loadable(definitions)


@dagsters_own_warnings
def test_post_processing_in_yaml_reaches_the_assets() -> None:
    document = {
        "type": TYPE,
        "attributes": LEAST,
        "post_processing": {
            "assets": [{"target": "key:support/step_accuracy_scores", "attributes": {"owners": ["team:evals"]}}]
        },
    }
    with create_defs_folder_sandbox() as sandbox:
        path = sandbox.scaffold_component(component_cls=StepAccuracyComponent, defs_yaml_contents=document)
        with sandbox.load_component_and_build_defs(defs_path=path) as (_, definitions):
            owners = {spec.key.path[-1]: list(spec.owners) for spec in definitions.resolve_all_asset_specs()}
    assert owners["step_accuracy_scores"] == ["team:evals"]
    assert owners["annotations"] == []


@pytest.mark.parametrize(
    ("setting", "line", "told"),
    [
        ({"partitions": "weekly"}, 2, "attribute `partitions`: Input should be 'daily' or 'hourly'; given 'weekly'."),
        ({"end_offset": 7}, 2, "attribute `end_offset`: end_offset of source `support` is 7; use 0 or 1."),
        ({"assets": {"owners": ["nobody"]}}, 3, "attribute `assets.owners`: owners of source `support` is refused"),
        ({"config": {"nope": 1}}, 2, "attribute `config`: Config of `agent.step_accuracy`, field `nope`: Extra inputs"),
    ],
)
@dagsters_own_warnings
def test_dagster_is_told_file_line_and_attribute_of_what_is_refused(
    setting: dict[str, Any], line: int, told: str
) -> None:
    document = {"attributes": {**setting, **LEAST}, "type": TYPE}
    with create_defs_folder_sandbox() as sandbox:
        path = sandbox.scaffold_component(component_cls=StepAccuracyComponent)
        (path / "defs.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
        with pytest.raises(Exception, match=r"defs\.yaml") as raised, sandbox.load_component_and_build_defs(path):
            pass
    refused = raised.value.__cause__
    assert isinstance(refused, ConfigError)
    assert str(refused).startswith(f"{path / 'defs.yaml'}:{line}, {told}")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the local code location."""
    monkeypatch.setenv("STEPACC_DEFS", str(tmp_path / "defs"))
    return tmp_path / "defs"


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name / "defs.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


def source_yaml(name: str = "support", extra: str = "") -> str:
    return f"type: {TYPE}\nattributes:\n  source: {name}\n  start_date: '2025-11-01'\n{extra}"


def test_the_local_code_location_has_every_source_of_its_folder(folder: Path) -> None:
    write(folder, "one", source_yaml("one"))
    write(folder, "deep/two", source_yaml("two", "  partitions: hourly\n"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        definitions = defs()
    assert isinstance(definitions, dg.Definitions)
    dg.Definitions.validate_loadable(definitions)
    assert {key.path[0] for key in definitions.resolve_asset_graph().get_all_asset_keys()} == {"one", "two"}
    job = definitions.resolve_job_def("one_evaluation")
    assert job.executor_def is noted_in_process_executor
    assert local_source("two").partitions == "hourly"


def test_an_empty_or_missing_folder_is_a_code_location_without_assets(folder: Path) -> None:
    assert defs_folder() == folder
    definitions = defs()
    assert isinstance(definitions, dg.Definitions)
    assert not list(definitions.resolve_all_asset_specs())


def test_without_a_setting_the_folder_lies_in_the_local_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPACC_HOME", str(tmp_path))
    assert defs_folder() == tmp_path / "defs"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", f"is no source: write `type: {TYPE}` and its `attributes`."),
        ("type: other.Thing\n", "is no source"),
        ("- a\n", "is no source"),
        ("a: [\n", "cannot be read as YAML: while parsing a flow node"),
        (source_yaml() + "---\na: 1\n", " has 2 documents; give each source a defs.yaml of its own."),
        (f"type: {TYPE}\n", ":1, attribute `source`: Field required"),
        (f"type: {TYPE}\nattributes: [a]\n", ":2: Input should be a valid dictionary"),
        (source_yaml(extra="  nope: 1\n"), ":5, attribute `nope`: Extra inputs are not permitted; given 1."),
        (
            source_yaml(extra="  partitions: weekly\n"),
            ":5, attribute `partitions`: Input should be 'daily' or 'hourly'",
        ),
        (source_yaml(extra="  unannotated: maybe\n"), ":5, attribute `unannotated`: Input should be 'fail' or 'skip'"),
        (
            source_yaml(extra="  unannotated: {traces: skip}\n"),
            ":5, attribute `unannotated.traces`: Input should be 'trace' or",
        ),
        (
            source_yaml(extra="  partition_types: [task]\n"),
            ":5, attribute `partition_types.0`: Input should be 'trace' or",
        ),
        (
            source_yaml(extra="  retry: {max_retries: many}\n"),
            ":5, attribute `retry.max_retries`: Input should be a valid integer",
        ),
        (source_yaml(extra="  retry: {nope: 1}\n"), ":5, attribute `retry.nope`: Extra inputs are not permitted"),
        (
            source_yaml(extra="  task_id_attributes: a\n"),
            ":5, attribute `task_id_attributes`: Input should be a valid list",
        ),
        (
            source_yaml(extra="  database_url_env: '{{ env.NOT_THERE }}'\n"),
            ":5, attribute `database_url_env`: Input should be a",
        ),
        (
            source_yaml(extra="  database_url_env: '{{ nope }}'\n"),
            ":5, attribute `database_url_env`: UndefinedError: 'nope' not found in scope",
        ),
        (
            source_yaml().replace("'2025-11-01'", "20251101"),
            ":4, attribute `start_date`: Input should be a valid string",
        ),
        (source_yaml("two words"), ":3, attribute `source`: Source name 'two words' is not allowed"),
        (
            source_yaml(extra="  end_offset: 3\n"),
            ":5, attribute `end_offset`: end_offset of source `support` is 3; use 0 or 1.",
        ),
        (
            source_yaml(extra="  partition_types: []\n"),
            ":5, attribute `partition_types`: Source `support` scores nothing; list `trace`",
        ),
        (
            source_yaml(extra="  retry:\n    delay_seconds: 1\n    max_retries: -1\n"),
            ":7, attribute `retry.max_retries`: ",
        ),
        (
            source_yaml(extra="  mappings:\n  - {name: a, kind: TOOL, span_name: b}\n  - {name: c}\n"),
            ":7, attribute `mappings.1`: ",
        ),
        (source_yaml(extra="  store: {kind: nowhere}\n"), ":5, attribute `store`: "),
        (
            source_yaml(extra="  trace_url: https://traces.example.org/{trace}\n"),
            ":5, attribute `trace_url`: trace_url 'https://traces.example.org/{trace}' has the placeholder {trace}",
        ),
        (
            source_yaml(extra="  assets:\n    owners: [nobody]\n"),
            ":6, attribute `assets.owners`: owners of source `support`",
        ),
        (source_yaml(extra="  assets: {group_name: a b}\n"), ":5, attribute `assets.group_name`: group_name of source"),
        (source_yaml(extra="  assets: {tags: {a b!: c}}\n"), ":5, attribute `assets.tags`: tags of source"),
        (source_yaml(extra="  assets: {key_prefix: [a, '']}\n"), ":5, attribute `assets.key_prefix`: key_prefix is"),
        (source_yaml(extra="  assets: {automation_condition: now}\n"), ":5, attribute `assets.automation_condition`: "),
        (
            source_yaml(extra="  metric: acme.none\n"),
            ":5, attribute `metric`: There is no metric `acme.none`; registered are",
        ),
        (
            source_yaml(extra="  metric_version: 9.9.9\n"),
            ":5, attribute `metric_version`: Metric `agent.step_accuracy` has no version `9.9.9`",
        ),
        (
            source_yaml(extra="  config: {scoring_method: x}\n"),
            ":5, attribute `config`: Config of `agent.step_accuracy`, field `scoring_method`: Input",
        ),
    ],
)
def test_a_bad_file_is_named_with_its_field_in_one_line(folder: Path, text: str, sentence: str) -> None:
    write(folder, "good", source_yaml("good"))
    path = write(folder, "bad", text)
    with pytest.raises(ConfigError) as error:
        load_sources(folder)
    said = str(error.value)
    assert said.startswith(str(path))
    assert sentence in said
    assert "\n" not in said
    with pytest.raises(ConfigError, match=r"bad/defs\.yaml"):
        local_source("bad")
    assert local_source("good").name == "good"
    with pytest.raises(ConfigError, match=r"Name a source.*: `good`\..*Not loaded: .*bad/defs\.yaml"):
        local_source(None)


def test_a_bad_file_is_called_by_its_folder_and_by_the_source_it_speaks_of(folder: Path) -> None:
    """Even where it is no YAML at all."""
    write(folder, "good", source_yaml("good"))
    path = write(folder, "bad", source_yaml("support", "  : [\n"))
    for name in ("bad", "support"):
        with pytest.raises(ConfigError, match=r"bad/defs\.yaml cannot be read as YAML"):
            local_source(name)
    with pytest.raises(ConfigError, match=r"There is no source `other`; .*bad/defs\.yaml cannot be read"):
        local_source("other")
    path.unlink()
    assert local_source(None).name == "good"


def test_the_local_code_location_leaves_out_what_a_bad_file_gives_and_logs_it(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Those who follow the other sources go on; where nothing is left, the sentence is the error."""
    path = write(folder, "bad", source_yaml("bad", "  end_offset: 3\n"))
    with pytest.raises(ConfigError, match=r"bad/defs\.yaml:5, attribute `end_offset`"):
        defs()
    assert not caplog.messages
    write(folder, "good", source_yaml("good"))
    definitions = defs()
    assert isinstance(definitions, dg.Definitions)
    assert {key.path[0] for key in definitions.resolve_asset_graph().get_all_asset_keys()} == {"good"}
    [said] = caplog.messages
    assert said.startswith(f"{path}:5, attribute `end_offset`: ")


def test_bytes_that_are_no_text_are_named_too(folder: Path) -> None:
    path = write(folder, "bad", "")
    path.write_bytes(b"type: \xff\xfe")
    with pytest.raises(ConfigError, match=r"bad/defs\.yaml cannot be read as YAML"):
        load_sources(folder)


def test_what_only_a_project_makes_use_of_is_left_to_it(folder: Path) -> None:
    document = {"type": TYPE, "attributes": LEAST, "requirements": {"env": ["A"]}, "post_processing": {"assets": []}}
    write(folder, "ours", yaml.safe_dump(document))
    assert load_sources(folder) == [source_of(LEAST)]


def test_two_files_cannot_have_one_source(folder: Path) -> None:
    write(folder, "one", source_yaml())
    second = write(folder, "two", source_yaml())
    with pytest.raises(ConfigError) as error:
        load_sources(folder)
    assert str(error.value).startswith(f"{second}: source `support` has a defs.yaml already")
