"""`stepacc ingest` and `stepacc materialize`: real Dagster runs over a range of partitions, and what a user sees."""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from stepacc_dagster.database import DAGSTER_URL_VARIABLE
from stepacc_dagster.local.interrupts import interrupts_kept
from tests.cli_access import COMMAND, RECORDED, RECORDED_STEPS, stepacc, stepacc_process
from tests.fidelity import TRACES, raw_spans
from tests.integration.conftest import opened

[TRACE_ID] = {span.trace_id for span in raw_spans(str(RECORDED.relative_to(TRACES)))}
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
DAY_NS = 86_400_000_000_000
OUTCOME = ["run_id", "first", "last", "partitions", "success", "error"]


def key(day: int) -> str:
    """The partition key of a day, from 0 on."""
    return (FIRST + timedelta(days=day)).date().isoformat()


def trace_on(day: int) -> str:
    """The id of the trace that lies on a day."""
    return f"{day + 1:032x}"


@pytest.fixture
def home(
    migrated_url: str,
    dagster_storage: None,  # noqa: ARG001 (where commands keep their runs)
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """A folder of stepacc with the source `shop`, beside a migrated database and one for Dagster."""
    monkeypatch.setenv("STEPACC_DATABASE_URL", migrated_url)
    monkeypatch.setenv("STEPACC_HOME", str(tmp_path / "home"))
    configure(tmp_path / "home")
    return tmp_path / "home"


def configure(home: Path, **more: Any) -> None:
    """Configure the source `shop`."""
    (home / "defs" / "shop").mkdir(parents=True, exist_ok=True)
    attributes = {"source": "shop", "start_date": key(0), "retry": {"delay_seconds": 0.05}, **more}
    document = {"type": "stepacc_dagster.StepAccuracyComponent", "attributes": attributes}
    (home / "defs" / "shop" / "defs.yaml").write_text(json.dumps(document))


@pytest.fixture
def land(home: Path, tmp_path: Path) -> Callable[..., None]:  # noqa: ARG001 (it lands in the database of that home)
    """Land the recorded trace on days, as users do, and annotate it."""

    def on(*days: int) -> None:
        text = RECORDED.read_text("utf-8")
        start = min(int(found) for found in re.findall(r'"startTimeUnixNano": ?"(\d+)"', text))
        lines = []
        for day in days:
            shift = (int(FIRST.timestamp()) * 10**9 - start // DAY_NS * DAY_NS) + day * DAY_NS
            lines.append(later(text, shift).replace(TRACE_ID, trace_on(day)).strip())
        path = tmp_path / "traces.jsonl"
        path.write_text("\n".join(lines), "utf-8")
        assert stepacc("import", "traces", path).code == 0
        entries = [
            {"target": {"type": "trace", "id": trace_on(day)}, "expected_steps": [*RECORDED_STEPS, "thank"]}
            for day in days
        ]
        (tmp_path / "expected.json").write_text(json.dumps(entries))
        assert stepacc("annotations", "import", tmp_path / "expected.json").code == 0

    return on


def later(text: str, nanoseconds: int) -> str:
    """Move every time of a file."""
    return re.sub(r'(UnixNano": ?")(\d+)', lambda found: f"{found[1]}{int(found[2]) + nanoseconds}", text)


def scores(engine: sa.Engine) -> dict[str, tuple[str, float]]:
    """Window and score of each scored trace."""
    query = "SELECT partition_id, window_key, score FROM stepacc.current_scores WHERE status = 'scored'"
    with engine.connect() as connection:
        return {row.partition_id: (row.window_key, row.score) for row in connection.execute(sa.text(query))}


def test_both_ends_of_the_range_are_evaluated_and_nothing_beside(
    land: Callable[..., None], migrated_engine: sa.Engine
) -> None:
    land(0, 1, 2, 3)
    said = stepacc("materialize", "--from", key(1), "--to", key(2))
    assert (said.code, said.out) == (0, "")
    assert said.err.splitlines() == [
        f"shop: 2 partitions, {key(1)} to {key(2)}",
        "1 of 1 run succeeded.",
        "2 of 2 traces scored, 0.750 on average.",
    ]
    assert scores(migrated_engine) == {trace_on(day): (key(day), 0.75) for day in (1, 2)}


def test_each_run_is_told_as_json(home: Path, land: Callable[..., None], migrated_engine: sa.Engine) -> None:
    configure(home, max_partitions_per_run=2)
    land(0, 2)
    said = stepacc("materialize", "--source", "shop", "--to", key(2), "--json")
    assert said.code == 0
    assert all(list(row) == OUTCOME for row in said.rows)
    ranges = [(row["first"], row["last"], row["partitions"], row["success"], row["error"]) for row in said.rows]
    chunks = [(key(0), key(1), 2, True, None), (key(2), key(2), 1, True, None)]
    assert ranges == chunks * 2  # all is ingested before any of it is scored
    assert set(scores(migrated_engine)) == {trace_on(0), trace_on(2)}


def test_ingest_makes_canonical_traces_and_no_scores(land: Callable[..., None], migrated_engine: sa.Engine) -> None:
    land(0, 1)
    said = stepacc("ingest", "--from", key(0), "--to", key(0), "--json")
    assert (said.code, [row["success"] for row in said.rows]) == (0, [True])
    with migrated_engine.connect() as connection:
        assert connection.execute(sa.text("SELECT trace_id FROM stepacc.traces")).scalars().all() == [trace_on(0)]
    assert scores(migrated_engine) == {}


def test_without_a_range_all_partitions_to_the_newest_are_evaluated(
    home: Path, land: Callable[..., None], migrated_engine: sa.Engine
) -> None:
    days = (datetime.now(UTC) - FIRST).days - 2
    configure(home, start_date=key(days), max_partitions_per_run=100)
    land(days, days + 1)
    [row] = stepacc("materialize", "--json").rows
    assert row["first"] == key(days)
    assert row["last"] >= key(days + 1)
    assert set(scores(migrated_engine)) == {trace_on(days), trace_on(days + 1)}


def test_partitions_without_traces_are_no_failure(home: Path) -> None:  # noqa: ARG001 (its database is empty)
    said = stepacc("materialize", "--to", key(1))
    assert said.code == 0
    assert said.err.splitlines()[1:] == [
        "1 of 1 run succeeded.",
        "There is nothing to score in this range: no trace of the source starts in it.",
    ]


@pytest.mark.parametrize("command", ["ingest", "materialize"])
def test_a_key_that_is_no_partition_is_told_with_those_there_are(home: Path, command: str) -> None:  # noqa: ARG001
    for options in (["--from", "yesterday"], ["--to", "2026-13-01"], ["--from", "2025-12-31"], ["--to", "2999-01-01"]):
        said = stepacc(command, *options)
        assert (said.code, said.out) == (1, "")
        assert repr(options[1]) in said.complaint
        assert key(0) in said.complaint
    said = stepacc(command, "--from", key(2), "--to", key(1))
    assert said.code == 1
    assert "earlier key first" in said.complaint


def test_a_source_that_begins_later_or_is_not_there_is_told(home: Path) -> None:
    configure(home, start_date="2999-01-01")
    said = stepacc("materialize")
    assert said.code == 1
    assert "2999-01-01" in said.complaint
    said = stepacc("materialize", "--source", "bank")
    assert said.code == 1
    assert "`bank`" in said.complaint
    assert "`shop`" in said.complaint


def test_a_run_that_fails_gives_its_reason_in_one_line_and_exit_code_1(
    land: Callable[..., None], migrated_engine: sa.Engine
) -> None:
    """As a user sees it: no traceback and nothing of Dagster's log; the other partitions are stored."""
    land(0, 1)
    with migrated_engine.begin() as connection:
        refusal = f"ALTER TABLE stepacc.scores ADD CONSTRAINT not_today CHECK (window_key <> '{key(1)}')"
        connection.execute(sa.text(refusal))
    said = stepacc_process("materialize", "--from", key(0), "--to", key(1), given=b"")
    assert (said.code, said.out) == (1, "")
    first, reason, last, _ = said.err.splitlines()
    assert first == f"shop: 2 partitions, {key(0)} to {key(1)}"
    assert reason.startswith("Run ")
    assert "not_today" in reason
    assert key(1) in reason
    assert last == "0 of 1 run succeeded."
    assert set(scores(migrated_engine)) == {trace_on(0)}
    said = stepacc_process("materialize", "--from", key(1), "--to", key(1), "--json", given=b"")
    assert said.code == 1
    [row] = said.rows
    assert (list(row), row["success"]) == (OUTCOME, False)
    assert "not_today" in row["error"]
    assert said.err == f"shop: 1 partition, {key(1)}\n"


def test_a_run_that_goes_well_prints_nothing_of_its_own(land: Callable[..., None]) -> None:
    """No warning and no log of Dagster's, though the interpreter is told to show warnings."""
    land(0)
    said = stepacc_process("materialize", "--from", key(0), "--to", key(0), given=b"")
    assert (said.code, said.out) == (0, "")
    assert said.err.splitlines() == [
        f"shop: 1 partition, {key(0)}",
        "1 of 1 run succeeded.",
        "1 of 1 trace scored, 0.750 on average.",
    ]


@pytest.mark.parametrize(
    ("number", "handler"),
    [(signal.SIGINT, "default_int_handler"), (signal.SIGTERM, "default_int_handler"), (signal.SIGTERM, "SIG_IGN")],
    ids=["SIGINT", "SIGTERM", "SIGTERM in the background of a shell"],
)
def test_an_interrupt_ends_the_command_and_not_just_one_of_its_runs(
    home: Path, number: signal.Signals, handler: str
) -> None:
    configure(home, max_partitions_per_run=1)
    last = 60
    code = COMMAND[-1].replace("import sys;", f"import sys, signal; signal.signal(2, signal.{handler});")
    command = [*COMMAND[:-1], code, "ingest", "--to", key(last)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        while runs() < 2 and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert err.split() == f"shop: {last + 1} partitions, {key(0)} to {key(last)} Aborted!".split()
    assert runs() < last


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_an_interrupt_that_somebody_else_takes_is_not_lost(number: signal.Signals) -> None:
    """As Dagster does before and after the steps of a run."""

    def take() -> None:
        with interrupts_kept():
            signal.signal(number, lambda *_: None)
            os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt):
        take()
    assert signal.getsignal(number) is before
    with interrupts_kept():
        signal.signal(number, signal.SIG_IGN)
    assert signal.getsignal(number) is before


def runs() -> int:
    """How many runs Dagster has stored."""
    url = sa.make_url(os.environ[DAGSTER_URL_VARIABLE]).set(drivername="postgresql+psycopg")
    with opened(url.render_as_string(hide_password=False)) as engine, engine.connect() as connection:
        count: int = connection.execute(sa.text("SELECT count(*) FROM dagster.runs")).scalar_one()
        return count
