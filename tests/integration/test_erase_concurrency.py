"""An erasure while others work on the same traces, and one that is killed: nothing comes back, and nothing is half."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from stepacc_core import CanonicalPartition, Result, register
from stepacc_core.metrics import registry
from stepacc_core.model import RawSpan
from stepacc_dagster.ingest import ingest_window
from stepacc_dagster.sources import MetricChoice
from stepacc_dagster.storage.raw_spans import land_spans
from stepacc_dagster.stores.base import TraceStore
from stepacc_dagster.stores.otel_spans import OtelSpansStore
from stepacc_dagster.windows import Window
from tests.cli_access import COMMAND, stepacc
from tests.integration.erase_access import BOTH, NOTHING, Desk, person_trace
from tests.integration.evaluation_access import support_source
from tests.integration.evaluation_samples import MONDAY, SOURCE, ToyMetric, agent_trace, day
from tests.integration.storage_access import together

ANN = "ann@example.org"
_WAITING = sa.text("""
    SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
""")


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget at the end what a test registered."""
    monkeypatch.setattr(registry, "_METRICS", dict(registry._METRICS))


@pytest.fixture
def desk(migrated_engine: sa.Engine, migrated_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A landed trace of Ann's and one of somebody else's, annotated and not yet ingested."""
    monkeypatch.setenv("STEPACC_DATABASE_URL", migrated_url)
    monkeypatch.setenv("STEPACC_HOME", str(tmp_path / "home"))
    desk = Desk(migrated_engine, tmp_path / "home")
    desk.configure()
    desk.land(person_trace("a", MONDAY, ANN, "search", session="s"), agent_trace("b", MONDAY, "search", hour=10))
    return desk


class Work:
    """Something that runs in a thread of its own; what it raises is raised when it is waited for."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._error: BaseException | None = None
        self.result: Any = None
        self._work = work
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.result = self._work()
        except BaseException as error:  # noqa: BLE001 (handed to the test)
            self._error = error

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._thread.is_alive()

    def wait(self) -> Any:
        """Wait for the end."""
        self._thread.join(timeout=120)
        assert not self.running
        if self._error:
            raise self._error
        return self.result


def erasing(*arguments: str) -> Work:
    """Begin an erasure as a process of its own, as somebody at a terminal would."""

    def work() -> int:
        done = subprocess.run([*COMMAND, "erase", *arguments, "--yes"], check=False, capture_output=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.returncode

    return Work(work)


def wait_for_a_waiter(desk: Desk) -> None:
    """Wait until somebody waits for a lock."""
    deadline = time.monotonic() + 60
    while desk.one(str(_WAITING)) == 0:
        assert time.monotonic() < deadline, "nobody waits"
        time.sleep(0.02)


class HaltingStore:
    """A store that stops before its last trace until it is told to go on."""

    def __init__(self, store: TraceStore) -> None:
        self._store = store
        self.reached = threading.Event()
        self.go_on = threading.Event()

    @contextmanager
    def open(self) -> Iterator["HaltingStore"]:
        """Open the store."""
        with self._store.open() as reader:
            self._reader = reader
            yield self

    def traces(self, window: Window) -> Iterator[tuple[str, list[RawSpan]]]:
        """Yield all but the last trace, halt, and yield it."""
        *first, last = list(self._reader.traces(window))
        yield from first
        self.reached.set()
        assert self.go_on.wait(60)
        yield last


@pytest.mark.parametrize("target", [("--trace", "a"), ("--session", "s"), ("--user", ANN)])
def test_an_ingest_that_has_read_a_trace_before_does_not_write_it_after(desk: Desk, target: tuple[str, str]) -> None:
    store = HaltingStore(OtelSpansStore(desk.engine, SOURCE))
    ingest = Work(lambda: ingest_window(desk.engine, store, support_source(), day(MONDAY)))  # type: ignore[arg-type]
    assert store.reached.wait(60)
    erasure = erasing(*target)
    wait_for_a_waiter(desk)
    store.go_on.set()
    ingest.wait()
    erasure.wait()
    assert desk.stored("a") == NOTHING
    assert desk.erased() == ["a"]
    assert desk.stored("b")["spans"] == 2


@pytest.mark.parametrize("target", [("--trace", "a"), ("--session", "s"), ("--user", ANN)])
def test_a_scoring_that_has_read_a_trace_before_does_not_leave_its_steps_behind(
    desk: Desk, target: tuple[str, str]
) -> None:
    reached, go_on = threading.Event(), threading.Event()

    def slow(partition: CanonicalPartition) -> Result:
        if partition.partition_id == "s":
            reached.set()
            assert go_on.wait(60)
        return Result("scored", 1.0, {"saw": [span.tool_name for span in partition.spans]})

    register(ToyMetric("toy.slow", slow))
    desk.ingest(MONDAY)
    scoring = Work(lambda: desk.score(MONDAY, metric=MetricChoice("toy.slow"), partition_types=BOTH))
    assert reached.wait(60)
    erasure = erasing(*target)
    wait_for_a_waiter(desk)
    assert scoring.running
    go_on.set()
    scoring.wait()
    erasure.wait()
    assert desk.stored("a") == NOTHING
    assert desk.stored("s") == NOTHING
    assert desk.stored("b")["score_metadata"] == 1
    assert {row.partition_id for row in desk.rows("SELECT partition_id FROM stepacc.scores")} == {"a", "b", "s"}


@pytest.mark.parametrize("target", [("--session", "s"), ("--user", ANN)])
def test_a_landing_that_had_begun_before_leaves_nothing_behind(desk: Desk, target: tuple[str, str]) -> None:
    """Its trace is not seen by the search, which comes before it, but by the erasure, which waits for it."""
    with desk.engine.connect() as landing:
        land_spans(landing, SOURCE, person_trace("c", MONDAY, ANN, "open", session="s"))
        erasure = erasing(*target)
        wait_for_a_waiter(desk)
        landing.commit()
    erasure.wait()
    assert desk.stored("c") == desk.stored("a") == NOTHING
    assert desk.stored("b")["raw_spans"] == 2


def test_landings_ingests_scorings_and_erasures_at_once_wait_for_each_other_without_an_end(desk: Desk) -> None:
    """Nobody waits in a circle, and what was erased is gone whoever came first."""

    def people(number: int) -> list[list[RawSpan]]:
        return [person_trace(f"p{number}-{n}", MONDAY, f"p{n}", "search", session=f"s{n}") for n in range(6)]

    for turn in range(3):
        together(
            lambda turn=turn: desk.land(*people(turn)),  # type: ignore[misc]
            lambda: desk.evaluate(MONDAY),
            lambda: desk.evaluate(MONDAY),
            lambda turn=turn: stepacc("erase", "--user", f"p{turn}", "--unseen", "--yes"),  # type: ignore[misc]
            lambda turn=turn: stepacc("erase", "--session", f"s{turn + 3}", "--unseen", "--yes"),  # type: ignore[misc]
        )
    desk.evaluate(MONDAY)
    left = {row.trace_id for row in desk.rows("SELECT DISTINCT trace_id FROM stepacc.otel_spans")}
    assert left == {"a", "b"}
    assert {row.trace_id for row in desk.rows("SELECT DISTINCT trace_id FROM stepacc.spans")} == left
    assert len(desk.rows("SELECT DISTINCT key FROM stepacc.tombstones WHERE kind <> 'trace'")) == 6


def test_one_that_is_killed_in_the_middle_has_removed_nothing_and_can_be_asked_for_again(desk: Desk) -> None:
    desk.evaluate(MONDAY)
    before = [desk.stored(ident) for ident in ("a", "b", "s")]
    with desk.engine.connect() as holder:
        holder.execute(sa.text("SELECT * FROM stepacc.traces WHERE trace_id = 'a' FOR UPDATE"))
        process = subprocess.Popen([*COMMAND, "erase", "--user", ANN, "--yes"], stderr=subprocess.DEVNULL)
        wait_for_a_waiter(desk)  # its spans are deleted by then, and its row is next
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        holder.rollback()
    wait_until_alone(desk)
    assert [desk.stored(ident) for ident in ("a", "b", "s")] == before
    assert desk.erased() == []
    assert desk.audit() == []
    assert stepacc("erase", "--user", ANN, "--yes").code == 0
    assert desk.stored("a") == NOTHING


def wait_until_alone(desk: Desk) -> None:
    """Wait until no transaction but the test's own goes on."""
    query = """
        SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND state NOT IN ('idle')
    """
    deadline = time.monotonic() + 60
    while desk.one(query):
        assert time.monotonic() < deadline, "somebody still works"
        time.sleep(0.02)
