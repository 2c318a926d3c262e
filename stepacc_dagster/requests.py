"""Which runs to ask for, so that the windows of a source are up to date. Pure: the database is read before."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, islice

from stepacc_dagster.storage.due import DueWindow


@dataclass(frozen=True, slots=True)
class Ask:
    """A window to bring up to date.

    Attributes:
        key: the window.
        ingest: whether it is ingested before it is scored.
        metrics: the metrics it is scored by.
        token: what it is brought up to date with; while this stays, asking again is only for a run that was lost.
        attempt: 1, 2, 3, ...: runs asked for with this token, this one included.
        asked_at: now, by the database's clock.
    """

    key: str
    ingest: bool
    metrics: tuple[str, ...]
    token: str
    attempt: int
    asked_at: datetime

    @classmethod
    def of(cls, due: DueWindow) -> "Ask":
        """Return what to ask for, for a window that is out of date."""
        before = (due.requests or 0) if due.token == due.requested else 0
        return cls(due.window_key, due.ingest_due, due.metrics, due.token, before + 1, due.now)


@dataclass(frozen=True, slots=True)
class RunAsk:
    """A run over neighbouring windows, oldest first; all are to be ingested or none, and scored by the same metrics."""

    asks: tuple[Ask, ...]

    @property
    def ingest(self) -> bool:
        """Whether the run ingests before it scores."""
        return self.asks[0].ingest

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics the run scores by."""
        return self.asks[0].metrics

    @property
    def keys(self) -> tuple[str, ...]:
        """The windows, oldest first."""
        return tuple(ask.key for ask in self.asks)

    @property
    def run_key(self) -> str:
        """A name of this very asking: Dagster starts no second run of a name, and the same may be due again later."""
        said = "\n".join(f"{ask.key} {ask.token} {ask.attempt} {ask.asked_at}" for ask in self.asks)
        return hashlib.sha256(said.encode()).hexdigest()[:32]


def runs(asks: Iterable[Ask], keys: Sequence[str], *, size: int, limit: int) -> list[RunAsk]:
    """Put windows together into runs, in the order in which they are asked for.

    Args:
        asks: windows, newest first.
        keys: all partitions of the source, in order; windows that are none of them are left out.
        size: windows a run takes at most.
        limit: runs at most; windows beyond are left for the next time.
    """
    places = {key: place for place, key in enumerate(keys)}
    return list(islice(_grouped([ask for ask in asks if ask.key in places], places, size), limit))


def neighbours(chosen: Iterable[str], keys: Sequence[str]) -> list[list[str]]:
    """Group partitions that follow one another without a gap, oldest first.

    Args:
        chosen: some of the partitions.
        keys: all of them, in order.
    """
    places = {key: place for place, key in enumerate(keys)}
    ordered = sorted(set(chosen), key=places.__getitem__)
    runs = groupby(enumerate(ordered), lambda pair: places[pair[1]] - pair[0])
    return [[key for _, key in run] for _, run in runs]


def chunks(chosen: Iterable[str], keys: Sequence[str], size: int) -> list[list[str]]:
    """Group partitions that follow one another, at most `size` together, oldest first; otherwise as `neighbours`."""
    found = neighbours(chosen, keys)
    return [group[start : start + size] for group in found for start in range(0, len(group), size)]


def _grouped(asks: Iterable[Ask], places: dict[str, int], size: int) -> Iterator[RunAsk]:
    group: list[Ask] = []
    for ask in asks:
        if group and not _goes_on(group, ask, places, size):
            yield RunAsk(tuple(reversed(group)))
            group = []
        group.append(ask)
    if group:
        yield RunAsk(tuple(reversed(group)))


def _goes_on(group: Sequence[Ask], ask: Ask, places: dict[str, int], size: int) -> bool:
    last = group[-1]
    same = (last.ingest, last.metrics) == (ask.ingest, ask.metrics)
    return len(group) < size and places[last.key] - places[ask.key] == 1 and same
