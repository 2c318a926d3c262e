"""Real servers beside Postgres, as Debian packages them: Redis and PgBouncer, each private to a test."""

import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.integration.test_cli_dev import free_port

_PATIENCE = 30.0


def needs(program: str, package: str) -> pytest.MarkDecorator:
    """Return the mark that skips tests where a program is not installed."""
    return pytest.mark.skipif(
        shutil.which(program) is None, reason=f"{program} is not installed (Debian: apt install {package})"
    )


@contextmanager
def running_redis() -> Iterator[str]:
    """Run a Redis that keeps nothing; yield its URL without a database."""
    port = free_port()
    command = ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--appendonly", "no"]
    with _running(command, port):
        yield f"redis://127.0.0.1:{port}"


@contextmanager
def running_pgbouncer(folder: Path, url: str, settings: str, **changed: object) -> Iterator[str]:
    """Run a PgBouncer before a server.

    Args:
        folder: an empty folder that every user can enter.
        url: a database on the server; a user that the server lets in without a password.
        settings: the text of a pgbouncer.ini, of which the server's address and the files are replaced.
        changed: settings to be different in the test.

    Yields:
        The same URL through the pooler.
    """
    behind = sa.make_url(url)
    port = free_port()
    users = folder / "users.txt"
    own = {
        "listen_addr": "127.0.0.1",
        "listen_port": port,
        "unix_socket_dir": "",
        "auth_type": "trust",
        "auth_file": users,
        "logfile": folder / "pgbouncer.log",
        "pidfile": folder / "pgbouncer.pid",
        **changed,
    }
    host, server_port = behind.query.get("host", behind.host), behind.query.get("port", behind.port or 5432)
    configuration = folder / "pgbouncer.ini"
    configuration.write_text(_changed(settings, {"*": f"host={host} port={server_port}", **own}))
    users.write_text("".join(f'"{name}" ""\n' for name in (behind.username, "evals_worker", "evals_viewer")))
    owner = pwd.getpwuid(Path(str(host)).stat().st_uid if str(host).startswith("/") else folder.stat().st_uid)
    shutil.chown(folder, owner.pw_uid, owner.pw_gid)
    switch = ["-u", owner.pw_name] if owner.pw_uid else ["-u", "nobody"]
    with _running(["pgbouncer", *switch, str(configuration)], port):
        yield behind.set(host="127.0.0.1", port=port, query={}).render_as_string(hide_password=False)


def _changed(settings: str, values: Mapping[str, object]) -> str:
    """Return the text of an ini file with other values; each name must be in it, or goes to the end."""
    left, lines = {name: str(value) for name, value in values.items()}, []
    for line in settings.splitlines():
        name = line.partition("=")[0].strip()
        lines.append(f"{name} = {left.pop(name)}" if name in left else line)
    return "\n".join([*lines, *(f"{name} = {value}" for name, value in left.items())]) + "\n"


@contextmanager
def _running(command: list[str], port: int) -> Iterator[None]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait(process, port)
            yield
        finally:
            process.kill()


def _wait(process: "subprocess.Popen[bytes]", port: int) -> None:
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        assert process.poll() is None, f"{process.args!r} ended with exit code {process.returncode}"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    pytest.fail(f"{process.args!r} does not listen on port {port}.")
