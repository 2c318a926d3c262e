"""stepacc's own table of raw spans, filled by `stepacc import traces`."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import sqlalchemy as sa

from stepacc_core.model import RawSpan
from stepacc_dagster.storage.annotations import AnnotationEntry
from stepacc_dagster.storage.arrivals import changed_windows
from stepacc_dagster.storage.raw_spans import read_window_spans
from stepacc_dagster.stores import cursors
from stepacc_dagster.stores.base import Changes
from stepacc_dagster.stores.sql import read_only
from stepacc_dagster.windows import Window, WindowKind

_KIND = "transactions"


@dataclass(frozen=True, slots=True)
class OtelSpansReader:
    """A connection to the table."""

    connection: sa.Connection
    source: str

    def traces(self, window: Window) -> Iterator[tuple[str, list[RawSpan]]]:
        """Yield, trace by trace, all spans of the traces that start in a window."""
        return read_window_spans(self.connection, self.source, window)

    def changes(self, cursor: str | None, kind: WindowKind) -> Changes:
        """Return the windows changed since a cursor, which holds a snapshot."""
        before = cursors.content(cursor, _KIND)
        arrivals = changed_windows(self.connection, self.source, kind, seen=before["seen"] if before else None)
        return Changes(arrivals.windows, cursors.written({"by": _KIND, "seen": arrivals.seen}))

    def expectations(self) -> Iterator[AnnotationEntry]:
        """Yield nothing: the annotations of this table are in `stepacc.annotations` already."""
        yield from ()


@dataclass(frozen=True, slots=True)
class OtelSpansStore:
    """The spans of one source in `stepacc.otel_spans`."""

    engine: sa.Engine
    source: str

    @contextmanager
    def open(self) -> Iterator[OtelSpansReader]:
        """Open the table for reading."""
        with read_only(self.engine) as connection:
            yield OtelSpansReader(connection, self.source)
