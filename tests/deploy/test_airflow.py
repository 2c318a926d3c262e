"""The DAG of `deploy/airflow`, parsed and run once by a real Airflow in an environment of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from stepacc_dagster.local.postgres import throwaway_postgres
from tests.cli_access import RECORDED, RECORDED_STEPS, stepacc_process
from tests.integration.packaging_access import REPOSITORY

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(1_800)]

AIRFLOW = REPOSITORY / ".venv-airflow" / "bin" / "airflow"
DAGS = REPOSITORY / "deploy" / "airflow"
TRACE, DAY, DUE = "900d66f3b6dd0c31902e0c73ce3b4bbe", "2026-11-30", "2026-12-01T01:00:00+00:00"
"""The recorded trace, its day, and the moment at which the run of that day becomes due."""


class Airflow:
    """An Airflow over a folder, with the database of stepacc as a connection."""

    def __init__(self, home: Path, url: str) -> None:
        self.home = home
        database = sa.make_url(url).set(drivername="postgres")
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "PYTHON"))},
            "AIRFLOW_HOME": str(home / "airflow"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW_CONN_STEPACC_DATABASE": database.render_as_string(hide_password=False),
            "AIRFLOW_CONN_STEPACC_REDACTION": f"generic://:{os.environ['STEPACC_REDACTION_KEY'].replace(' ', '%20')}@",
            "STEPACC_PROGRAM": str(Path(sys.executable).with_name("stepacc")),
            "STEPACC_HOME": str(home),
        }

    def __call__(self, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Run a command of Airflow."""
        return subprocess.run(
            [AIRFLOW, *arguments],
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )

    def done(self, *arguments: str) -> str:
        """Run a command that is to succeed; return what it printed."""
        ended = self(*arguments)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    """An Airflow with its tables and the pool, and an annotated trace in the database of stepacc."""
    if not AIRFLOW.exists():
        pytest.skip("Airflow is not installed; `make test-airflow` installs it")
    home = tmp_path_factory.mktemp("airflow")
    with throwaway_postgres() as server:
        made = Airflow(home, server.url("postgres"))
        settings = {"source": "support_agent", "start_date": DAY}
        defs = home / "defs" / "support_agent"
        defs.mkdir(parents=True)
        document = {"type": "stepacc_dagster.StepAccuracyComponent", "attributes": settings}
        (defs / "defs.yaml").write_text(json.dumps(document))
        expected = {"target": {"type": "trace", "id": TRACE}, "expected_steps": RECORDED_STEPS}
        (home / "expected.json").write_text(json.dumps({"source": "support_agent", "annotations": [expected]}))
        environment = {"STEPACC_HOME": str(home), "STEPACC_DATABASE_URL": server.url("postgres")}
        for arguments in (
            ("db", "upgrade"),
            ("import", "traces", "--source", "support_agent", RECORDED),
            ("annotations", "import", home / "expected.json"),
        ):
            said = stepacc_process(*arguments, environment=environment)
            assert said.code == 0, said.err
        made.done("db", "migrate")
        made.done("pools", "set", "stepacc", "2", "Tasks of stepacc at once")
        yield made


def test_the_dag_is_parsed_without_errors(airflow: Airflow) -> None:
    airflow.done("dags", "reserialize")
    assert airflow.done("dags", "list-import-errors").splitlines()[-1] == "No data found"
    [dag] = json.loads(airflow.done("dags", "list", "--output", "json").splitlines()[-1])
    assert dag["dag_id"] == "stepacc_daily"
    tasks = airflow.done("tasks", "list", "stepacc_daily").split()
    assert sorted(tasks[-3:]) == ["gate", "ingest", "materialize"]


def test_a_run_ingests_scores_and_passes_the_gate_of_the_day_that_is_over(airflow: Airflow) -> None:
    ended = airflow("dags", "test", "stepacc_daily", DUE)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    said = ended.stdout + ended.stderr
    assert f"gate --source support_agent --from {DAY} --to {DAY}" in said
    assert "state=success" in said
    url = sa.make_url(airflow.environment["AIRFLOW_CONN_STEPACC_DATABASE"]).set(drivername="postgresql+psycopg")
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        rows = connection.execute(sa.text("SELECT partition_id, score FROM stepacc.current_scores")).all()
    engine.dispose()
    assert rows == [(TRACE, 1.0)]


def test_a_gate_that_is_not_met_fails_its_task_and_so_the_run(airflow: Airflow) -> None:
    wrong = json.loads((airflow.home / "expected.json").read_text())
    wrong["annotations"][0]["expected_steps"] = ["something_else"]
    (airflow.home / "expected.json").write_text(json.dumps(wrong))
    database = sa.make_url(airflow.environment["AIRFLOW_CONN_STEPACC_DATABASE"]).set(drivername="postgresql")
    environment = {
        "STEPACC_HOME": str(airflow.home),
        "STEPACC_DATABASE_URL": database.render_as_string(hide_password=False),
    }
    said = stepacc_process("annotations", "import", airflow.home / "expected.json", environment=environment)
    assert said.code == 0, said.err
    ended = airflow("dags", "test", "stepacc_daily", DUE)
    said_by_airflow = ended.stdout + ended.stderr
    assert "Bash command failed. The command returned a non-zero exit code 1." in said_by_airflow
    assert "state=failed" in said_by_airflow
