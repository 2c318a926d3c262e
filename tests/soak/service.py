"""`stepacc dev` as somebody keeps it at work: started again when it has ended, whoever ended it."""

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from tests.cli_access import COMMAND
from tests.integration.disturbed_processes import Dev, Stage
from tests.integration.test_cli_dev import free_port

_STOPS_WITHIN = 120
_PAUSE = 1.0
"""Seconds between the end of the command and its next start."""


class Service:
    """The command over a stage, one process after another.

    Args:
        stage: where it works.
        note: is told what becomes of it.
    """

    def __init__(self, stage: Stage, note: Callable[[str], None]) -> None:
        self._stage, self._note = stage, note
        self._process: subprocess.Popen[str] | None = None
        self._said = Path()
        self._ended_at = 0.0
        self._blamed = False
        self._started_at = 0.0
        self.starts = 0
        self.slowest_start = 0.0
        """Seconds that the slowest start took until the UI was up."""
        self.unexplained: list[str] = []
        """Ends of the command, after it was up, that no disturbance of its own processes explains."""

    @property
    def log(self) -> Path:
        """What all its processes log."""
        return self._stage.home / "dev.log"

    @property
    def dev(self) -> Dev | None:
        """The command; None while its UI is not up."""
        said = self._said.read_text() if self._process else ""
        if self._process is None or not said.endswith("\n"):
            return None
        return Dev(self._process, json.loads(said)["url"], self.log)

    def blame(self) -> None:
        """Say that the next end of the command has a known cause."""
        self._blamed = True

    def tend(self) -> None:
        """Start the command where it does not run; to be called often."""
        if self._started_at and self.dev is not None:
            self.slowest_start = max(self.slowest_start, time.monotonic() - self._started_at)
            self._started_at = 0.0
        if self._process is not None and self._process.poll() is not None:
            self._take_note_of_the_end(self._process)
            self._process, self._ended_at = None, time.monotonic()
        if self._process is None and time.monotonic() - self._ended_at >= _PAUSE:
            self._start()

    def stop(self) -> int:
        """End the command as Ctrl-C does, and return its exit code; 0 where it does not run."""
        if self._process is None:
            return 0
        process, self._process = self._process, None
        process.send_signal(signal.SIGTERM)
        try:
            return process.wait(_STOPS_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()
            self.unexplained.append(f"stepacc dev did not end within {_STOPS_WITHIN} s of a SIGTERM")
            return process.wait()

    def _start(self) -> None:
        self.starts += 1
        self._started_at = time.monotonic()
        self._blamed = False
        self._said = self._stage.home / f"dev.{self.starts}.json"
        with self._said.open("w") as said, self.log.open("a") as errors:
            self._process = self._popen(said, errors)
        self._note("stepacc dev is started")

    def _popen(self, said: IO[str], errors: IO[str]) -> "subprocess.Popen[str]":
        command = [*COMMAND, "dev", "--json", "--port", str(free_port())]
        return subprocess.Popen(command, stdout=said, stderr=errors, text=True, env=dict(self._stage.environment))

    def _take_note_of_the_end(self, process: "subprocess.Popen[str]") -> None:
        last = (self.log.read_text(errors="replace").splitlines() or [""])[-1]
        sentence = f"stepacc dev has ended with exit code {process.returncode}: {last}"
        self._note(sentence)
        if self.dev is not None and not self._blamed:
            self.unexplained.append(sentence)
