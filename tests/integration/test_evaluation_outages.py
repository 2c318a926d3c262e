"""A database that is away, refuses, or is not what it should be: sentences, retries where they help, nothing half."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
import psycopg
import pytest
import sqlalchemy as sa

from stepacc_core import CanonicalPartition, Result, register
from stepacc_core.metrics import registry
from stepacc_core.model import RawSpan
from stepacc_dagster.database import DAGSTER_URL_VARIABLE, is_transient
from stepacc_dagster.evaluators import evaluator_of
from stepacc_dagster.ingest import ingest_window
from stepacc_dagster.local.postgres import throwaway_postgres
from stepacc_dagster.local.server import LocalPostgres
from stepacc_dagster.scoring import score_window
from stepacc_dagster.sources import MetricChoice, RetrySettings
from stepacc_dagster.storage import schema
from stepacc_dagster.stores.base import TraceReader
from stepacc_dagster.stores.otel_spans import OtelSpansStore
from stepacc_dagster.windows import Window
from tests.integration.conftest import opened
from tests.integration.evaluation_access import Workshop, support_source
from tests.integration.evaluation_samples import MONDAY, SOURCE, TUESDAY, WEDNESDAY, ToyMetric, agent_trace, day

WEEK = [MONDAY, TUESDAY, WEDNESDAY]
URL = "STEPACC_DATABASE_URL"
_STEPACC = "from stepacc_dagster.cli import main; main()"
RETRIED = dg.DagsterEventType.STEP_UP_FOR_RETRY


@pytest.fixture
def workshop(dagster_instance: dg.DagsterInstance, migrated_engine: sa.Engine) -> Workshop:
    return Workshop(dagster_instance, migrated_engine)


@pytest.fixture(scope="module")
def frail() -> Iterator[LocalPostgres]:
    """A server of this module's own, to be stopped and started."""
    with throwaway_postgres() as server:
        with opened(server.url("postgres")) as engine:
            schema.upgrade(engine)
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.execute(
                    sa.text("ALTER SYSTEM SET synchronous_commit = on")
                )  # as servers that matter have it
                connection.execute(sa.text("SELECT pg_reload_conf()"))
        yield server


@pytest.fixture
def frail_workshop(
    frail: LocalPostgres, dagster_instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Workshop]:
    """An annotated trace a day on the frail server, while Dagster keeps its own records on the other."""
    monkeypatch.setattr(registry, "_METRICS", dict(registry._METRICS))
    url = frail.url("postgres")
    monkeypatch.setenv(URL, url)
    with opened(url) as engine:
        workshop = Workshop(dagster_instance, engine)
        workshop.execute("TRUNCATE stepacc.scores, stepacc.score_metadata, stepacc.annotations, stepacc.task_summaries")
        workshop.land(*(agent_trace(f"t {key}", key, "search") for key in WEEK))
        for key in WEEK:
            workshop.annotate("trace", f"t {key}", ["search"])
        yield workshop


@contextmanager
def away(server: LocalPostgres) -> Iterator[None]:
    """Stop a server for as long as the block."""
    server.stop("immediate")
    try:
        yield
    finally:
        server.start()


def breaking(server: LocalPostgres, then: Callable[[], object]) -> Callable[[CanonicalPartition], Result]:
    """Return a scorer that stops the server when it first sees Tuesday's trace, and goes on."""
    done: list[str] = []

    def score(partition: CanonicalPartition) -> Result:
        if partition.partition_id == f"t {TUESDAY}" and not done:
            done.append(partition.partition_id)
            server.stop("immediate")
            then()
        return Result("scored", 0.5)

    return score


def test_a_database_away_at_the_start_is_waited_for_by_tries_of_the_step(
    frail: LocalPostgres, frail_workshop: Workshop
) -> None:
    retry = RetrySettings(max_retries=12, delay_seconds=0.1)
    evaluation = frail_workshop.evaluation(retry=retry)
    instance = frail_workshop.instance
    frail.stop("immediate")

    def start_again() -> None:
        while not any(instance.all_logs(run.run_id, of_type=RETRIED) for run in instance.get_runs()):
            time.sleep(0.01)
        frail.start()

    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(start_again)
        [run] = evaluation.materialize(WEEK)
        starting.result()
    assert run.success, run.error
    assert frail_workshop.events(run, RETRIED) >= 1
    assert [row.score for row in frail_workshop.scores()] == [1.0, 1.0, 1.0]


def test_a_database_that_stays_away_fails_the_run_with_one_sentence_after_its_retries(
    frail: LocalPostgres, frail_workshop: Workshop
) -> None:
    evaluation = frail_workshop.evaluation()
    with away(frail):
        [run] = evaluation.materialize(WEEK)
    assert not run.success
    assert run.error is not None
    assert "does not answer: start the server, or correct the address" in run.error
    assert frail_workshop.events(run, RETRIED) == evaluation.source.retry.max_retries
    assert frail_workshop.scores() == []


def test_a_database_that_goes_and_comes_back_in_the_middle_costs_a_retry_and_no_row(
    frail: LocalPostgres, frail_workshop: Workshop
) -> None:
    with ThreadPoolExecutor(1) as pool:
        register(ToyMetric("acme.storm", breaking(frail, lambda: pool.submit(frail.start))))
        retry = RetrySettings(max_retries=12, delay_seconds=0.1)
        run = frail_workshop.run(*WEEK, name="acme.storm", retry=retry)
    assert run.success, run.error
    assert frail_workshop.metadata("storm_scores", MONDAY).get("attempts") is None
    assert frail_workshop.metadata("storm_scores", TUESDAY)["attempts"] >= 2
    assert [(row.partition_id, row.score) for row in frail_workshop.scores()] == [(f"t {key}", 0.5) for key in WEEK]
    assert len(frail_workshop.rows("SELECT 1 FROM stepacc.score_metadata")) == 3


def test_a_database_that_goes_in_the_middle_and_stays_away_leaves_whole_partitions_only(
    frail: LocalPostgres, frail_workshop: Workshop
) -> None:
    register(ToyMetric("acme.fall", breaking(frail, lambda: None)))
    evaluation = frail_workshop.evaluation(name="acme.fall")
    try:
        [run] = evaluation.materialize(WEEK)
    finally:
        frail.start()
    assert not run.success
    assert run.error is not None
    assert "does not answer" in run.error
    assert [row.partition_id for row in frail_workshop.scores()] == [f"t {MONDAY}"]
    assert len(frail_workshop.rows("SELECT 1 FROM stepacc.score_metadata")) == 1
    assert frail_workshop.run(*WEEK, name="acme.fall").success
    assert len(frail_workshop.scores()) == 3


def test_a_lost_connection_in_the_last_attempt_fails_its_partition_alone(workshop: Workshop) -> None:
    workshop.land(*(agent_trace(f"t {key}", key, "search") for key in WEEK))
    _refuse(workshop, TUESDAY, "57P01")
    run = workshop.run(*WEEK, retry=RetrySettings(max_retries=1, delay_seconds=0))
    assert not run.success
    assert run.error == f"1 of 3 partitions failed, the others are stored. {TUESDAY}: The database says: refused."
    assert workshop.events(run, RETRIED) == 0  # what went well is not done again
    statuses = workshop.statuses("step_accuracy_scores", workshop.evaluation())
    assert statuses == {MONDAY: "MATERIALIZED", TUESDAY: "FAILED", WEDNESDAY: "MATERIALIZED"}


def test_an_error_of_a_statement_is_told_in_one_line_without_its_values_and_not_retried(workshop: Workshop) -> None:
    workshop.land(*(agent_trace(f"t {key}", key, "search") for key in WEEK))
    _refuse(workshop, TUESDAY, "23514")
    run = workshop.run(*WEEK)
    assert not run.success
    assert run.error == f"1 of 3 partitions failed, the others are stored. {TUESDAY}: The database says: refused."
    assert workshop.events(run, RETRIED) == 0
    assert {row.window_key for row in workshop.scores()} == {MONDAY, WEDNESDAY}


def test_the_same_error_while_ingesting_leaves_the_window_as_it_was(workshop: Workshop) -> None:
    workshop.land(*(agent_trace(f"t {key}", key, "search") for key in WEEK))
    _refuse(workshop, TUESDAY, "23514", table="traces")
    [run] = workshop.evaluation().ingest(WEEK)
    assert run.error == f"1 of 3 partitions failed, the others are stored. {TUESDAY}: The database says: refused."
    assert {row.trace_id for row in workshop.rows("SELECT trace_id FROM stepacc.spans")} == {
        f"t {MONDAY}",
        f"t {WEDNESDAY}",
    }
    statuses = workshop.statuses("canonical_traces", workshop.evaluation())
    assert statuses == {MONDAY: "MATERIALIZED", TUESDAY: "FAILED", WEDNESDAY: "MATERIALIZED"}


def test_a_writer_lost_while_scores_are_still_being_read_is_an_error_and_not_a_wait(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The read is ended before its connection is given back; waiting for itself, it never would be."""
    monkeypatch.setattr(registry, "_METRICS", dict(registry._METRICS))
    workshop.land(*(agent_trace(f"t {n:04}", MONDAY, "search") for n in range(3_000)))
    list(workshop.evaluation().ingest([MONDAY]))

    def kill(partition: CanonicalPartition) -> Result:
        if partition.partition_id == "t 0000":
            workshop.rows(_TERMINATE, pattern='COPY "staged_scores"%')
        return Result("scored", 0.5, {"long": "x" * 1_000})

    register(ToyMetric("acme.killer", kill))
    source = support_source(metric=MetricChoice("acme.killer"))
    error = error_of(lambda: score_window(workshop.engine, source, evaluator_of(source), day(MONDAY), "a run"))
    assert is_transient(error)
    assert workshop.scores() == []


@dataclass(frozen=True)
class Killing:
    """A store that ends the writer's connection when the first trace is read."""

    workshop: Workshop
    table_name: str = "stepacc.otel_spans"
    reader: list[TraceReader] = field(default_factory=list)

    @contextmanager
    def open(self) -> Iterator[Any]:
        """Open the table for reading."""
        with OtelSpansStore(self.workshop.engine, SOURCE).open() as reader:
            self.reader.append(reader)
            yield self

    def traces(self, window: Window) -> Iterator[tuple[str, list[RawSpan]]]:
        """Yield the traces."""
        for place, trace in enumerate(self.reader[0].traces(window)):
            if place == 0:
                self.workshop.rows(_TERMINATE, pattern="CREATE TEMP TABLE%")
            yield trace


def test_a_writer_lost_while_spans_are_still_being_read_is_an_error_and_not_a_wait(workshop: Workshop) -> None:
    workshop.land(
        agent_trace("a", MONDAY, *["search"] * 6_000), *(agent_trace(f"b{n}", MONDAY, "x") for n in range(5_000))
    )
    error = error_of(lambda: ingest_window(workshop.engine, Killing(workshop), support_source(), day(MONDAY)))
    assert is_transient(error)
    assert workshop.rows("SELECT count(*) FROM stepacc.traces") == [(0,)]


def error_of(work: Callable[[], object]) -> BaseException:
    """Return the error that ends some work, done in a thread that could be left behind if it never ended."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except (sa.exc.DBAPIError, psycopg.Error) as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), "the work waits for itself"
    [error] = errors
    return error


_TERMINATE = (
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE :pattern"
)


def _refuse(workshop: Workshop, key: str, state: str, table: str = "scores") -> None:
    """Let the database refuse the rows of a window, as a trigger of somebody's might."""
    workshop.execute(
        "CREATE FUNCTION stepacc.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF NEW.window_key = '{key}' THEN RAISE EXCEPTION E'refused\\nwith values' USING ERRCODE = '{state}'; END IF; "
        "RETURN NEW; END $$"
    )
    workshop.execute(
        f"CREATE TRIGGER refuse BEFORE INSERT ON stepacc.{table} FOR EACH ROW EXECUTE FUNCTION stepacc.refuse()"
    )


def test_what_another_try_cannot_mend_is_one_sentence_and_is_not_retried(
    workshop: Workshop, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = os.environ[URL]
    missing = sa.make_url(good).set(database="nowhere").render_as_string(hide_password=False)
    cases = {
        "": f"The environment variable `{URL}` is not set",
        "no url": "cannot be read: write postgresql://",
        good.replace("postgresql+psycopg", "mysql"): "stepacc stores in PostgreSQL only",
        good.replace("+psycopg", "+asyncpg"): "names the driver 'asyncpg', and only 'psycopg' works here",
        missing: "has no such database: correct it, or run CREATE DATABASE there",
        postgres_url: "has no tables of stepacc; run `stepacc db upgrade`",
    }
    for url, sentence in cases.items():
        monkeypatch.setenv(URL, url)
        _fails_with(workshop, sentence)


def test_a_schema_of_an_unknown_revision_is_one_sentence_and_is_not_retried(workshop: Workshop) -> None:
    workshop.execute("UPDATE stepacc.alembic_version SET version_num = '9999'")
    _fails_with(workshop, "are of revision 9999, which this version does not know")


def test_an_older_schema_is_one_sentence_and_is_not_retried(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = schema.head_revision()
    monkeypatch.setattr(schema, "_revisions", lambda: ("next", newest))
    _fails_with(workshop, "and this version works with next; run `stepacc db upgrade`")


def test_a_schema_nobody_may_read_is_one_sentence_and_is_not_retried(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    role = "stepacc_reader_without_rights"
    with workshop.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(sa.text(f"DROP ROLE IF EXISTS {role}"))
        connection.execute(sa.text(f"CREATE ROLE {role} LOGIN PASSWORD 'p'"))
    try:
        url = sa.make_url(os.environ[URL]).set(username=role, password="p")  # noqa: S106 (a role of this test)
        monkeypatch.setenv(URL, url.render_as_string(hide_password=False))
        _fails_with(workshop, "permission denied for schema stepacc")
    finally:
        workshop.execute(f"DROP ROLE {role}")


def _fails_with(workshop: Workshop, sentence: str) -> None:
    run = workshop.run(MONDAY)
    assert not run.success
    assert run.error is not None
    assert sentence in run.error
    assert "\n" not in run.error
    assert "password@" not in run.error.replace("user:password@", "")
    assert workshop.events(run, RETRIED) == 0


def test_two_processes_that_evaluate_the_same_partitions_at_once_leave_each_row_once(
    migrated_url: str, workshop: Workshop, tmp_path: Path
) -> None:
    workshop.land(*(agent_trace(f"t {n} {key}", key, "search", session=f"s {n}") for key in WEEK for n in range(20)))
    defs = tmp_path / "defs"
    defs.mkdir()
    (defs / "defs.yaml").write_text(
        "type: stepacc_dagster.StepAccuracyComponent\n"
        f"attributes: {{source: {SOURCE}, start_date: '2025-11-01', partition_types: [trace, session]}}\n"
    )
    environment = {**os.environ, URL: migrated_url, "STEPACC_DEFS": str(defs), "STEPACC_HOME": str(tmp_path / "home")}
    assert environment[DAGSTER_URL_VARIABLE]
    command = [sys.executable, "-c", _STEPACC, "materialize", "--from", MONDAY, "--to", WEDNESDAY]
    with workshop.engine.connect() as gate:
        gate.execute(sa.text("LOCK TABLE stepacc.traces IN ACCESS EXCLUSIVE MODE"))
        children = [
            subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for _ in range(2)
        ]
        waiting = (
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
        while workshop.rows(waiting) != [(2,)]:
            assert [child.poll() for child in children] == [None, None]
            time.sleep(0.05)
    said = [child.communicate(timeout=120) for child in children]
    assert [child.returncode for child in children] == [0, 0], said
    rows = workshop.scores()
    assert sorted((row.partition_type, row.partition_id) for row in rows) == sorted(
        [("trace", f"t {n} {key}") for key in WEEK for n in range(20)] + [("session", f"s {n}") for n in range(20)]
    )
    assert len(workshop.rows("SELECT 1 FROM stepacc.spans")) == 2 * 3 * 20
    assert len(workshop.rows("SELECT 1 FROM stepacc.score_metadata")) == len(rows)
