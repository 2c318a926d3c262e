"""A database that is lost in the middle of a command ends it in a sentence, and leaves it to be run again."""

import os
import signal
import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from stepacc_dagster.local.postgres import throwaway_postgres
from stepacc_dagster.storage.schema import upgrade
from tests.cli_access import COMMAND
from tests.integration.conftest import opened

_RUNS = sa.text("SELECT count(*) FROM dagster.runs")


@pytest.mark.slow  # alone on the machine: it waits for a run to begin, and then for the end of its database
def test_without_the_database_of_the_runs_a_command_says_what_to_do(tmp_path: Path) -> None:
    folder = tmp_path / "defs" / "shop"
    folder.mkdir(parents=True)
    start = (datetime.now(UTC) - timedelta(days=300)).date()
    (folder / "defs.yaml").write_text(
        f"type: stepacc_dagster.StepAccuracyComponent\nattributes: {{source: shop, start_date: {start}}}\n"
    )
    with throwaway_postgres() as server:
        url = server.url("postgres")
        with opened(url) as engine:
            upgrade(engine)
        environment = {**os.environ, "STEPACC_HOME": str(tmp_path), "STEPACC_DATABASE_URL": url}
        with subprocess.Popen([*COMMAND, "materialize"], env=environment, stderr=subprocess.PIPE, text=True) as process:
            with opened(url) as engine:
                _wait_for_a_run(engine, process)
            postmaster = int((server.data / "postmaster.pid").read_text().split()[0])
            os.kill(postmaster, signal.SIGQUIT)
            _, said = process.communicate(timeout=120)

    assert process.returncode == 1
    assert "Traceback" not in said
    assert said.splitlines()[-1].startswith("Error: ")
    assert "run the command again" in said.splitlines()[-1]


def _wait_for_a_run(engine: sa.Engine, process: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with engine.connect() as connection:
                if connection.scalar(_RUNS):
                    return
        except sa.exc.ProgrammingError:  # Dagster's tables are not there yet
            pass
        time.sleep(0.05)
    msg = "no run began"
    raise AssertionError(msg)
