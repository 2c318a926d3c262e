"""The local PostgreSQL server: one that runs while anybody uses it, and one for a test session."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql

from stepacc_dagster.errors import LocalServerError
from stepacc_dagster.local.account import Account, server_account
from stepacc_dagster.local.binaries import find_binaries, usable_by
from stepacc_dagster.local.home import ROOT_HOME, local_home, lock_file, locked, make_home, try_exclusive
from stepacc_dagster.local.server import DATABASE, SOCKETS, LocalPostgres

_THROWAWAY = """
fsync = off
synchronous_commit = off
full_page_writes = off
"""
# Reads until the owner's end of the pipe is closed, however it died; then ends the server and
# removes its folder. A shell, since it needs no interpreter that the server's account could reach.
_WATCHDOG = """
read -r _
tries=0
while [ -e "$1" ] && [ "$tries" -lt 100 ]; do
    pid=$(head -n 1 "$1/postgres/postmaster.pid" 2>/dev/null)
    if [ -n "$pid" ] && kill -QUIT "${pid#-}" 2>/dev/null; then
        sleep 0.1
    else
        rm -rf -- "$1"
        sleep 0.1
    fi
    tries=$((tries + 1))
done
"""


@contextmanager
def running_postgres(home: Path | None = None) -> Iterator[LocalPostgres]:
    """Use the lasting server of this machine's user, which has a database `stepacc`.

    Every user holds a shared lock, which even a kill -9 gives back; whoever leaves and can get the
    exclusive one was the last and stops the server.

    Args:
        home: the folder of stepacc, by default `local_home()`.

    Yields:
        The running server.

    Raises:
        LocalServerError: it cannot be started.
        MissingServerError: no PostgreSQL is installed.
    """
    folder = (home or local_home()).absolute()
    make_home(folder)
    server: LocalPostgres | None = None
    with lock_file(folder / "postgres.users") as users:
        try:
            with locked(folder / "postgres.lock"):
                fcntl.flock(users, fcntl.LOCK_SH)
                server = _server_in(folder)
                server.start()
                _create_database(server)
            yield server
        finally:
            with locked(folder / "postgres.lock"):
                if server is not None and try_exclusive(users):
                    server.stop()


@contextmanager
def throwaway_postgres() -> Iterator[LocalPostgres]:
    """Run a server for one test session; it and its data go when the owner does, even by SIGKILL.

    Yields:
        The running server, with the database `postgres` and no other, and without fsync.

    Raises:
        LocalServerError: it cannot be started.
        MissingServerError: no PostgreSQL is installed.
    """
    binaries = find_binaries()
    folder = Path(tempfile.mkdtemp(prefix=SOCKETS, dir="/"))
    account = server_account(folder / "postgres")
    account.give(folder)
    command: list[str | Path] = ["/bin/sh", "-c", _WATCHDOG, "sh", folder]
    with account.popen(command, stdin=subprocess.PIPE):  # leaving it closes the pipe
        try:
            programs = usable_by(account, binaries, folder / "binaries")
            for copied, _, _ in os.walk(folder / "binaries"):  # for the watchdog, which is to remove them
                account.give(Path(copied))
            server = LocalPostgres(folder, account, programs, sockets=folder, settings=_THROWAWAY)
            try:
                server.start()
                yield server
            finally:
                server.stop("immediate")
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _server_in(folder: Path) -> LocalPostgres:
    data = folder / "postgres"
    account = server_account(data)
    _must_enter(account, folder)
    version = data / "PG_VERSION"
    binaries = find_binaries(int(version.read_text()) if version.exists() else None)
    return LocalPostgres(folder, account, usable_by(account, binaries, ROOT_HOME / "binaries"))


def _must_enter(account: Account, folder: Path) -> None:
    if not account.can_enter(folder):
        message = (
            f"PostgreSQL does not run as root but as {account.name!r}, who cannot enter {folder}: "
            f"set STEPACC_HOME to a folder that every user can enter, such as {ROOT_HOME}."
        )
        raise LocalServerError(message)


def _create_database(server: LocalPostgres) -> None:
    address = server.url("postgres").replace("+psycopg", "")
    with psycopg.connect(address, autocommit=True) as connection:
        known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone()
        if known is None:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
