"""Dagster partitions of a source: time windows by the start of a trace, UTC."""

from collections.abc import Collection

import dagster as dg

from stepacc_dagster.sources import Source


def partitions_of(source: Source) -> dg.TimeWindowPartitionsDefinition:
    """Return the partitions that all assets of a source share, so that they map one to one."""
    if source.partitions == "hourly":
        return dg.HourlyPartitionsDefinition(f"{source.start_date}-00:00", end_offset=source.end_offset)
    return dg.DailyPartitionsDefinition(source.start_date, end_offset=source.end_offset)


def in_words(keys: Collection[str]) -> str:
    """Return partition keys of one source, at least one, as words: how many, the first and the last."""
    if len(keys) == 1:
        return f"partition {min(keys)}"
    return f"{len(keys)} partitions from {min(keys)} to {max(keys)}"
