"""Servers as processes of a test: started, waited for, and gone at the end with all their children."""

import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

_START = 240.0  # seconds; a first start migrates an empty database
_END = 30.0
_POLL = 0.2
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ask(url: str, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> bytes:
    """Return what a server answers; whatever is no success raises with the answer's text."""
    request = urllib.request.Request(url, body, dict(headers or {}))  # noqa: S310 (a server of the test)
    try:
        with _OPENER.open(request, timeout=60) as response:
            answer: bytes = response.read()
            return answer
    except urllib.error.HTTPError as error:
        with error:
            message = f"{url} answered {error.code}: {error.read()[:500]!r}"
        raise AssertionError(message) from None


@contextmanager
def running(
    command: Sequence[str | Path], environment: Mapping[str, str], folder: Path, health_url: str
) -> Iterator[None]:
    """Run a server in a folder, with these variables and no others, from its first good answer to its last process."""
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder), **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # its processes are a group that can be ended and counted
        )
    try:
        _wait_until_healthy(process, health_url, log)
        yield
    finally:
        _end(process)


def _wait_until_healthy(process: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    deadline = time.monotonic() + _START
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        with suppress(OSError, AssertionError):
            ask(url)
            return
        time.sleep(_POLL)
    state = "runs without answering" if process.returncode is None else f"ended with {process.returncode}"
    message = f"{process.args!r} {state}; it said last:\n{log.read_text('utf-8', 'replace')[-3000:]}"
    raise AssertionError(message)


def _end(process: "subprocess.Popen[bytes]") -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + _END
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        while time.monotonic() < deadline:
            process.poll()  # a child that nobody waited for still counts
            if not _lives(process.pid):
                return
            time.sleep(_POLL)
    message = f"Processes of {process.args!r} outlived SIGKILL."
    raise AssertionError(message)


def _lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
