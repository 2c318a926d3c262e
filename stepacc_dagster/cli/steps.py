"""`stepacc steps`."""

import sys
from pathlib import Path
from typing import Any

import click

from stepacc_core.policy import apply_policy
from stepacc_core.steps import describe
from stepacc_dagster.cli.files import all_partitions, files_argument, read_trace_files, report_problems
from stepacc_dagster.cli.output import emit_json, json_option, note, printable
from stepacc_dagster.cli.reading_options import Reading, reading_options


@click.command()
@files_argument
@reading_options
@json_option
def steps(files: tuple[Path, ...], *, reading: Reading, as_json: bool) -> None:
    """Show which steps the reader finds in FILES, per trace and per session.

    FILES hold OTLP as JSON lines or protobuf (log records beside their spans), JSON exports of LangSmith, Langfuse or
    ATIF, or canonical partitions, also gzipped; - stands for standard input. Exit code 1: something could not be read.

    \b
    stepacc steps run.jsonl
    zcat runs.jsonl.gz | stepacc steps - --json
    """  # noqa: D301 (click reads the backspace)
    found = read_trace_files(files)
    traces = found.traces(reading.settings)
    partitions = [*found.partitions, *all_partitions(traces)]
    for partition in partitions:
        described = describe(apply_policy(partition, reading.policy))
        if as_json:
            emit_json(described)
        else:
            click.echo(_text(described))
    if not partitions:
        note("No traces were found in these files.")
    report_problems(found.problems)
    sys.exit(1 if found.problems else 0)


def _text(described: dict[str, Any]) -> str:
    heading = f"{described['partition_type']} {printable(described['partition_id'])}"
    if described["session_id"] and described["partition_type"] == "trace":
        heading += f"  (session {printable(described['session_id'])})"
    lines = [heading]
    if described["status"] != "ok":
        lines.append(f"  not scorable: {described['reason']}")
    steps = enumerate(described["steps"], start=1)
    lines += [f"  {number:>3}  {step['kind']:<5}  {printable(step['name'])}" for number, step in steps]
    lines += [f"  gap: {gap['kind']}: {printable(gap['detail'])}" for gap in described["gaps"]]
    return "\n".join(lines)
