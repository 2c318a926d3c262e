"""Ingest: the raw spans of one window become canonical traces, in one transaction."""

from collections.abc import Iterator

import sqlalchemy as sa

from stepacc_core.model import CanonicalTrace, RawSpan
from stepacc_core.reading import ReadSettings, canonicalise
from stepacc_dagster.sources import Source
from stepacc_dagster.storage.canonical import Ingested, window_fingerprint, write_traces
from stepacc_dagster.storage.copy import closed
from stepacc_dagster.storage.expectations import take_over_expectations
from stepacc_dagster.stores.base import TraceStore
from stepacc_dagster.windows import Window


def ingest_window(engine: sa.Engine, store: TraceStore, source: Source, window: Window) -> tuple[Ingested, str]:
    """Replace the canonical traces of a window by what the store holds of the traces that start in it.

    Running it again, or twice at once, gives the same rows. Spans are read and written trace by trace, so memory does
    not grow with the window.

    Returns:
        What became of the window, and a fingerprint of the content it has now.

    Raises:
        sqlalchemy.exc.DBAPIError: a database failed; nothing of the window was changed.
    """
    with engine.begin() as connection, store.open() as reader, closed(reader.traces(window)) as traces:
        ingested = write_traces(connection, source.name, window, _canonical(traces, source.read_settings))
        return ingested, window_fingerprint(connection, source.name, window)


def take_over(engine: sa.Engine, store: TraceStore, source: Source) -> int:
    """Take over the expectations that a store holds as annotations, and return how many were new."""
    with store.open() as reader:
        expectations = list(reader.expectations())
    if not expectations:
        return 0
    with engine.begin() as connection:
        return len(take_over_expectations(connection, source.name, expectations))


def _canonical(traces: Iterator[tuple[str, list[RawSpan]]], settings: ReadSettings) -> Iterator[CanonicalTrace]:
    for trace_id, spans in traces:
        yield canonicalise(trace_id, spans, settings)
