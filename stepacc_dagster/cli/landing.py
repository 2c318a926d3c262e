"""`stepacc import`."""

import dataclasses
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import sqlalchemy as sa
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from stepacc_core.conventions.recognise import recognised, require_recognised
from stepacc_core.errors import ReadError
from stepacc_core.model import RawEvent, RawSpan
from stepacc_core.otlp import SpanKey, join_logs, read_otlp_lines
from stepacc_dagster.cli.files import files_argument, is_log_file, open_binary, read_log_events, report_problems
from stepacc_dagster.cli.output import emit_json, errors, json_option, note
from stepacc_dagster.cli.sources import source_option, source_or_only
from stepacc_dagster.storage.opening import open_storage
from stepacc_dagster.storage.raw_spans import Landed, land_spans


@click.group("import")
def import_() -> None:
    """Land files in the database."""


@import_.command()
@files_argument
@source_option
@json_option
def traces(files: tuple[Path, ...], source: str | None, *, as_json: bool) -> None:
    """Land the spans of FILES (OTLP JSON lines, also gzipped; - for standard input) in the table `otel_spans`.

    Each file is one transaction. A line that cannot be read is named, the good ones are kept, and the exit code is 1.
    Landing a span again changes nothing.
    """
    note("Contents of spans (arguments, outputs, prompts) are stored as they are; nothing is redacted.")
    name = source_or_only(source)
    problems: list[str] = []
    events = [event for path in files if is_log_file(path) for event in read_log_events(path, problems)]
    with open_storage() as engine:
        for path in files:
            if is_log_file(path):
                continue
            landed = _land(engine, name, path, events, problems)
            if as_json:
                emit_json({"file": str(path), "source": name, **dataclasses.asdict(landed)})
            else:
                note(f"{path}: {landed.new} spans new, {landed.changed} changed, {landed.same} there already")
    report_problems(problems)
    sys.exit(1 if problems else 0)


def _land(
    engine: sa.Engine, source: str, path: Path, events: Iterable[tuple[SpanKey, RawEvent]], problems: list[str]
) -> Landed:
    columns = (SpinnerColumn(), TextColumn("{task.description} {task.completed} spans"), TimeElapsedColumn())
    with Progress(*columns, console=errors, transient=True) as progress, open_binary(path) as stream:
        task = progress.add_task(str(path), total=None)

        def spans() -> Iterator[RawSpan]:
            for span in read_otlp_lines(stream):
                if isinstance(span, ReadError):
                    problems.append(f"{path}: {span}")
                else:
                    progress.advance(task)
                    yield span

        with engine.begin() as connection:
            # Checked within the transaction: a file that no recogniser knows lands nothing.
            return land_spans(connection, source, _recognised(join_logs(spans(), events)))


def _recognised(spans: Iterable[RawSpan]) -> Iterator[RawSpan]:
    """Pass spans on, and refuse a set of which no recogniser knows any span."""
    seen = _Seen()
    for span in spans:
        seen.look_at(span)
        yield span
    seen.require()


class _Seen:
    """Remembers whether a span was recognised, and enough spans to say what was seen where none was."""

    _KEPT = 20

    def __init__(self) -> None:
        self._strange: list[RawSpan] = []
        self._known = False

    def look_at(self, span: RawSpan) -> None:
        """Take note of a span."""
        if not self._known:
            self._known = recognised(span)
            if len(self._strange) < self._KEPT:
                self._strange.append(span)

    def require(self) -> None:
        """Raise UnknownConventionError if spans were seen and none was recognised."""
        if self._strange and not self._known:
            require_recognised(self._strange)
