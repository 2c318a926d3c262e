"""The project of `deploy/`, with processes over it: whatever its executor, the code location is the same."""

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import dagster as dg

from stepacc_dagster.local.instance import instance_environment
from tests.integration.disturbed_processes import Stage
from tests.integration.packaging_access import REPOSITORY

DEPLOY = REPOSITORY / "deploy"
_QUICKER = {"poll_interval_seconds: 30": "poll_interval_seconds: 1", "run_end_seconds: 60": "run_end_seconds: 1"}
"""What of the shipped settings would only make the tests wait."""
_QUICK_TO_RETURN = {
    "visibility_timeout: 1800": "visibility_timeout: 12",
    "unacked_restore_interval: 10": "unacked_restore_interval: 1",
}
"""Likewise; longer than a step of these tests takes unless it is held up."""


class Project:
    """A copy of the project over a stage, whose sources it has in place of its own."""

    def __init__(self, stage: Stage, **environment: str) -> None:
        self.stage = stage
        self._source = stage.home / "project" / "src"
        shutil.copytree(DEPLOY / "project", stage.home / "project", ignore=shutil.ignore_patterns("__pycache__"))
        defs = self._source / "evals" / "defs"
        shutil.rmtree(defs / "support_agent")
        shutil.copytree(stage.home / "defs", defs, dirs_exist_ok=True)
        _change(DEPLOY / "dagster.yaml", stage.home / "dagster" / "dagster.yaml", _QUICKER)
        self.celery = self._source / "evals" / "celery.yaml"
        _change(self.celery, self.celery, _QUICK_TO_RETURN)
        path = [str(self._source), stage.environment["PYTHONPATH"]]
        programs = [str(Path(sys.executable).parent), os.environ["PATH"]]
        self.environment = {
            **stage.environment,
            **instance_environment(stage.home, stage.engine.url.render_as_string(hide_password=False)),
            **environment,
            "PYTHONPATH": os.pathsep.join(path),
            "PATH": os.pathsep.join(programs),
        }

    @contextmanager
    def process(self, *command: str, log: str, **environment: str) -> Iterator["subprocess.Popen[bytes]"]:
        """Run a process of the deployment as long as the block, with its output in a file."""
        with (
            (self.stage.home / log).open("wb") as output,
            subprocess.Popen(
                command,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**self.environment, **environment},
                start_new_session=True,
            ) as process,
        ):
            try:
                yield process
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)
                    process.wait(60)
                    os.killpg(process.pid, signal.SIGKILL)  # what it started and did not end

    def said(self, log: str) -> str:
        """Return what a process said until now."""
        return (self.stage.home / log).read_text()

    def steps(self, run: dg.DagsterRun, event_type: dg.DagsterEventType, words: str = "") -> Counter[str]:
        """Return how often each step of a run has an event of a type whose message has these words."""
        entries = self.stage.instance.all_logs(run.run_id, of_type=event_type)
        return Counter(entry.step_key for entry in entries if entry.step_key and words in entry.message)


def _change(given: Path, path: Path, changes: Mapping[str, str]) -> None:
    text = given.read_text()
    for shipped, changed in changes.items():
        assert shipped in text
        text = text.replace(shipped, changed)
    path.write_text(text)
