"""`stepacc import`."""

import dataclasses
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import sqlalchemy as sa
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

from stepacc_core.conventions.declared import DeclaredMapping
from stepacc_core.conventions.recognise import recognised, require_recognised
from stepacc_core.errors import ReadError, UnknownConventionError
from stepacc_core.log_records import carrier, is_kept
from stepacc_core.model import RawSpan
from stepacc_core.redaction import Redactor
from stepacc_dagster.cli.files import files_argument, open_lines, read_spans, report_problems
from stepacc_dagster.cli.output import emit_json, json_option, note, printable, progress_bar
from stepacc_dagster.cli.reading_options import mapping_option, read_mappings
from stepacc_dagster.cli.redacting import source_redactor, told
from stepacc_dagster.cli.sources import source_option, source_or_only
from stepacc_dagster.storage.opening import open_storage
from stepacc_dagster.storage.raw_spans import Landed, land_spans


@click.group("import")
def import_() -> None:
    """Land trace files in the database."""


@import_.command()
@files_argument
@source_option
@mapping_option
@json_option
def traces(files: tuple[Path, ...], source: str | None, mapping_files: tuple[Path, ...], *, as_json: bool) -> None:
    """Land the spans of FILES in the table `otel_spans`.

    FILES hold OTLP as JSON lines or protobuf, or JSON exports of LangSmith, Langfuse or ATIF, told by their content and
    also gzipped; - stands for standard input. OTLP log records of GenAI instrumentations are landed too, before or
    after the spans they belong to. Each file is one transaction. What cannot be read is named, the rest is landed, and
    the exit code is 1. Landing a span again changes nothing.

    Secrets and personal data are redacted before anything is stored: see docs/redaction.md.

    \b
    stepacc import traces --source support_agent runs/*.jsonl
    zcat old.jsonl.gz | stepacc import traces --source support_agent -
    """  # noqa: D301 (click reads the backspace)
    name, mappings = source_or_only(source), read_mappings(mapping_files)
    problems: list[str] = []
    with open_storage() as engine:
        shared = _Import(mappings, problems, source_redactor(engine, name))
        for path in files:
            try:
                landed = _land(engine, name, path, shared)
            except UnknownConventionError as error:
                problems.append(f"{path}: {error}")
                continue
            if as_json:
                emit_json({"file": str(path), "source": name, **dataclasses.asdict(landed)})
            else:
                erased = f", {landed.erased} of erased traces left out" if landed.erased else ""
                there = f"{landed.new} spans new, {landed.changed} changed, {landed.same} there already"
                note(f"{path}, source {name}: {there}{erased}{told(landed.redacted)}")
    report_problems(problems)
    sys.exit(1 if problems else 0)


def _land(engine: sa.Engine, source: str, path: Path, shared: "_Import") -> Landed:
    columns = (SpinnerColumn(), TextColumn("{task.description} {task.completed} spans", markup=False))
    with progress_bar(*columns, TimeElapsedColumn()) as progress, open_lines(path, shared.problems) as lines:
        task = progress.add_task(printable(path.name), total=None)

        def spans() -> Iterator[RawSpan]:
            for item in read_spans(lines):
                if isinstance(item, ReadError):
                    shared.problems.append(f"{path}: {item}")
                elif isinstance(item, RawSpan) or is_kept(item[1]):
                    progress.advance(task)
                    yield item if isinstance(item, RawSpan) else carrier(item)

        with engine.begin() as connection:
            # Checked within the transaction: a file that no recogniser knows lands nothing.
            return land_spans(connection, source, _recognised(spans(), shared.mappings), shared.redactor)


@dataclasses.dataclass(frozen=True, slots=True)
class _Import:
    """What the files of a command share: declared mappings, the list of what could not be read, and what redacts."""

    mappings: tuple[DeclaredMapping, ...]
    problems: list[str]
    redactor: Redactor | None


def _recognised(spans: Iterable[RawSpan], mappings: tuple[DeclaredMapping, ...]) -> Iterator[RawSpan]:
    """Pass spans on, and refuse a set of which no recogniser knows any span."""
    seen = _Seen(mappings)
    for span in spans:
        seen.look_at(span)
        yield span
    seen.require()


class _Seen:
    """Remembers whether a span was recognised, and enough spans to say what was seen where none was."""

    _KEPT = 20

    def __init__(self, mappings: tuple[DeclaredMapping, ...]) -> None:
        self._mappings = mappings
        self._strange: list[RawSpan] = []
        self._known = False

    def look_at(self, span: RawSpan) -> None:
        """Take note of a span."""
        if not self._known:
            self._known = recognised(span, self._mappings)
            if len(self._strange) < self._KEPT:
                self._strange.append(span)

    def require(self) -> None:
        """Raise UnknownConventionError if spans were seen and none was recognised."""
        if self._strange and not self._known:
            require_recognised(self._strange, self._mappings)
