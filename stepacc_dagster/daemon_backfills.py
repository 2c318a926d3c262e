"""Backfills by Dagster's daemon: asked for from here, run by its queue, shown in its UI.

The few imports of Dagster's private modules that this takes stand here alone.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

import dagster as dg
from dagster._core.definitions.selector import (
    PartitionRangeSelector,
    PartitionsByAssetSelector,
    PartitionsSelector,
)
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill
from dagster._core.utils import make_new_backfill_id

from stepacc_dagster.backfills import Planned
from stepacc_dagster.catalog import SourceKeys
from stepacc_dagster.requests import neighbours

_DAEMON = "BACKFILL"
_BEAT_SECONDS = 120
"""The daemon gives a sign of life every thirty seconds."""
_GOING_ON = {BulkActionStatus.REQUESTED, BulkActionStatus.CANCELING, BulkActionStatus.FAILING}


def daemon_is_alive(instance: dg.DagsterInstance) -> bool:
    """Whether a daemon that takes up backfills gave a sign of life lately; none has given one that is still to come."""
    beat = instance.get_daemon_heartbeats().get(_DAEMON)
    return beat is not None and abs(time.time() - beat.timestamp) < _BEAT_SECONDS


def launch(  # noqa: PLR0913 (what makes a backfill)
    instance: dg.DagsterInstance,
    definitions: dg.Definitions,
    keys: SourceKeys,
    planned: Sequence[Planned],
    partitions: Sequence[str],
    *,
    tags: Mapping[str, str],
    title: str,
) -> str:
    """Ask the daemon for a backfill, and return its id.

    Args:
        instance: whose daemon it is.
        definitions: those of the source, as its code location has them.
        keys: the assets of the source.
        planned: the windows; canonical traces are made anew for those that are to be ingested.
        partitions: all partitions of the source, in order.
        tags: of each run.
        title: as the UI shows it.
    """
    ingested = _ranges([window.key for window in planned if window.ingest], partitions)
    selected = {keys.canonical_traces: ingested}
    for metric in dict.fromkeys(metric for window in planned for metric in window.metrics):
        scored = _ranges([window.key for window in planned if metric in window.metrics], partitions)
        selected |= dict.fromkeys(keys.of(metric).made, scored)
    backfill = PartitionBackfill.from_partitions_by_assets(
        backfill_id=make_new_backfill_id(),
        asset_graph=definitions.resolve_asset_graph(),
        backfill_timestamp=time.time(),
        tags=dict(tags),
        dynamic_partitions_store=instance,
        partitions_by_assets=[
            PartitionsByAssetSelector(asset_key=key, partitions=PartitionsSelector(ranges))
            for key, ranges in selected.items()
            if ranges
        ]
        + [PartitionsByAssetSelector(asset_key=key) for key in keys.derived],
        title=title,
        description=None,
        run_config=None,
    )
    instance.add_backfill(backfill)
    return str(backfill.backfill_id)


def _ranges(chosen: Iterable[str], partitions: Sequence[str]) -> list[PartitionRangeSelector]:
    return [PartitionRangeSelector(start=run[0], end=run[-1]) for run in neighbours(chosen, partitions)]


def states(instance: dg.DagsterInstance, backfill_id: str, *, every_seconds: float = 1.0) -> Iterator[str]:
    """Yield the status of a backfill again and again, until it has come to its end; that one is the last."""
    while True:
        backfill = instance.get_backfill(backfill_id)
        status = backfill.status if backfill else BulkActionStatus.CANCELED
        yield status.value
        if status not in _GOING_ON:
            return
        time.sleep(every_seconds)
