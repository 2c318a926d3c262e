"""`stepacc lineage`."""

from contextlib import suppress
from typing import get_args

import click
import sqlalchemy as sa

from stepacc_core.annotations import TargetType
from stepacc_dagster.cli.configured import configured_sources
from stepacc_dagster.cli.lineage_json import annotation_document, session_document, trace_document
from stepacc_dagster.cli.lineage_text import annotation_text, session_text, trace_text
from stepacc_dagster.cli.occurrences import named_occurrences
from stepacc_dagster.cli.output import emit_json, json_option, out
from stepacc_dagster.cli.redacting import stored_forms
from stepacc_dagster.errors import UnknownIdError
from stepacc_dagster.storage.annotations import StoredAnnotation, list_annotations
from stepacc_dagster.storage.lineage import (
    AnnotationLineage,
    annotation_lineage,
    session_lineage,
    target_lineage,
    trace_lineage,
)
from stepacc_dagster.storage.opening import open_storage

_LARGEST_ID = 2**63 - 1

_source = click.option("--source", help="Look in this source only; in all where left out.")


def _target(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[TargetType, str] | None:
    if value is None:
        return None
    given, _, ident = value.partition(":")
    kind: TargetType
    for kind in get_args(TargetType):
        if kind == given and ident:
            return kind, ident
    msg = f"{value!r} is no target; write trace:ID, session:ID or task:ID."
    raise click.BadParameter(msg)


@click.group()
def lineage() -> None:
    """Show which scores used an annotation, and what the scores of a trace or session were made from."""


@lineage.command()
@click.argument("annotation_id", metavar="[ID]", required=False, type=click.IntRange(1, _LARGEST_ID))
@click.option(
    "--target", callback=_target, metavar="TYPE:ID", help="All revisions about a target, such as task:refund."
)
@_source
@json_option
def annotation(
    annotation_id: int | None, target: tuple[TargetType, str] | None, source: str | None, *, as_json: bool
) -> None:
    """Show what annotation ID says, and every score that used it.

    An annotation is one revision. `stepacc annotations list --history` shows the ids.

    \b
    stepacc lineage annotation 17
    stepacc lineage annotation --target task:refund
    """  # noqa: D301 (click reads the backspace)
    if (annotation_id is None) == (target is None):
        msg = "Give either the ID of an annotation or --target TYPE:ID."
        raise click.UsageError(msg)
    with open_storage() as engine, engine.connect() as connection:
        found = _about(engine, connection, *target, source) if target else []
        if annotation_id is not None:
            found = [annotation_lineage(connection, annotation_id, source)]
        revisions = [_revisions(connection, each) for each in found]
    for each, others in zip(found, revisions, strict=True):
        if as_json:
            emit_json(annotation_document(each, others))
        else:
            out().print(annotation_text(each, others))


@lineage.command()
@click.argument("trace_id", metavar="ID")
@_source
@json_option
def trace(trace_id: str, source: str | None, *, as_json: bool) -> None:
    """Show where a trace came from, and all its scores.

    Each score comes with the annotation revision, metric version, config and Dagster run behind it.

    ID is the trace's id or the beginning of it. `stepacc scores --trace ID --picture` draws the alignments.

    \b
    stepacc lineage trace 4bf92f35
    """  # noqa: D301 (click reads the backspace)
    with open_storage() as engine, engine.connect() as connection:
        occurrences = named_occurrences(engine, connection, "trace", trace_id, source)
        found = [trace_lineage(connection, occurrence) for occurrence in occurrences]
    configured = configured_sources()
    for each in found:
        own = configured.get(each.occurrence.source)
        if as_json:
            emit_json(trace_document(each, own))
        else:
            out().print(trace_text(each, own))


@lineage.command()
@click.argument("session_id", metavar="ID")
@_source
@json_option
def session(session_id: str, source: str | None, *, as_json: bool) -> None:
    """Show the traces of a session, and all its scores.

    Each score comes with the annotation revision, metric version, config and Dagster run behind it.

    ID is the session's id or the beginning of it. `stepacc scores --session ID --picture` draws the alignments.

    \b
    stepacc lineage session chat-42
    """  # noqa: D301 (click reads the backspace)
    with open_storage() as engine, engine.connect() as connection:
        occurrences = named_occurrences(engine, connection, "session", session_id, source)
        found = [session_lineage(connection, occurrence) for occurrence in occurrences]
    configured = configured_sources()
    for each in found:
        own = configured.get(each.occurrence.source)
        if as_json:
            emit_json(session_document(each, own))
        else:
            out().print(session_text(each, own))


def _about(
    engine: sa.Engine, connection: sa.Connection, kind: TargetType, ident: str, source: str | None
) -> list[AnnotationLineage]:
    """Return the revisions about a target, by the first form of its id by which there are any."""
    for form in stored_forms(engine, ident, source)[:-1] if kind != "trace" else ():
        with suppress(UnknownIdError):
            return target_lineage(connection, kind, form, source)
    return target_lineage(connection, kind, ident, source)


def _revisions(connection: sa.Connection, lineage: AnnotationLineage) -> list[StoredAnnotation]:
    """Return all revisions of what an annotation says something of."""
    one = lineage.revision
    history = list_annotations(
        connection, lineage.source, target_type=one.target_type, target_id=one.target_id, history=True
    )
    return [each for each in history if (each.partition_type, each.key) == (one.partition_type, one.key)]
