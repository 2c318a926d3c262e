"""`stepacc export`."""

import dataclasses
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, get_args

import click
from rich.progress import TextColumn, TimeElapsedColumn

from stepacc_core.comparison.choosing import Wanted
from stepacc_core.comparison.observations import NEWEST, OLDEST
from stepacc_core.metrics import registered_metrics
from stepacc_core.model import PartitionType
from stepacc_dagster.cli.output import counted, emit_json, json_option, note, printable, progress_bar
from stepacc_dagster.cli.sources import source_option, source_or_only
from stepacc_dagster.export.choice import Asked, Kind, choose_kinds
from stepacc_dagster.export.columns import Row, columns, position
from stepacc_dagster.export.formats import Format, format_of, writer_of
from stepacc_dagster.export.rows import Extent, score_rows, stored_kinds
from stepacc_dagster.storage.copy import closed
from stepacc_dagster.storage.opening import open_storage
from stepacc_dagster.whole_files import whole_file

_STDOUT = "-"
_SHOWN_AT = 1_000
"""Rows after which the progress line moves."""


@click.command("export")
@source_option
@click.option("--metric", help="Name of a metric, or of a member of its family; all of the source where left out.")
@click.option("--metric-version", help="Version of the metric; the one the source has now where left out.")
@click.option(
    "--config", "config_hash", metavar="HASH", help="Beginning of the config's hash, 4 characters or more; as above."
)
@click.option(
    "--all-versions", is_flag=True, help="Every version and config there is, side by side; each row names its own."
)
@click.option("--type", "partition_type", type=click.Choice(["trace", "session"]), help="Traces or sessions only.")
@click.option("--from", "first", metavar="KEY", default=OLDEST, help="First window; the oldest where left out.")
@click.option("--to", "last", metavar="KEY", default=NEWEST, help="Last window, included; the newest if left out.")
@click.option("--history", is_flag=True, help="Every evaluation, also those that are no longer current.")
@click.option("--with-metadata", is_flag=True, help="Also what the metric says of each score, such as its alignment.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(get_args(Format)),
    help="What to write; from the end of the file's name where left out, and jsonl on standard output.",
)
@click.option("--output", "-o", metavar="FILE", default=_STDOUT, help="File to write; standard output where left out.")
@json_option
def export(  # noqa: PLR0913, PLR0917 (its options)
    source: str | None,
    metric: str | None,
    metric_version: str | None,
    config_hash: str | None,
    partition_type: PartitionType | None,
    first: str,
    last: str,
    format_: Format | None,
    output: str,
    *,
    all_versions: bool,
    history: bool,
    with_metadata: bool,
    as_json: bool,
) -> None:
    """Write scores as Parquet, CSV or JSON lines, one row for each, for other tools.

    \b
    stepacc export --source support_agent -o scores.parquet
    stepacc export --from 2026-11-01 --to 2026-11-30 -o november.csv
    stepacc export --metric agent.step_accuracy --metric-version 1.0.0 | jq .score
    stepacc export --all-versions --history --with-metadata -o everything.parquet

    The scores are the current ones, by the metric versions and configs that the source has now. Versions and configs
    come together only with --all-versions. A file is written whole or not at all. The columns are in docs/export.md.
    With --json the command tells what it wrote to the file.

    Exit codes: 0 when everything was written, 1 when it could not be, 2 for a wrong option.
    """  # noqa: D301 (click reads the backspace)
    named = metric_version or config_hash
    _refuse_options(output, format_, all_versions=all_versions, named=named is not None, as_json=as_json)
    chosen: Format = format_ or ("jsonl" if output == _STDOUT else format_of(Path(output)))
    write = writer_of(chosen)
    if all_versions or named is not None:
        told, kinds = source_or_only(source), None
    else:
        told, kinds = _configured(source, metric)
    Wanted(told, metric, metric_version, config_hash, partition_type, first, last)  # refuses what no row can have
    extent = Extent(told, first, last, partition_type, history)
    written = columns(with_metadata=with_metadata)
    counts: Counter[Kind] = Counter()
    with open_storage() as engine, engine.connect() as connection:
        if kinds is None:
            asked = Asked(told, _names(metric), metric_version, config_hash, mixed=all_versions)
            kinds = choose_kinds(asked, stored_kinds(connection, extent))
        with closed(score_rows(connection, extent, kinds, written)) as rows, _opened(output) as stream:
            write(stream, written, _watched(rows, counts))
    if as_json:
        emit_json(_document(told, output, chosen, counts))
    _tell(told, output, counts)


def _refuse_options(output: str, format_: Format | None, *, all_versions: bool, named: bool, as_json: bool) -> None:
    if all_versions and named:
        msg = "--all-versions takes every version and config; leave it out, or --metric-version and --config."
        raise click.UsageError(msg)
    if output != _STDOUT:
        return
    if as_json:
        msg = "--json tells of a file; name one with --output, or leave it out: the rows are JSON lines as it is."
        raise click.UsageError(msg)
    if format_ == "parquet" and sys.stdout.isatty():
        msg = "Parquet is not for a terminal; name a file with --output, or send standard output somewhere."
        raise click.UsageError(msg)


def _configured(source: str | None, metric: str | None) -> tuple[str, tuple[Kind, ...]]:
    """Return the source, and the kinds of scores it has by what it is configured with."""
    from stepacc_dagster.evaluators import evaluator_of, evaluators_of  # noqa: PLC0415 (only where nothing is named)
    from stepacc_dagster.local.source import local_source  # noqa: PLC0415 (loads Dagster, seconds of waiting)

    found = local_source(source)
    evaluators = evaluators_of(found) if metric is None else (evaluator_of(found, metric),)
    kinds = tuple(
        Kind(name, evaluator.metric.manifest.version, evaluator.config_hash)
        for evaluator in evaluators
        for name in (evaluator.row_names if metric is None or metric == evaluator.name else (metric,))
    )
    return found.name, kinds


def _names(metric: str | None) -> frozenset[str]:
    """Return the names that rows of a metric have, of whatever version; none where any will do."""
    if metric is None:
        return frozenset()
    families = (known.manifest.family for known in registered_metrics() if known.manifest.name == metric)
    return frozenset((metric, *(name for family in families for name in family)))


def _opened(output: str) -> AbstractContextManager[BinaryIO]:
    if output == _STDOUT:
        return nullcontext(sys.stdout.buffer)
    return whole_file(Path(output))


def _watched(rows: Iterable[Row], counts: Counter[Kind]) -> Iterator[Row]:
    """Pass rows on, counting them by kind, with a progress line."""
    metric, version, config = (position(name) for name in ("metric", "metric_version", "config_hash"))
    with progress_bar(TextColumn("{task.completed:,.0f} rows"), TimeElapsedColumn()) as progress:
        task = progress.add_task("rows", total=None)
        for number, row in enumerate(rows, 1):
            counts[Kind(row[metric], row[version], row[config])] += 1
            yield row
            if number % _SHOWN_AT == 0:
                progress.update(task, completed=number)


def _document(source: str, output: str, format_: Format, counts: Counter[Kind]) -> dict[str, Any]:
    return {
        "source": source,
        "file": output,
        "format": format_,
        "bytes": Path(output).stat().st_size,
        "rows": counts.total(),
        "scores": [{**dataclasses.asdict(kind), "rows": counts[kind]} for kind in sorted(counts)],
    }


def _tell(source: str, output: str, counts: Counter[Kind]) -> None:
    if not counts:
        note(printable(f"No score of `{source}` is like that; there are no rows."))
        return
    where = "" if output == _STDOUT else f" in {output}"
    note(printable(f"{counted(counts.total(), 'row')} of `{source}`{where}:"))
    for kind in sorted(counts):
        note(printable(f"  {counts[kind]:,} by {kind}"))
    by_metric = Counter(kind.metric for kind in counts)
    if max(by_metric.values()) > 1:
        note("Several versions or configs are side by side; compare rows of the same metric_version and config_hash.")
