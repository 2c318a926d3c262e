"""The example project, with the built wheel in an environment of its own: `dg`, a metric of its own, real scores.

It runs the commands of docs/plugin.md, in their order.
"""

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.cli_access import Said
from tests.integration.conftest import opened
from tests.integration.packaging_access import CONSTRAINTS, Environment, build_wheel, run
from tests.integration.test_plugin_doc import EXAMPLE, blocks

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_200)]

TYPE = "stepacc_dagster.StepAccuracyComponent"
WITHIN, BEYOND = "5b8efff798038103d269b633813fc60c", "8a3c60f7d188f8fa79d48a391a778fa6"
"""The traces of the example: two tool calls, and four where three are allowed."""


class Project:
    """A copy of the example, installed as its users install theirs."""

    def __init__(self, folder: Path, environment: Environment) -> None:
        self.folder = folder
        self.package = folder / "src" / "mycompany_evals"
        self.defs = self.package / "defs"
        self._bin = environment.bin

    def __call__(self, *command: str, **environment: str) -> Said:
        """Run a command in the project's folder, with the environment's programs first."""
        given = {
            "PATH": f"{self._bin}:/usr/bin:/bin",
            "HOME": str(self.folder.parent),
            "PIP_CONSTRAINT": str(CONSTRAINTS),
            "DAGSTER_DISABLE_TELEMETRY": "1",
            "COLUMNS": "200",
            **environment,
        }
        return run(self._bin / command[0], *command[1:], cwd=self.folder, **given)

    def assets(self) -> dict[str, Any]:
        """Return what `dg list defs` says of the assets, by key."""
        listed = self("dg", "list", "defs", "--json")
        assert listed.code == 0, listed.err
        return {asset["asset_key"]: asset for asset in json.loads(listed.out)["assets"]}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The example in a folder away from the checkout."""
    folder = tmp_path_factory.mktemp("example")
    environment = Environment(folder / "env", build_wheel(tmp_path_factory.mktemp("sources")), "[dagster]")
    copy = shutil.copytree(EXAMPLE, folder / "project", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    made = Project(copy, environment)
    install, *_ = blocks("sh")[0].splitlines()
    installed = made(*shlex.split(install))
    assert installed.code == 0, installed.err
    return made


@pytest.fixture
def files(project: Project, tmp_path: Path) -> Iterator[Project]:
    """The project, whose files are put back at the end."""
    kept = shutil.copytree(project.package, tmp_path / "kept")
    yield project
    shutil.rmtree(project.package)
    shutil.copytree(kept, project.package)


def test_dg_finds_the_component_scaffolds_a_source_and_lists_what_all_sources_give(files: Project) -> None:
    commands = [shlex.split(line) for line in blocks("sh")[1].splitlines()]
    assert [command[:3] for command in commands] == [
        ["dg", "list", "components"],
        ["dg", "scaffold", "defs"],
        ["dg", "check", "defs"],
        ["dg", "list", "defs"],
    ]
    said = [files(*command) for command in commands]
    assert [one.code for one in said] == [0, 0, 0, 0], said
    assert not [one for one in said if "Warning" in one.out + one.err]
    assert TYPE in said[0].out
    assert (files.defs / "billing_agent" / "defs.yaml").exists()
    assert "billing_agent_evaluation" in said[3].out
    assets = files.assets()
    names = ("agent_traces", "annotations", "canonical_traces", "task_summaries")
    assert set(assets) == {
        *(f"{source}/{name}" for source in ("billing_agent", "support_agent", "evals/shop_agent") for name in names),
        *(
            f"{source}/step_accuracy_{kind}"
            for source in ("billing_agent", "support_agent")
            for kind in ("scores", "metadata")
        ),
        "evals/shop_agent/tool_budget_scores",
        "evals/shop_agent/tool_budget_metadata",
    }
    scores = assets["evals/shop_agent/tool_budget_scores"]
    assert (scores["group_name"], scores["owners"]) == ("agent_quality", [{"team": "evals"}])
    assert scores["dependency_keys"] == ["evals/shop_agent/canonical_traces"]


def test_a_name_that_no_source_can_have_is_refused_in_one_sentence(files: Project) -> None:
    refused = files("dg", "scaffold", "defs", TYPE, "billing-agent")
    assert refused.code != 0
    assert refused.complaint == (
        "Source name 'billing-agent' is not allowed; use a letter, then letters, digits and underscores."
    )
    assert not (files.defs / "billing-agent").exists()


@pytest.mark.parametrize(
    ("setting", "command", "place", "told"),
    [
        ("nope: 1", "yaml", ":6 - ", "'nope' was unexpected"),
        ("partitions: weekly", "defs", ":6, attribute `partitions`: ", "should be 'daily' or 'hourly'; given 'weekly'"),
        ("metric: acme.nothing", "defs", ":6, attribute `metric`: ", "no metric `acme.nothing`; registered are"),
        ("retry: {max_retries: many}", "defs", ":6 - attributes.retry", "should be a valid integer"),
    ],
)
def test_dg_tells_file_and_line_of_a_wrong_setting(
    files: Project, setting: str, command: str, place: str, told: str
) -> None:
    path = files.defs / "support_agent" / "defs.yaml"
    path.write_text(f'type: {TYPE}\n\nattributes:\n  source: support_agent\n  start_date: "2026-11-01"\n  {setting}\n')
    refused = files("dg", "check", command)
    assert refused.code != 0
    said = refused.out + refused.err
    assert f"support_agent/defs.yaml{place}" in said
    assert told in said


def test_a_broken_metric_is_told_with_its_package_and_costs_no_other_its_place(files: Project) -> None:
    metric = files.package / "metric.py"
    metric.write_text(f"import nowhere_to_be_found\n{metric.read_text()}")
    sentence = (
        "Metric `tool_budget` (`mycompany_evals.metric:ToolBudget`) of package mycompany-evals 0.1.0 cannot be loaded: "
        "ModuleNotFoundError: No module named 'nowhere_to_be_found'; mend the package, or uninstall it."
    )
    listed = files("stepacc", "manifest", "--json")
    assert (listed.code, listed.err) == (0, f"{sentence}\n")
    assert {entry["name"] for entry in listed.rows[0]} == {"agent.step_accuracy", "agent.trajectory_match"}
    refused = files("dg", "check", "defs")
    assert refused.code != 0
    assert "shop_agent/defs.yaml:6, attribute `metric`: There is no metric `mycompany.tool_budget`" in refused.out
    assert sentence in refused.out
    shutil.rmtree(files.defs / "shop_agent")
    assert files("dg", "check", "defs").code == 0


def test_the_metric_scores_imported_traces_and_a_new_version_scores_them_anew_beside(
    files: Project, migrated_url: str
) -> None:
    environment = {
        "STEPACC_DATABASE_URL": migrated_url,
        "STEPACC_DEFS": str(files.defs),
        "STEPACC_HOME": str(files.folder.parent / "home"),
        "PYTHONWARNINGS": "default",
    }
    evaluate, backfill = blocks("sh")[2:]
    exported = re.findall(r"^export (\w+)=", evaluate, flags=re.MULTILINE)
    assert exported == ["STEPACC_DATABASE_URL", "STEPACC_REDACTION_KEY", "STEPACC_DEFS"]
    said = {
        line: files(*shlex.split(line), **environment)
        for line in evaluate.splitlines()
        if not line.startswith("export ")
    }
    assert {line for line, one in said.items() if one.code} == set(), said
    assert "name: mycompany.tool_budget" in said["stepacc manifest mycompany.tool_budget"].out
    assert "0.750" in said["stepacc scores --source shop_agent"].out
    with opened(migrated_url) as engine:
        assert scores(engine) == {("1.0.0", WITHIN): 1.0, ("1.0.0", BEYOND): 0.75}
        [(calls, by_tool)] = rows(engine, BEYOND)
        assert (calls, by_tool) == (4, {"search_products": 3, "add_to_cart": 1})

        again = files("stepacc", "materialize", "--source", "shop_agent", "--from", "2026-11-02", "--to", "2026-11-02",
                      **environment)  # fmt: skip
        assert again.code == 0, again.err
        assert len(scores(engine)) == 2

        bump(files)
        assert files(*shlex.split(backfill), **environment).code == 0
        assert scores(engine) == {
            ("1.0.0", WITHIN): 1.0,
            ("1.0.0", BEYOND): 0.75,
            ("1.1.0", WITHIN): 1.0,
            ("1.1.0", BEYOND): 0.5,
        }


def bump(project: Project) -> None:
    """Make a version of the metric that counts the budget down to half as fast."""
    manifest = project.package / "manifests" / "tool_budget.yaml"
    manifest.write_text(manifest.read_text().replace("version: 1.0.0", "version: 1.1.0"))
    metric = project.package / "metric.py"
    changed = metric.read_text().replace("config.max_calls / len(calls))", "1.5 - len(calls) / 4)")
    assert changed != metric.read_text()
    metric.write_text(changed)


def scores(engine: sa.Engine) -> dict[tuple[str, str], float]:
    """Return the scores of the shop agent, by version and trace."""
    query = sa.text(
        "SELECT metric, metric_version, partition_id, score FROM stepacc.scores WHERE source = 'shop_agent'"
    )
    with engine.connect() as connection:
        found = connection.execute(query).all()
    assert {row.metric for row in found} <= {"mycompany.tool_budget"}
    assert len(found) == len({row[1:3] for row in found})
    return {(row.metric_version, row.partition_id): row.score for row in found}


def rows(engine: sa.Engine, trace_id: str) -> list[tuple[int, dict[str, int]]]:
    """Return what the metadata table says of a trace."""
    query = sa.text(
        "SELECT metadata FROM stepacc.score_metadata JOIN stepacc.scores ON id = score_id WHERE partition_id = :trace"
    )
    with engine.connect() as connection:
        found = connection.execute(query, {"trace": trace_id}).scalars().all()
    return [(metadata["calls"], metadata["by_tool"]) for metadata in found]
