"""The demo in the Dagster UI: the real processes of `stepacc dev`, and pages of a real Chromium over them."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Error, Page, Request, Response, expect, sync_playwright

from tests.cli_access import COMMAND
from tests.integration.test_cli_dev import free_port

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
SCORES = "/assets/demo/step_accuracy_scores"
LINEAGE = "/locations/stepacc/asset-groups/demo/lineage"
BACKFILL_PATIENCE = 200_000.0
"""Milliseconds in which a backfill must be over; Dagster's daemon looks at it every 30 s, two times or more."""

_PATIENCE = 90_000.0
"""Milliseconds for which an expectation about a page may stay unmet; long, for a machine that does other things too."""
_ENDS_WITHIN = 90.0
"""Seconds after which a `stepacc dev` that was asked to end is killed."""
_QUIET_WITHIN = 120.0
_POLL = 0.5
_QUIET = """
    SELECT EXISTS (SELECT FROM stepacc.feeds)
       AND NOT EXISTS (SELECT FROM dagster.runs WHERE status NOT IN ('SUCCESS', 'FAILURE', 'CANCELED')) AS quiet
"""
_UNTIL_STDIN_CLOSES = '"$@" & exec >&-; read -r _; kill "$!"; wait "$!"'
"""Runs a command until standard input closes, which it also does when whoever started it was killed."""
_OWN_SETTINGS = ("STEPACC_", "DAGSTER_", "PG")
_KEPT = "STEPACC_PG_BIN"


def chromium_path() -> str | None:
    """Return the path of an installed Chromium, or None."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


@dataclass(frozen=True)
class Demo:
    """A running UI over the demo's data."""

    url: str
    environment: Mapping[str, str] = field(repr=False)  # whoever runs the tests may have secrets in it

    def rows(self, statement: str) -> list[dict[str, Any]]:
        """What the demo's database answers."""
        return [json.loads(line) for line in _stepacc(self.environment, "db", "query", "--json", statement)]

    def report(self, path: Path) -> None:
        """Write the report of the demo's scores."""
        _stepacc(self.environment, "report", "--output", str(path))

    def days(self) -> list[str]:
        """The days that have scores, in order."""
        rows = self.rows("SELECT DISTINCT window_key FROM stepacc.scores ORDER BY window_key")
        return [row["window_key"] for row in rows]

    def wait_until_quiet(self) -> None:
        """Wait until the sensor looked for changes a first time, and every run that was asked for has ended."""
        deadline = time.monotonic() + _QUIET_WITHIN
        while time.monotonic() < deadline:
            [found] = self.rows(_QUIET)
            if found["quiet"]:
                return
            time.sleep(_POLL)
        message = f"Dagster still had runs to do {_QUIET_WITHIN} s after it was waited for, or its sensor never looked."
        raise AssertionError(message)


@contextmanager
def running_demo() -> Iterator[Demo]:
    """Run the demo in a home of its own and open the UI over it; everything ends, and is gone, with the block.

    Raises:
        AssertionError: a process did not start or end as it should, or printed a traceback.
    """
    with tempfile.TemporaryDirectory(prefix="stepacc-ui-") as folder:
        Path(folder).chmod(0o755)  # the server's account must get in when root runs this
        environment = {
            name: value for name, value in os.environ.items() if name == _KEPT or not name.startswith(_OWN_SETTINGS)
        }
        environment["STEPACC_HOME"] = str(Path(folder) / "home")
        _stepacc(environment, "demo")
        with _dev(environment, Path(folder) / "dev.log") as url:
            yield Demo(url, environment)


def _stepacc(environment: Mapping[str, str], *arguments: str) -> list[str]:
    done = subprocess.run(
        [*COMMAND, *arguments], env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@contextmanager
def _dev(environment: Mapping[str, str], log: Path) -> Iterator[str]:
    with (
        log.open("wb") as complaints,
        subprocess.Popen(
            ["/bin/sh", "-c", _UNTIL_STDIN_CLOSES, "sh", *COMMAND, "dev", "--json", "--port", str(free_port())],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            start_new_session=True,  # Ctrl-C is for the tests, which then end this
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            said = process.stdout.readline()
            assert said, f"`stepacc dev` ended: {log.read_text('utf-8', 'replace')}"
            yield json.loads(said)["url"]
        finally:
            process.stdin.close()
            try:
                process.wait(_ENDS_WITHIN)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise
    printed = log.read_text("utf-8", "replace")
    assert process.returncode == 0, printed
    assert "Traceback" not in printed, printed


@contextmanager
def running_browser(path: str) -> Iterator[Browser]:
    """Start a Chromium without a window."""
    expect.set_options(timeout=_PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def watched_page(browser: Browser, demo: Demo, *, width: int = 1280, height: int = 900) -> Iterator[Page]:
    """Open a page on the UI, relative to which addresses are.

    Raises:
        AssertionError: at the end, with every error of the page's console and scripts, every answer of the server that
            says that something failed, and every error that Dagster caught in the code of ours it called.
    """
    context = browser.new_context(
        base_url=demo.url, viewport={"width": width, "height": height}, locale="en-US", timezone_id="UTC"
    )
    try:
        context.set_default_timeout(_PATIENCE)
        page = context.new_page()
        faults = _faults_of(page)
        yield page
    finally:
        context.close()
    assert not faults, faults


def _faults_of(page: Page) -> list[str]:
    faults: list[str] = []

    def console(message: ConsoleMessage) -> None:
        if message.type == "error":
            faults.append(f"console: {message.text}")

    def answered(response: Response) -> None:
        if response.status >= HTTPStatus.BAD_REQUEST:
            faults.append(f"{response.url} answered {response.status}")

    def finished(request: Request) -> None:
        if "/graphql" not in request.url:
            return
        with suppress(Error):  # a page that is left takes its answers with it
            response = request.response()
            text = response.text() if response else ""
            if "PythonError" in text or '"errors":' in text:
                faults.append(f"{request.url} answered {text[:2000]}")

    page.on("console", console)
    page.on("pageerror", lambda error: faults.append(f"script: {error}"))
    page.on("response", answered)
    page.on("requestfinished", finished)
    return faults


def launch_backfill(page: Page, first: str, last: str) -> str:
    """Materialise all assets of the demo for the days from `first` to `last` by clicking; return the backfill's id."""
    page.goto(LINEAGE)
    page.get_by_role("button", name="Materialize all").click()
    dialog = page.get_by_role("dialog")
    days = dialog.get_by_role("textbox")
    days.fill(f"[{first}...{last}]")
    days.press("Enter")
    dialog.get_by_role("button", name="Launch backfill").click()
    notice = page.get_by_text(re.compile("^Created backfill "))
    return notice.inner_text().removeprefix("Created backfill ")


def open_day(page: Page, day: str) -> None:
    """Click one's way to the partition of a day."""
    page.goto(SCORES)
    page.get_by_role("tab", name="Partitions").click()
    page.get_by_role("textbox", name="Filter by name").fill(day)
    page.get_by_title(day).click()
    expect(page).to_have_url(re.compile(f"partition={day}"))
