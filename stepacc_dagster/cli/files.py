"""Reading trace files for the commands: which kind each is, and what of it can be read."""

import gzip
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import click

from stepacc_core.conventions.recognise import require_recognised
from stepacc_core.errors import PartitionError, ReadError
from stepacc_core.model import CanonicalPartition, CanonicalTrace, RawEvent, RawSpan
from stepacc_core.otlp import SpanKey, join_logs, read_otlp_lines, read_otlp_log_lines
from stepacc_core.partition_json import load_partition
from stepacc_core.reading import ReadSettings, read_traces, session_partition, trace_partition
from stepacc_dagster.cli.output import note

ItemT = TypeVar("ItemT")

STDIN = Path("-")
_GZIP_MAGIC = b"\x1f\x8b"
_LOOKED_AT = 65_536
"""Bytes at the start of a file that tell its kind."""


class Peekable(Protocol):
    """A binary file of which the beginning can be looked at without reading on."""

    def peek(self, size: int, /) -> bytes:
        """Return bytes from here on without advancing; fewer or more than asked for."""

    def __iter__(self) -> Iterator[bytes]:
        """Yield lines."""


files_argument = click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
)


@dataclass(slots=True)
class TraceFiles:
    """What was read of some files: raw spans, log events, ready-made partitions, and what could not be read."""

    spans: list[RawSpan] = field(default_factory=list)
    events: list[tuple[SpanKey, RawEvent]] = field(default_factory=list)
    partitions: list[CanonicalPartition] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def traces(self, settings: ReadSettings) -> list[CanonicalTrace]:
        """Return the canonical traces of the spans, with their log records joined.

        Raises:
            UnknownConventionError: no recogniser knows any of the spans.
        """
        if not self.spans:
            return []
        joined = list(join_logs(self.spans, self.events))
        require_recognised(joined)
        return list(read_traces(joined, settings))


def read_trace_files(paths: Iterable[Path]) -> TraceFiles:
    """Read files of OTLP JSON lines, OTLP log records and canonical partitions, in any mixture of files.

    A line that cannot be read is kept as a problem, with file and line; the good ones are read.
    """
    found = TraceFiles()
    for path in paths:
        with open_binary(path) as stream:
            for problem in _read_one(stream, found):
                found.problems.append(f"{path}: {problem}")
    return found


def all_partitions(traces: Iterable[CanonicalTrace]) -> Iterator[CanonicalPartition]:
    """Yield a partition for each trace, and one for each session, in the order in which they first appear."""
    sessions: dict[str, list[CanonicalTrace]] = {}
    for trace in traces:
        yield trace_partition(trace)
        if trace.session_id:
            sessions.setdefault(trace.session_id, []).append(trace)
    for session_id, members in sessions.items():
        yield session_partition(session_id, members)


@contextmanager
def open_binary(path: Path) -> Iterator[Peekable]:
    """Open a file, or standard input for `-`, unpacking gzip."""
    with sys.stdin.buffer if path == STDIN else path.open("rb") as raw:
        buffered = cast("Peekable", raw)
        if buffered.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC):
            with gzip.open(raw) as unpacked:
                yield cast("Peekable", unpacked)
        else:
            yield buffered


def report_problems(problems: Iterable[str]) -> None:
    """Say what could not be read."""
    for problem in problems:
        note(f"not read: {problem}")


def is_log_file(path: Path) -> bool:
    """Tell whether a file holds OTLP log records; standard input never does, since it cannot be read twice."""
    if path == STDIN:
        return False
    with open_binary(path) as stream:
        return _holds_logs(stream)


def read_log_events(path: Path, problems: list[str]) -> list[tuple[SpanKey, RawEvent]]:
    """Read a file of OTLP log records; what cannot be read is added to the problems."""
    found = TraceFiles()
    with open_binary(path) as stream:
        problems += [f"{path}: {problem}" for problem in _read_one(stream, found)]
    return found.events


def _holds_logs(stream: Peekable) -> bool:
    head = stream.peek(_LOOKED_AT)[:_LOOKED_AT]
    return b'"resourceLogs"' in head or b'"resource_logs"' in head


def _read_one(stream: Peekable, found: TraceFiles) -> Iterator[str]:
    if b'"partition_type"' in stream.peek(_LOOKED_AT)[:_LOOKED_AT]:
        yield from _read_partitions(stream, found)
    elif _holds_logs(stream):
        yield from _keep(read_otlp_log_lines(stream), found.events)
    else:
        yield from _keep(read_otlp_lines(stream), found.spans)


def _keep(items: Iterable[ItemT | ReadError], good: list[ItemT]) -> Iterator[str]:
    for item in items:
        if isinstance(item, ReadError):
            yield str(item)
        else:
            good.append(item)


def _read_partitions(stream: Iterable[bytes], found: TraceFiles) -> Iterator[str]:
    for number, line in enumerate(stream, start=1):
        if not line.strip():
            continue
        try:
            found.partitions.append(load_partition(line))
        except PartitionError as error:
            yield f"line {number}: {error}"


def parse_setting(text: str) -> tuple[str, Any]:
    """Turn `key=value` into a pair; a value that is JSON is taken as JSON, any other as text.

    Raises:
        click.BadParameter: there is no `=`.
    """
    key, equals, value = text.partition("=")
    if not equals:
        msg = f"{text!r} is no setting; write key=value."
        raise click.BadParameter(msg)
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value
