"""`stepacc dev`: the UI and daemon as real processes, which all end with the command."""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from stepacc_dagster.local.home import lock_file, try_exclusive
from tests.cli_access import COMMAND, stepacc

needs_proc = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found through /proc")
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True)
class Dev:
    """A running command; `pid` is its own, though a shell started it in the background."""

    pid: int
    port: int
    shell: subprocess.Popen[str]

    def get(self, path: str) -> str:
        """What the webserver answers."""
        with DIRECT.open(f"http://127.0.0.1:{self.port}{path}", timeout=30) as answer:
            text: str = answer.read().decode()
            return text

    def ask(self, query: str) -> str:
        """What the webserver answers a GraphQL query."""
        body = json.dumps({"query": query}).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/graphql", body, {"Content-Type": "application/json"}
        )
        with DIRECT.open(request, timeout=60) as answer:
            text: str = answer.read().decode()
            return text

    def end(self, *signals: signal.Signals) -> tuple[int, str]:
        """Send signals; the exit code and all that was said."""
        for number in signals:
            os.kill(self.pid, number)
            time.sleep(0.1)
        _, err = self.shell.communicate(timeout=90)
        return self.shell.returncode, err


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
        return number


@contextmanager
def dev(home: Path, **environment: str) -> Iterator[Dev]:
    """Start the command in the background of a shell that is not interactive, which makes it ignore SIGINT."""
    port = free_port()
    script = '"$@" & echo "$!"; wait "$!"'
    with subprocess.Popen(
        ["/bin/sh", "-c", script, "sh", *COMMAND, "dev", "--json", "--port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "STEPACC_HOME": str(home), **environment},
    ) as shell:
        assert shell.stdout is not None
        pid = int(shell.stdout.readline())
        try:
            said = shell.stdout.readline()
            if not said:
                pytest.fail(f"the command ended: {shell.communicate()[1]}")
            assert json.loads(said) == {"url": f"http://127.0.0.1:{port}", "home": str(home)}
            yield Dev(pid, port, shell)
        finally:
            if shell.poll() is None:
                os.kill(pid, signal.SIGTERM)
                shell.wait(timeout=90)


def processes_of(home: Path) -> list[str]:
    """The processes that have the Dagster instance of a home in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            variables = (path / "environ").read_bytes().split(b"\0")
            command = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if f"DAGSTER_HOME={home}/dagster".encode() in variables:
            found.append(command)
    return found


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether something comes true within half a minute."""
    deadline = time.monotonic() + 30
    while not (met := condition()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return met


@needs_proc
def test_one_interrupt_ends_everything_even_in_the_background_of_a_shell(
    open_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The local server, the webserver, the daemon and their code servers; a second Ctrl-C does no harm."""
    home = open_home / "my home"
    monkeypatch.setenv("STEPACC_HOME", str(home))
    with dev(home, http_proxy="http://127.0.0.1:9", HTTP_PROXY="http://127.0.0.1:9") as running:
        assert "dagster_webserver_version" in running.get("/server_info")
        commands = " ".join(processes_of(home))
        assert "dagster_webserver" in commands
        assert "dagster._daemon" in commands
        second = stepacc("dev", "--port", str(free_port()))
        assert (second.code, "runs over" in second.complaint) == (1, True)
        code, err = running.end(signal.SIGINT, signal.SIGINT)
    assert code == 0
    assert err.splitlines()[-1] == "Stopped."
    assert "heartbeat" not in err
    assert "No cursor" not in err
    assert f"http://127.0.0.1:{running.port}" in err
    assert processes_of(home) == []
    assert not (home / "postgres" / "postmaster.pid").exists()
    with lock_file(home / "postgres.alive") as alive:
        assert try_exclusive(alive)


@needs_proc
def test_sigterm_ends_everything_and_the_ui_had_the_sources(open_home: Path, postgres_url: str) -> None:
    """Over another server, which goes on."""
    folder = open_home / "defs" / "shop"
    folder.mkdir(parents=True)
    attributes = {"source": "shop", "start_date": "2026-01-01"}
    document = {"type": "stepacc_dagster.StepAccuracyComponent", "attributes": attributes}
    (folder / "defs.yaml").write_text(json.dumps(document))
    bad = open_home / "defs" / "bad" / "defs.yaml"
    bad.parent.mkdir()
    bad.write_text(json.dumps({**document, "attributes": {**attributes, "source": "bad", "end_offset": 3}}))
    with dev(open_home, STEPACC_DATABASE_URL=postgres_url) as running:
        query = "{ assetNodes { assetKey { path } } }"
        assert eventually(lambda: "shop" in running.ask(query))
        assert "step_accuracy_scores" in running.ask(query)
        code, err = running.end(signal.SIGTERM)
    assert code == 0
    assert err.splitlines()[-1] == "Stopped."
    assert err.startswith(f"{bad}:1, attribute `end_offset`: end_offset of source `bad` is 3; use 0 or 1. ")
    assert "Traceback" not in err
    assert processes_of(open_home) == []
    assert not (open_home / "postgres").exists()


def test_a_busy_port_is_told_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPACC_HOME", str(tmp_path / "home"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = stepacc("dev", "--port", str(port))
    assert said.code == 1
    assert str(port) in said.complaint
    assert "--port" in said.complaint
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("port", ["0", "65536", "-1", "http"])
def test_what_is_no_port_is_a_wrong_use(port: str) -> None:
    said = stepacc("dev", "--port", port)
    assert said.code == 2
    assert "--port" in said.complaint


def test_a_home_that_cannot_be_made_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("STEPACC_HOME", str(tmp_path / "file" / "home"))
    said = stepacc("dev", "--port", str(free_port()))
    assert said.code == 1
    assert "STEPACC_HOME" in said.complaint
