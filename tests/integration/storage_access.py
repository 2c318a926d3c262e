"""What the storage tests do with a database: write, read back, and do both at the same time."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from stepacc_core.model import CanonicalPartition, CanonicalTrace
from stepacc_dagster.storage.canonical import Ingested, write_traces
from stepacc_dagster.storage.partitions import load_session_partitions, load_trace_partitions
from stepacc_dagster.storage.settling import Settling
from stepacc_dagster.windows import Window
from tests.integration.storage_samples import SOURCE

SETTLING = Settling(datetime.now(UTC), timedelta(minutes=10), timedelta(hours=24))
"""By which all traces of the samples have settled."""


def write_window(engine: sa.Engine, window: Window, *given: CanonicalTrace) -> Ingested:
    """Write the traces of a window in a transaction of its own."""
    with engine.begin() as conn:
        return write_traces(conn, SOURCE, window, given)


def trace_partitions(engine: sa.Engine, window: Window) -> list[CanonicalPartition]:
    """Return the trace partitions of a window."""
    with engine.connect() as conn:
        return list(load_trace_partitions(conn, SOURCE, window, SETTLING))


def session_partitions(engine: sa.Engine, window: Window) -> list[CanonicalPartition]:
    """Return the session partitions of a window."""
    with engine.connect() as conn:
        return list(load_session_partitions(conn, SOURCE, window, SETTLING))


def rows_by(engine: sa.Engine, table: sa.Table, key: str) -> dict[str, Any]:
    """Return the rows of a table by one of its columns."""
    with engine.connect() as conn:
        return {getattr(row, key): row for row in conn.execute(sa.select(table))}


def content(engine: sa.Engine) -> list[Any]:
    """Return every row of the canonical tables with its physical place, which an update would change."""
    with engine.connect() as conn:
        return [
            sorted(tuple(row) for row in conn.execute(sa.text(f"SELECT ctid::text, t::text FROM stepacc.{name} t")))  # noqa: S608
            for name in ("traces", "spans", "sessions")
        ]


def together(*writers: Callable[[], Any]) -> list[Any]:
    """Run writers at the same time and return what they returned; an error in one is raised."""
    barrier = threading.Barrier(len(writers))
    results: list[Any] = [None] * len(writers)

    def run(place: int) -> None:
        barrier.wait()
        try:
            results[place] = writers[place]()
        except Exception as error:  # noqa: BLE001 (handed to the test)
            results[place] = error

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(writers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results
