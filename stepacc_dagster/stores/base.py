"""What stepacc asks of a trace store."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from stepacc_core.model import RawSpan
from stepacc_dagster.storage.annotations import AnnotationEntry
from stepacc_dagster.windows import Window, WindowKind


@dataclass(frozen=True, slots=True)
class Changes:
    """What happened in a store since somebody last looked.

    Attributes:
        windows: keys of the windows in which traces with new or changed spans start, in order, each once.
        cursor: what to ask with next time; text that only the store understands.
    """

    windows: tuple[str, ...]
    cursor: str


class TraceReader(Protocol):
    """An open, read-only view of a store."""

    def traces(self, window: Window) -> Iterator[tuple[str, list[RawSpan]]]:
        """Yield, trace by trace, all spans of the traces that start in a window, however late they arrived.

        Nothing is read before the first trace is asked for, and memory holds one trace at a time. The reader is busy
        until the iterator is exhausted or closed.
        """

    def changes(self, cursor: str | None, kind: WindowKind) -> Changes:
        """Return the windows that changed since a cursor, late spans included.

        None, or a cursor that this store did not make, means from the beginning: every window that has traces. A trace
        that turns out to start earlier is told under its new window. Each change is told at least once; telling one
        again costs only the work.
        """

    def expectations(self) -> Iterator[AnnotationEntry]:
        """Yield what people expect of traces, at most one entry a trace, where the store has such a thing."""


class TraceStore(Protocol):
    """A place where agents leave spans."""

    def open(self) -> AbstractContextManager[TraceReader]:
        """Open the store for reading; nothing is ever written to it.

        Raises:
            StoreSchemaError: a table or column that has to be there is not.
            UnknownProjectError: a project that the settings name is not there.
        """
