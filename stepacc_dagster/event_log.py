"""Erasing content from the event log of a Dagster instance.

What stepacc tells Dagster of a window names steps of its worst scores, the reasons of those without one, and an agent;
the error of a failed run may quote anything. Both are emptied for the windows of an erased trace, and the events stay,
so that Dagster shows the same partitions as materialised or failed.

Dagster has no public way to change an event. The storage's own one, made for migrations, is used here alone.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg
from dagster_postgres.event_log import PostgresEventLogStorage

from stepacc_dagster.automation import RANGE_END, RANGE_START
from stepacc_dagster.local.dead_runs import is_dead
from stepacc_dagster.run_metadata import CONTENT

_ERASED = "Erased."
_ASSETS = ("_scores", "_metadata")
_PAGE = 100
_FAILED = [dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]
_AT_WORK = [dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
"""A run that starts later reads nothing of what was erased."""


@dataclass(frozen=True, slots=True)
class EmptiedLog:
    """What was emptied.

    Attributes:
        materializations: events of materialised partitions that lost their tables.
        failed_runs: failed runs whose errors and captured output went.
        unfinished_runs: runs on these windows that may still write what they read before; empty them afterwards.
    """

    materializations: int = 0
    failed_runs: int = 0
    unfinished_runs: tuple[str, ...] = ()

    def __add__(self, other: "EmptiedLog") -> "EmptiedLog":
        """Return both together."""
        return EmptiedLog(
            self.materializations + other.materializations,
            self.failed_runs + other.failed_runs,
            tuple(sorted({*self.unfinished_runs, *other.unfinished_runs})),
        )


def can_be_emptied(instance: dg.DagsterInstance) -> bool:
    """Tell whether an instance keeps its events in Postgres, as `empty_event_log` needs it."""
    return isinstance(instance.event_log_storage, PostgresEventLogStorage)


def empty_event_log(instance: dg.DagsterInstance, windows: Mapping[str, Sequence[str]]) -> EmptiedLog:
    """Remove content from the events about windows; doing so again changes nothing.

    Args:
        instance: a Dagster instance that `can_be_emptied`.
        windows: partition keys by source.
    """
    materializations = sum(
        _empty_materializations(instance, key, keys)
        for source, keys in windows.items()
        for key in instance.get_asset_keys()
        if key.path[-2:-1] == [source] and key.path[-1].endswith(_ASSETS)
    )
    failed = [run for run in _runs(instance, _FAILED) if _works_on(run, windows)]
    emptied = sum(_empty_failure(instance, run.run_id) for run in failed)
    at_work = (run for run in _runs(instance, _AT_WORK) if _works_on(run, windows) and not is_dead(run))
    return EmptiedLog(materializations, emptied, tuple(run.run_id for run in at_work))


def _empty_materializations(instance: dg.DagsterInstance, key: dg.AssetKey, windows: Sequence[str]) -> int:
    emptied = 0
    for start in range(0, len(windows), _PAGE):
        asked = dg.AssetRecordsFilter(key, asset_partitions=list(windows[start : start + _PAGE]))
        for record in _materializations(instance, asked):
            if without := _emptied(record.event_log_entry):
                _storage(instance).update_event_log_record(record.storage_id, without)
                emptied += 1
    for asset in instance.get_asset_records([key]):  # which keeps a copy of its newest materialisation
        newest = asset.asset_entry.last_materialization_record
        if newest and newest.partition_key in windows and (without := _emptied(newest.event_log_entry)):
            _storage(instance).store_asset_event(without, newest.storage_id)
    return emptied


def _materializations(instance: dg.DagsterInstance, asked: dg.AssetRecordsFilter) -> Iterator[dg.EventLogRecord]:
    cursor: str | None = None
    while True:
        page = instance.fetch_materializations(asked, limit=_PAGE, cursor=cursor)
        yield from page.records
        if not page.has_more:
            return
        cursor = page.cursor


def _empty_failure(instance: dg.DagsterInstance, run_id: str) -> bool:
    """Empty the errors of a run, delete what it printed, and tell whether there was anything."""
    cursor: str | None = None
    found = False
    while True:
        page = instance.get_records_for_run(run_id, cursor=cursor, limit=_PAGE)
        for record in page.records:
            entry = record.event_log_entry
            if entry.asset_materialization is None and (without := _emptied(entry)):
                _storage(instance).update_event_log_record(record.storage_id, without)
                found = True
        if not page.has_more:
            break
        cursor = page.cursor
    instance.compute_log_manager.delete_logs(prefix=[run_id])
    return found


def _emptied(entry: dg.EventLogEntry) -> dg.EventLogEntry | None:
    """Return an event without content, or None where it has none."""
    document = json.loads(dg.serialize_value(entry))
    without = _without_content(document)
    return None if without == document else dg.deserialize_value(json.dumps(without), dg.EventLogEntry)


def _without_content(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_content(item) for item in value]
    if not isinstance(value, dict):
        return value
    match value.get("__class__"):
        case "SerializableErrorInfo":
            # Its cause stays, emptied: where there is one, Dagster looks for it.
            others = {name: _without_content(value.get(name)) for name in ("cause", "context")}
            return value | {"message": f"{_ERASED}\n", "stack": []} | others
        case "UserFailureData":
            return value | {"description": _ERASED, "metadata_entries": []}
        case "AssetMaterialization":
            kept = [entry for entry in value["metadata_entries"] if entry["label"] not in CONTENT]
            return value | {"metadata_entries": kept}
        case _:
            return {key: _without_content(item) for key, item in value.items()}


def _runs(instance: dg.DagsterInstance, statuses: Sequence[dg.DagsterRunStatus]) -> Iterator[dg.DagsterRun]:
    cursor: str | None = None
    while page := instance.get_runs(dg.RunsFilter(statuses=list(statuses)), cursor=cursor, limit=_PAGE):
        yield from page
        cursor = page[-1].run_id


def _works_on(run: dg.DagsterRun, windows: Mapping[str, Sequence[str]]) -> bool:
    """Tell whether a run works on one of these windows; one that does not say on which may."""
    single = run.tags.get("dagster/partition")
    first, last = run.tags.get(RANGE_START, single), run.tags.get(RANGE_END, single)
    return any(
        first is None or last is None or first <= key <= last
        for source, keys in windows.items()
        if _is_of(run, source)
        for key in keys
    )


def _is_of(run: dg.DagsterRun, source: str) -> bool:
    own = run.tags.get("stepacc/source")
    return own == source if own else any(key.path[-2:-1] == [source] for key in run.asset_selection or ())


def _storage(instance: dg.DagsterInstance) -> PostgresEventLogStorage:
    storage = instance.event_log_storage
    assert isinstance(storage, PostgresEventLogStorage)  # noqa: S101 (`can_be_emptied`)
    return storage
