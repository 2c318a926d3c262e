"""Checks of how a source's changes are followed: its trace store, its sensor and schedule."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from stepacc_dagster.doctor.findings import Finding
from stepacc_dagster.doctor.tickers import Ticker
from stepacc_dagster.doctor.wording import lasting

_LATE = 10
"""Intervals after which a sensor that is on should have looked, and never less than the time below."""
_LEAST_LATE = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Store:
    """A source's trace store.

    Attributes:
        kind: of the store.
        table: the table that spans are read from.
        problem: why it cannot be read.
        unnoticed: what changes of it are not noticed.
    """

    kind: str
    table: str
    problem: str | None = None
    unnoticed: str = ""


@dataclass(frozen=True, slots=True)
class Following:
    """How the changes of a source are followed.

    Attributes:
        now: when it was looked at, with a time zone.
        source: name of the source.
        sensor: name of its sensor.
        schedule: name of its schedule.
        enabled: whether the sensor is on unless somebody stops it.
        interval: time between two looks of the sensor.
        tickers: what instances know of the two.
        has_daemon: whether a daemon is alive on any of them.
        checked_at: when the store was last asked for changes; None: never, or nobody could look.
    """

    now: datetime
    source: str
    sensor: str
    schedule: str
    enabled: bool
    interval: timedelta
    tickers: tuple[Ticker, ...]
    has_daemon: bool
    checked_at: datetime | None

    def ticker(self, name: str) -> Ticker | None:
        """Return what is known of one of the two: of several, what the instance knows where it ticked last."""
        known = [each for each in self.tickers if each.name == name]
        return max(known, key=lambda each: (each.ticked_at is not None, each.ticked_at or self.now), default=None)

    @property
    def is_on(self) -> bool:
        """Whether the sensor is on, and a daemon is there that runs it."""
        return self.has_daemon and _on(self.ticker(self.sensor), by_itself=self.enabled)


def check_store(store: Store) -> Iterator[Finding]:
    """Say whether the store can be read."""
    if store.problem:
        yield Finding(
            "error",
            store.problem,
            "Until it is mended no new trace of this source comes in; what was ingested is kept. The settings are "
            "`store` and `store_url_env` in the defs.yaml.",
        )
    else:
        unnoticed = f" Of its changes are not noticed: {store.unnoticed}." if store.unnoticed else ""
        yield Finding("ok", f"Its store ({store.kind}, {store.table}) can be read.{unnoticed}")


def check_following(found: Following) -> Iterator[Finding]:
    """Say whether changes are followed, and by what."""
    sensor, schedule = found.ticker(found.sensor), found.ticker(found.schedule)
    for ticker in (sensor, schedule):
        if ticker and ticker.failure:
            yield Finding(
                "error",
                f"The last tick of {ticker.name}, {lasting(found.now - (ticker.ticked_at or found.now))} ago, failed: "
                f"{ticker.failure}",
                "Mend what it names; the whole error is with the tick in the UI. The next tick tries again.",
            )
    yield from _sensor(found, sensor)
    yield from _schedule(found, schedule)
    yield from _feed(found)


def _sensor(found: Following, sensor: Ticker | None) -> Iterator[Finding]:
    if not _on(sensor, by_itself=found.enabled):
        who = "somebody stopped it in the UI" if sensor and sensor.chosen == "off" else "`follow.enabled` is false"
        yield Finding(
            "note",
            f"The sensor {found.sensor} is off ({who}), so changes are not followed by themselves.",
            f"Start it in the UI (Automation), or run `stepacc backfill --source {found.source}` after a change.",
        )
    elif not found.has_daemon and sensor and sensor.ticked_at:
        yield Finding(
            "error",
            f"The sensor {found.sensor} is on and last ticked {lasting(found.now - sensor.ticked_at)} ago, and no "
            "daemon lives; changes are not followed.",
            f"Start `stepacc dev` or your own daemon. Where none is to run, stop the sensor in the UI or set "
            f"`follow: {{enabled: false}}`, and run `stepacc backfill --source {found.source}` after a change.",
        )
    elif not found.has_daemon:
        yield Finding(
            "note",
            f"The sensor {found.sensor} is on, and no daemon has run it yet; changes are not followed now.",
            f"Start `stepacc dev` or your own daemon, or run `stepacc backfill --source {found.source}`.",
        )
    elif sensor is None or sensor.ticked_at is None:
        yield Finding(
            "warning",
            f"The sensor {found.sensor} should be on, and the daemon has never run it.",
            "See in the UI (Deployment) that the code location with this source is loaded, and reload definitions.",
        )
    elif found.now - sensor.ticked_at > _late(found):
        yield Finding(
            "warning",
            f"The sensor {found.sensor} is on and last ticked {lasting(found.now - sensor.ticked_at)} ago.",
            "See in the UI that its code location is loaded, and what the daemon hangs on.",
        )
    elif not sensor.failure:
        yield Finding(
            "ok", f"The sensor {found.sensor} is on, last ticked {lasting(found.now - sensor.ticked_at)} ago."
        )


def _schedule(found: Following, schedule: Ticker | None) -> Iterator[Finding]:
    if _on(schedule, by_itself=False) and not found.has_daemon:
        yield Finding(
            "error",
            f"The schedule {found.schedule} is on, and no daemon lives that runs it.",
            "Start `stepacc dev` or your own daemon, or stop the schedule in the UI (Automation).",
        )
    elif _on(schedule, by_itself=False):
        yield Finding("ok", f"The schedule {found.schedule} is on.")
    else:
        yield Finding("ok", f"The schedule {found.schedule} is off, as it is unless somebody starts it.")


def _feed(found: Following) -> Iterator[Finding]:
    if found.checked_at is None:
        return
    age = found.now - found.checked_at
    if found.is_on and age > _late(found):
        yield Finding(
            "warning",
            f"The store was last asked for changes {lasting(age)} ago, although the sensor is on.",
            "Look at the ticks of the sensor in the UI.",
        )
    else:
        yield Finding("ok", f"The store was last asked for changes {lasting(age)} ago.")


def _late(found: Following) -> timedelta:
    return max(_LATE * found.interval, _LEAST_LATE)


def _on(ticker: Ticker | None, *, by_itself: bool) -> bool:
    return by_itself if ticker is None or ticker.chosen is None else ticker.chosen == "on"
