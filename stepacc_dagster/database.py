"""Database URLs and engines."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

import psycopg
import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from stepacc_dagster.errors import DatabaseError, DatabaseUrlError, EncodingError, ServerTooOldError
from stepacc_dagster.failures import URL_VARIABLE, address, is_transient, unreachable

__all__ = [
    "DAGSTER_SCHEMA",
    "DAGSTER_URL_VARIABLE",
    "OLDEST_MAJOR",
    "URL_VARIABLE",
    "check_reachable",
    "check_version",
    "connect_engine",
    "create_dagster_schema",
    "dagster_storage_url",
    "database_url",
    "is_transient",
    "normalise_url",
    "open_database",
]

DAGSTER_URL_VARIABLE = "STEPACC_DAGSTER_DATABASE_URL"
DAGSTER_SCHEMA = "dagster"
OLDEST_MAJOR = 15  # UNIQUE NULLS NOT DISTINCT

_SETTINGS = sa.text("SELECT current_setting('server_version'), current_setting('server_encoding')")
_SHAPE = "postgresql://user:password@host:5432/database"
_DRIVER = "postgresql+psycopg"  # always named: what plain postgresql:// means differs between SQLAlchemy 2.0 and 2.1
_DAGSTER_DRIVER = "postgresql+psycopg2"  # dagster-postgres does not work on psycopg 3


def database_url(explicit: str | None = None) -> str | None:
    """Return the URL of the database that was asked for, in the form that `connect_engine` takes.

    Args:
        explicit: a URL given by argument or setting, which wins.

    Returns:
        That one, else `STEPACC_DATABASE_URL`, else None.

    Raises:
        DatabaseUrlError: the URL is of no use.
    """
    given = explicit or os.environ.get(URL_VARIABLE)
    return normalise_url(given) if given else None


def normalise_url(url: str) -> str:
    """Bring a database URL into the form `postgresql+psycopg://...`.

    Args:
        url: a URL as libpq or SQLAlchemy takes it: postgres://, postgresql:// or postgresql+psycopg://.

    Returns:
        The same with its driver named.

    Raises:
        DatabaseUrlError: it cannot be read, or names another driver or another database.
    """
    return _render(_parsed(url, driver="psycopg").set(drivername=_DRIVER))


def connect_engine(url: str) -> sa.Engine:
    """Make an engine with a small pool; nothing is connected yet.

    Args:
        url: any form that `normalise_url` takes.

    Returns:
        The engine; its connections carry the name `stepacc` and give up after ten seconds, unless
        the URL says otherwise. They prepare no statements, which a pooler would lose or mix up.

    Raises:
        DatabaseUrlError: the URL is of no use.
    """
    parsed = make_url(normalise_url(url))
    # The encoding is named for a database without one of its own (SQL_ASCII), whose texts would come as bytes.
    defaults: dict[str, str | int | None] = {
        "application_name": "stepacc",
        "client_encoding": "UTF8",
        "connect_timeout": 10,
        "prepare_threshold": None,
    }
    return sa.create_engine(
        parsed,
        pool_size=2,
        max_overflow=8,
        pool_pre_ping=True,
        connect_args={name: value for name, value in defaults.items() if name not in parsed.query},
    )


def check_reachable(engine: sa.Engine) -> None:
    """Connect once, and see that the server is new enough and the database in UTF-8.

    Args:
        engine: of `connect_engine`.

    Raises:
        UnreachableError: no server answers, or it lets nobody in.
        ServerTooOldError: it is older than PostgreSQL 15.
        EncodingError: the database is not in UTF-8.
    """
    try:
        with engine.connect() as connection:
            version, encoding = connection.execute(_SETTINGS).one()
    except DBAPIError as error:
        raise unreachable(engine.url, error) from error
    check_version(version)
    if encoding != "UTF8":
        message = (
            f"The database {address(engine.url)} is encoded in {encoding}, which cannot hold every trace: "
            "create one with ENCODING 'UTF8' TEMPLATE template0."
        )
        raise EncodingError(message)


def check_version(version: str) -> None:
    """Refuse a server that is too old.

    Args:
        version: its `server_version`, as "18.4" or "15.18 (Debian 15.18-0+deb12u1)".

    Raises:
        ServerTooOldError: it is older than PostgreSQL 15.
    """
    major = re.match(r"\d+", version)
    if major is None or int(major[0]) < OLDEST_MAJOR:
        message = (
            f"The database server is PostgreSQL {version}, and stepacc needs {OLDEST_MAJOR} or newer: "
            f"upgrade it, or set {URL_VARIABLE} to a newer server."
        )
        raise ServerTooOldError(message)


def dagster_storage_url(url: str) -> str:
    """Return the URL for Dagster's own tables, in the form that dagster-postgres takes.

    Args:
        url: the database of stepacc.

    Returns:
        `STEPACC_DAGSTER_DATABASE_URL` where it is set; else the same database, with the schema
        `dagster` as the search path. Always with the driver psycopg2.

    Raises:
        DatabaseUrlError: one of the two is of no use.
    """
    if own := os.environ.get(DAGSTER_URL_VARIABLE):
        return _render(_parsed(own, driver="psycopg2", variable=DAGSTER_URL_VARIABLE).set(drivername=_DAGSTER_DRIVER))
    parsed = make_url(normalise_url(url))
    options = parsed.query.get("options", "")
    given = options if isinstance(options, str) else " ".join(options)
    search_path = f"-csearch_path={DAGSTER_SCHEMA}"  # the last one given wins
    merged = f"{given} {search_path}".strip()
    return _render(parsed.set(drivername=_DAGSTER_DRIVER).update_query_dict({"options": merged}))


def create_dagster_schema(engine: sa.Engine) -> None:
    """Create the schema that `dagster_storage_url` names, where it is missing; safe at the same time from several.

    Args:
        engine: of stepacc's database.

    Raises:
        DatabaseError: the user may not create it.
        UnreachableError: no server answers.
    """
    try:
        with engine.begin() as connection:
            # IF NOT EXISTS asks for the right to create even where there is nothing to do.
            known = sa.text("SELECT 1 FROM pg_namespace WHERE nspname = :name")
            if connection.execute(known, {"name": DAGSTER_SCHEMA}).first():
                return
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(hashtext('stepacc'), hashtext('dagster'))"))
            connection.execute(sa.text(f"CREATE SCHEMA IF NOT EXISTS {DAGSTER_SCHEMA}"))
    except DBAPIError as error:
        if not isinstance(error.orig, psycopg.errors.InsufficientPrivilege):
            raise unreachable(engine.url, error) from error
        message = (
            f"The user of {address(engine.url)} may not create the schema {DAGSTER_SCHEMA!r}, where Dagster keeps its "
            f"tables: have its owner run CREATE SCHEMA {DAGSTER_SCHEMA} AUTHORIZATION {engine.url.username}, "
            f"or set {DAGSTER_URL_VARIABLE} to another database."
        )
        raise DatabaseError(message) from error


@contextmanager
def open_database(explicit_url: str | None = None) -> Iterator[str]:
    """Use the database asked for, else that of the local server, which runs as long as it is used.

    Args:
        explicit_url: a URL given by argument or setting.

    Yields:
        The URL, in the form that `connect_engine` takes.

    Raises:
        DatabaseError: the URL is of no use, or there is no local server to start.
    """
    if url := database_url(explicit_url):
        yield url
        return
    if os.name == "nt":
        message = f"The local server does not run on Windows: set {URL_VARIABLE} to {_SHAPE} of a PostgreSQL server."
        raise DatabaseError(message)
    from stepacc_dagster.local.postgres import running_postgres  # noqa: PLC0415 - it needs fcntl, which Windows lacks

    with running_postgres() as server:
        yield server.url()


def _parsed(url: str, *, driver: str, variable: str = URL_VARIABLE) -> URL:
    try:
        parsed = make_url(url.strip())
    except (ArgumentError, ValueError):
        # Not shown: what cannot be read cannot be told apart from its password either.
        message = f"The database URL cannot be read: write {_SHAPE}, as in {variable}."
        raise DatabaseUrlError(message) from None
    backend, _, named = parsed.drivername.lower().partition("+")
    if backend not in {"postgres", "postgresql"}:
        message = f"The database URL begins with {backend}://, and stepacc stores in PostgreSQL only: write {_SHAPE}."
        raise DatabaseUrlError(message)
    if named not in {"", driver}:
        message = (
            f"The database URL names the driver {named!r}, and only {driver!r} works here: "
            f"write postgresql:// in place of {parsed.drivername}://."
        )
        raise DatabaseUrlError(message)
    if "@" in (parsed.host or ""):
        message = f"The database URL has more than one @: write {_SHAPE}, and an @ in the password as %40."
        raise DatabaseUrlError(message)
    if (
        parsed.host and "%" in parsed.host
    ):  # libpq's way to write a socket's folder, which SQLAlchemy takes in the query
        parsed = parsed.set(host="").update_query_dict({"host": unquote(parsed.host)})
    return parsed


def _render(url: URL) -> str:
    return url.render_as_string(hide_password=False)
