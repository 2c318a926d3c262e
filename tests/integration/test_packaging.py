"""The built wheel: what is in it, and what it can do in an empty environment away from the checkout."""

import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli_access import RECORDED, RECORDED_STEPS
from tests.integration import test_local_postgres as local
from tests.integration.packaging_access import PACKAGES, REPOSITORY, Environment, build_wheel, run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_200)]

COMPILED = ("__pycache__", ".pyc")
LIGHT = """
import sys
before = set(sys.modules)
import stepacc_core
assert stepacc_core.step_accuracy(["a"], [stepacc_core.Step("a")]).score == 1.0
files = {name: getattr(module, "__file__", None) or "" for name, module in sys.modules.items() if name not in before}
print(*sorted({name.partition(".")[0] for name, file in files.items() if file.startswith(sys.prefix)}))
"""
OF_PYDANTIC_AND_YAML = {
    "_yaml",
    "annotated_types",
    "pydantic",
    "pydantic_core",
    "stepacc_core",
    "typing_extensions",
    "typing_inspection",
    "yaml",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel."""
    return build_wheel(tmp_path_factory.mktemp("sources"))


@pytest.fixture(scope="module")
def base(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The wheel without extras."""
    return Environment(tmp_path_factory.mktemp("base") / "my env", wheel)


@pytest.fixture(scope="module")
def full(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The wheel with what the demo needs."""
    return Environment(tmp_path_factory.mktemp("full") / "env", wheel, "[dagster,embedded]")


def sources() -> Iterator[str]:
    """Every file of the packages."""
    for package in PACKAGES:
        for path in (REPOSITORY / package).rglob("*"):
            if path.is_file() and not any(part in str(path) for part in COMPILED):
                yield str(path.relative_to(REPOSITORY))


def test_the_wheel_holds_every_file_of_the_packages_the_licence_and_nothing_else(wheel: Path) -> None:
    held = zipfile.ZipFile(wheel).namelist()
    [info] = {name.partition("/")[0] for name in held if ".dist-info/" in name}
    assert {name for name in held if not name.startswith(f"{info}/")} == set(sources())
    assert f"{info}/licenses/LICENSE" in held
    assert {"stepacc_core/py.typed", "stepacc_dagster/py.typed", "stepacc_dagster/storage/migrations/env.py"} < set(
        held
    )


def test_the_base_scores_files_and_has_no_other_packages_than_it_names(base: Environment) -> None:
    read = base.stepacc("steps", RECORDED, "--json")
    assert (read.code, read.err) == (0, "")
    assert [step["name"] for step in read.rows[0]["steps"]] == RECORDED_STEPS
    scored = base.stepacc("score", RECORDED, "--config", f'expected_steps=["{RECORDED_STEPS[0]}"]')
    assert [row["score"] for row in scored.rows] == [pytest.approx(1 / 3)]
    assert base.stepacc("manifest", "agent.step_accuracy", "--json").rows[0]["version"] == "2.0.0"
    assert run(base.bin / "python", "-c", "import dagster").code == 1
    light = run(base.bin / "python", "-c", LIGHT)
    assert light.code == 0, light.err
    assert {"pydantic", "yaml"} <= set(light.out.split()) <= OF_PYDANTIC_AND_YAML


@pytest.mark.parametrize(
    "command",
    ["demo", "dev", "db upgrade", "materialize", "ingest", "annotations list --source x", f"import traces {RECORDED}"],
)
def test_the_base_says_what_to_install_for_the_other_commands(base: Environment, command: str) -> None:
    said = base.stepacc(*command.split())
    assert (said.code, said.out) == (1, "")
    assert "pip install 'stepacc[dagster,embedded]'" in said.complaint
    assert f"`stepacc {command.split(maxsplit=1)[0]}`" in said.complaint


def test_help_and_version_work_in_the_base(base: Environment) -> None:
    assert "materialize" in base.stepacc("--help").out
    assert base.stepacc("--version").out.startswith("stepacc, version ")


def test_the_installed_wheel_runs_the_demo_twice(full: Environment, open_home: Path) -> None:
    home = open_home / "home"
    for new in ("150 new", "0 new"):
        said = full.stepacc("demo", STEPACC_HOME=str(home), PYTHONWARNINGS="default")
        assert said.code == 0, said.err
        assert "0.667" in said.out
        assert new in said.err
        assert len(said.err.splitlines()) == 4, said.err
        assert local.nothing_left(home)


def test_what_the_demo_left_can_be_read_and_evaluated_again(full: Environment, open_home: Path) -> None:
    environment = {"STEPACC_HOME": str(open_home)}
    assert full.stepacc("demo", **environment).code == 0
    assert len(full.stepacc("annotations", "list", "--json", **environment).rows) == 8
    [run_] = full.stepacc("materialize", "--json", **environment).rows
    assert run_["success"]
