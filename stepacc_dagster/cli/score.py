"""`stepacc score`: files in, JSON lines out, no database."""

import dataclasses
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

import click

from stepacc_core import CanonicalPartition, get_metric
from stepacc_core.annotations import Annotation, annotation_in_force
from stepacc_core.metrics import Evaluation, build_config, evaluate
from stepacc_core.metrics.manifest import AnnotationKey
from stepacc_core.model import AnnotationRef, Member, PartitionType, Result
from stepacc_core.picture import has_alignment, picture
from stepacc_core.policy import apply_policy
from stepacc_dagster.cli.annotation_input import read_annotations
from stepacc_dagster.cli.files import all_partitions, files_argument, parse_setting, read_trace_files, report_problems
from stepacc_dagster.cli.metrics import refused_as_usage
from stepacc_dagster.cli.output import emit_json, json_option, note, printable
from stepacc_dagster.cli.pictures import show_picture
from stepacc_dagster.cli.reading_options import Reading, reading_options

_ALL_TYPES: tuple[PartitionType, ...] = get_args(PartitionType)


@click.command()
@files_argument
@click.option(
    "--annotations",
    "annotation_files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Annotations file (YAML, JSON or CSV); may be given more than once, later files win.",
)
@click.option("--metric", default="agent.step_accuracy", show_default=True, help="Name of the metric.")
@click.option("--metric-version", help="Version of the metric; the newest where left out.")
@click.option("--config", "settings", multiple=True, metavar="KEY=VALUE", help="A field of the metric's config.")
@click.option(
    "--partition-type",
    "partition_types",
    multiple=True,
    type=click.Choice(["trace", "session"]),
    help="What to score; of traces, what the annotations speak of, else traces, where left out.",
)
@click.option("--picture", "drawn", is_flag=True, help="Draw each alignment, instead of JSON.")
@reading_options
@json_option
def score(  # noqa: PLR0913, PLR0917 (one parameter for each option)
    files: tuple[Path, ...],
    annotation_files: tuple[Path, ...],
    metric: str,
    metric_version: str | None,
    settings: tuple[str, ...],
    partition_types: tuple[PartitionType, ...],
    *,
    drawn: bool,
    reading: Reading,
    as_json: bool,
) -> None:
    """Score FILES and print one JSON object a line, or with --picture the alignments.

    FILES hold OTLP as JSON lines or protobuf (log records beside their spans), JSON exports of LangSmith, Langfuse or
    ATIF, or canonical partitions, also gzipped; - stands for standard input. Exit code 1: something could not be read,
    or an occurrence failed.

    \b
    stepacc score run.jsonl --annotations expected.yaml
    stepacc score run.jsonl --config 'expected_steps=["search", "answer"]'
    """  # noqa: D301 (click reads the backspace)
    with refused_as_usage():
        scorer = get_metric(metric, metric_version)
        config = build_config(scorer, dict(parse_setting(text) for text in settings))
    key: AnnotationKey = scorer.manifest.annotation_key or "expected_steps"
    annotations = [annotation for path in annotation_files for annotation in read_annotations(path)]
    found = read_trace_files(files)
    traces = found.traces(reading.settings)
    spoken_of = {annotation.target.partition_type for annotation in annotations if annotation.key == key}
    wanted = set(partition_types) or spoken_of or {"trace"}
    read = [partition for partition in all_partitions(traces) if partition.partition_type in wanted]
    # A ready-made partition says itself what is to be scored.
    made = [partition for partition in found.partitions if partition.partition_type in (partition_types or _ALL_TYPES)]
    statuses: Counter[str] = Counter()
    for partition in _annotated([*made, *read], annotations, key):
        evaluation = evaluate(scorer, apply_policy(partition, reading.policy), config)
        statuses[evaluation.result.status] += 1
        if drawn and not as_json:
            _draw(partition, evaluation.result)
        else:
            emit_json(_row(partition, evaluation, scorer.manifest.name, scorer.manifest.version))
    counts = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in sorted(statuses.items()))
    note(counts or "There is nothing to score in these files.")
    report_problems(found.problems)
    sys.exit(1 if found.problems or statuses["failed"] else 0)


def _draw(partition: CanonicalPartition, result: Result) -> None:
    """Print the score of an occurrence and its alignment, or why there is none."""
    said = result.error or result.reason if result.score is None else f"score {result.score:.3f}"
    click.echo(f"{partition.partition_type} {printable(partition.partition_id)}: {printable(str(said))}")
    if has_alignment(result.metadata):
        show_picture(picture(result.metadata))
    click.echo()


def _annotated(
    partitions: Iterable[CanonicalPartition], annotations: list[Annotation], key: AnnotationKey
) -> Iterator[CanonicalPartition]:
    """Fill the column of partitions that have none; the id of such an annotation is its number in the files."""
    numbers = {id(annotation): number for number, annotation in enumerate(annotations, start=1)}
    for partition in partitions:
        found = None if getattr(partition, key) is not None else annotation_in_force(annotations, partition, key)
        if found is None:
            yield partition
        else:
            reference = AnnotationRef(id=numbers[id(found)], revision=1)
            yield dataclasses.replace(partition, annotation=reference, **{key: found.value})


def _row(partition: CanonicalPartition, evaluation: Evaluation, metric: str, version: str) -> dict[str, Any]:
    result = evaluation.result
    row = {
        "partition_type": partition.partition_type,
        "partition_id": partition.partition_id,
        "session_id": partition.session_id,
        "task_id": partition.task_id,
        "metric": metric,
        "metric_version": version,
        **_outcome(result),
        "expected_from": evaluation.reference.origin if evaluation.reference else None,
        "annotation": result.metadata.get("annotation"),
    }
    if result.family:
        row["family"] = [{"metric": member.name, **_outcome(member)} for member in result.family]
    return row


def _outcome(result: Result | Member) -> dict[str, Any]:
    return {
        "status": result.status,
        "code": result.code,
        "reason": str(result.error) if result.error else result.reason,
        "score": result.score,
        "metadata": result.metadata,
    }
