"""Metrics of installed packages: found by their entry points, and contained when one of them is broken."""

import pickle
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from stepacc_core import get_metric, register, registered_metrics
from stepacc_core.errors import UnknownMetricError
from stepacc_core.metrics import metric_problems, registry
from tests.cli_access import RECORDED, stepacc, stepacc_process

METRIC = """
from pydantic import BaseModel
from stepacc_core import Result, get_metric
from stepacc_core.metrics import load_manifest

class Config(BaseModel):
    pass

class Metric:
    config_model = Config
    manifest = load_manifest("{module}", "manifest.yaml", Config)
    def reference(self, partition, config):
        return None
    def score(self, partition, config):
        return Result("scored", 0.5)
"""
BUILT_IN = {("agent.step_accuracy", "1.0.0"), ("agent.step_accuracy", "2.0.0"), ("agent.trajectory_match", "1.0.0")}

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a package with an entry point as `pip` lays it out, in a registry that has not looked at any yet."""
    monkeypatch.setattr(registry, "_METRICS", {key: registry._METRICS[key] for key in BUILT_IN})
    monkeypatch.setattr(registry, "_PROBLEMS", None)
    monkeypatch.syspath_prepend(tmp_path)

    def write(module: str, code: str = METRIC, attribute: str = ":Metric", **facts: object) -> None:
        package = tmp_path / module
        package.mkdir()
        (package / "__init__.py").write_text(code.replace("{module}", module))
        pattern = manifest_facts()
        manifest = {**pattern, "name": f"acme.{module}", "version": "0.1.0", "entrypoint": f"{module}.Metric", **facts}
        (package / "manifest.yaml").write_text(yaml.safe_dump(manifest))
        info = tmp_path / f"{module}-3.2.1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 3.2.1\n")
        (info / "entry_points.txt").write_text(f"[stepacc.metrics]\nours = {module}{attribute}\n")
        monkeypatch.delitem(sys.modules, module, raising=False)

    return write


def manifest_facts() -> dict[str, object]:
    facts = registry._METRICS["agent.step_accuracy", "2.0.0"].manifest.model_dump(mode="json")
    del facts["config_schema"]
    return facts


def names() -> set[tuple[str, str]]:
    return {(metric.manifest.name, metric.manifest.version) for metric in registered_metrics()}


def test_the_metric_of_an_installed_package_is_known_without_being_imported(install: Install) -> None:
    install("acme_found")
    assert get_metric("acme.acme_found").manifest.version == "0.1.0"
    assert names() == {*BUILT_IN, ("acme.acme_found", "0.1.0")}
    assert metric_problems() == ()


def test_a_package_is_imported_once_and_not_before_a_metric_is_asked_for(install: Install) -> None:
    install("acme_lazy")
    assert "acme_lazy" not in sys.modules
    assert get_metric("acme.acme_lazy") is get_metric("acme.acme_lazy")
    assert "acme_lazy" in sys.modules


def test_a_package_may_look_metrics_up_and_register_its_own_while_it_is_imported(install: Install) -> None:
    code = METRIC + "assert get_metric('agent.step_accuracy').manifest.version == '2.0.0'\n"
    install("acme_curious", code)
    assert get_metric("acme.acme_curious").manifest.name == "acme.acme_curious"


@pytest.mark.parametrize(
    ("code", "attribute", "facts", "reason"),
    [
        ("import numpy_of_nowhere", ":Metric", {}, "ModuleNotFoundError: No module named 'numpy_of_nowhere'"),
        ("1 / 0", ":Metric", {}, "ZeroDivisionError: division by zero"),
        ("", ":Metric", {}, "has no attribute 'Metric'"),
        (METRIC, "", {}, "TypeError: 'module' object is not callable"),
        (METRIC, ".other:Metric", {}, "ModuleNotFoundError: No module named 'acme_broken.other'"),
        (METRIC, ":Config", {}, "its manifest is NoneType, not what `load_manifest` returns"),
        (
            METRIC,
            ":Metric",
            {"entrypoint": "a.b"},
            "says entrypoint `a.b`, and the entry point is `acme_broken.Metric`",
        ),
        (METRIC, ":Metric", {"version": "1"}, "field `version`: String should match pattern"),
        (METRIC.replace("manifest.yaml", "lost.yaml"), ":Metric", {}, "cannot be read"),
        (METRIC.replace("config_model = Config", "config_model = dict"), ":Metric", {}, "config_model is no pydantic"),
        (METRIC.replace("def score(", "def rate("), ":Metric", {}, "it has no method `score`"),
        (METRIC, ":Metric", {"name": "agent.step_accuracy", "version": "2.0.0"}, "2.0.0 is already registered"),
    ],
)
def test_a_broken_one_costs_no_other_its_place_and_is_told_in_a_sentence(
    install: Install, code: str, attribute: str, facts: dict[str, object], reason: str
) -> None:
    install("acme_good")
    install("acme_broken", code, attribute, **facts)
    assert names() == {*BUILT_IN, ("acme.acme_good", "0.1.0")}
    [problem] = metric_problems()
    said = str(problem)
    assert said.startswith(f"Metric `ours` (`acme_broken{attribute}`) of package acme_broken 3.2.1 cannot be loaded: ")
    assert reason in said
    assert said.endswith("; mend the package, or uninstall it.")
    assert "\n" not in said
    assert pickle.loads(pickle.dumps(problem)) == problem  # noqa: S301 (our own bytes)
    with pytest.raises(UnknownMetricError, match=r"no metric `acme\.acme_broken`.*package acme_broken 3\.2\.1"):
        get_metric("acme.acme_broken")
    with pytest.raises(UnknownMetricError, match=r"no version `9\.9\.9`.*package acme_broken 3\.2\.1"):
        get_metric("agent.step_accuracy", "9.9.9")


def test_a_package_adds_a_version_to_a_metric_that_is_there(install: Install) -> None:
    install("acme_newer", name="agent.step_accuracy", version="10.0.0")
    assert get_metric("agent.step_accuracy").manifest.version == "10.0.0"


def test_what_was_registered_by_hand_keeps_its_name(install: Install) -> None:
    install("acme_twice")
    built_in = registry._METRICS["agent.step_accuracy", "2.0.0"]
    named = built_in.manifest.model_copy(update={"name": "acme.acme_twice", "version": "0.1.0"})
    mine = type("Mine", (), {"manifest": named})()
    register(mine)
    assert get_metric("acme.acme_twice") is mine
    assert "is already registered" in str(metric_problems()[0])


def test_the_command_line_lists_the_metric_and_tells_of_a_broken_one(install: Install, tmp_path: Path) -> None:
    install("acme_good")
    install("acme_broken", "import numpy_of_nowhere")
    environment = {"PYTHONPATH": str(tmp_path)}
    listed = stepacc_process("manifest", "--json", environment=environment)
    assert [(entry["name"], entry["version"]) for entry in listed.rows[0]] == sorted(
        {*BUILT_IN, ("acme.acme_good", "0.1.0")}
    )
    assert (listed.code, listed.err) == (0, f"{metric_problems()[0]}\n")
    shown = stepacc_process("manifest", "acme.acme_good", environment=environment)
    assert (shown.code, shown.err) == (0, "")
    assert "name: acme.acme_good" in shown.out
    scored = stepacc_process("score", RECORDED, "--metric", "acme.acme_good", environment=environment)
    assert [(row["metric"], row["score"]) for row in scored.rows] == [("acme.acme_good", 0.5)]
    assert "acme_broken 3.2.1" in stepacc("manifest", "acme.acme_broken").complaint
