"""docs/plugin.md is run: its code and its files here, its commands in `test_example_project`."""

import re
import textwrap
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster.components.testing import create_defs_folder_sandbox

from stepacc_core.errors import ConfigError
from stepacc_dagster import StepAccuracyComponent, build_evaluation_definitions
from stepacc_dagster.definitions import load_sources
from tests.integration.packaging_access import REPOSITORY
from tests.integration.test_component import dagsters_own_warnings

EXAMPLE = REPOSITORY / "examples" / "tool_budget"
PAGE = (REPOSITORY / "docs" / "plugin.md").read_text()


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language, in order."""
    found = re.findall(r"^ *```(\w*)\n(.*?)^ *```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(text) for name, text in found if name == language]


def test_the_python_example_builds_both_sources() -> None:
    [code] = blocks("python")
    namespace: dict[str, Any] = {}
    exec(compile(code, "plugin.md", "exec"), namespace)  # noqa: S102 (our own page)
    dg.Definitions.validate_loadable(namespace["defs"])
    owners = {spec.key.to_user_string(): list(spec.owners) for spec in namespace["defs"].resolve_all_asset_specs()}
    assert owners["billing_agent/step_accuracy_scores"] == ["team:billing"]
    assert owners["support_agent/step_accuracy_scores"] == []


@dagsters_own_warnings
def test_the_yaml_example_gives_the_assets_it_speaks_of() -> None:
    [_, text] = blocks("yaml")
    with create_defs_folder_sandbox() as sandbox:
        path = sandbox.scaffold_component(component_cls=StepAccuracyComponent, defs_yaml_contents=yaml.safe_load(text))
        with sandbox.load_component_and_build_defs(defs_path=path) as (_, definitions):
            specs = {spec.key.to_user_string(): spec for spec in definitions.resolve_all_asset_specs()}
    scores = specs["evals/support_agent/step_accuracy_scores"]
    assert (scores.group_name, list(scores.owners)) == ("agent_quality", ["team:evals", "qa@example.org"])
    assert scores.automation_condition == dg.AutomationCondition.on_cron("0 3 * * *")
    assert list(specs["evals/support_agent/annotations"].owners) == ["team:annotators"]


def test_the_source_with_several_metrics_gets_the_assets_and_checks_it_speaks_of(tmp_path: Path) -> None:
    (tmp_path / "defs.yaml").write_text(blocks("yaml")[0])
    [source] = load_sources(tmp_path)
    definitions = build_evaluation_definitions(source)
    assets = {spec.key.path[-1] for spec in definitions.resolve_all_asset_specs()}
    named = {
        "annotations",
        "reference_trajectories",
        "step_accuracy_scores",
        "trajectory_match_scores",
        "task_summaries",
    }
    assert named <= assets
    checks = {key.name for key in definitions.resolve_asset_graph().asset_check_keys}
    assert {"no_forbidden_step", "references_confirmed"} <= checks
    assert {name for name in named | {"no_forbidden_step", "references_confirmed"} if f"`{name}`" not in PAGE} == set()


def test_the_refusal_it_shows_is_the_one_that_is_given(tmp_path: Path) -> None:
    [shown] = blocks("")
    path = tmp_path / "billing_agent" / "defs.yaml"
    path.parent.mkdir()
    path.write_text(
        "type: stepacc_dagster.StepAccuracyComponent\n\nattributes:\n  source: billing_agent\n"
        '  start_date: "2026-11-01"\n  end_offset: 7\n'
    )
    with pytest.raises(ConfigError) as refused:
        load_sources(tmp_path)
    assert str(refused.value).removeprefix(str(tmp_path)) == shown.strip().removeprefix("src/mycompany_evals/defs")


def test_the_entry_point_it_shows_is_that_of_the_example() -> None:
    [shown] = blocks("toml")
    assert shown in (EXAMPLE / "pyproject.toml").read_text()


def test_every_file_it_links_to_is_there() -> None:
    links = re.findall(r"\]\((\.\./[^)]+)\)", PAGE)
    assert len(links) >= 4
    assert [link for link in links if not (REPOSITORY / "docs" / link).exists()] == []
