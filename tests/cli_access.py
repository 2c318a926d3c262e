"""Running `stepacc` as its users do: in this process, or as a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from stepacc_dagster.cli import main
from tests.fidelity import TRACES

RECORDED = TRACES / "strands" / "sequential.otlp.jsonl"
"""A recorded trace of one agent that looks an order up, checks the policy and refunds."""
RECORDED_STEPS = ["lookup_order", "check_refund_policy", "issue_refund"]
RECORDED_SESSION = TRACES / "strands" / "session_two_traces.otlp.jsonl"
"""Two recorded traces of one conversation."""

COMMAND = [sys.executable, "-c", "import sys; sys.argv[0] = 'stepacc'; from stepacc_dagster.cli import main; main()"]


@dataclass(frozen=True)
class Said:
    """What a command said, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[Any]:
        """The JSON values of standard output, one a line."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def complaint(self) -> str:
        """The one line of a refusal, which holds no traceback."""
        assert "Traceback" not in self.err
        [line] = [line for line in self.err.splitlines() if line.startswith("Error: ")]
        return line.removeprefix("Error: ")

    @property
    def unread(self) -> list[str]:
        """What was not read."""
        return [line.removeprefix("not read: ") for line in self.err.splitlines() if line.startswith("not read: ")]


def stepacc(*arguments: str | Path) -> Said:
    """Run a command in this process; an error that a user would see as a traceback is raised."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False)
    return Said(result.exit_code, result.stdout, result.stderr)


def stepacc_process(
    *arguments: str | Path,
    given: bytes | None = None,
    environment: Mapping[str, str] | None = None,
    command: Sequence[str | Path] = COMMAND,
) -> Said:
    """Run a command as a process of its own."""
    done = subprocess.run(
        [*command, *arguments],
        input=given,
        capture_output=True,
        check=False,
        timeout=240,
        env={**os.environ, "PYTHONWARNINGS": "default", **(environment or {})},
    )
    return Said(done.returncode, done.stdout.decode(), done.stderr.decode())
