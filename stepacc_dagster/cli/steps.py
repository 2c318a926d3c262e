"""`stepacc steps`."""

import sys
from pathlib import Path
from typing import Any

import click

from stepacc_core.reading import TASK_ID_ATTRIBUTES, ReadSettings
from stepacc_core.steps import describe
from stepacc_dagster.cli.files import all_partitions, files_argument, read_trace_files, report_problems
from stepacc_dagster.cli.output import emit_json, json_option


@click.command()
@files_argument
@click.option(
    "--task-id-attribute", multiple=True, help="An attribute that holds the task id, beside the built-in ones."
)
@json_option
def steps(files: tuple[Path, ...], task_id_attribute: tuple[str, ...], *, as_json: bool) -> None:
    """Show which steps the reader finds in FILES (OTLP JSON lines; - for standard input), per trace and session."""
    found = read_trace_files(files)
    traces = found.traces(ReadSettings(task_id_attributes=(*TASK_ID_ATTRIBUTES, *task_id_attribute)))
    for partition in [*found.partitions, *all_partitions(traces)]:
        described = describe(partition)
        if as_json:
            emit_json(described)
        else:
            click.echo(_text(described))
    report_problems(found.problems)
    sys.exit(1 if found.problems else 0)


def _text(described: dict[str, Any]) -> str:
    heading = f"{described['partition_type']} {described['partition_id']}"
    if described["session_id"] and described["partition_type"] == "trace":
        heading += f"  (session {described['session_id']})"
    lines = [heading]
    if described["status"] != "ok":
        lines.append(f"  not scorable: {described['reason']}")
    lines += [f"  {n:>3}  {step['kind']:<5}  {step['name']}" for n, step in enumerate(described["steps"], start=1)]
    lines += [f"  gap: {gap['kind']}: {gap['detail']}" for gap in described["gaps"]]
    return "\n".join(lines)
