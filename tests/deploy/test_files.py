"""The files of `deploy/` that no test starts fit what reads them."""

import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from dagster._config import resolve_to_config_type, validate_config
from dagster._core.instance.config import dagster_instance_config_schema

from stepacc_dagster.stores.settings import TableSettings, store_settings
from tests.integration.packaging_access import REPOSITORY

DEPLOY = REPOSITORY / "deploy"
DOC = (REPOSITORY / "docs" / "deploy.md").read_text("utf-8")


@pytest.mark.parametrize("path", ["dagster.yaml", "kubernetes/dagster.yaml"])
def test_dagster_takes_the_settings_of_the_instance(path: str) -> None:
    """All but the configuration of a launcher that is not installed here."""
    settings = yaml.safe_load((DEPLOY / path).read_text())
    checked = validate_config(resolve_to_config_type(dagster_instance_config_schema()), settings)
    assert checked.success, checked.errors


@pytest.mark.parametrize(
    ("name", "executor"),
    [(None, "in_process"), ("in_process", "in_process"), ("multiprocess", "multiprocess"), ("celery", "celery")],
)
def test_the_project_takes_the_executor_that_the_environment_names(
    name: str | None, executor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(DEPLOY / "project" / "src"))
    if name:
        monkeypatch.setenv("EVALS_EXECUTOR", name)
    for module in [module for module in sys.modules if module.partition(".")[0] == "evals"]:
        monkeypatch.delitem(sys.modules, module)
    assert importlib.import_module("evals.defs.executor").defs.executor.name == executor


def test_each_file_that_a_service_of_compose_mounts_is_there() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    mounted = {volume.split(":")[0] for service in services.values() for volume in service.get("volumes", ())}
    files = {path for path in mounted if path.startswith("./")}
    assert files
    assert all((DEPLOY / path).is_file() for path in files), files
    assert (DEPLOY / "project" / "Dockerfile").is_file()
    assert services["tables"]["command"] == "stepacc db upgrade"


def test_compose_reads_the_file_and_refuses_it_without_a_secret(tmp_path: Path) -> None:
    """By whichever Compose is installed: the plugin of `docker`, or the older program."""

    def run(*command: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        given = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **environment}
        return subprocess.run(command, env=given, capture_output=True, text=True, check=False)

    programs = [program for program in (("docker", "compose"), ("docker-compose",)) if shutil.which(program[0])]
    program = next((program for program in programs if run(*program, "version").returncode == 0), None)
    if program is None:
        pytest.skip("Docker's Compose is not installed")
    config = (*program, "--file", str(DEPLOY / "compose.yaml"), "config", "--services")
    secrets = dict.fromkeys(("POSTGRES_PASSWORD", "STEPACC_COLLECT_TOKEN", "STEPACC_REDACTION_KEY"), "0f")
    found = run(*config, **secrets, COMPOSE_PROFILES="celery").stdout.split()
    assert sorted(found) == ["code", "collect", "daemon", "postgres", "redis", "tables", "webserver", "worker"]
    for left_out in secrets:
        refused = run(*config, **{name: value for name, value in secrets.items() if name != left_out})
        assert refused.returncode != 0
        assert left_out in refused.stderr


def test_the_page_shows_a_store_over_its_partitioned_table() -> None:
    """A column that the page's table does not have would be met only by whoever follows it."""
    [shown] = [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```$", DOC, re.MULTILINE | re.DOTALL)]
    store = store_settings(shown["store"])
    assert isinstance(store, TableSettings)
    [table] = re.findall(r"CREATE TABLE agents.spans \((.*?)\) PARTITION", DOC, re.DOTALL)
    columns = {line.split()[0] for line in table.strip().splitlines()}
    assert set(store.columns.given().values()) <= columns


def test_the_values_of_the_chart_load_the_project_that_is_there() -> None:
    values = yaml.safe_load((DEPLOY / "kubernetes" / "values.yaml").read_text())
    [deployment] = values["dagster-user-deployments"]["deployments"]
    module = deployment["dagsterApiGrpcArgs"][-1]
    assert Path(DEPLOY, "project", "src", *module.split(".")).with_suffix(".py").is_file()
    release = re.search(r"--version (\S+)", (DEPLOY / "kubernetes" / "values.yaml").read_text())
    assert release is not None
    assert f"dagster=={release[1]}\n" in (REPOSITORY / "constraints.txt").read_text()
