"""Which windows unfinished runs work on, so that nobody asks for them a second time."""

import time
from collections.abc import Iterable, Iterator
from typing import Any

import dagster as dg

from stepacc_dagster.automation import RANGE_END, RANGE_START
from stepacc_dagster.catalog import SourceKeys
from stepacc_dagster.sources import Source

UNFINISHED = [
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
_LONGEST = "dagster/max_runtime"
_GRACE_SECONDS = 3_600


def busy_windows(instance: dg.DagsterInstance, source: Source, keys: SourceKeys) -> list[tuple[str, str]]:
    """Return first and last window of each unfinished run that works on the source, whoever started it.

    A run that started longer ago than it may take, by an hour and more, counts as gone: where an instance does not
    monitor its runs, one whose process was killed is called started for ever. If it does go on after all, the two do
    the same once more, and store it once.
    """
    own = set(keys.made) - set(keys.derived)
    records = instance.get_run_records(dg.RunsFilter(statuses=UNFINISHED))
    runs = (record.dagster_run for record in records if not _is_overdue(record))
    return list(_ranges(run for run in runs if _works_on(run, source, own)))


def _is_overdue(record: dg.RunRecord) -> bool:
    longest = record.dagster_run.tags.get(_LONGEST, "")
    if record.start_time is None or not longest.isdecimal():
        return False
    return time.time() - record.start_time > int(longest) + _GRACE_SECONDS


def _works_on(run: dg.DagsterRun, source: Source, own: set[dg.AssetKey]) -> bool:
    return run.tags.get("stepacc/source") == source.name or not own.isdisjoint(run.asset_selection or ())


def _ranges(found: Iterable[dg.DagsterRun]) -> Iterator[tuple[str, str]]:
    for run in found:
        tags: dict[str, Any] = dict(run.tags)
        single = tags.get("dagster/partition")
        first, last = tags.get(RANGE_START, single), tags.get(RANGE_END, single)
        if first is not None and last is not None:
            yield first, last
