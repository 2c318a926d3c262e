"""What stepacc asks of a trace store."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from stepacc_core.model import RawSpan
from stepacc_dagster.windows import Window


class TraceReader(Protocol):
    """An open, read-only view of a store."""

    def traces(self, window: Window) -> Iterator[tuple[str, list[RawSpan]]]:
        """Yield, trace by trace, all spans of the traces that start in a window, however late they arrived."""


class TraceStore(Protocol):
    """A place where agents leave spans."""

    @property
    def table_name(self) -> str:
        """The table the spans are read from, as Dagster's catalog shows it."""

    def open(self) -> AbstractContextManager[TraceReader]:
        """Open the store for reading; nothing is ever written to it."""
