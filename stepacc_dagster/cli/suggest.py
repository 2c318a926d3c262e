"""`stepacc suggest`: expected steps from good runs."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stepacc_core.annotations import EXPECTED_STEPS_KEY, KEYS, REFERENCES_KEY
from stepacc_core.errors import ConfigError, ScoringError
from stepacc_core.model import CanonicalPartition
from stepacc_core.policy import LITERAL, StepPolicy, apply_policy
from stepacc_core.reading import trace_partition
from stepacc_core.steps import find_roots, not_applicable_reason
from stepacc_core.suggest import Run, SuggestSettings, run_of, suggest
from stepacc_core.suggest.document import TaskSuggestion, annotation_document, support_lines
from stepacc_dagster.cli.files import read_trace_files, report_problems
from stepacc_dagster.cli.output import counted, emit_json, json_option, note, printable
from stepacc_dagster.cli.reading_options import Reading, reading_options
from stepacc_dagster.cli.sources import source_option, source_or_only

if TYPE_CHECKING:
    from stepacc_dagster.storage.good_runs import JudgedRuns

_share = click.FloatRange(0, 1, min_open=True)


@click.command("suggest")
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@source_option
@click.option("--task", "task_id", help="Learn this task alone; of files that name no task, the one they are runs of.")
@click.option(
    "--trace", "trace_ids", multiple=True, metavar="ID", help="Learn from this trace; may be given repeatedly."
)
@click.option(
    "--runs", default=100, show_default=True, type=click.IntRange(min=1), help="Traces of the database, newest first."
)
@click.option(
    "--key",
    "keys",
    multiple=True,
    type=click.Choice(KEYS),
    default=[EXPECTED_STEPS_KEY],
    show_default=True,
    help="What to suggest; may be given twice. Optional steps stand in reference_trajectories alone.",
)
@click.option(
    "--share", default=0.5, show_default=True, type=_share, help="A step in fewer of the runs is optional or left out."
)
@click.option(
    "--optional-share", default=0.2, show_default=True, type=_share, help="A step in fewer of the runs is left out."
)
@click.option(
    "--arguments",
    "with_arguments",
    is_flag=True,
    help="Propose too, in reference_trajectories, the arguments that a step has in every run.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Write the annotations file here; it must not exist.")
@reading_options
@json_option
def suggest_(  # noqa: PLR0913, PLR0917 (one parameter for each option)
    files: tuple[Path, ...],
    source: str | None,
    task_id: str | None,
    trace_ids: tuple[str, ...],
    runs: int,
    keys: tuple[str, ...],
    share: float,
    optional_share: float,
    out: Path | None,
    *,
    with_arguments: bool,
    reading: Reading,
    as_json: bool,
) -> None:
    """Propose expected steps for a task from good runs of it, for a person to confirm.

    Runs are the traces in FILES, or without FILES those of a source in the database. Steps whose order varies between
    runs, or that run at the same time, become a group. The annotations file goes to standard output or --out, with
    `confirmed: false`: nothing is stored until it is imported with --confirm. It learns traces, not sessions, and of
    arguments only those that never vary (--arguments).

    Of the database, runs that agent.trajectory_match found to fail, or to hold a forbidden step, are left out.

    \b
    Examples:
      stepacc suggest good_runs.jsonl --task return_order --out suggested.yaml
      stepacc suggest --task return_order --key reference_trajectories --arguments
      stepacc annotations check suggested.yaml
      stepacc annotations import suggested.yaml --confirm

    Exit code 1: a file could not be read, or there is a task of which nothing can be suggested.
    """  # noqa: D301 (click reads the backspace)
    if out is not None and out.exists():
        msg = f"{out} exists, and may hold what somebody wrote; name another file."
        raise click.BadParameter(msg, param_hint="--out")
    if with_arguments and REFERENCES_KEY not in keys:
        msg = f"Arguments stand in {REFERENCES_KEY} alone; add `--key {REFERENCES_KEY}`."
        raise click.BadParameter(msg, param_hint="--arguments")
    try:
        settings = SuggestSettings(share, optional_share)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    problems: list[str] = []
    if files:
        found, problems = _of_files(files, reading)
    else:
        source = source_or_only(source)
        found = _of_database(source, task_id, trace_ids, runs, reading.policy)
    chosen = [partition for partition in found if not trace_ids or partition.partition_id in trace_ids]
    suggested, refused = _suggested(_by_task(chosen, task_id), settings)
    _write(suggested, source, keys, out, arguments=with_arguments, as_json=as_json)
    for refusal in refused:
        note(refusal)
    report_problems(problems)
    sys.exit(1 if problems or refused or not suggested else 0)


def _of_files(files: tuple[Path, ...], reading: Reading) -> tuple[list[CanonicalPartition], list[str]]:
    found = read_trace_files(files)
    read = [*found.partitions, *map(trace_partition, found.traces(reading.settings))]
    traces = [apply_policy(one, reading.policy) for one in read if one.partition_type == "trace"]
    return traces, found.problems


def _of_database(
    source: str, task_id: str | None, trace_ids: tuple[str, ...], runs: int, policy: StepPolicy
) -> list[CanonicalPartition]:
    from stepacc_dagster.storage.good_runs import judged_runs  # noqa: PLC0415 (files need no database)
    from stepacc_dagster.storage.opening import open_storage  # noqa: PLC0415 (as above)
    from stepacc_dagster.storage.task_runs import load_task_runs  # noqa: PLC0415 (as above)

    if task_id is None and not trace_ids:
        msg = "Name the task to learn with --task, or its good runs with --trace; or give trace files."
        raise click.UsageError(msg)
    policy = _configured_policy(source) if policy == LITERAL else policy
    with open_storage() as engine, engine.connect() as connection:
        judged = judged_runs(connection, source, task_id, trace_ids or None, runs)
        # Whoever names a run vouches for it, and is told what is stored of it.
        named = (*judged.failed, *judged.forbidden) if trace_ids else ()
        _tell_bad(judged, named=bool(trace_ids))
        loaded = list(load_task_runs(connection, source, task_id, (*judged.good, *named), runs))
    return [apply_policy(one, policy) for one in loaded]


def _tell_bad(judged: "JudgedRuns", *, named: bool) -> None:
    """Say how many runs are no good ones by what is stored of them."""
    taken = "taken as good though, since named" if named else "left out"
    for ids, why in ((judged.failed, "whose verdict is fail"), (judged.forbidden, "in which a forbidden step ran")):
        if ids:
            which = f" ({', '.join(map(printable, ids))})" if named else ""
            note(f"{counted(len(ids), 'run')} {why} {taken}{which}.")


def _configured_policy(source: str) -> StepPolicy:
    """Return the step policy of a source that is configured on this machine, so that steps are those it scores."""
    from stepacc_dagster.definitions import defs_folder, read_sources  # noqa: PLC0415 (loads Dagster)

    found = read_sources(defs_folder()).named(source)
    return found.step_policy if found else LITERAL


def _by_task(partitions: Sequence[CanonicalPartition], task_id: str | None) -> dict[str, list[CanonicalPartition]]:
    """Group traces by task; where none of them names one, they are runs of the task that was named."""
    if task_id is not None and all(one.task_id is None for one in partitions):
        return {task_id: list(partitions)} if partitions else {}
    by_task: dict[str, list[CanonicalPartition]] = {}
    for one in partitions:
        if one.task_id is not None and task_id in (None, one.task_id):
            by_task.setdefault(one.task_id, []).append(one)
    if unnamed := sum(one.task_id is None for one in partitions):
        note(f"{counted(unnamed, 'trace')} without a task left out; name the task with --task where they are its runs.")
    return by_task


def _suggested(
    by_task: dict[str, list[CanonicalPartition]], settings: SuggestSettings
) -> tuple[list[TaskSuggestion], list[str]]:
    suggested: list[TaskSuggestion] = []
    refused: list[str] = [] if by_task else ["There is no run to learn from."]
    for task_id, partitions in sorted(by_task.items()):
        try:
            suggested.append(TaskSuggestion(task_id, suggest(_runs(partitions), settings)))
        except ConfigError as error:
            refused.append(f"task {task_id}: {error}")
    return suggested, refused


def _runs(partitions: Iterable[CanonicalPartition]) -> list[Run]:
    """Return the runs that can be learnt from, and say which cannot."""
    runs: list[Run] = []
    for one in partitions:
        reason: str | None = not_applicable_reason(one) or ("its root ended with an error" if _failed(one) else None)
        try:
            run = run_of(one) if reason is None else None
        except ScoringError as error:
            reason, run = error.code.value, None
        if run is None:
            note(f"trace {one.partition_id} left out: {reason}")
        else:
            runs.append(run)
    return runs


def _failed(partition: CanonicalPartition) -> bool:
    roots = find_roots(partition.spans)
    return any(span.span_id in roots and span.status == "ERROR" for span in partition.spans)


def _write(  # noqa: PLR0913 (what options say)
    suggested: Sequence[TaskSuggestion],
    source: str | None,
    keys: Sequence[str],
    out: Path | None,
    *,
    arguments: bool,
    as_json: bool,
) -> None:
    if as_json:
        for one in suggested:
            emit_json(_row(one, arguments=arguments))
    if not suggested or (as_json and out is None):
        return
    document = annotation_document(suggested, source, keys, arguments=arguments)
    if out is None:
        click.echo(document, nl=False)
        return
    out.write_text(document, encoding="utf-8")
    for one in suggested:
        for line in support_lines(one):
            note(line)
    note(f"Written to {out}; read it, correct it, then: stepacc annotations import {out} --confirm")


def _row(one: TaskSuggestion, *, arguments: bool) -> dict[str, Any]:
    suggestion = one.suggestion
    return {
        "task_id": one.task_id,
        "runs": suggestion.runs,
        "fitting": suggestion.fitting,
        "expected_steps": suggestion.expected_steps(),
        "reference": suggestion.reference(arguments=arguments),
        "steps": [
            {
                "name": member.name,
                "kind": member.kind,
                "support": member.support,
                "optional": member.optional,
                "arguments": dict(member.arguments),
                "element": index,
                "any_order": element.reason or None,
            }
            for index, element in enumerate(suggestion.elements)
            for member in element.members
        ],
        "unsteady": [{"name": step.name, "kind": step.kind, "support": step.support} for step in suggestion.unsteady],
    }
