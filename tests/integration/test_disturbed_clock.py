"""A clock that goes back: what was done last still counts, what was lost is asked for again, and nothing is missed.

Nobody can set the clock of a server that others use. Here the functions that tell the time are taken from a schema that
comes before Postgres' own, so that every statement and every default of stepacc's tables sees a clock that is wrong.
"""

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg
import pytest
import sqlalchemy as sa
from dagster._daemon.types import DaemonHeartbeat

from stepacc_core.model import RawSpan
from stepacc_dagster.daemon_backfills import daemon_is_alive
from stepacc_dagster.evaluators import evaluator_of
from stepacc_dagster.scoring import score_window
from stepacc_dagster.sources import SettleSettings
from stepacc_dagster.stores.base import Changes
from stepacc_dagster.stores.settings import LangfuseV2Settings
from tests.integration import test_store_table
from tests.integration.evaluation_access import Workshop, support_source
from tests.integration.evaluation_samples import MONDAY, TUESDAY, WEDNESDAY, agent_trace, day, tool_span
from tests.integration.following_access import Follower
from tests.integration.store_access import DAY, run
from tests.integration.test_store_changes import TUESDAY as EARLY_DAY
from tests.integration.test_store_changes import add_late_span, changes, two_days

HOUR, NONE = timedelta(hours=1), timedelta()
JUMPS = [HOUR, -HOUR, -24 * HOUR, NONE, 365 * 24 * HOUR, HOUR, NONE]
"""Where the clock stands beside the right time, one after the other."""
VALUES = {1.0: ["search"], 0.5: ["search", "answer"], 0.0: ["answer"]}
"""An annotation for each score of a trace that searched."""

_WRONG_CLOCK = (
    "CREATE SCHEMA wrong",
    "CREATE TABLE wrong.clock (ahead interval NOT NULL)",
    "INSERT INTO wrong.clock VALUES ('0')",
    *(
        f"CREATE FUNCTION wrong.{name}() RETURNS timestamptz LANGUAGE sql {kind} "  # noqa: S608 (names of this module)
        f"AS 'SELECT pg_catalog.{name}() + ahead FROM wrong.clock'"
        for name, kind in (("now", "STABLE"), ("statement_timestamp", "STABLE"), ("clock_timestamp", "VOLATILE"))
    ),
    """
    DO $$ DECLARE place record; BEGIN
        FOR place IN SELECT table_name, column_name FROM information_schema.columns
                     WHERE table_schema = 'stepacc' AND column_default = 'now()'
        LOOP
            EXECUTE format('ALTER TABLE stepacc.%I ALTER %I SET DEFAULT wrong.now()',
                           place.table_name, place.column_name);
        END LOOP;
        EXECUTE format('ALTER DATABASE %I SET search_path = public, wrong, pg_catalog', current_database());
    END $$
    """,
)


@dataclass(frozen=True)
class Clock:
    """The clock of a database, as all statements of stepacc see it."""

    engine: sa.Engine

    @classmethod
    def of(cls, engine: sa.Engine) -> "Clock":
        """Make the clock of a database one that can be set wrong."""
        with engine.begin() as connection:
            for statement in _WRONG_CLOCK:
                connection.execute(sa.text(statement))
        engine.dispose()  # what a database sets holds for new connections
        return cls(engine)

    def set(self, ahead: timedelta) -> None:
        """Let it be ahead of the right time; below zero, behind."""
        run(self.engine, "UPDATE wrong.clock SET ahead = :ahead", ahead=ahead)


@pytest.fixture
def workshop(dagster_instance: dg.DagsterInstance, migrated_engine: sa.Engine) -> Workshop:
    """A trace a day."""
    workshop = Workshop(dagster_instance, migrated_engine)
    workshop.land(*(agent_trace(f"t {key}", key, "search") for key in (MONDAY, TUESDAY, WEDNESDAY)))
    return workshop


@pytest.fixture
def clock(workshop: Workshop) -> Clock:
    """The clock of the workshop's database."""
    return Clock.of(workshop.engine)


def states(workshop: Workshop, ident: str) -> list[tuple[float, str]]:
    """Return the scores of a trace or session and what has become of each, in the order of their first evaluation."""
    query = "SELECT score, state FROM stepacc.score_lineage WHERE partition_id = :ident ORDER BY score_id"
    return [tuple(row) for row in workshop.rows(query, ident=ident)]


def test_the_clock_of_these_tests_is_the_one_that_stepacc_sees(workshop: Workshop, clock: Clock) -> None:
    clock.set(365 * 24 * HOUR)
    workshop.run(MONDAY)
    [row] = workshop.rows("SELECT *, pg_catalog.now() AS right_now FROM stepacc.scores")
    [trace] = workshop.rows("SELECT * FROM stepacc.traces")
    for moment in (row.evaluated_at, row.confirmed_at, trace.first_ingested_at, trace.changed_at):
        assert abs(moment - row.right_now - 365 * 24 * HOUR) < HOUR


def test_the_evaluation_made_last_is_the_current_one_whatever_the_clock_does(workshop: Workshop, clock: Clock) -> None:
    """Also one that was made before: A, B, and A again."""
    list(workshop.evaluation().ingest([MONDAY]))
    source = support_source()
    made: list[float] = []
    for place, ahead in enumerate(JUMPS):
        clock.set(ahead)
        score = list(VALUES)[place % 3]
        workshop.annotate("trace", f"t {MONDAY}", VALUES[score])
        for _ in range(2):  # the second one confirms
            score_window(workshop.engine, source, evaluator_of(source), day(MONDAY), "a run")
        made.append(score)
        assert [row.score for row in workshop.current()] == [score]
        assert states(workshop, f"t {MONDAY}") == [*((old, "superseded") for old in made[:-1]), (score, "current")]


def test_an_evaluation_that_is_current_again_is_so_with_the_clock_behind(workshop: Workshop, clock: Clock) -> None:
    """The same annotation revision is in force again once one made for the trace itself is withdrawn."""
    workshop.land(agent_trace("t", MONDAY, "search", task="refund"))
    workshop.annotate("task", "refund", VALUES[1.0])
    evaluation = workshop.evaluation(partition_types={"trace": "skip"})
    list(evaluation.materialize([MONDAY]))
    clock.set(2 * HOUR)
    workshop.annotate("trace", "t", VALUES[0.0])
    list(evaluation.score([MONDAY]))
    assert states(workshop, "t") == [(1.0, "superseded"), (0.0, "current")]
    clock.set(HOUR)
    workshop.withdraw("trace", "t")
    list(evaluation.score([MONDAY]))
    assert states(workshop, "t") == [(1.0, "current"), (0.0, "superseded")]
    clock.set(NONE)
    workshop.withdraw("task", "refund")
    list(evaluation.score([MONDAY]))
    assert states(workshop, "t") == [(1.0, "retired"), (0.0, "superseded")]
    assert workshop.current() == []


def test_a_session_that_moved_to_another_window_has_the_score_it_got_there(workshop: Workshop, clock: Clock) -> None:
    sessions = {"partition_types": {"session": "fail"}}
    clock.set(HOUR)
    workshop.land(agent_trace("b", TUESDAY, "answer", session="s"))
    workshop.annotate("session", "s", ["search", "answer"], "session")
    workshop.run(TUESDAY, **sessions)
    assert states(workshop, "s") == [(0.5, "current")]
    clock.set(NONE)
    workshop.land(agent_trace("a", MONDAY, "search", session="s"))
    workshop.run(MONDAY, **sessions)
    assert states(workshop, "s") == [(0.5, "superseded"), (1.0, "current")]


@pytest.mark.parametrize("ahead", [timedelta(minutes=1), HOUR, 365 * 24 * HOUR])
def test_a_run_that_was_lost_is_not_waited_for_by_a_clock_that_was_ahead(
    workshop: Workshop, clock: Clock, ahead: timedelta
) -> None:
    follower = Follower(workshop)
    clock.set(ahead)
    [lost] = follower.look()
    assert follower.look() == []
    clock.set(NONE)
    [again] = follower.look()
    assert again == lost
    assert again.request.run_key != lost.request.run_key  # or Dagster would take it for the first
    assert follower.look() == []
    clock.set(timedelta(minutes=29))
    assert follower.look() == []
    clock.set(timedelta(minutes=31))
    assert follower.look() == [lost]


def running(trace_id: str, ago: timedelta) -> list[RawSpan]:
    """Return a whole trace that began a while ago."""
    shift = int((datetime.now(UTC) - ago).timestamp() * 1e9) - day(MONDAY).start_ns - 9 * 3_600_000_000_000
    return [
        replace(span, start_time_unix_nano=start + shift, end_time_unix_nano=start + shift + 1)
        for span in agent_trace(trace_id, MONDAY, "search", task="refund")
        if (start := span.start_time_unix_nano) is not None
    ]


def test_a_trace_that_is_unsettled_once_more_keeps_its_score_and_is_taken_up_in_time(
    workshop: Workshop, clock: Clock
) -> None:
    follower = Follower(workshop, settling=SettleSettings(quiet_minutes=10))
    workshop.land(running("t", timedelta(minutes=20)))
    workshop.annotate("task", "refund", VALUES[1.0])
    follower.settle()
    assert states(workshop, "t") == [(1.0, "current")]
    clock.set(-HOUR)
    workshop.annotate("task", "refund", VALUES[0.5])
    follower.settle()
    assert states(workshop, "t") == [(1.0, "current")]
    clock.set(NONE)
    follower.settle()
    assert states(workshop, "t") == [(1.0, "superseded"), (0.5, "current")]
    assert follower.look() == []


def test_what_a_clock_ahead_took_for_settled_is_scored_again_when_it_goes_on(workshop: Workshop, clock: Clock) -> None:
    follower = Follower(workshop, settling=SettleSettings(quiet_minutes=10))
    workshop.annotate("task", "refund", ["search", "answer"])
    begun = running("t", timedelta())
    clock.set(HOUR)
    workshop.land(begun)
    follower.settle()
    assert states(workshop, "t") == [(0.5, "current")]
    clock.set(NONE)
    workshop.land([tool_span("t", "late", "answer", int(time.time() * 1e9) + 10_000_000_000)])
    follower.settle()
    assert states(workshop, "t") == [(0.5, "current")]  # it goes on, by the right clock
    clock.set(timedelta(minutes=11))
    follower.settle()
    assert states(workshop, "t") == [(0.5, "superseded"), (1.0, "current")]


@pytest.mark.parametrize("back", [HOUR, 48 * HOUR])
def test_a_row_of_langfuse_is_not_missed_after_its_clock_went_back(engine: sa.Engine, back: timedelta) -> None:
    """It is told, and then nothing more until something new is written."""
    clock, settings = Clock.of(engine), LangfuseV2Settings()
    early = two_days(engine, "langfuse_v2")
    now = "updated_at = now() AT TIME ZONE 'UTC', created_at = now() AT TIME ZONE 'UTC'"
    clock.set(back)
    for table in ("traces", "observations"):
        run(engine, f"UPDATE {table} SET {now}")  # noqa: S608 (a name of this test)
    first = changes(engine, settings)
    assert changes(engine, settings, first.cursor) == Changes((), first.cursor)
    clock.set(NONE)
    add_late_span(engine, "langfuse_v2", early)
    run(engine, f"UPDATE observations SET {now} WHERE id = 'late'")  # noqa: S608 (as above)
    told = changes(engine, settings, first.cursor)
    assert EARLY_DAY.key in told.windows
    assert changes(engine, settings, told.cursor).windows == ()
    run(engine, "UPDATE observations SET updated_at = updated_at + interval '1 second' WHERE id = 'late'")
    assert changes(engine, settings, told.cursor).windows == (EARLY_DAY.key,)


@pytest.mark.parametrize("shape", ["timestamps", "naive timestamps"])
def test_a_row_of_a_table_is_not_missed_after_its_clock_went_back(engine: sa.Engine, shape: str) -> None:
    clock = Clock.of(engine)
    clock.set(HOUR)
    _, t2, a, _, c = test_store_table.table_of(engine, shape)
    first = test_store_table.changes(engine)
    assert test_store_table.changes(engine, first.cursor) == Changes((), first.cursor)
    clock.set(NONE)
    test_store_table.insert(engine, shape, (t2, c, a), DAY.start_ns + 9)
    told = test_store_table.changes(engine, first.cursor)
    assert DAY.key in told.windows
    assert test_store_table.changes(engine, told.cursor).windows == ()


@pytest.mark.parametrize(
    ("ahead", "alive"), [(-HOUR, False), (-timedelta(minutes=1), True), (NONE, True), (HOUR, False)]
)
def test_a_sign_of_life_that_is_still_to_come_is_none(
    dagster_instance: dg.DagsterInstance, ahead: timedelta, alive: Any
) -> None:
    beat = DaemonHeartbeat(time.time() + ahead.total_seconds(), "BACKFILL", "a daemon", [])
    dagster_instance.add_daemon_heartbeat(beat)
    assert daemon_is_alive(dagster_instance) is alive
