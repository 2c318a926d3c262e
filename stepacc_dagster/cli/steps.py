"""`stepacc steps`."""

import sys
from pathlib import Path
from typing import Any

import click

from stepacc_core.reading import TASK_ID_ATTRIBUTES, ReadSettings
from stepacc_core.steps import describe
from stepacc_dagster.cli.files import all_partitions, files_argument, read_trace_files, report_problems
from stepacc_dagster.cli.output import emit_json, json_option, note, printable


@click.command()
@files_argument
@click.option(
    "--task-id-attribute", multiple=True, help="An attribute that holds the task id, beside the built-in ones."
)
@json_option
def steps(files: tuple[Path, ...], task_id_attribute: tuple[str, ...], *, as_json: bool) -> None:
    """Show which steps the reader finds in FILES, per trace and per session.

    FILES hold OTLP as JSON lines or protobuf (log records beside their spans), JSON exports of LangSmith, Langfuse or
    ATIF, or canonical partitions, also gzipped; - stands for standard input. Exit code 1: something could not be read.
    """
    found = read_trace_files(files)
    traces = found.traces(ReadSettings(task_id_attributes=(*TASK_ID_ATTRIBUTES, *task_id_attribute)))
    partitions = [*found.partitions, *all_partitions(traces)]
    for partition in partitions:
        described = describe(partition)
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
