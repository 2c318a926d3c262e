"""Checks of a Dagster instance: its storage, its daemon, its run queue and monitoring."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from stepacc_dagster.cli.output import counted
from stepacc_dagster.doctor.findings import Finding, Level
from stepacc_dagster.doctor.runs import Pool, UnfinishedRun, check_pools, check_runs
from stepacc_dagster.doctor.tickers import Ticker
from stepacc_dagster.doctor.wording import lasting, listed

ALIVE_WITHIN = timedelta(minutes=2)
"""A daemon gives a sign of life every thirty seconds."""
_PATIENCE = timedelta(minutes=30)
"""Dagster's own: one part of the daemon may be busy for so long with a single thing."""

_START = "Start it: `stepacc dev`, or `dagster-daemon run` beside the webserver of your own project"


@dataclass(frozen=True, slots=True)
class Daemon:
    """One part of Dagster's daemon.

    Attributes:
        name: as Dagster calls it, such as SENSOR.
        seen_at: its last sign of life; None: never.
        error: what it last failed with; None where it did not.
    """

    name: str
    seen_at: datetime | None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Monitoring:
    """Dagster's watch over its runs.

    Attributes:
        enabled: whether there is one.
        frees_slots: whether a run that was killed gives its places in pools back.
    """

    enabled: bool
    frees_slots: bool


@dataclass(frozen=True, slots=True)
class Queue:
    """How runs are launched.

    Attributes:
        enabled: whether runs wait in a queue, which the daemon serves.
        limit: runs at a time; None: as many as there are.
        queued: runs that wait.
    """

    enabled: bool
    limit: int | None
    queued: int


@dataclass(frozen=True, slots=True)
class Instance:
    """A Dagster instance.

    Attributes:
        now: when it was looked at, with a time zone.
        absent: why there is nothing to look at, where that is no fault.
        problem: why it cannot be used.
        storage: where its tables are.
        revision: of its tables.
        expected: the revision that the installed dagster works with.
        daemons: the parts of the daemon that its settings ask for.
        monitoring: of runs; None only where the instance cannot be used.
        queue: of runs; likewise.
        pools: those of stepacc's metrics.
        runs: those that have not ended, the oldest first.
        tickers: sensors and schedules that it knows.
    """

    now: datetime
    absent: str | None = None
    problem: str | None = None
    storage: str = ""
    revision: str | None = None
    expected: str | None = None
    daemons: tuple[Daemon, ...] = ()
    monitoring: Monitoring | None = None
    queue: Queue | None = None
    pools: tuple[Pool, ...] = ()
    runs: tuple[UnfinishedRun, ...] = ()
    tickers: tuple[Ticker, ...] = ()

    @property
    def has_daemon(self) -> bool:
        """Whether a daemon gave a sign of life lately."""
        return any(daemon.seen_at and self.now - daemon.seen_at < ALIVE_WITHIN for daemon in self.daemons)


def check_instance(found: Instance) -> Iterator[Finding]:
    """Say whether the instance does what is expected of it."""
    if found.absent:
        yield Finding(
            "note", found.absent, "There is nothing to do: the first `stepacc materialize` or `stepacc dev` makes it."
        )
        return
    if found.problem:
        yield Finding(
            "error", found.problem, "Correct its dagster.yaml or its database; no run can be stored until then."
        )
        return
    yield from _storage(found)
    yield from _daemon(found)
    yield from _settings(found)
    yield from check_pools(found.pools)
    yield from check_runs(found.runs, found.now)


def driver_problem(named: str, sqlalchemy: str) -> str | None:
    """Return why dagster-postgres does not work with the URL of its storage; None where it does.

    Args:
        named: what the URL begins with, such as `postgresql+psycopg2`.
        sqlalchemy: the version that is installed; from 2.1 on a URL without a driver means psycopg 3.
    """
    _, _, driver = named.partition("+")
    major, minor = (int(part) for part in sqlalchemy.split(".")[:2])
    if driver == "psycopg2" or (not driver and (major, minor) < (2, 1)):
        return None
    return (
        f"The URL of Dagster's storage begins with {named}://, which means psycopg 3 to SQLAlchemy {sqlalchemy}, and "
        "dagster-postgres works with psycopg2 only: write postgresql+psycopg2://, or scheme: postgresql+psycopg2."
    )


def _storage(found: Instance) -> Iterator[Finding]:
    if found.revision == found.expected:
        yield Finding("ok", f"Its tables are in {found.storage}, and of this version of dagster.")
    else:
        yield Finding(
            "warning",
            f"Its tables in {found.storage} are of revision {found.revision}, and the installed dagster works with "
            f"{found.expected}.",
            "Stop what uses them and run `dagster instance migrate` with DAGSTER_HOME set to its folder; if they are "
            "newer, upgrade dagster here.",
        )


def _daemon(found: Instance) -> Iterator[Finding]:
    seen = [daemon.seen_at for daemon in found.daemons if daemon.seen_at]
    waiting = f"Its queue holds {counted(found.queue.queued, 'run')}" if found.queue and found.queue.queued else ""
    served = "sensors, schedules and the run queue are not served; commands run without it"
    if not seen:
        yield Finding(
            "warning" if waiting else "note",
            _joined(waiting, f"No daemon has ever run here, so {served}."),
            f"{_START}, where changes are to be followed.",
        )
        return
    if not found.has_daemon:
        age = lasting(found.now - max(seen))
        level: Level = "error" if waiting else "warning"
        yield Finding(level, _joined(waiting, f"The daemon was last alive {age} ago, so {served}."), f"{_START}.")
        return
    silent = [each.name for each in found.daemons if each.seen_at is None or found.now - each.seen_at > _PATIENCE]
    failing = [each for each in found.daemons if each.error]
    if silent:
        yield Finding(
            "warning",
            f"The daemon is alive, but these parts of it are silent: {listed(silent)}.",
            "Read its log for what they hang on, and start it anew.",
        )
    for each in failing:
        yield Finding(
            "warning",
            f"The part {each.name} of the daemon last failed: {each.error}",
            "Mend what it names; it tries again by itself.",
        )
    if not silent and not failing:
        yield Finding("ok", f"The daemon is alive, last seen {lasting(found.now - max(seen))} ago.")


def _settings(found: Instance) -> Iterator[Finding]:
    monitoring, queue = found.monitoring, found.queue
    if monitoring and not (monitoring.enabled and monitoring.frees_slots):
        lacking = "no run monitoring" if not monitoring.enabled else "run monitoring that frees no pool slots"
        yield Finding(
            "warning",
            f"The instance has {lacking}: a run whose process dies keeps its place in the pool for ever, and no run "
            "is ended at its time limit.",
            "Set `run_monitoring: {enabled: true, free_slots_after_run_end_seconds: 60}` in its dagster.yaml.",
        )
    elif monitoring:
        yield Finding("ok", "Runs are monitored, and a killed one gives its place in the pool back.")
    if queue is None:
        return
    if queue.enabled and queue.limit == 0:
        yield Finding(
            "error",
            "The run queue launches nothing: max_concurrent_runs is 0.",
            "Raise concurrency.runs.max_concurrent_runs in its dagster.yaml; stepacc's own has 4.",
        )
    elif queue.enabled:
        allowed = "any number of runs" if queue.limit is None else f"up to {counted(queue.limit, 'run')}"
        yield Finding("ok", f"The run queue allows {allowed} at a time; {queue.queued} wait.")
    else:
        yield Finding(
            "note",
            "Runs are launched at once, without a queue; a step then waits in its process for a place in its pool.",
            "Leave run_coordinator out of its dagster.yaml to have them queued.",
        )


def _joined(first: str, second: str) -> str:
    return f"{first}. {second}" if first else second
