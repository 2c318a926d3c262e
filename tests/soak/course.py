"""The course of a soak: everything happens, then all has to come to rest, and is looked at."""

import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

import dagster as dg
import sqlalchemy as sa
from dagster._core.scheduler.instigation import ScheduleInstigatorData

from stepacc_dagster.automation import schedule_name
from stepacc_dagster.database import is_transient
from tests.integration.disturbed_access import due, held_slots, unfinished
from tests.integration.disturbed_processes import Stage
from tests.soak.disturbances import Disturber
from tests.soak.happenings import Happening
from tests.soak.outcome import advisory_locks, connections, figures, runs_by_fate
from tests.soak.report import Report, Settings
from tests.soak.service import Service
from tests.soak.sources import METRIC, VERSIONS, configure_sources

T = TypeVar("T")

_PATIENCE = 150.0
"""Seconds within which a database that was disturbed takes a transaction, and what was ended is gone."""
_STANDS = 5.0
"""Seconds for which the time of a soak goes on while the UI is not up; then it stands, or a slow machine would do
nothing but start."""
_OVERTIME = 60.0
_RARELY = 5.0
"""Seconds after which a window for which nobody works is taken for one whose run was lost."""
_EARLIER = timedelta(days=1)
_START_TIMEOUT = re.compile(r"(start_timeout_seconds: )\d+")
_LOST = "UPDATE stepacc.windows SET request_again_at = now() WHERE request_again_at > now()"
_START = """mutation ($name: String!) {
    startSchedule(scheduleSelector: {
        repositoryLocationName: "stepacc", repositoryName: "__repository__", scheduleName: $name
    }) { __typename ... on PythonError { message } }
}"""


class Course:
    """A soak under way.

    Args:
        settings: how it goes.
        stage: where.
        report: takes what was done, what was found, and what is wrong.
    """

    def __init__(self, settings: Settings, stage: Stage, report: Report) -> None:
        self._settings, self._stage, self._report = settings, stage, report
        self._begun = time.monotonic()
        self._chance = random.Random(settings.seed)  # noqa: S311 (a test's)
        self._service = Service(stage, self._note)
        self._disturber = Disturber(stage, self._service, self._chance, self._note)
        self._version = VERSIONS[0]
        self._lost = 0
        self._slowest_start = 0.0

    def _note(self, sentence: str) -> None:
        self._report.journal.append(f"{time.monotonic() - self._begun:7.1f} {sentence}")

    @contextmanager
    def attended(self) -> Iterator[None]:
        """End all processes with the block, and tell what was done where it raises."""
        try:
            yield
        except BaseException as error:
            error.add_note(self._report.told())
            raise
        finally:
            self._service.stop()

    def disturbed(self, work: list[Happening], begin: datetime) -> None:
        """Let everything happen."""
        _keep_what_is_acknowledged(self._stage)
        self._waited(self._is_up)
        started_in = time.monotonic() - self._begun
        plan = sorted(
            [*self._happenings(work), *self._bumps(begin), *self._disturbances(started_in)], key=lambda each: each[0]
        )
        schedules = [schedule_name(source) for source in self._stage.sources]
        clock = _Clock()
        while plan or clock.seconds < self._settings.seconds or self._still_waits(clock):
            clock.go_on(working=self._is_up())
            while plan and plan[0][0] <= clock.seconds:
                plan.pop(0)[1]()
            self._disturber.look()
            if schedules and self._turn_on(schedules[0], begin):
                schedules.pop(0)
            time.sleep(0.1)
        self._note("nothing happens any more")
        self._report.figures["seconds disturbed"] = round(time.monotonic() - self._begun)
        if schedules:
            self._report.untried.append(f"the UI was not up for long enough to turn on the schedules {schedules}")

    def _is_up(self) -> bool:
        """Look after the command, and tell whether its UI is up; to be called often.

        However slow the machine gets, its next daemon gives no run up that only begins as slowly as the command does.
        """
        self._service.tend()
        if self._service.slowest_start > self._slowest_start:
            self._slowest_start = self._service.slowest_start
            _give_up_starts_after(4 * self._slowest_start, self._stage)
        return self._service.dev is not None

    def _still_waits(self, clock: "_Clock") -> bool:
        """Whether somebody is to be killed who was not there yet, and a while after the time there still is hope."""
        return bool(self._disturber.pending) and clock.seconds < self._settings.seconds + _OVERTIME

    def settle(self) -> None:
        """Wait until all is up to date and at rest; what hangs is told."""
        begun, quiet_since = time.monotonic(), None
        patience = self._settings.settles_within(self._slowest_start)
        while (left := _patiently(self._left)) and time.monotonic() - begun < patience:
            self._is_up()
            at_work = _patiently(lambda: unfinished(self._stage.instance))
            quiet_since = None if at_work else quiet_since or time.monotonic()
            if (
                quiet_since
                and time.monotonic() - quiet_since > _RARELY
                and _patiently(lambda: due(self._stage.engine, self._stage.sources))
            ):
                # A run that was asked for and never started is asked for again after a quarter of an hour or more.
                self._lost += self._insist(lambda conn: conn.execute(sa.text(_LOST)).rowcount)
                quiet_since = None
            time.sleep(0.5)
        self._report.figures["seconds until all was settled"] = round(time.monotonic() - begun)
        self._report.hanging += [f"after {patience:.0f} s: {each}" for each in left]

    def _left(self) -> list[str]:
        instance, sources = self._stage.instance, self._stage.sources
        left = [
            f"{source} {key} is out of date: {why}" for (source, key), why in due(self._stage.engine, sources).items()
        ]
        left += [f"run {run} has not ended" for run in unfinished(instance)]
        if not self._service.dev:
            left.append("stepacc dev is not up")
        return left or [f"run {run} has or waits for a slot of a pool" for run in held_slots(instance)]

    def inspect(self) -> None:
        """See what is left, first with the processes at rest, and then without them."""
        idle = self._waited(
            lambda: set(connections(self._stage.engine)) <= {"idle"} and not advisory_locks(self._stage.engine)
        )
        resting = connections(self._stage.engine)
        if not idle:
            self._report.hanging.append(f"connections do not come to rest: {resting}")
        if (code := self._service.stop()) != 0:
            self._report.hanging.append(f"stepacc dev ended with exit code {code} when it was asked to end")
        if left := self._stage.processes(""):
            self._report.hanging.append(f"processes are left over: {left}")
        if not self._waited(lambda: not connections(self._stage.engine)):
            self._report.hanging.append(f"connections are left over: {connections(self._stage.engine)}")
        self._report.hanging += self._service.unexplained
        self._tell(resting)

    def _tell(self, resting: object) -> None:
        counted, fates = figures(self._stage.engine), runs_by_fate(self._stage.engine)
        self._report.figures |= {
            "metric version at the end": self._version,
            "disturbances": dict(Counter(self._disturber.done)),
            "starts of stepacc dev": self._service.starts,
            "runs by who asked and how they ended": fates,
            "connections at rest": resting,
            "runs that have not ended": len(unfinished(self._stage.instance)),
            "slots of pools held or waited for": len(held_slots(self._stage.instance)),
            "requests lost, which would have been made again later": self._lost,
            "event log": counted,
        }
        for trigger in ("schedule", "changes"):
            if not fates.get(f"{trigger} success"):
                self._report.untried.append(f"no run of the trigger {trigger!r} has succeeded: {fates}")
        for kind in self._disturber.kinds:
            if kind not in self._disturber.done:
                self._report.untried.append(f"it never came to it: {kind}")

    def _happenings(self, work: list[Happening]) -> Iterator[tuple[float, Callable[[], object]]]:
        for each in work:
            yield each.at * self._settings.seconds, partial(self._happen, each)

    def _happen(self, each: Happening) -> None:
        self._insist(each.write)
        self._note(each.what)

    def _bumps(self, begin: datetime) -> Iterator[tuple[float, Callable[[], object]]]:
        for place, share in enumerate(self._settings.bumps, 1):
            yield share * self._settings.seconds, partial(self._bump, VERSIONS[place % 2], begin)

    def _bump(self, version: str, begin: datetime) -> None:
        """Deploy another version of the metric: end everything in order, and start it with new settings."""
        self._service.stop()
        self._version = version
        configure_sources(self._stage.home, version, begin)
        self._note(f"{METRIC} {version} is deployed")

    def _disturbances(self, started_in: float) -> Iterator[tuple[float, Callable[[], object]]]:
        pause = self._settings.pause(started_in)
        kinds: list[str] = []
        moment = self._chance.uniform(*pause)
        while moment < self._settings.seconds:
            kinds = kinds or self._chance.sample(self._disturber.kinds, len(self._disturber.kinds))
            yield moment, partial(self._disturber.disturb, kinds.pop())
            moment += self._chance.uniform(*pause)

    def _turn_on(self, name: str, begin: datetime) -> bool:
        """Turn on a schedule as though that had been done a day ago, so that it makes up for what it missed."""
        if (dev := self._service.dev) is None:
            return False
        try:
            dev.ask(_START, name=name)
            [state] = [s for s in self._stage.instance.all_instigator_state() if s.instigator_name == name]
            data = state.instigator_data
            assert isinstance(data, ScheduleInstigatorData)
            earlier = ScheduleInstigatorData(data.cron_schedule, (begin - _EARLIER).timestamp())
            self._stage.instance.update_instigator_state(state.with_data(earlier))
        except (OSError, AssertionError, ValueError, sa.exc.DBAPIError, dg.DagsterError) as error:
            self._note(f"schedule {name} could not be turned on yet: {error!r:.200}")
            return False
        self._note(f"schedule {name} is on, and has missed a day")
        return True

    def _insist(self, write: Callable[[sa.Connection], object]) -> int:
        def once() -> object:
            with self._stage.engine.begin() as connection:
                return write(connection)

        done = _patiently(once)
        return done if isinstance(done, int) else 0

    def _waited(self, condition: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + _PATIENCE
        while not (met := condition()) and time.monotonic() < deadline:
            time.sleep(0.2)
        return met


def _patiently(act: Callable[[], T]) -> T:
    """Do something with a database that may have been disturbed just before, again where it has to be."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            return act()
        except Exception as error:
            if not is_transient(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def _keep_what_is_acknowledged(stage: Stage) -> None:
    """Undo what makes the server of the tests quick, and lose commits when it is killed."""
    with stage.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("ALTER SYSTEM SET synchronous_commit = on")
        connection.exec_driver_sql("SELECT pg_reload_conf()")


def _give_up_starts_after(seconds: float, stage: Stage) -> None:
    """Let the next daemon wait not much longer for a run to start than this machine takes, where the shipped is longer.

    A run whose process is killed before it has noted which process it is has no other end.
    """
    settings = stage.home / "dagster" / "dagster.yaml"
    text, changes = _START_TIMEOUT.subn(rf"\g<1>{min(180, max(30, round(seconds)))}", settings.read_text())
    assert changes == 1
    settings.write_text(text)


class _Clock:
    """The time of a soak, which goes on while the command works, and for a while when it does not."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._last = time.monotonic()
        self._down = 0.0

    def go_on(self, *, working: bool) -> None:
        """Take note of the time that has passed; to be called often."""
        passed = time.monotonic() - self._last
        self._last += passed
        self._down = 0.0 if working else self._down + passed
        if self._down <= _STANDS:
            self.seconds += passed
