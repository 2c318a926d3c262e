"""`stepacc demo`: from nothing to scores, whatever the clock says, whoever runs it, however often."""

import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from stepacc_dagster.database import connect_engine
from stepacc_dagster.definitions import defs_folder
from stepacc_dagster.demo import data
from stepacc_dagster.demo.run import DemoOutcome, run_demo
from stepacc_dagster.local.account import server_account
from stepacc_dagster.local.binaries import Binaries, find_binaries, usable_by
from stepacc_dagster.storage.current import CurrentScore
from tests.cli_access import COMMAND, Said, stepacc, stepacc_process
from tests.integration import test_local_postgres as local

plain = local.plain
plain_home = local.plain_home

BOTH = "  metrics: [{name: agent.step_accuracy}, {name: agent.trajectory_match}]\n"
"""What a user may write below the demo's settings."""

SCORES = {
    ("trace", "refund_damaged_item"): Counter({1.0: 4, 0.75: 1, None: 1}),
    ("trace", "weather_and_time"): Counter({1.0: 3, 0.75: 1}),
    ("trace", "order_help"): Counter({1.0: 2}),
    ("session", "order_help"): Counter({1.0: 1}),
    ("trace", "billing_question"): Counter({1.0: 2, 0.5: 1}),
    ("trace", "find_invoice"): Counter({0.5: 2}),
}
"""What the recorded traces score; None is the trace whose contents were not recorded."""
ROW = re.compile(
    r"^ (?P<day>\d{4}-\d\d-\d\d)  (?P<kind>trace|session) \S+ +(?P<task>\S+) +(?P<score>\S+)  (?P<why>.+?) *$"
)


def shown(out: str) -> dict[tuple[str, str], Counter[float | None]]:
    """The scores of the printed table, by kind of partition and task."""
    found: dict[tuple[str, str], Counter[float | None]] = {}
    for row in filter(None, map(ROW.match, out.splitlines())):
        score = None if row["score"] == "-" else float(row["score"])
        found.setdefault((row["kind"], row["task"]), Counter())[score] += 1
    return found


def of(outcome: DemoOutcome) -> dict[tuple[str, str], Counter[float | None]]:
    """The scores of an outcome, by kind of partition and task."""
    found: dict[tuple[str, str], Counter[float | None]] = {}
    for score in outcome.scores:
        found.setdefault((score.partition_type, str(score.task_id)), Counter())[score.score] += 1
    return found


def days(outcome: DemoOutcome) -> list[date]:
    """The days of an outcome's scores, in order."""
    return sorted({date.fromisoformat(score.window_key) for score in outcome.scores})


def complete(said: Said) -> None:
    """Assert that a demo went well and showed all it should, with nothing stray on standard error."""
    assert said.code == 0, said.err
    assert shown(said.out) == SCORES
    assert said.out.count("0.667") == 1
    assert "The alignment of trace" in said.out
    assert "http://127.0.0.1:" in said.out
    lines = said.err.splitlines()
    assert [line.split()[0] for line in lines] == ["Everything", "Landed", "Imported", "Evaluating"], said.err


# on a server of its own


def test_the_demo_runs_from_nothing_and_a_second_time_in_a_path_with_spaces_and_signs(open_home: Path) -> None:
    home = open_home / "my 'own' $HOME & ä"
    environment = {"STEPACC_HOME": str(home)}
    before = datetime.now(UTC).date()
    first = stepacc_process("demo", environment=environment, given=b"")
    after = datetime.now(UTC).date()
    complete(first)
    assert str(home) in first.err.splitlines()[0]
    assert "(150 new)" in first.err
    assert local.nothing_left(home)
    found = sorted({date.fromisoformat(row["day"]) for row in filter(None, map(ROW.match, first.out.splitlines()))})
    assert len(found) >= 5
    assert before <= found[-1] + timedelta(days=2) <= after
    second = stepacc_process("demo", environment=environment, given=b"")
    complete(second)
    assert second.err.count("(0 new)") == 2
    assert second.out == first.out
    assert local.nothing_left(home)


def test_an_interrupted_demo_leaves_nothing_running_and_can_be_run_again(open_home: Path) -> None:
    environment = {**os.environ, "STEPACC_HOME": str(open_home)}
    with subprocess.Popen([*COMMAND, "demo"], stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        while not process.stderr.readline().startswith("Evaluating"):
            assert process.poll() is None
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert err.split()[-1] == "Aborted!"
    assert local.nothing_left(open_home)
    complete(stepacc_process("demo", environment={"STEPACC_HOME": str(open_home)}, given=b""))


def test_root_and_a_plain_user_run_it_at_the_same_time(plain: local.Python, plain_home: Path, open_home: Path) -> None:
    """Each with a server of their own; so do two processes of one user, who share theirs."""
    said: list[Said] = []

    def demo() -> None:
        said.append(stepacc_process("demo", environment={"STEPACC_HOME": str(open_home / "own")}, given=b""))

    threads = [threading.Thread(target=demo) for _ in range(2)]
    for thread in threads:
        thread.start()
    with plain.start(COMMAND[-1], "demo", STEPACC_HOME=str(plain_home), HOME=str(plain_home)) as process:
        out, err = process.communicate(timeout=240)
    for thread in threads:
        thread.join()
    complete(Said(process.returncode, out, err))
    owner = plain_home.stat().st_uid
    assert {path.stat().st_uid for path in plain_home.rglob("*")} == {owner}
    if local.AS_ROOT:
        assert pwd.getpwuid(owner).pw_name == "nobody"
    for each in said:
        complete(each)
    assert local.nothing_left(plain_home)
    assert local.nothing_left(open_home / "own")


@local.needs_root
def test_programs_that_only_root_can_reach_are_copied_to_a_folder_that_was_not_there(
    tmp_path: Path, open_home: Path
) -> None:
    """As when root installs into a closed environment and has never used stepacc before."""
    found = find_binaries()
    if found.package is None:
        pytest.skip("the server is the system's, which every user can reach")
    for part in (found.package, found.package.with_name(f"{found.package.name}.libs")):
        if part.exists():
            shutil.copytree(part, tmp_path / part.name, symlinks=True)
    tmp_path.chmod(0o700)
    closed = tmp_path / found.package.name
    account = server_account(open_home / "no-data")
    before = os.umask(0o077)
    try:
        binaries = Binaries(closed / found.folder.relative_to(found.package), found.major, closed)
        usable = usable_by(account, binaries, open_home / "new" / "binaries")
    finally:
        os.umask(before)
    assert usable.folder.is_relative_to(open_home / "new" / "binaries")
    assert account.succeeds([usable.folder / "postgres", "--version"])


# on another server


@pytest.fixture
def elsewhere(
    migrated_url: str,
    dagster_storage: None,  # noqa: ARG001 (where the demo keeps its runs)
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """The URL of a migrated database, with one for Dagster beside it and a home of its own."""
    monkeypatch.setenv("STEPACC_DATABASE_URL", migrated_url)
    monkeypatch.setenv("STEPACC_HOME", str(tmp_path / "home"))
    return migrated_url


def demo_on(url: str, today: date) -> tuple[DemoOutcome, list[str]]:
    """Run the demo on a day; what it found and what it said."""
    said: list[str] = []
    return run_demo(url, said.append, today=today), said


def evaluations(outcome: DemoOutcome) -> list[CurrentScore]:
    """Return the scores without the run that confirmed them last."""
    return [replace(score, dagster_run_id=None) for score in outcome.scores]


def test_another_server_is_used_where_one_is_named(postgres_url: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    said = stepacc_process(
        "demo", "--json", environment={"STEPACC_DATABASE_URL": postgres_url, "STEPACC_HOME": str(home)}, given=b""
    )
    assert said.code == 0, said.err
    [row] = said.rows
    assert list(row) == ["runs", "scores"]
    assert [run["success"] for run in row["runs"]] == [True]
    url = sa.make_url(postgres_url)
    first = said.err.splitlines()[0]
    assert f"/{url.database} (STEPACC_DATABASE_URL)" in first
    assert str(home) in first
    assert not (home / "postgres").exists()
    engine = connect_engine(postgres_url)
    with engine.connect() as connection:
        stored = connection.execute(sa.text("SELECT partition_id FROM stepacc.current_scores")).scalars().all()
        statuses = connection.execute(sa.text("SELECT status FROM dagster.runs")).scalars().all()
    engine.dispose()
    assert sorted(stored) == sorted(score["partition_id"] for score in row["scores"])
    assert statuses == ["SUCCESS"]


@pytest.mark.parametrize("today", [date(2026, 1, 1), date(2024, 3, 1)], ids=str)
def test_the_traces_end_two_days_before_whatever_day_it_is(elsewhere: str, today: date) -> None:
    outcome, _ = demo_on(elsewhere, today)
    assert all(run.success for run in outcome.runs)
    assert of(outcome) == SCORES
    assert days(outcome)[-1] == today - timedelta(days=2)
    assert len(days(outcome)) >= 5
    assert len({score.window_key for score in outcome.scores}) == len(days(outcome))


def test_days_later_everything_is_where_it_was(elsewhere: str) -> None:
    first, _ = demo_on(elsewhere, date(2026, 1, 10))
    second, said = demo_on(elsewhere, date(2026, 3, 1))
    assert "(0 new)" in said[0]
    assert "(0 new)" in said[1]
    assert evaluations(second) == evaluations(first)


def test_what_somebody_has_changed_stays_as_it_is(elsewhere: str, tmp_path: Path) -> None:
    first, _ = demo_on(elsewhere, date(2026, 1, 10))
    settings = defs_folder() / data.SOURCE / "defs.yaml"
    settings.write_text(settings.read_text() + BOTH)
    corrected = {"target": {"type": "task", "id": "find_invoice"}, "expected_steps": ["flaky_search", "flaky_search"]}
    (tmp_path / "corrected.json").write_text(json.dumps([corrected]))
    assert stepacc("annotations", "import", "--source", data.SOURCE, tmp_path / "corrected.json").code == 0
    second, said = demo_on(elsewhere, date(2026, 1, 10))

    assert "(0 new)" in said[1]
    assert settings.read_text().endswith(BOTH)
    changed = [score for score in evaluations(second) if score not in evaluations(first)]
    assert {score.task_id for score in changed} == {"find_invoice"}


def test_when_the_clock_was_ahead_the_traces_come_back_from_the_future(
    elsewhere: str, migrated_engine: sa.Engine
) -> None:
    """As after a first run under a wrong clock: no trace is scored twice, none stays where no partition is."""
    first, _ = demo_on(elsewhere, date(2026, 3, 1))
    with migrated_engine.begin() as connection:
        connection.execute(
            sa.text(
                "UPDATE stepacc.otel_spans SET start_time_unix_nano = start_time_unix_nano + :days,"
                " end_time_unix_nano = end_time_unix_nano + :days"
            ),
            {"days": 5_000 * 86_400 * 10**9},
        )
    second, _ = demo_on(elsewhere, date(2026, 1, 10))
    assert all(run.success for run in second.runs)
    assert days(second)[-1] == date(2026, 1, 8)
    assert of(second) == of(first) == SCORES


def test_traces_of_ones_own_in_the_demos_source_do_not_move_it(elsewhere: str, tmp_path: Path) -> None:
    strange = {"traceId": "ab" * 16, "spanId": "cd" * 8, "name": "chat", "startTimeUnixNano": "1000000000"}
    attributes = [{"key": "openinference.span.kind", "value": {"stringValue": "LLM"}}]
    document = {"resourceSpans": [{"scopeSpans": [{"spans": [strange | {"attributes": attributes}]}]}]}
    (tmp_path / "own.jsonl").write_text(json.dumps(document))
    assert stepacc("import", "traces", "--source", "demo", tmp_path / "own.jsonl").code == 0
    outcome, _ = demo_on(elsewhere, date(2026, 1, 10))
    assert days(outcome)[-1] == date(2026, 1, 8)
    assert of(outcome) == SCORES


def test_a_demo_that_fails_says_why_in_a_line_and_exits_with_1(elsewhere: str, migrated_engine: sa.Engine) -> None:
    with migrated_engine.begin() as connection:
        connection.execute(sa.text("ALTER TABLE stepacc.scores ADD CONSTRAINT not_today CHECK (score <> 0.75)"))
    said = stepacc_process("demo", environment={"STEPACC_DATABASE_URL": elsewhere}, given=b"")
    assert said.code == 1
    assert "Traceback" not in said.err
    [failed] = [line for line in said.err.splitlines() if line.startswith("Run ")]
    assert "not_today" in failed
    assert shown(said.out)["trace", "billing_question"] == SCORES["trace", "billing_question"]


def test_the_shipped_traces_lie_on_days_in_a_row_and_have_the_shipped_annotations() -> None:
    spans = data.recorded_spans()
    found = data.days_of(spans)
    assert len(found) >= 5
    assert found == [found[0] + timedelta(days=number) for number in range(len(found))]
    moved = data.moved(spans, timedelta(days=400))
    assert data.days_of(moved) == [day + timedelta(days=400) for day in found]
    assert len(data.annotations()) == 8
