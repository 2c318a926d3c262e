"""`stepacc annotations check`."""

import sys
from pathlib import Path
from typing import Any

import click

from stepacc_core.annotation_sense import doubts
from stepacc_core.annotation_words import explain
from stepacc_core.annotations import Annotation
from stepacc_core.errors import AnnotationError
from stepacc_dagster.cli.annotation_input import INPUT, annotation_files, read_annotations
from stepacc_dagster.cli.files import STDIN
from stepacc_dagster.cli.output import counted, emit_json, json_option, note, printable


@click.command(short_help="Check files without storing anything.")
@annotation_files
@json_option
def check(files: tuple[Path, ...], *, as_json: bool) -> None:
    """Check annotation FILES (YAML, JSON or CSV) without storing anything, and say in words what each annotation says.

    \b
    Examples:
      stepacc annotations check expected.yaml
      stepacc suggest runs.jsonl --task refund | stepacc annotations check -

    Exit code 1: a file is bad; its message names entry, line, reference and key. What is valid and has no effect, such
    as an empty group, is told and is not bad.
    """  # noqa: D301 (click reads the backspace)
    good = True
    for path in files:
        found: tuple[Annotation, ...] = ()
        error = None
        try:
            found = read_annotations(path)
        except AnnotationError as refusal:
            good, error = False, str(refusal)
        if as_json:
            said = [_explained(annotation) for annotation in found]
            emit_json({"file": str(path), "annotations": len(found), "error": error, "explained": said})
        else:
            note(error or f"{INPUT if path == STDIN else path}: {counted(len(found), 'annotation')}, all well formed.")
            for annotation in found:
                tell_doubts(annotation)
                _print_words(annotation)
    sys.exit(0 if good else 1)


def tell_doubts(annotation: Annotation) -> None:
    """Warn of what a valid annotation says without effect."""
    for doubt in doubts(annotation):
        note(f"warning: {printable(f'{annotation.target}: {doubt}')}")


def _explained(annotation: Annotation) -> dict[str, Any]:
    target = annotation.target
    return {
        "target": {"type": target.type, "id": target.id},
        "partition_type": target.partition_type,
        "key": annotation.key,
        "words": list(explain(annotation)),
        "doubts": list(doubts(annotation)),
    }


def _print_words(annotation: Annotation) -> None:
    click.echo(f"\n{printable(str(annotation.target))}, {annotation.key}:")
    for line in explain(annotation):
        click.echo(f"  {printable(line)}")
