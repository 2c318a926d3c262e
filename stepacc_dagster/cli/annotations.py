"""`stepacc annotations`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.box import SIMPLE
from rich.table import Table

from stepacc_core.annotation_brief import brief
from stepacc_core.annotations import EXPECTED_STEPS_KEY, KEYS, Annotation, TargetType
from stepacc_core.errors import AnnotationError
from stepacc_core.model import PartitionType
from stepacc_dagster.cli.annotation_check import check, tell_doubts
from stepacc_dagster.cli.annotation_input import annotation_files, name_of, read_annotations
from stepacc_dagster.cli.output import cell, counted, emit_json, json_option, note, print_table
from stepacc_dagster.cli.redacting import redactors, source_redactor, stored_forms
from stepacc_dagster.cli.sources import source_option, source_or_only
from stepacc_dagster.redaction.entries import redacted_entry
from stepacc_dagster.storage.annotations import (
    Added,
    AnnotationEntry,
    StoredAnnotation,
    add_annotations,
    list_annotations,
    withdraw,
)
from stepacc_dagster.storage.opening import open_storage

_SAID, _LONGEST = 70, 30
"""Characters of what is said, and of an author or note, in a list; --json has them whole."""

_target_type = click.option(
    "--type",
    "target_type",
    type=click.Choice(["trace", "session", "task"]),
    default="task",
    show_default=True,
    help="What TARGET_ID is the id of.",
)
_partition_type = click.option(
    "--partition-type",
    type=click.Choice(["trace", "session"]),
    help="What a task's annotation is used for; trace where left out.",
)


_key = click.option(
    "--key",
    type=click.Choice(KEYS),
    default=EXPECTED_STEPS_KEY,
    show_default=True,
    help="Which of a target's annotations.",
)


@click.group()
def annotations() -> None:
    """Import, check, list and withdraw expected steps and reference trajectories."""


annotations.add_command(check)


@annotations.command()
@json_option
def schema(*, as_json: bool) -> None:  # noqa: ARG001 (every command has it; a schema is JSON in any case)
    """Print the JSON Schema of annotation files.

    \b
    Example:
      stepacc annotations schema > annotations.schema.json

    An editor completes and checks a YAML file whose first line is
    `# yaml-language-server: $schema=annotations.schema.json`, and a JSON file with the key `$schema`.
    """  # noqa: D301 (click reads the backspace)
    from stepacc_core.annotation_schema import annotation_schema  # noqa: PLC0415 (other commands do not wait for it)

    click.echo(json.dumps(annotation_schema(), ensure_ascii=False, indent=2))


@annotations.command("import", short_help="Store annotations as revisions.")
@annotation_files
@source_option
@click.option("--author", default="", help="Author of entries that name none.")
@click.option("--confirm", is_flag=True, help="Take suggestions (`confirmed: false`) too: you have looked at them.")
@json_option
def import_(files: tuple[Path, ...], source: str | None, author: str, *, confirm: bool, as_json: bool) -> None:
    """Store the annotations of FILES as revisions; one bad entry in any of them, and nothing is stored.

    `expected_steps` and `reference_trajectories` of one entry are revisioned apart. Secrets and personal data in them
    are redacted as in traces, so that equal values stay equal: see docs/redaction.md. What `stepacc suggest` wrote is
    refused without --confirm. - stands for standard input.

    Exit code 1: nothing is stored.

    \b
    stepacc annotations import --source support_agent expected.yaml
    stepacc annotations import --source support_agent --confirm suggested.yaml
    python make_annotations.py | stepacc annotations import --source support_agent -
    """  # noqa: D301 (click reads the backspace)
    read = [(path, annotation) for path in files for annotation in read_annotations(path)]
    if not confirm:
        _refuse_suggestions(read)
    default = source or ("" if all(annotation.source for _, annotation in read) else source_or_only(None))
    entries = [
        AnnotationEntry.of(annotation, source=default, author=author, origin=name_of(path)) for path, annotation in read
    ]
    for _, annotation in read:
        tell_doubts(annotation)
    with open_storage() as engine:
        redactor_of = redactors(engine)
        entries = [redacted_entry(entry, redactor_of(entry.source)) for entry in entries]
        with engine.begin() as connection:
            added = add_annotations(connection, entries)
    if as_json:
        for entry, revision in zip(entries, added, strict=True):
            emit_json({"source": entry.source, "target": _target(entry), "key": entry.key, **_revision(revision)})
    else:
        new, names = sum(revision.new for revision in added), sorted({entry.source for entry in entries})
        note(
            f"{counted(len(added), 'annotation')} of source {', '.join(f'`{name}`' for name in names)}: "
            f"{counted(new, 'new revision')}, {len(added) - new} in force already."
        )


@annotations.command("list", short_help="List the annotations in force of a source.")
@source_option
@click.option("--history", is_flag=True, help="All revisions, withdrawn ones too, oldest first.")
@json_option
def list_(source: str | None, *, history: bool, as_json: bool) -> None:
    """List the annotations in force of a source, each in a line; --json has them whole.

    \b
    stepacc annotations list --source support_agent
    stepacc annotations list --source support_agent --history --json
    """  # noqa: D301 (click reads the backspace)
    with open_storage() as engine, engine.connect() as connection:
        name = source_or_only(source)
        stored = list_annotations(connection, name, history=history)
    if as_json:
        for annotation in stored:
            emit_json(_document(annotation))
        return
    table = Table(title=cell(f"source {name}"), title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0))
    for column in ("id", "rev", "target", "says", "author", "note"):
        table.add_column(column, no_wrap=True)
    for annotation in stored:
        of = " (sessions)" if (annotation.target_type, annotation.partition_type) == ("task", "session") else ""
        says = "(withdrawn)" if annotation.withdrawn else brief(annotation.key, annotation.value)
        table.add_row(
            str(annotation.id),
            str(annotation.revision),
            cell(f"{annotation.target_type} {annotation.target_id}{of}"),
            cell(_short("(erased)" if annotation.erased_at else says, _SAID)),
            cell(_short(annotation.author, _LONGEST)),
            cell(_short(annotation.note, _LONGEST)),
        )
    print_table(table)


@annotations.command("withdraw", short_help="Take back what is in force of a target.")
@click.argument("target_id")
@_target_type
@_partition_type
@_key
@source_option
@click.option("--author", default="", help="Who takes it back.")
@click.option("--note", "reason", default="", help="Why.")
@json_option
def withdraw_(  # noqa: PLR0913, PLR0917 (one parameter for each option)
    target_id: str,
    target_type: TargetType,
    partition_type: PartitionType | None,
    key: str,
    source: str | None,
    author: str,
    reason: str,
    *,
    as_json: bool,
) -> None:
    """Take back what is in force of TARGET_ID, by a revision of its own; earlier revisions stay.

    \b
    stepacc annotations withdraw --source support_agent task:refund
    """  # noqa: D301 (click reads the backspace)
    own: PartitionType = "session" if target_type == "session" else "trace"
    name = source_or_only(source)
    with open_storage() as engine:
        redactor = source_redactor(engine, name)
        forms = (target_id,) if target_type == "trace" else stored_forms(engine, target_id, name)
        with engine.begin() as connection:
            withdrawals = (
                withdraw(
                    connection,
                    name,
                    target_type,
                    form,
                    partition_type=partition_type or own,
                    key=key,
                    author=author,
                    note=redactor.text(reason) if redactor else reason,
                    origin="stepacc annotations withdraw",
                )
                for form in forms
            )
            revision = next((each for each in withdrawals if each is not None), None)
    if revision is None:
        msg = (
            f"No `{key}` are in force of {target_type} `{target_id}` for {partition_type or own} partitions in source "
            f"`{name}`; see `stepacc annotations list`."
        )
        raise AnnotationError(msg)
    if as_json:
        target = {"type": target_type, "id": target_id}
        emit_json({"source": name, "target": target, "key": key, **_revision(revision)})
    else:
        note(
            f"Withdrawn in source `{name}`: the `{key}` of {target_type} `{target_id}`, "
            f"by revision {revision.revision} (annotation {revision.id})."
        )


def _refuse_suggestions(read: Sequence[tuple[Path, Annotation]]) -> None:
    suggested = [f"{name_of(path)}, {annotation.target}" for path, annotation in read if not annotation.confirmed]
    if suggested:
        more = f" and {len(suggested) - 1} more" if len(suggested) > 1 else ""
        msg = (
            f"Nothing is stored, since nobody has confirmed a suggestion ({suggested[0]}{more}). Read what it says "
            "(`stepacc annotations check`), correct it, and import it with --confirm."
        )
        raise AnnotationError(msg)


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _target(entry: AnnotationEntry) -> dict[str, str]:
    return {"type": entry.target_type, "id": entry.target_id}


def _revision(added: Added) -> dict[str, Any]:
    return {"id": added.id, "revision": added.revision, "new": added.new}


def _document(annotation: StoredAnnotation) -> dict[str, Any]:
    return {
        "id": annotation.id,
        "revision": annotation.revision,
        "target": {"type": annotation.target_type, "id": annotation.target_id},
        "partition_type": annotation.partition_type,
        annotation.key: annotation.value,
        "withdrawn": annotation.withdrawn,
        "erased_at": annotation.erased_at and annotation.erased_at.isoformat(),
        "author": annotation.author,
        "note": annotation.note,
        "origin": annotation.origin,
        "created_at": annotation.created_at.isoformat(),
    }
