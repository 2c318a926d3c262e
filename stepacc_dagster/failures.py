"""What the errors of a PostgreSQL server mean: a sentence for the user, and whether to try again."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from stepacc_core.errors import StepaccError
from stepacc_core.shown import concealed
from stepacc_dagster.errors import UnreachableError, WriteBackError

URL_VARIABLE = "STEPACC_DATABASE_URL"

# Classes and codes of SQLSTATE that another try may get past. Not 57014: a statement that ran into
# its time limit would do so again, and one that somebody cancelled was meant to end.
_TRANSIENT_CLASSES = ("08", "40", "53")
_TRANSIENT_CODES = ("25P03", "55P03", "57P01", "57P02", "57P03", "57P05", "58030")
_PERMANENT_CODES = ("53400",)  # a configured limit, which stays


# What is said when a connection fails (a pattern), and how the sentence about it goes on.
_PASSING = {
    "Temporary failure in name resolution": "has a host that cannot be looked up now: try again",
    "Connection refused|No such file or directory": "does not answer: start the server, or correct the address",
    "timeout": "does not answer in time: check address and network, or set connect_timeout in the URL",
    "too many clients|too many connections|remaining connection slots": (
        "has no free connection: try again, or raise its limit"
    ),
    "starting up|shutting down|not yet accepting": "is starting or shutting down: try again in a moment",
}
_LASTING = {
    "password authentication failed|no password supplied": "refuses the user or the password: correct them",
    "no pg_hba.conf entry|pg_hba.conf rejects|[Pp]eer authentication failed|Ident authentication failed": (
        "does not let this user in from this machine: correct the user, or add a line to its pg_hba.conf"
    ),
    'role ".*" does not exist': "has no such user: correct it, or run CREATE ROLE there",
    'database ".*" does not exist': "has no such database: correct it, or run CREATE DATABASE there",
    "resolve host|translate host name|Name or service not known": "has a host that nobody knows: correct it",
}


def is_transient(error: BaseException) -> bool:
    """Whether trying the same again later may succeed.

    True for a lost connection, a server that starts or shuts down, a serialization failure, a
    deadlock, a lock not to be had, too many connections, a full disk or memory. False for all
    else, also for a statement time limit.

    Args:
        error: any error; those it was raised from are looked at too.
    """
    if isinstance(error, UnreachableError | WriteBackError):
        return error.transient
    if isinstance(error, PoolTimeoutError | psycopg.errors.ConnectionTimeout):
        return True
    if isinstance(error, DBAPIError):
        return error.connection_invalidated or (error.orig is not None and is_transient(error.orig))
    # psycopg 3 names the state `sqlstate`, and psycopg2, through which Dagster speaks, `pgcode`
    state = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    if isinstance(state, str):
        return state not in _PERMANENT_CODES and (state[:2] in _TRANSIENT_CLASSES or state in _TRANSIENT_CODES)
    if type(error).__module__.startswith("psycopg"):  # the connection failed or broke: there is a text only
        lost = type(error).__name__ in {"OperationalError", "InterfaceError"}
        return lost and (_told(str(error), _PASSING) is not None or _told(str(error), _LASTING) is None)
    return error.__cause__ is not None and is_transient(error.__cause__)


def sentence(error: Exception) -> str:
    """Return an error as one sentence; of what a database says the first line, without the statement and its values."""
    if isinstance(error, StepaccError):
        return str(error)
    cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
    if (
        isinstance(cause, psycopg.Error)
        and not cause.sqlstate
        and (told := _told(str(cause), {**_PASSING, **_LASTING}))
    ):
        return f"The database {told}."
    said = concealed((str(cause).strip().splitlines() or ["no reason given"])[0])
    speaker = "The database says" if isinstance(cause, psycopg.Error) else type(cause).__name__
    return f"{speaker}: {said.rstrip('.')}."


@contextmanager
def kept(error: BaseException) -> Iterator[None]:
    """Do what is to be done about an error; a database that fails once more must not take its place."""
    try:
        yield
    except DBAPIError as another:
        error.add_note(f"It could not be noted either: {sentence(another)}")


def unreachable(url: URL, error: DBAPIError) -> UnreachableError:
    """Tell in one sentence why a database cannot be used.

    Args:
        url: the database; its password is never shown.
        error: what was raised on connecting.
    """
    said = str(error.orig)
    if told := _told(said, {**_PASSING, **_LASTING}):
        return UnreachableError(f"The database at {address(url)} {told}.", transient=is_transient(error))
    reason = said.splitlines()[0].strip() if said.strip() else type(error.orig).__name__
    if url.password:
        reason = reason.replace(str(url.password), "***")
    message = f"The database at {address(url)} cannot be used ({reason.rstrip('.')}): correct {URL_VARIABLE}."
    return UnreachableError(message, transient=is_transient(error))


def address(url: URL) -> str:
    """Return where a URL points, as host:port/database or the socket's folder in place of the host."""
    host = url.host or url.query.get("host") or os.environ.get("PGHOST") or "localhost"
    port = url.port or url.query.get("port") or os.environ.get("PGPORT") or 5432
    return f"{host}:{port}/{url.database or ''}"


def _told(said: str, refusals: dict[str, str]) -> str | None:
    return next((told for pattern, told in refusals.items() if re.search(pattern, said)), None)
