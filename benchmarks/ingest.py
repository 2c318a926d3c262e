"""How long an ingest takes, beside copying the raw spans out of Postgres and in again, and how much memory it needs.

Run `python -m benchmarks.ingest [--spans N] [--url URL]`. In one run, on one server:

- yardstick: binary COPY out of `stepacc.otel_spans` to nowhere, then COPY of the same bytes into an unlogged table of
  the same columns without indexes;
- ingest: one window of the same spans, from nothing, then once more without any change;
- scoring: the same window against annotations.

Each measurement has a process of its own, so that its peak of memory is its own. A server that `--url` names gets a
database of the benchmark's own, which is dropped at the end. It prints one run and judges nothing.
"""

import argparse
import multiprocessing
import resource
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import sqlalchemy as sa

from benchmarks.sample_spans import SPANS_PER_TRACE, TASKS, TOOLS, sample_spans
from stepacc_core.redaction import Redactor
from stepacc_dagster.database import connect_engine, normalise_url
from stepacc_dagster.evaluators import evaluator_of
from stepacc_dagster.ingest import ingest_window
from stepacc_dagster.local.postgres import throwaway_postgres
from stepacc_dagster.scoring import score_window
from stepacc_dagster.sources import Source
from stepacc_dagster.storage.annotations import AnnotationEntry, add_annotations
from stepacc_dagster.storage.copy import driver_connection
from stepacc_dagster.storage.raw_spans import land_spans
from stepacc_dagster.storage.schema import upgrade
from stepacc_dagster.stores.otel_spans import OtelSpansStore
from stepacc_dagster.windows import window_of

SOURCE = Source("benchmark", "2026-11-30")
WINDOW = window_of("2026-11-30", "daily")
_BLOCK = 1 << 20
_LAST_START = 3_600_000_000_000
"""How long before the end of the window the last trace starts, so that none reaches into the next."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds that something took, and the peak of its process's memory in MiB."""

    seconds: float
    peak: float


def main() -> None:
    """Land spans, measure, and print one line a measurement."""
    parser = argparse.ArgumentParser(description="Time an ingest beside plain COPY of the same raw spans.")
    parser.add_argument("--spans", type=int, default=200_000, help="raw spans to land (default: 200000)")
    parser.add_argument("--url", help="a PostgreSQL server whose user may create databases; default: a throwaway one")
    given = parser.parse_args()
    spans = -(-given.spans // SPANS_PER_TRACE) * SPANS_PER_TRACE
    print(f"{spans:,} raw spans in traces of {SPANS_PER_TRACE}")
    print(f"{'measurement':32} {'seconds':>9} {'spans/s':>10} {'peak MiB':>9}")
    with ExitStack() as stack:
        url = stack.enter_context(database(given.url))
        show("landing", spans, alone(land, url, spans))
        out, into = alone(copy_out, url), alone(copy_in, url)
        show("COPY out of otel_spans", spans, out)
        show("COPY into an unlogged copy", spans, into)
        first = alone(ingest, url)
        show("ingest", spans, first)
        show("ingest again, nothing changed", spans, alone(ingest, url))
        show("scoring", spans, alone(score, url))
        print(f"ingest takes {first.seconds / (out.seconds + into.seconds):.2f} times both COPYs together")


def show(name: str, spans: int, measured: Measured) -> None:
    """Print one measurement."""
    rate = spans / measured.seconds
    print(f"{name:32} {measured.seconds:9.1f} {rate:10,.0f} {measured.peak:9.0f}", flush=True)


def alone(measure: Callable[..., float], *args: object) -> Measured:
    """Run a measurement in a new process."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_measured, measure, *args).result()


def _measured(measure: Callable[..., float], *args: object) -> Measured:
    seconds = measure(*args)
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, Linux KiB
    return Measured(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20)


@contextmanager
def database(url: str | None) -> Iterator[str]:
    """Give the URL of a new database with the tables of stepacc."""
    with ExitStack() as stack:
        server = url or stack.enter_context(throwaway_postgres()).url("postgres")
        name = f"stepacc_benchmark_{uuid.uuid4().hex}"
        run(server, f"CREATE DATABASE {name}")
        stack.callback(run, server, f"DROP DATABASE {name} WITH (FORCE)")
        own = sa.make_url(normalise_url(server)).set(database=name).render_as_string(hide_password=False)
        with engine_of(own) as engine:
            upgrade(engine)
        yield own


def run(url: str, *statements: str) -> None:
    """Run statements, each in a transaction of its own or in none."""
    with engine_of(url) as engine, engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for statement in statements:
            connection.execute(sa.text(statement))


@contextmanager
def engine_of(url: str) -> Iterator[sa.Engine]:
    """Give an engine of the plugin's own kind."""
    engine = connect_engine(normalise_url(url))
    try:
        yield engine
    finally:
        engine.dispose()


def land(url: str, count: int) -> float:
    """Land the spans as at every door, redacted, and leave the table as autovacuum would."""
    with engine_of(url) as engine:
        start = time.perf_counter()
        with engine.begin() as connection:
            redactor = Redactor(SOURCE.redaction, b"a key of the benchmark, of no use")
            land_spans(connection, SOURCE.name, sample_spans(count, WINDOW.start_ns, _length()), redactor)
        seconds = time.perf_counter() - start
        expected = [list(TOOLS)]
        with engine.begin() as connection:
            for task in range(TASKS):
                entry = AnnotationEntry(SOURCE.name, "task", f"task-{task}", expected, "trace", author="benchmark")
                add_annotations(connection, [entry])
    run(url, "VACUUM ANALYZE stepacc.otel_spans")
    return seconds


def _length() -> int:
    return WINDOW.end_ns - WINDOW.start_ns - _LAST_START


def copy_out(url: str) -> float:
    """COPY the raw spans out to nowhere."""
    run(url, "CHECKPOINT")
    start = time.perf_counter()
    for _ in _blocks(url):
        pass
    return time.perf_counter() - start


def _blocks(url: str) -> Iterator[bytes | bytearray | memoryview]:
    with engine_of(url) as engine, engine.connect() as connection:
        statement = "COPY stepacc.otel_spans TO STDOUT (FORMAT BINARY)"
        with driver_connection(connection).cursor() as cursor, cursor.copy(statement) as copy:
            yield from copy


def copy_in(url: str) -> float:
    """COPY the same bytes, from a file, into an unlogged table without indexes."""
    run(url, "CREATE UNLOGGED TABLE plain_copy (LIKE stepacc.otel_spans)")
    with tempfile.TemporaryFile() as file:
        file.writelines(_blocks(url))
        file.seek(0)
        run(url, "CHECKPOINT")
        with engine_of(url) as engine, engine.begin() as connection:
            start = time.perf_counter()
            statement = "COPY plain_copy FROM STDIN (FORMAT BINARY)"
            with driver_connection(connection).cursor() as cursor, cursor.copy(statement) as copy:
                while block := file.read(_BLOCK):
                    copy.write(block)
            seconds = time.perf_counter() - start
    run(url, "DROP TABLE plain_copy")
    return seconds


def ingest(url: str) -> float:
    """Ingest the window."""
    run(url, "CHECKPOINT")
    with engine_of(url) as engine:
        start = time.perf_counter()
        ingest_window(engine, OtelSpansStore(engine, SOURCE.name), SOURCE, WINDOW)
        return time.perf_counter() - start


def score(url: str) -> float:
    """Score the window's traces."""
    run(url, "CHECKPOINT", "ANALYZE stepacc.traces", "ANALYZE stepacc.spans")
    with engine_of(url) as engine:
        start = time.perf_counter()
        score_window(engine, SOURCE, evaluator_of(SOURCE), WINDOW, "benchmark")
        return time.perf_counter() - start


if __name__ == "__main__":
    main()
