"""Ingest: the raw spans of one window become canonical traces, in one transaction."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from stepacc_core.fingerprint import fingerprint
from stepacc_core.model import CanonicalTrace, RawSpan
from stepacc_core.reading import ReadSettings, canonicalise
from stepacc_core.redaction import Redactor
from stepacc_dagster.failures import is_transient, kept, sentence
from stepacc_dagster.redaction.doors import door_redactor
from stepacc_dagster.redaction.entries import redacted_entry
from stepacc_dagster.sources import Source, reader_version
from stepacc_dagster.storage.canonical import Ingested, window_fingerprint, write_traces
from stepacc_dagster.storage.copy import closed
from stepacc_dagster.storage.erasure import erase_at_door
from stepacc_dagster.storage.erasure_doors import IngestDoor
from stepacc_dagster.storage.expectations import take_over_expectations
from stepacc_dagster.storage.feeds import follow, follow_annotations
from stepacc_dagster.storage.work import change_of, note_ingest_failed, note_ingested
from stepacc_dagster.stores.base import TraceStore
from stepacc_dagster.windows import Window


@dataclass(frozen=True, slots=True)
class WindowIngest:
    """What the ingest of a window found and wrote.

    Attributes:
        ingested: what became of the window.
        raw_spans: spans the store has of the traces that start in it.
        content: fingerprint of the canonical content it has now.
        first: whether it was never ingested before.
    """

    ingested: Ingested
    raw_spans: int
    content: str
    first: bool

    @property
    def news(self) -> bool:
        """Whether the store had anything else than at the last ingest."""
        return self.first or self.ingested.changed or self.ingested.gone > 0


def ingest_window(engine: sa.Engine, store: TraceStore, source: Source, window: Window) -> WindowIngest:
    """Replace the canonical traces of a window by what the store holds of the traces that start in it.

    Running it again, or twice at once, gives the same rows. Spans are read and written trace by trace, so memory does
    not grow with the window. What belongs to an erased trace, session or user is left out, and where something of it
    was stored before, that is erased. What fails is noted with the window. Secrets and personal data are redacted, but
    for spans in stepacc's own table, which were redacted as they landed.

    Raises:
        RedactionKeyError: there is no key to redact with, or it is not the one of the database.
        sqlalchemy.exc.DBAPIError: a database failed; nothing of the window was changed.
    """
    with engine.connect() as connection:
        change = change_of(connection, source.name, window.key)  # before the store is read: see storage.work
    try:
        return _ingest_admitted(engine, store, source, window, change)
    except Exception as error:
        with kept(error), engine.begin() as connection:
            note_ingest_failed(
                connection,
                source.name,
                window.key,
                change=change,
                reader_version=reader_version(source),
                problem=sentence(error),
                final=not is_transient(error),
            )
        raise


def observe(engine: sa.Engine, store: TraceStore, source: Source) -> tuple[str, ...]:
    """Ask the store what changed since it was last asked, and note it with the windows.

    Expectations that the store holds are taken over as annotations, and annotations are followed whatever becomes of
    the store.

    Returns:
        Keys of the windows whose traces changed, in order.
    """
    reads = fingerprint([repr(source.store), source.partitions])
    with engine.begin() as connection:
        follow_annotations(connection, source.name)
    with store.open() as reader:
        expectations = list(reader.expectations())
    if expectations:
        redactor = _redactor(engine, source)
        expectations = [redacted_entry(entry, redactor) for entry in expectations]
        with engine.begin() as connection:
            take_over_expectations(connection, source.name, expectations)
        with engine.begin() as connection:
            follow_annotations(connection, source.name)
    with engine.begin() as connection, store.open() as reader:
        return follow(connection, source.name, reader, source.partitions, reads=reads)


def _redactor(engine: sa.Engine, source: Source) -> Redactor | None:
    """Return what redacts what comes from the source's store."""
    return None if source.store.kind == "otel_spans" else door_redactor(engine, source.redaction)


class _StillStoredError(Exception):
    """Traces that belong to an erased session or user turned up, and something of them is stored."""

    def __init__(self, traces: Mapping[str, int]) -> None:
        super().__init__(traces)
        self.traces = traces


def _ingest_admitted(engine: sa.Engine, store: TraceStore, source: Source, window: Window, change: int) -> WindowIngest:
    try:
        return _ingest(engine, store, source, window, change)
    except _StillStoredError as found:
        # Ingests share the lock that an erasure needs alone, so this one is undone, and begun again after it.
        with engine.begin() as connection:
            erase_at_door(connection, "ingest", source.name, found.traces)
    return _ingest_admitted(engine, store, source, window, change)


def _ingest(engine: sa.Engine, store: TraceStore, source: Source, window: Window, change: int) -> WindowIngest:
    counted, door, redactor = _Counted(), IngestDoor(engine, source.name), _redactor(engine, source)
    with engine.begin() as connection, store.open() as reader, closed(reader.traces(window)) as traces:
        admitted = (
            (ident, [redactor.span(span) for span in spans] if redactor else spans)
            for ident, spans in traces
            if door.admits(ident, spans)
        )
        canonical = _canonical(admitted, source.read_settings, counted)
        ingested = write_traces(connection, source.name, window, canonical)
        if still_stored := door.still_stored(connection):
            raise _StillStoredError(still_stored)
        first = note_ingested(
            connection,
            source.name,
            window.key,
            change=change,
            reader_version=reader_version(source),
            traces=ingested.traces,
            changed=[*ingested.stale_windows, *([window.key] if ingested.changed else [])],
        )
        content = window_fingerprint(connection, source.name, window)
        return WindowIngest(ingested, counted.spans, content, first)


@dataclass(slots=True)
class _Counted:
    spans: int = 0


def _canonical(
    traces: Iterator[tuple[str, list[RawSpan]]], settings: ReadSettings, counted: _Counted
) -> Iterator[CanonicalTrace]:
    for trace_id, spans in traces:
        counted.spans += len(spans)
        yield canonicalise(trace_id, spans, settings)
