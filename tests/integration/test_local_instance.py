"""The local Dagster instance."""

import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest
import sqlalchemy as sa

from stepacc_dagster.local.instance import dagster_home, instance_environment, local_instance


@dg.asset(pool="test_pool")
def two() -> int:
    """A small asset with something to read on standard output."""
    print("written by the asset")  # noqa: T201 - a compute log needs content
    return 2


def test_a_run_is_stored_in_the_schema_dagster(tmp_path: Path, postgres_url: str, engine: sa.Engine) -> None:
    """Dagster's tables lie on the same database, apart from those of stepacc."""
    with local_instance(tmp_path, postgres_url) as instance:
        result = dg.materialize([two], instance=instance)
        assert result.success
    with engine.connect() as connection:
        assert connection.execute(sa.text("SELECT status FROM dagster.runs")).scalars().all() == ["SUCCESS"]
    assert sa.inspect(engine).get_table_names("public") == []


def test_logs_and_results_lie_in_the_home(tmp_path: Path, postgres_url: str) -> None:
    """What a run prints and returns is kept below the given folder."""
    with local_instance(tmp_path, postgres_url) as instance:
        dg.materialize([two], instance=instance)
    kept = [path for path in dagster_home(tmp_path).rglob("*.out") if "written by the asset" in path.read_text()]
    assert kept
    assert list(dagster_home(tmp_path).rglob("two"))


def test_settings_of_the_instance(tmp_path: Path, postgres_url: str) -> None:
    """Dagster reads the settings as they are meant."""
    with local_instance(tmp_path, postgres_url) as instance:
        assert not instance.telemetry_enabled
        assert not instance.nux_enabled
        assert instance.run_monitoring_enabled
        assert instance.run_monitoring_settings["free_slots_after_run_end_seconds"] == 60
        assert instance.run_monitoring_max_runtime_seconds > 0
        assert instance.run_retries_enabled
        assert not instance.run_retries_retry_on_asset_or_op_failure
        concurrency = instance.get_concurrency_config()
        assert concurrency.pool_config.pool_granularity is not None
        assert concurrency.pool_config.pool_granularity.value == "op"
        assert concurrency.pool_config.default_pool_limit is None
        assert concurrency.run_queue_config is not None
        assert concurrency.run_queue_config.max_concurrent_runs == 4
        assert instance.event_log_storage.supports_global_concurrency_limits


def test_a_pool_limit_survives_a_second_opening(tmp_path: Path, postgres_url: str) -> None:
    """The instance is a lasting one, and opening it again changes nothing in it."""
    with local_instance(tmp_path, postgres_url) as instance:
        instance.event_log_storage.set_concurrency_slots("test_pool", 3)
    with local_instance(tmp_path, postgres_url) as instance:
        dg.materialize([two], instance=instance)
        assert [(limit.name, limit.limit) for limit in instance.event_log_storage.get_pool_limits()] == [
            ("test_pool", 3)
        ]


def test_the_webserver_finds_the_tables(tmp_path: Path, postgres_url: str) -> None:
    """It makes engines of its own, which must keep the search path."""
    with local_instance(tmp_path, postgres_url) as instance:
        run = dg.materialize([two], instance=instance).run_id
        instance.optimize_for_webserver(statement_timeout=5000, pool_recycle=3600, max_overflow=5)
        assert [found.run_id for found in instance.get_runs()] == [run]
        assert instance.all_logs(run)


def test_the_environment_is_put_back(tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the block, the variables are what they were, set or not."""
    monkeypatch.setenv("STEPACC_DATABASE_URL", "postgresql://elsewhere/x")
    with local_instance(tmp_path, postgres_url):
        assert os.environ["STEPACC_DATABASE_URL"] == postgres_url
        assert os.environ["DAGSTER_HOME"] == str(dagster_home(tmp_path))
    assert os.environ["STEPACC_DATABASE_URL"] == "postgresql://elsewhere/x"
    assert "DAGSTER_HOME" not in os.environ
    assert "STEPACC_DAGSTER_DATABASE_URL" not in os.environ


def test_settings_are_refreshed_until_somebody_changes_them(tmp_path: Path, postgres_url: str) -> None:
    """A file as written before is written anew; one that was changed is kept."""
    path = dagster_home(tmp_path) / "dagster.yaml"
    with local_instance(tmp_path, postgres_url):
        written = path.read_text()
    with local_instance(tmp_path, postgres_url):
        assert path.read_text() == written
    changed = written.replace("max_concurrent_runs: 4", "max_concurrent_runs: 1")
    path.write_text(changed)
    with local_instance(tmp_path, postgres_url) as instance:
        queue = instance.get_concurrency_config().run_queue_config
        assert queue is not None
        assert queue.max_concurrent_runs == 1
    assert path.read_text() == changed


def test_dagster_tables_may_lie_elsewhere(
    tmp_path: Path, postgres_url: str, engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`STEPACC_DAGSTER_DATABASE_URL` wins, and nothing is created in the database of stepacc for Dagster."""
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE SCHEMA own"))
    own = sa.make_url(postgres_url).update_query_dict({"options": "-csearch_path=own"})
    monkeypatch.setenv(
        "STEPACC_DAGSTER_DATABASE_URL", own.set(drivername="postgresql").render_as_string(hide_password=False)
    )
    with local_instance(tmp_path, postgres_url) as instance:
        assert instance.get_runs() == []
    assert "runs" in sa.inspect(engine).get_table_names("own")
    assert "dagster" not in sa.inspect(engine).get_schema_names()


_OPEN = """
import sys
from pathlib import Path
from stepacc_dagster.local.instance import local_instance
with local_instance(Path(sys.argv[1]), sys.argv[2]) as instance:
    print(len(instance.get_runs()))
"""


def test_several_processes_open_a_new_instance_at_once(tmp_path: Path, postgres_url: str) -> None:
    """None fails and none complains, though all find the tables missing."""
    command = [sys.executable, "-W", "error", "-c", _OPEN, str(tmp_path), postgres_url]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    assert [child.communicate(timeout=120) for child in children] == [("0\n", "")] * 4


def test_a_child_process_finds_the_instance(tmp_path: Path, postgres_url: str) -> None:
    """Dagster's own command line works on the instance through `instance_environment` alone."""
    with local_instance(tmp_path, postgres_url) as instance:
        run = dg.materialize([two], instance=instance).run_id
    listed = subprocess.run(
        [sys.executable, "-m", "dagster", "run", "list"],
        env={**os.environ, **instance_environment(tmp_path, postgres_url)},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert run in listed.stdout
    assert "telemetry" not in listed.stdout + listed.stderr


def test_fixture_and_tables_of_stepacc_fit_together(
    dagster_instance: dg.DagsterInstance, migrated_url: str, migrated_engine: sa.Engine
) -> None:
    """The shared fixtures give an empty instance and a migrated database under one roof."""
    assert dagster_instance.get_runs() == []
    assert os.environ["STEPACC_DATABASE_URL"] == migrated_url
    assert "scores" in sa.inspect(migrated_engine).get_table_names("stepacc")
