"""What `dg scaffold defs` writes for a new source."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import dagster as dg
import pytest
import yaml
from dagster.components.component_scaffolding import scaffold_object
from dagster.components.scaffold.scaffold import NoParams
from dagster.components.testing import create_defs_folder_sandbox

from stepacc_dagster import StepAccuracyComponent
from stepacc_dagster.definitions import load_sources
from stepacc_dagster.scaffolder import StepAccuracyScaffolder
from tests.integration.test_component import TYPE, dagsters_own_warnings

_OFF = re.compile(r"^  # (?=[a-z_]+: )(?!phoenix)", re.MULTILINE)
"""What stands before a setting that is off."""


def scaffolded(folder: Path, scaffold_format: str = "yaml") -> Path:
    """Call what `dg scaffold defs` calls."""
    scaffold_object(folder, TYPE, None, scaffold_format, folder.parent)
    return folder


@pytest.mark.parametrize("scaffold_format", ["yaml", "python"])
@dagsters_own_warnings
def test_a_new_source_loads_at_once_and_begins_today(scaffold_format: Any) -> None:
    before = datetime.now(UTC).date().isoformat()
    with create_defs_folder_sandbox() as sandbox:
        path = sandbox.scaffold_component(
            component_cls=StepAccuracyComponent, defs_path="agents/support_agent", scaffold_format=scaffold_format
        )
        with sandbox.load_component_and_build_defs(defs_path=path) as (component, definitions):
            dg.Definitions.validate_loadable(definitions)
            assert {key.path[0] for key in definitions.resolve_asset_graph().get_all_asset_keys()} == {"support_agent"}
            [job] = [job.name for job in definitions.jobs or () if "evaluation" in job.name]
            assert job == "support_agent_evaluation"
            if isinstance(component, StepAccuracyComponent):
                assert before <= component.start_date <= datetime.now(UTC).date().isoformat()


def test_the_file_is_read_by_the_local_code_location_too(tmp_path: Path) -> None:
    scaffolded(tmp_path / "support_agent")
    [source] = load_sources(tmp_path)
    assert source.name == "support_agent"


def test_every_setting_that_is_off_can_be_switched_on(tmp_path: Path) -> None:
    path = scaffolded(tmp_path / "support_agent") / "defs.yaml"
    text = path.read_text()
    before = set(yaml.safe_load(text)["attributes"])
    path.write_text(_OFF.sub("  ", text))
    added = set(yaml.safe_load(path.read_text())["attributes"]) - before
    assert added == {
        "store",
        "store_url_env",
        "trace_url",
        "step_policy",
        "metric",
        "metric_version",
        "config",
        "follow",
        "assets",
    }
    [source] = load_sources(tmp_path)
    assert (source.store.kind, source.step_policy.entry_agent, source.follow.rescore) == ("phoenix", "root", False)
    assert (source.assets.key_prefix, source.assets.tags) == (("evals",), {"tier": "gold"})


@pytest.mark.parametrize("name", ["support-agent", "2nd", "my agent", "agent.one", "naïve"])
@pytest.mark.parametrize("scaffold_format", ["yaml", "python"])
def test_a_name_that_no_source_can_have_is_refused_in_a_sentence_and_leaves_nothing(
    tmp_path: Path, name: str, scaffold_format: str
) -> None:
    with pytest.raises(click.ClickException) as refused:
        scaffolded(tmp_path / name, scaffold_format)
    assert refused.value.message == (
        f"Source name {name!r} is not allowed; use a letter, then letters, digits and underscores."
    )
    assert not (tmp_path / name).exists()


def test_a_refusal_leaves_a_folder_that_holds_something(tmp_path: Path) -> None:
    (tmp_path / "my-agent").mkdir()
    (tmp_path / "my-agent" / "notes.txt").touch()
    with pytest.raises(click.ClickException):
        scaffolded(tmp_path / "my-agent")
    assert [path.name for path in (tmp_path / "my-agent").iterdir()] == ["notes.txt"]


def test_a_source_is_not_added_to_the_file_of_another(tmp_path: Path) -> None:
    path = scaffolded(tmp_path / "support_agent") / "defs.yaml"
    text = path.read_text()
    request = dg.ScaffoldRequest(
        type_name=TYPE, target_path=path, scaffold_format="yaml", project_root=None, params=NoParams(), append=True
    )
    with pytest.raises(click.ClickException, match="give each source a folder of its own"):
        StepAccuracyScaffolder().scaffold(request)
    assert path.read_text() == text
