"""How long it takes to score a day of traces, beside copying the rows that are read out and those that are written in.

Run `python -m benchmarks.scoring [--traces N] [--url URL] [--print]`. In one run, on one server, over one day:

- floor: binary COPY out of the canonical spans in the order of the traces, to nowhere; then COPY of the scores and
  their metadata, as they were written, into unlogged tables of the same columns without indexes;
- in process: the scoring of the day by a plain call;
- by a run: the same by the scoring asset in a Dagster run of the process, with Dagster's own tables on the same server.

Each measurement has a process of its own, so that its peak of memory is its own. Trajectories repeat as in production:
a thousand traces are ingested, and their canonical rows are written again under other ids. It judges nothing.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa

from benchmarks.ingest import SOURCE, WINDOW, Measured, alone, database, engine_of, ingest, land, run, score
from benchmarks.measure import circumstances, table, write_part
from benchmarks.sample_spans import SPANS_PER_TRACE
from stepacc_dagster.evaluators import evaluator_of
from stepacc_dagster.local.evaluation import LocalEvaluation
from stepacc_dagster.local.instance import local_instance
from stepacc_dagster.storage.copy import driver_connection

_SEED = 1_000
"""Traces that are ingested; the others repeat them."""
_BLOCK = 1 << 20
_READ = """
    COPY (
        SELECT span.* FROM stepacc.traces trace JOIN stepacc.spans span USING (source, trace_id)
        ORDER BY trace.trace_id, span.position
    ) TO STDOUT (FORMAT BINARY)
"""
_WRITTEN = ("scores", "score_metadata")


def main() -> None:
    """Prepare a day, measure, and write or print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=int, default=100_000, help="traces of the day (default: 100000)")
    parser.add_argument("--url", help="a PostgreSQL server whose user may create databases; default: a throwaway one")
    parser.add_argument("--print", action="store_true", help="print the part of the page instead of writing it")
    given = parser.parse_args()
    copies = max(1, given.traces // _SEED)
    with database(given.url) as url:
        land(url, _SEED * SPANS_PER_TRACE)
        ingest(url)
        repeat(url, copies)
        found = measured(url)
    text = shown(found, copies * _SEED)
    where = circumstances(
        f"python -m benchmarks.scoring --traces {given.traces}", ["dagster", "psycopg", "sqlalchemy"], cpu=False
    )
    if given.print:
        print(f"{where}\n\n{text}")
    else:
        write_part("scoring", f"{where}\n\n{text}")


def repeat(url: str, copies: int) -> None:
    """Write the canonical rows again under other ids, and leave the tables as autovacuum would."""
    for name in ("traces", "spans"):
        with engine_of(url) as engine, engine.connect() as connection:
            columns = [column["name"] for column in sa.inspect(connection).get_columns(name, schema="stepacc")]
        taken = ", ".join("trace_id || '-' || copy" if column == "trace_id" else column for column in columns)
        run(
            url,
            f"INSERT INTO stepacc.{name} ({', '.join(columns)}) SELECT {taken} FROM stepacc.{name}, "  # noqa: S608 (names of this module)
            f"generate_series(2, {copies}) AS copy",
        )
    run(url, "VACUUM ANALYZE stepacc.traces", "VACUUM ANALYZE stepacc.spans")


def measured(url: str) -> dict[str, Measured]:
    """Score the day in two ways, and copy what that reads and writes."""
    found = {"scoring in process": alone(score, url)}
    files = [Path(folder) / name for folder in [tempfile.mkdtemp()] for name in _WRITTEN]
    found["COPY out of what is read"] = alone(copy_out, url)
    found["COPY in of what is written"] = alone(copy_in, url, files)
    run(url, *(f"TRUNCATE stepacc.{name} CASCADE" for name in ("scores", "window_scores")))
    found["scoring by a Dagster run"] = alone(score_by_run, url)
    for file in files:
        file.unlink()
    files[0].parent.rmdir()
    return found


def copy_out(url: str) -> float:
    """COPY the canonical spans out to nowhere."""
    run(url, "CHECKPOINT")
    start = time.perf_counter()
    for _ in _blocks(url, _READ):
        pass
    return time.perf_counter() - start


def copy_in(url: str, files: list[Path]) -> float:
    """COPY the scores, from files, into unlogged tables without indexes."""
    for name, file in zip(_WRITTEN, files, strict=True):
        run(url, f"CREATE UNLOGGED TABLE plain_{name} (LIKE stepacc.{name})")
        with file.open("wb") as written:
            written.writelines(_blocks(url, f"COPY stepacc.{name} TO STDOUT (FORMAT BINARY)"))
    run(url, "CHECKPOINT")
    seconds = 0.0
    for name, file in zip(_WRITTEN, files, strict=True):
        with engine_of(url) as engine, engine.begin() as connection, file.open("rb") as kept:
            start = time.perf_counter()
            with (
                driver_connection(connection).cursor() as cursor,
                cursor.copy(f"COPY plain_{name} FROM STDIN (FORMAT BINARY)".encode()) as copy,
            ):
                while block := kept.read(_BLOCK):
                    copy.write(block)
            connection.commit()
            seconds += time.perf_counter() - start
    return seconds


def _blocks(url: str, statement: str) -> Iterator[bytes | bytearray | memoryview]:
    with (
        engine_of(url) as engine,
        engine.connect() as connection,
        driver_connection(connection).cursor() as cursor,
        cursor.copy(statement.encode()) as copy,
    ):
        yield from copy


def score_by_run(url: str) -> float:
    """Score the day by the asset, in a Dagster run."""
    run(url, "CHECKPOINT")
    os.environ["STEPACC_DATABASE_URL"] = url
    with tempfile.TemporaryDirectory() as home, engine_of(url) as engine, local_instance(Path(home), url) as instance:
        evaluation = LocalEvaluation(SOURCE, instance, engine)
        start = time.perf_counter()
        [outcome] = evaluation.score([WINDOW.key])
        seconds = time.perf_counter() - start
    if not outcome.success:
        raise RuntimeError(outcome.error)
    return seconds


def shown(found: dict[str, Measured], traces: int) -> str:
    """Return the table."""
    floor = sum(found[name].seconds for name in ("COPY out of what is read", "COPY in of what is written"))
    lines = [
        [name, f"{each.seconds:.1f} s", f"{each.seconds / floor:.2f}", f"{each.peak:.0f} MiB"]
        for name, each in sorted(found.items())
    ]
    metric = evaluator_of(SOURCE)
    return (
        f"One day of {traces:,} traces of {SPANS_PER_TRACE} spans, scored by {metric.name} "
        f"{metric.metric.manifest.version}. The floor is both COPYs together: {floor:.1f} s.\n\n"
        + table(["measurement", "time", "times the floor", "peak memory"], lines)
    )


if __name__ == "__main__":
    main()
