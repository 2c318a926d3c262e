"""The tags of runs that somebody launched on the assets themselves, outside of the job and the sensor of the source.

Dagster gives such a run none of ours, and filters by source or metric would not find it.
"""

from collections.abc import Iterable, Mapping

import dagster as dg

from stepacc_dagster.automation import find_tags
from stepacc_dagster.catalog import SourceKeys
from stepacc_dagster.sources import Source

_TRIGGERS = {
    "dagster/backfill": "backfill",
    "dagster/schedule_name": "schedule",
    "dagster/sensor_name": "sensor",
    "dagster/from_automation_condition": "sensor",
}
"""Tags by which Dagster says what launched a run."""


def tag_run(context: dg.AssetExecutionContext, source: Source, keys: SourceKeys) -> None:
    """Give the run in which an asset begins to execute the tags that it lacks; what it has stays."""
    run = context.run
    missing = missing_tags(run.tags, run.asset_selection, source, keys)
    if missing:
        context.instance.add_run_tags(run.run_id, missing)


def missing_tags(
    tags: Mapping[str, str], selection: Iterable[dg.AssetKey] | None, source: Source, keys: SourceKeys
) -> dict[str, str]:
    """Return the tags that a run lacks.

    Args:
        tags: those it has.
        selection: the assets that it makes; None: all.
        source: the source of the asset that begins; a run over assets of several is that of the first that begins.
        keys: the asset keys of the source.
    """
    made = set(selection or ())
    scored = [each for each in keys.evaluators if keys.of(each.name).scores in made]
    trigger = next((trigger for tag, trigger in _TRIGGERS.items() if tag in tags), "manual")
    found = find_tags(source, scored or keys.evaluators, trigger=trigger)
    return {name: value for name, value in found.items() if name not in tags}
