"""Dagster partitions of a source: time windows by the start of a trace, UTC."""

import dagster as dg

from stepacc_dagster.sources import Source


def partitions_of(source: Source) -> dg.TimeWindowPartitionsDefinition:
    """Return the partitions that all assets of a source share, so that they map one to one."""
    if source.partitions == "hourly":
        return dg.HourlyPartitionsDefinition(f"{source.start_date}-00:00", end_offset=source.end_offset)
    return dg.DailyPartitionsDefinition(source.start_date, end_offset=source.end_offset)
