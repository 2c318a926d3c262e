"""Pictures on the command line: drawn for people, plain where nobody looks."""

import json
import os
import pty
import subprocess
import sys

import pytest

from stepacc_core import Step, step_accuracy
from stepacc_core.picture import picture
from tests.cli_access import RECORDED, RECORDED_STEPS, stepacc

DRAWN = picture(step_accuracy(["lookup_order", "apologise"], [*map(Step, RECORDED_STEPS)]))


def test_score_draws_alignments_instead_of_json() -> None:
    config = f"expected_steps={json.dumps(['lookup_order', 'apologise'])}"
    said = stepacc("score", RECORDED, "--config", config, "--picture")

    assert said.code == 0
    head, *drawn = said.out.splitlines()
    assert head.startswith("trace ")
    assert head.endswith(": score 0.333")
    assert drawn == [*str(DRAWN).splitlines(), ""]
    assert stepacc("score", RECORDED, "--config", config, "--picture", "--json").rows[0]["score"] == pytest.approx(
        1 / 3
    )


def test_what_has_no_score_says_why() -> None:
    said = stepacc("score", RECORDED, "--picture")

    assert said.code == 1
    assert ": Nobody said which steps trace" in said.out


def on_a_terminal(**environment: str) -> str:
    """What the core's command line writes to a terminal."""
    here, there = pty.openpty()
    command = [sys.executable, "-m", "stepacc_core", "a,b", "a,x"]
    variables = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", **environment}
    subprocess.run(command, stdout=there, check=True, env=variables)
    os.close(there)
    written = os.read(here, 100_000).decode()
    os.close(here)
    return written


def test_a_terminal_gets_colours_unless_no_color_is_set() -> None:
    assert "\x1b[32m" in on_a_terminal(NO_COLOR="")
    assert "\x1b" not in on_a_terminal(NO_COLOR="1")
