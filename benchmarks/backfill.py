"""How much of a backfill's time is not scoring: 365 daily partitions, by hand, by a command, and by Dagster's daemon.

Run `python -m benchmarks.backfill [--days N] [--traces N] [--daemon] [--url URL] [--print]`. In one run, on one server,
over the same traces of one source:

- alone: each window ingested and scored by two plain calls, without Dagster; then, as after a new version of the metric
  or another config of it, scored once more;
- here: the same two by `stepacc backfill --how here`, Dagster runs of ten partitions in one process;
- by the daemon: the same two through Dagster's daemon and run queue (`--daemon`; it takes minutes), from asking for the
  backfill to its end.

The overhead is the share of a backfill's time beyond that of the same alone. A server that `--url` names gets databases
of the benchmark's own, which are dropped at the end. It writes its part of `docs/performance.md` and judges nothing.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path

import sqlalchemy as sa

from benchmarks.ingest import database, engine_of, run
from benchmarks.measure import circumstances, table, write_part
from benchmarks.sample_spans import SPANS_PER_TRACE, TASKS, TOOLS, sample_spans
from stepacc_dagster.evaluators import evaluator_of
from stepacc_dagster.ingest import ingest_window
from stepacc_dagster.scoring import score_window
from stepacc_dagster.sources import MetricChoice, Source
from stepacc_dagster.storage.annotations import AnnotationEntry, add_annotations
from stepacc_dagster.storage.raw_spans import land_spans
from stepacc_dagster.stores.otel_spans import OtelSpansStore
from stepacc_dagster.windows import Window, window_of

FIRST = date(2025, 1, 1)
NAME = "benchmark"
BEFORE, AFTER = "edit_distance", "strict_position"
WHAT = ("ingest and scoring", "scoring by another config")
_HOUR = 3_600_000_000_000
_WRITTEN = ("scores", "score_metadata", "spans", "traces", "sessions", "windows", "window_scores", "feeds")
_COMMAND = [sys.executable, "-c", "from stepacc_dagster.cli import main; main()"]
_STARTS_WITHIN = 120
# Every window, by the config that was scored last.
_SCORED = sa.text("""
    SELECT count(*) FROM stepacc.window_scores WHERE scored > 0 AND config_hash = (
        SELECT config_hash FROM stepacc.window_scores ORDER BY scored_at DESC LIMIT 1
    )
""")


@dataclass(frozen=True, slots=True)
class Backfill:
    """What is brought up to date: the windows, the source and where its settings lie."""

    windows: list[Window]
    source: Source
    home: Path
    url: str

    @property
    def environment(self) -> dict[str, str]:
        """The environment of commands over it."""
        return {**os.environ, "STEPACC_HOME": str(self.home), "STEPACC_DATABASE_URL": self.url}

    @property
    def options(self) -> list[str]:
        """The options that name its range."""
        return ["--from", self.windows[0].key, "--to", self.windows[-1].key]


def main() -> None:
    """Land traces, measure, and print one line a measurement."""
    parser = argparse.ArgumentParser(description="Time a backfill beside the plain work that it does.")
    parser.add_argument("--days", type=int, default=365, help="daily partitions (default: 365)")
    parser.add_argument("--traces", type=int, default=20, help="traces in each (default: 20)")
    parser.add_argument("--daemon", action="store_true", help="time Dagster's daemon too; it takes minutes")
    parser.add_argument("--url", help="a PostgreSQL server whose user may create databases; default: a throwaway one")
    parser.add_argument("--print", action="store_true", help="print the part of the page instead of writing it")
    given = parser.parse_args()
    windows = [window_of((FIRST + timedelta(days=n)).isoformat(), "daily") for n in range(given.days)]
    with database(given.url) as url, tempfile.TemporaryDirectory() as folder:
        work = Backfill(windows, Source(NAME, FIRST.isoformat()), Path(folder), url)
        prepare(work, given.traces)
        plain = by_hand(work)
        lines = [line(f"{what} alone", seconds, seconds, given.days) for what, seconds in zip(WHAT, plain, strict=True)]
        lines += by_commands(work, "here", plain)
        if given.daemon:
            with daemon(work):
                lines += by_commands(work, "daemon", plain)
    command = f"python -m benchmarks.backfill --days {given.days}{' --daemon' if given.daemon else ''}"
    where = circumstances(command, ["dagster", "dagster-postgres"], cpu=False)
    text = (
        f"{where}\n\n{given.days} daily partitions of {given.traces} traces of {SPANS_PER_TRACE} spans, ingested and "
        "scored, and then scored again by another config. The overhead is what is neither ingest nor scoring; the time "
        "of a command begins with its start.\n\n" + table(["measurement", "time", "a partition", "overhead"], lines)
    )
    if given.print:
        print(text)
    else:
        write_part("backfill", text)


def line(name: str, seconds: float, plain: float, days: int) -> list[str]:
    """Return the line of one measurement."""
    return [name, f"{seconds:.1f} s", f"{seconds / days:.3f} s", f"{max(0.0, 1 - plain / seconds):.0%}"]


def prepare(work: Backfill, traces: int) -> None:
    """Land the traces, annotate their tasks, and write the source's settings."""
    with engine_of(work.url) as engine:
        for window in work.windows:
            spans = sample_spans(traces * SPANS_PER_TRACE, window.start_ns, window.end_ns - window.start_ns - _HOUR)
            named = (replace(span, trace_id=f"{window.key} {span.trace_id}") for span in spans)
            with engine.begin() as connection:
                land_spans(connection, NAME, named)
        with engine.begin() as connection:
            entries = [
                AnnotationEntry(NAME, "task", f"task-{task}", list(TOOLS), "trace", author="benchmark")
                for task in range(TASKS)
            ]
            add_annotations(connection, entries)
    run(work.url, "VACUUM ANALYZE stepacc.otel_spans")
    configure(work, BEFORE)


def configure(work: Backfill, method: str) -> None:
    """Write the source's settings."""
    folder = work.home / "defs" / NAME
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "defs.yaml").write_text(
        "type: stepacc_dagster.StepAccuracyComponent\n"
        f"attributes: {{source: {NAME}, start_date: '{FIRST}', follow: {{enabled: false}}, "
        f"config: {{scoring_method: {method}}}}}\n"
    )


def by_hand(work: Backfill) -> tuple[float, float]:
    """Ingest and score each window by plain calls, then score all by another config; return the seconds of both."""
    before, after = (
        evaluator_of(replace(work.source, metric=MetricChoice(config={"scoring_method": method})))
        for method in (BEFORE, AFTER)
    )
    with engine_of(work.url) as engine:
        store = OtelSpansStore(engine, NAME)
        start = time.perf_counter()
        for window in work.windows:
            ingest_window(engine, store, work.source, window)
            score_window(engine, work.source, before, window, "by hand")
        ingested = time.perf_counter()
        for window in work.windows:
            score_window(engine, work.source, after, window, "by hand")
        end = time.perf_counter()
    wipe(work)
    return ingested - start, end - ingested


def by_commands(work: Backfill, how: str, plain: tuple[float, float]) -> list[list[str]]:
    """Do the same by two commands; return their lines."""
    seconds = []
    for method, only in ((BEFORE, "all"), (AFTER, "stale")):
        configure(work, method)
        seconds.append(by_command(work, how, only))
    wipe(work)
    name = f"`stepacc backfill --how {how}`"
    return [
        line(f"{what} by {name}", took, alone, len(work.windows))
        for what, took, alone in zip(WHAT, seconds, plain, strict=True)
    ]


def by_command(work: Backfill, how: str, only: str) -> float:
    """Run a backfill; return the seconds from its start to its end."""
    stepacc(work, "backfill", "--dry-run", *work.options, "--only", only)  # all modules were read once
    start = time.perf_counter()
    stepacc(work, "backfill", "--how", how, *work.options, "--only", only)
    seconds = time.perf_counter() - start
    with engine_of(work.url) as engine, engine.connect() as connection:
        done = connection.scalar(_SCORED)
    if done != len(work.windows):
        msg = f"{done} of {len(work.windows)} partitions were scored."
        raise RuntimeError(msg)
    return seconds


def wipe(work: Backfill) -> None:
    """Empty what an evaluation writes."""
    tables = ", ".join(f"stepacc.{name}" for name in _WRITTEN)
    run(work.url, f"TRUNCATE {tables}", "CHECKPOINT")


def stepacc(work: Backfill, *arguments: str) -> None:
    """Run a command, which has to succeed."""
    done = subprocess.run(  # noqa: S603 (our own command)
        [*_COMMAND, *arguments], env=work.environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr)


@contextmanager
def daemon(work: Backfill) -> Iterator[None]:
    """Run `stepacc dev`, and go on once its daemon has given a sign of life."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(  # noqa: S603 (as above)
        [*_COMMAND, "dev", "--port", str(port)],
        env=work.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + _STARTS_WITHIN
        alive = sa.text("SELECT count(*) FROM dagster.daemon_heartbeats WHERE daemon_type = 'BACKFILL'")
        with engine_of(work.url) as engine, engine.connect() as connection:
            while not connection.scalar(alive):
                connection.rollback()
                if time.monotonic() > deadline:
                    msg = "The daemon did not start."
                    raise RuntimeError(msg)
                time.sleep(0.5)
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


if __name__ == "__main__":
    main()
