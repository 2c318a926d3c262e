"""`stepacc doctor` on installation, database and Dagster: each fault is made for real, and told with what to do."""

import json
import os
import re
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
import sqlalchemy as sa
from dagster._core.scheduler.instigation import InstigatorStatus

from stepacc_dagster.database import DAGSTER_URL_VARIABLE
from stepacc_dagster.doctor.gather.queries import NEWEST_SCORES, NEWEST_TRACES
from stepacc_dagster.local.dead_runs import process_tags
from stepacc_dagster.local.instance import dagster_home
from tests.cli_access import stepacc, stepacc_process
from tests.integration.conftest import Server, opened
from tests.integration.doctor_access import beat, describe, doctor, queued, role, snapshot, switch, tick
from tests.integration.evaluation_access import Workshop
from tests.integration.evaluation_samples import MONDAY, SOURCE, TUESDAY, agent_trace
from tests.integration.following_access import Follower

DOCS = (Path(__file__).parents[2] / "docs" / "doctor.md").read_text("utf-8")
POOL = "stepacc_step_accuracy"
LOCAL = "Dagster instance of stepacc's commands"
OWN = "Dagster instance of DAGSTER_HOME"
DATABASE = "Database of STEPACC_DATABASE_URL"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of stepacc with one source, and nothing else yet."""
    monkeypatch.setenv("STEPACC_HOME", str(tmp_path / "home"))
    describe(tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def workshop(home: Path, dagster_instance: dg.DagsterInstance, migrated_engine: sa.Engine) -> Workshop:
    """The source of that folder, with an annotated trace on two days, over an open instance."""
    assert dagster_instance.root_directory == str(dagster_home(home))
    workshop = Workshop(dagster_instance, migrated_engine)
    workshop.land(*(agent_trace(f"t {key}", key, "search", task="refund") for key in (MONDAY, TUESDAY)))
    workshop.annotate("task", "refund", ["search"])
    return workshop


@pytest.fixture
def database(home: Path, migrated_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a migrated database that the commands use, without any instance."""
    assert home.exists()
    monkeypatch.setenv("STEPACC_DATABASE_URL", migrated_url)
    return migrated_url


def execute(url: str, statement: str) -> None:
    with opened(url) as engine, engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(statement)


# all is well


def test_where_all_is_well_nothing_is_found_and_nothing_is_changed(workshop: Workshop, home: Path) -> None:
    Follower(workshop).settle()
    beat(workshop.instance)
    tick(workshop.instance, switch(workshop.instance, InstigatorStatus.RUNNING))
    with opened(os.environ[DAGSTER_URL_VARIABLE].replace("+psycopg2", "")) as runs:
        before = snapshot(workshop.engine, runs, folder=home)
        found = doctor("--strict")
        assert snapshot(workshop.engine, runs, folder=home) == before
    assert [each for each in found.findings if each.level != "ok"] == []
    assert [each.about.partition(",")[0] for each in found.findings][:: len(found.findings) - 1] == [
        "Installation",
        f"Source {SOURCE}",
    ]
    for fragment in (
        "dagster-postgres",
        "STEPACC_DATABASE_URL names the database",
        "PostgreSQL",
        "at revision",
        "may read and write",
        "The daemon is alive",
        "Runs are monitored",
        "The run queue allows up to 4 runs",
        "lets 4 steps run at a time, as its metric's manifest says",
        "No run is stuck",
        "can be read",
        f"The sensor {SOURCE}_changes is on, last ticked",
        f"The schedule {SOURCE}_daily is off",
        "was last asked for changes",
        f"2 windows with traces up to date, {MONDAY} to {TUESDAY}",
        "2 of 2 occurrences scored (100 %)",
    ):
        found.one(fragment)


def test_people_read_sections_and_a_summary(workshop: Workshop) -> None:
    Follower(workshop).settle()
    said = stepacc("doctor")
    assert (said.code, said.err) == (0, "2 notes.\n")
    heads = [line.partition(",")[0].strip() for line in said.out.splitlines() if line.strip() and line[0] != " "]
    assert heads == ["Installation", DATABASE, LOCAL, f"Source {SOURCE}"]
    assert "     note No daemon has ever run here" in said.out
    assert "\n          -> Start it: `stepacc dev`" in said.out
    beat(workshop.instance)
    tick(workshop.instance, switch(workshop.instance, InstigatorStatus.RUNNING))
    assert stepacc("doctor").err == "All is well.\n"


def test_strict_makes_a_warning_a_failure(workshop: Workshop) -> None:
    Follower(workshop).look()
    found = doctor()
    assert found.bad("warning")
    assert (found.said.code, stepacc("doctor", "--strict").code) == (0, 1)


# the installation


def _fake(folder: Path, distribution: str, version: str) -> None:
    info = folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")


@pytest.mark.usefixtures("database")
def test_packages_that_do_not_belong_together_are_told_and_all_else_too(tmp_path: Path) -> None:
    _fake(tmp_path, "dagster-postgres", "0.11.14")
    said = stepacc_process("doctor", "--json", environment={"PYTHONPATH": str(tmp_path)})
    told = {row["what"]: row for row in said.rows}
    [wrong] = [row for row in said.rows if "dagster-postgres 0.11.14 do not belong together" in row["what"]]
    assert (said.code, wrong["level"], wrong["about"]) == (1, "error", "Installation")
    assert "dagster-postgres==0." in wrong["what_to_do"]
    assert any("PostgreSQL" in what for what in told)


def test_a_driver_that_cannot_be_loaded_is_told_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "psycopg2.py").write_text("raise ImportError('libpq.so.5: cannot open shared object file')\n")
    said = stepacc_process("doctor", "--json", environment={"PYTHONPATH": str(tmp_path), "STEPACC_HOME": str(tmp_path)})
    errors = [row for row in said.rows if row["level"] == "error"]
    assert said.code == 1
    assert "Traceback" not in said.err
    assert errors[0]["what"] == "The module psycopg2 cannot be imported: libpq.so.5: cannot open shared object file."
    assert {row["about"] for row in said.rows} == {"Installation"}


# the database


@pytest.mark.usefixtures("home")
def test_a_database_without_tables_is_told_with_the_command(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPACC_DATABASE_URL", postgres_url)
    found = doctor().one("has no tables of stepacc", DATABASE)
    assert (found.level, found.what_to_do) == ("error", "Run `stepacc db upgrade`.")
    with opened(postgres_url) as engine:
        assert sa.inspect(engine).has_schema("stepacc") is False
    stepacc("db", "upgrade")
    assert not doctor().says("has no tables of stepacc")


@pytest.mark.parametrize(
    ("revision", "fragment", "remedy"),
    [
        ("0001", "are of revision 0001, and this version of stepacc works with", "Run `stepacc db upgrade`."),
        ("9999", "are of revision 9999, which this version of stepacc does not know", "Upgrade stepacc here"),
    ],
)
def test_older_and_newer_tables_are_told(database: str, revision: str, fragment: str, remedy: str) -> None:
    execute(database, f"UPDATE stepacc.alembic_version SET version_num = '{revision}'")  # noqa: S608 (two revisions)
    found = doctor()
    told = found.one(fragment, DATABASE)
    assert told.level == "error"
    assert (told.what_to_do or "").startswith(remedy)
    found.one("defs.yaml loads")


@pytest.mark.parametrize("as_json", [True, False])
def test_a_database_that_is_away_hides_nothing_else_and_no_password_is_shown(
    home: Path, monkeypatch: pytest.MonkeyPatch, *, as_json: bool
) -> None:
    with socket.socket() as probe:  # bound, and nobody listens
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        url = f"postgresql://shop:s3cr3t-w0rd@127.0.0.1:{port}/shop"
        monkeypatch.setenv("STEPACC_DATABASE_URL", url)
        monkeypatch.setenv("PHOENIX_URL", url.replace("w0rd", "w0rd%"))
        dagster_home(home).mkdir()
        (dagster_home(home) / "dagster.yaml").write_text(f"storage: {{postgres: {{postgres_url: '{url}'}}}}\n")
        describe(home, "other", store="{kind: phoenix}", store_url_env="PHOENIX_URL")
        (describe(home, "third").parent / "defs.yaml").write_text("type: nonsense\n")
        said = stepacc("doctor", *(["--json"] if as_json else []))
    assert said.code == 1
    assert "s3cr3t" not in said.out + said.err
    told = " ".join(said.out.split())
    assert told.count("does not answer") >= 2
    for fragment in (
        f"127.0.0.1:{port}/shop",
        LOCAL,
        "Source other",
        "Source in",
        f"Source {SOURCE}",
        "defs.yaml loads",
    ):
        assert fragment in told


@pytest.mark.usefixtures("database")
def test_a_url_of_no_use_is_told_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPACC_DATABASE_URL", "mysql://shop:s3cr3t@host/shop")
    monkeypatch.setenv(DAGSTER_URL_VARIABLE, "postgresql+asyncpg://shop:s3cr3t@host/shop")
    found = doctor()
    assert "s3cr3t" not in found.said.out
    assert "STEPACC_DATABASE_URL" in str(found.one("begins with mysql://", "Installation").what_to_do)
    assert DAGSTER_URL_VARIABLE in str(found.one("'asyncpg'", "Installation").what_to_do)
    found.one("begins with mysql://", "Database")
    found.one("defs.yaml loads")


def test_a_database_set_to_read_only_is_told(database: str) -> None:
    execute(database, f"ALTER DATABASE {sa.make_url(database).database} SET default_transaction_read_only = on")
    assert doctor().one("takes no writes", DATABASE).level == "error"


# roles

TABLES = (
    *(
        "otel_spans",
        "traces",
        "spans",
        "sessions",
        "scores",
        "score_metadata",
        "feeds",
        "windows",
        "window_annotations",
    ),
    *("window_scores", "task_summaries"),
    *("annotations", "redaction_key", "metric_configs"),
)
READER = ["USAGE ON SCHEMA stepacc", "SELECT ON ALL TABLES IN SCHEMA stepacc"]
WRITER = [
    *READER,
    *(f"INSERT ON stepacc.{table}" for table in TABLES),
    *(f"UPDATE ON stepacc.{table}" for table in TABLES[:-3]),
    "DELETE ON stepacc.spans",
    "DELETE ON stepacc.sessions",
    "DELETE ON stepacc.task_summaries",
]


def test_a_user_who_may_not_even_look_is_told(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with role(database) as url:
        monkeypatch.setenv("STEPACC_DATABASE_URL", url)
        found = doctor()
    assert found.one("lacks rights", DATABASE).what.endswith("lacks rights: USAGE on the schema stepacc.")
    assert "pa55" not in found.said.out


def test_a_user_who_may_only_read_is_told_and_the_sources_are_read(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    Follower(workshop).settle()
    with role(workshop.engine.url.render_as_string(hide_password=False), *READER) as url:
        monkeypatch.setenv("STEPACC_DATABASE_URL", url)
        found = doctor()
    assert "UPDATE on " in found.one("lacks rights", DATABASE).what
    found.one("2 of 2 occurrences scored")


def test_a_user_who_may_not_make_the_schema_is_told_what_its_owner_does(
    home: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert home.exists()
    with role(postgres_url) as url:
        monkeypatch.setenv("STEPACC_DATABASE_URL", url)
        name = sa.make_url(url).username
        told = doctor().one("has no tables of stepacc", DATABASE)
        assert f"CREATE SCHEMA stepacc AUTHORIZATION {name}" in str(told.what_to_do)
        execute(postgres_url, f"CREATE SCHEMA stepacc AUTHORIZATION {name}")
        assert stepacc("db", "upgrade").code == 0
        assert doctor().bad() == []


def test_a_user_without_temporary_tables_is_told(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    execute(database, f"REVOKE TEMPORARY ON DATABASE {sa.make_url(database).database} FROM PUBLIC")
    with role(database, *WRITER) as url:
        monkeypatch.setenv("STEPACC_DATABASE_URL", url)
        found = doctor()
    assert found.bad("error") == [found.one("may not create temporary tables", DATABASE).what]


def test_the_rights_that_the_docs_grant_are_enough(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    [block] = re.findall(r"```sql\n(.*?)```", DOCS, re.DOTALL)
    granted = [" ".join(each.split()) for each in block.split(";") if each.strip()]
    rights = [each.removeprefix("GRANT ").removesuffix(" TO worker") for each in granted]
    with role(database, *rights) as url:
        monkeypatch.setenv("STEPACC_DATABASE_URL", url)
        assert doctor().one("may read and write", DATABASE).level == "ok"
    assert f"{NEWEST_TRACES:,}" in DOCS
    assert f"newest {NEWEST_SCORES}," in DOCS


def test_a_user_of_whom_nothing_is_said_can_do_all_of_it(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rights that are asked for are enough for the work, and the lack of each is told."""
    with role(workshop.engine.url.render_as_string(hide_password=False), *WRITER) as url, opened(url) as engine:
        monkeypatch.setenv("STEPACC_DATABASE_URL", url)
        doctor().one("may read and write", DATABASE)
        limited = Workshop(workshop.instance, engine)
        Follower(limited).settle()
        limited.land(agent_trace(f"t {TUESDAY}", TUESDAY, "search", "answer", session="s"))
        limited.annotate("trace", f"t {TUESDAY}", ["answer"])
        limited.withdraw("task", "refund")
        Follower(limited, partition_types={"trace": "skip", "session": "fail"}).settle()
        assert len(limited.current()) == 2
        assert limited.rows("SELECT 1 FROM stepacc.window_scores WHERE problem IS NOT NULL") == []
        every, *single = WRITER[1:]
        fives = [single[start : start + 5] for start in range(0, len(single), 5)]  # as many are named
        for grants in ([every], *fives):
            for grant in grants:
                workshop.execute(f"REVOKE {grant} FROM {engine.url.username}")
            found = doctor().one("lacks rights", DATABASE)
            assert found.level == "error"
            for grant in grants:
                workshop.execute(f"GRANT {grant} TO {engine.url.username}")
                assert grant == every or grant.replace("ON stepacc.", "on ") in found.what
        assert not doctor().says("lacks rights")


# the local server


def test_without_a_server_none_is_made(home: Path) -> None:
    before = snapshot(folder=home)
    found = doctor()
    assert found.bad() == ["Its store is in the database of stepacc, which cannot be used."]
    assert "there is no local server yet" in found.one("STEPACC_DATABASE_URL is not set").what
    found.one("There is no Dagster instance in", LOCAL)
    assert snapshot(folder=home) == before
    assert sorted(path.name for path in home.iterdir()) == ["defs"]


def test_a_local_server_that_does_not_run_is_started_and_stopped(
    open_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPACC_HOME", str(open_home))
    assert stepacc("db", "upgrade").code == 0
    found = doctor()
    assert found.bad() == []
    found.one("at revision", "Database on the local server")
    assert not (open_home / "postgres" / "postmaster.pid").exists()
    (open_home / "postgres" / "postgresql.conf").write_text("nonsense\n")
    assert "did not start" in doctor().one("local PostgreSQL server", "Database on the local server").what


# the Dagster instance


def test_a_daemon_is_told_by_its_signs_of_life(workshop: Workshop) -> None:
    instance = workshop.instance
    assert doctor().one("No daemon has ever run here").level == "note"
    beat(instance, ago=7_200)
    assert doctor().one("The daemon was last alive 2 hours ago").level == "warning"
    beat(instance)
    assert doctor().one("The daemon is alive").level == "ok"
    beat(instance, ago=3_600, part="BACKFILL")
    beat(instance, part="SENSOR", error="the code is gone")
    found = doctor()
    assert found.one("silent: BACKFILL").level == "warning"
    assert found.one("The part SENSOR of the daemon last failed: the code is gone").level == "warning"


def test_runs_that_will_not_end_are_told(workshop: Workshop) -> None:
    instance, job = workshop.instance, Follower(workshop).job
    limit = {"dagster/max_runtime": "60"}
    hours = datetime.now(UTC) - timedelta(hours=3)
    late = queued(instance, job, tags=limit)
    long = instance.create_run_for_job(job, tags=limit, status=dg.DagsterRunStatus.STARTED)
    new = instance.create_run_for_job(job, tags=limit, status=dg.DagsterRunStatus.STARTED)
    (name,) = process_tags()
    dead = instance.create_run_for_job(
        job, tags={name: f"{socket.gethostname()} 1 0"}, status=dg.DagsterRunStatus.STARTED
    )
    with opened(os.environ[DAGSTER_URL_VARIABLE].replace("+psycopg2", "")) as engine, engine.begin() as connection:
        connection.execute(
            sa.text("UPDATE runs SET create_timestamp = :at WHERE run_id = ANY(:ids)"),
            {"at": hours.replace(tzinfo=None), "ids": [late.run_id, long.run_id]},
        )
        connection.execute(
            sa.text("UPDATE runs SET start_time = :at WHERE run_id = :id"),
            {"at": hours.timestamp(), "id": long.run_id},
        )
    found = doctor()
    assert (
        found.one(f"Run {late.run_id} has been QUEUED for 3 hours; it should be 60 seconds at most").level == "warning"
    )
    assert found.one(f"Run {long.run_id} has been STARTED for 3 hours").level == "warning"
    found.one(f"1 unfinished run without a living process: {dead.run_id}")
    found.one("Its queue holds 1 run. No daemon has ever run here")
    assert not found.says(new.run_id)


def test_limits_of_pools_and_places_held_by_nobody_are_told(workshop: Workshop) -> None:
    instance = workshop.instance
    storage = instance.event_log_storage
    doctor().one(f"Pool {POOL} has no limit yet; the first run sets the manifest's, 4")
    storage.set_concurrency_slots(POOL, 2)
    run = instance.create_run_for_job(Follower(workshop).job, status=dg.DagsterRunStatus.STARTED)
    assert storage.claim_concurrency_slot(POOL, run.run_id, "step").is_claimed
    found = doctor()
    found.one(f"Pool {POOL} lets 2 steps run at a time, set by somebody")
    assert not found.says("Runs that have ended hold")
    instance.report_run_failed(run)
    assert doctor().one(f"Runs that have ended hold 1 place in pool {POOL}: {run.run_id}").level == "warning"
    storage.set_concurrency_slots(POOL, 1)
    assert doctor().one("Runs that have ended hold 1 place").level == "error"
    storage.set_concurrency_slots(POOL, 0)
    assert doctor().one(f"Pool {POOL} has the limit 0").level == "error"


@pytest.mark.usefixtures("workshop")
def test_settings_that_let_slots_leak_or_nothing_run_are_told(home: Path) -> None:
    path = dagster_home(home) / "dagster.yaml"
    text = path.read_text()
    storage = "storage: {postgres: {postgres_url: {env: STEPACC_DAGSTER_DATABASE_URL}}}\n"
    path.write_text(storage)
    assert doctor().one("The instance has no run monitoring", LOCAL).level == "warning"
    path.write_text(f"{storage}run_monitoring: {{enabled: true}}\nconcurrency: {{runs: {{max_concurrent_runs: 0}}}}\n")
    found = doctor()
    assert found.one("run monitoring that frees no pool slots").level == "warning"
    assert found.one("max_concurrent_runs is 0").level == "error"
    path.write_text(
        f"{storage}run_coordinator: {{module: dagster.core.run_coordinator, class: DefaultRunCoordinator}}\n"
    )
    assert doctor().one("without a queue").level == "note"
    path.write_text(f"{storage}nonsense: true\n")
    found = doctor()
    assert '"nonsense"' in found.one("Its settings are refused", LOCAL).what
    found.one("defs.yaml loads")
    path.write_text(text)


@pytest.mark.usefixtures("workshop")
def test_dagsters_tables_of_another_revision_are_told() -> None:
    with opened(os.environ[DAGSTER_URL_VARIABLE].replace("+psycopg2", "")) as engine, engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '29a8e9d74220'"))
    assert doctor().one("are of revision 29a8e9d74220", LOCAL).level == "warning"


def test_an_instance_without_tables_is_no_fault_and_gets_none(
    database: str, home: Path, monkeypatch: pytest.MonkeyPatch, server: Server
) -> None:
    assert database
    dagster_home(home).mkdir()
    (dagster_home(home) / "dagster.yaml").write_text(
        "storage: {postgres: {postgres_url: {env: STEPACC_DAGSTER_DATABASE_URL}}}\n"
    )
    with server.database() as empty:
        monkeypatch.setenv(DAGSTER_URL_VARIABLE, empty.replace("+psycopg", "+psycopg2"))
        assert doctor().one("There are no tables of Dagster yet", LOCAL).level == "note"
        with opened(empty) as engine:
            assert sa.inspect(engine).get_table_names() == []


def test_an_instance_of_a_project_is_looked_at_too(
    workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = os.environ[DAGSTER_URL_VARIABLE]
    project = tmp_path / "project"
    monkeypatch.setenv("DAGSTER_HOME", str(project))
    assert "is no folder" in doctor().one(str(project), OWN).what
    project.mkdir()
    before = snapshot(folder=project)
    assert doctor().one("Nothing was ever stored", OWN).level == "note"
    assert snapshot(folder=project) == before
    assert list(project.iterdir()) == []
    bare = url.replace("postgresql+psycopg2", "postgresql")
    (project / "dagster.yaml").write_text(json.dumps({"storage": {"postgres": {"postgres_url": bare}}}))
    wrong = doctor().one("begins with postgresql://", OWN)
    assert wrong.level == "error"
    assert "postgresql+psycopg2" in wrong.what
    (project / "dagster.yaml").write_text(json.dumps({"storage": {"postgres": {"postgres_url": url}}}))
    beat(workshop.instance)
    found = doctor()
    found.one("The daemon is alive", OWN)
    found.one("The instance has no run monitoring", OWN)
    found.one("Runs are monitored", LOCAL)


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("storage", "fragment"),
    [
        ("postgres_db: {username: u, password: 987654, hostname: h, db_name: d}", "postgres_db:password"),
        ("postgres_url: 'postgresql+psycopg2://u:987654@h:port/d'", "URL of its storage cannot be read"),
        ("postgres_url: 'postgresql+psycopg2://u:987@654@127.0.0.1:1/d'", "more than one @"),
        ("postgres_url: 'postgresql+psycopg2://u:987654@127.0.0.1:1/d'", "127.0.0.1:1/d does not answer"),
        ("postgres_url: {env: NOT_SET_ANYWHERE}", '"NOT_SET_ANYWHERE" which is not set'),
        ("postgres_url: [", "dagster.yaml"),
    ],
)
def test_settings_of_an_instance_that_are_refused_show_no_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, storage: str, fragment: str
) -> None:
    (tmp_path / "dagster.yaml").write_text(f"storage: {{postgres: {{{storage}}}}}\n")
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    found = doctor()
    assert found.one(fragment, OWN).level == "error"
    assert "987" not in found.said.out


def test_an_instance_in_files_is_looked_at_and_left_as_it_is(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert database
    project = tmp_path / "project"
    project.mkdir()
    with dg.DagsterInstance.from_config(str(project)) as instance:
        beat(instance)
    monkeypatch.setenv("DAGSTER_HOME", str(project))
    before = snapshot(folder=project)
    found = doctor()
    found.one("Its tables are in SQLite files", OWN)
    found.one("The daemon is alive", OWN)
    assert snapshot(folder=project) == before
