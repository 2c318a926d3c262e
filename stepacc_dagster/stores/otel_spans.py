"""stepacc's own table of raw spans, filled by `stepacc import traces`."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import sqlalchemy as sa

from stepacc_core.model import RawSpan
from stepacc_dagster.storage.raw_spans import read_window_spans
from stepacc_dagster.windows import Window


@dataclass(frozen=True, slots=True)
class OtelSpansReader:
    """A connection to the table."""

    connection: sa.Connection
    source: str

    def traces(self, window: Window) -> Iterator[tuple[str, list[RawSpan]]]:
        """Yield, trace by trace, all spans of the traces that start in a window."""
        return read_window_spans(self.connection, self.source, window)


@dataclass(frozen=True, slots=True)
class OtelSpansStore:
    """The spans of one source in `stepacc.otel_spans`."""

    engine: sa.Engine
    source: str
    table_name: str = "stepacc.otel_spans"

    @contextmanager
    def open(self) -> Iterator[OtelSpansReader]:
        """Open the table for reading."""
        with self.engine.connect() as connection:
            yield OtelSpansReader(connection, self.source)
