"""Reading trace files for the commands: which kind each is, and what of it can be read."""

import gzip
import json
import re
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import Any, Literal, cast

import click

from stepacc_core.conventions.recognise import require_recognised
from stepacc_core.errors import PartitionError, ReadError, UnknownConventionError
from stepacc_core.exports.formats import read_trace_lines
from stepacc_core.log_records import LogEvent, join_logs
from stepacc_core.model import CanonicalPartition, CanonicalTrace, RawSpan
from stepacc_core.partition_json import load_partition
from stepacc_core.reading import ReadSettings, read_traces, session_partition, trace_partition
from stepacc_dagster.cli.output import note
from stepacc_dagster.doors.framing import HEAD, looks_like_protobuf

Kind = Literal["traces", "partitions", "protobuf", "binary"]

STDIN = Path("-")
_GZIP_MAGIC = b"\x1f\x8b"
_LOOKED_AT = 1_048_576
"""Bytes at the start of a file, and the rest of their line, that may tell its kind."""
_SHOWN_PROBLEMS = 50

# As keys, with their colon: an attribute may well be called partition_type.
_MARK = re.compile(rb'"(?:(resource_?[sS]pans|resource_?[lL]ogs)|(partition_type|partition_id))"\s*:')
_NO_TEXT = (
    "This is neither text in UTF-8 nor OTLP in protobuf. Export traces as OTLP/JSON, one object a line (a collector's "
    "file exporter does so with `format: json`); gzip is unpacked, other forms are not."
)
_NO_PROTOBUF = "This is OTLP in protobuf, and the packages to read it are missing; run: pip install 'stepacc[dagster]'."
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def once_from_input(ctx: click.Context, param: click.Parameter, value: tuple[Path, ...]) -> tuple[Path, ...]:
    """Refuse standard input as two files, as a callback of an argument.

    Raises:
        click.BadParameter: it is named twice.
    """
    if value.count(STDIN) > 1:
        msg = "- stands for standard input, which can be read once; give it once."
        raise click.BadParameter(msg, ctx, param)
    return value


files_argument = click.argument(
    "files",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    callback=once_from_input,
)


@dataclass(slots=True)
class TraceFiles:
    """What was read of some files: raw spans, log events, ready-made partitions, and what could not be read."""

    spans: list[RawSpan] = field(default_factory=list)
    events: list[LogEvent] = field(default_factory=list)
    partitions: list[CanonicalPartition] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def traces(self, settings: ReadSettings) -> list[CanonicalTrace]:
        """Return the canonical traces of the spans, with their log records joined.

        If no recogniser knows any of the spans there are none, and a problem says so.
        """
        if not self.spans:
            return []
        joined = list(join_logs(self.spans, self.events))
        try:
            require_recognised(joined, settings.mappings)
        except UnknownConventionError as error:
            self.problems.append(str(error))
            return []
        return list(read_traces(joined, settings))


def read_trace_files(paths: Iterable[Path]) -> TraceFiles:
    """Read files of traces, of OTLP log records and of canonical partitions, in any mixture of files.

    A line that cannot be read is kept as a problem, with file and line; the good ones are read.
    """
    found = TraceFiles()
    for path in paths:
        with open_lines(path, found.problems) as lines:
            found.problems += [f"{path}: {problem}" for problem in _read_one(lines, found)]
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
def open_lines(path: Path, problems: list[str]) -> Iterator[Iterator[bytes]]:
    """Open a file, or standard input for `-`, and give its lines, unpacked where they are gzipped.

    Where the file breaks off or is damaged the lines end, and a problem says so.
    """
    if path == STDIN and sys.stdin is None:
        msg = "- stands for standard input, and that is closed."
        raise click.UsageError(msg)
    opened = nullcontext(sys.stdin.buffer) if path == STDIN else path.open("rb")
    with opened as raw:
        packed = cast("BufferedReader", raw).peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC)
        with gzip.open(raw) if packed else nullcontext(raw) as stream:
            yield _whole_lines(stream, path, problems)


def _whole_lines(stream: Iterable[bytes], path: Path, problems: list[str]) -> Iterator[bytes]:
    try:
        yield from stream
    except (OSError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        problems.append(f"{path}: the file is damaged or cut off ({reason.rstrip('.')}); what stands before was read.")


def report_problems(problems: list[str]) -> None:
    """Say what could not be read."""
    for problem in problems[:_SHOWN_PROBLEMS]:
        note(f"not read: {problem}")
    if len(problems) > _SHOWN_PROBLEMS:
        note(f"not read: {len(problems) - _SHOWN_PROBLEMS} more")


def read_spans(lines: Iterator[bytes]) -> Iterator[RawSpan | LogEvent | ReadError]:
    """Yield spans and log events of a file of any form, and an error in the place of what cannot be read."""
    kind, every = _beginning(lines)
    if kind == "binary":
        yield ReadError(_NO_TEXT)
    elif kind == "protobuf":
        yield from _read_protobuf(every)
    else:
        yield from read_trace_lines(every)


def _read_protobuf(chunks: Iterator[bytes]) -> Iterator[RawSpan | LogEvent | ReadError]:
    try:
        from stepacc_dagster.doors.otlp_protobuf import read_protobuf  # noqa: PLC0415 (the base needs no protobuf)
    except ModuleNotFoundError:
        yield ReadError(_NO_PROTOBUF)
    else:
        yield from read_protobuf(chunks)


def _beginning(lines: Iterator[bytes]) -> tuple[Kind, Iterator[bytes]]:
    """Tell by the first key that gives a file away what it holds; return this, and all lines again."""
    seen: list[bytes] = []
    size = 0
    kind: Kind = "traces"
    head, lines = _head(lines)
    if looks_like_protobuf(head):
        return "protobuf", lines
    for line in lines:
        seen.append(line)
        size += len(line)
        if found := _MARK.search(line):
            kind = "traces" if found[1] else "partitions"
            break
        if size >= _LOOKED_AT:
            kind = _unmarked(seen)
            break
    else:
        kind = _unmarked(seen)
    return kind, chain(seen, lines)


def _head(lines: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return the first bytes, and all lines again."""
    taken: list[bytes] = []
    while sum(map(len, taken)) < HEAD and (line := next(lines, None)) is not None:
        taken.append(line)
    return b"".join(taken)[:HEAD], chain(taken, lines)


def _unmarked(seen: list[bytes]) -> Kind:
    return "binary" if any(_CONTROL.search(line) for line in seen) else "traces"


def _read_one(lines: Iterator[bytes], found: TraceFiles) -> Iterator[str]:
    kind, every = _beginning(lines)
    if kind == "partitions":
        yield from _read_partitions(every, found)
        return
    for item in read_spans(every):
        if isinstance(item, ReadError):
            yield str(item)
        elif isinstance(item, RawSpan):
            found.spans.append(item)
        else:
            found.events.append(item)


def _read_partitions(lines: Iterable[bytes], found: TraceFiles) -> Iterator[str]:
    numbered = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    if _is_indented(numbered):
        numbered = [(1, b"".join(line for _, line in numbered))]
    for number, line in numbered:
        try:
            found.partitions.append(load_partition(line))
        except PartitionError as error:
            yield f"line {number}: {error}"


def _is_indented(numbered: list[tuple[int, bytes]]) -> bool:
    """Tell whether the lines are one object, written over several of them."""
    first = numbered[0][1].strip() if numbered else b""
    return len(numbered) > 1 and first == b"{"


def parse_setting(text: str) -> tuple[str, Any]:
    """Turn `key=value` into a pair; a value that is JSON is taken as JSON, any other as text.

    Raises:
        click.BadParameter: there is no `=`.
    """
    key, equals, value = text.partition("=")
    if not equals:
        msg = f"{text!r} is no setting; write key=value."
        raise click.BadParameter(msg, param_hint="--config")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value
