"""What `stepacc lineage --json` prints: one document for each annotation revision, trace or session."""

import dataclasses
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from stepacc_dagster.cli.configured import Configured
from stepacc_dagster.storage.annotations import StoredAnnotation
from stepacc_dagster.storage.lineage import (
    AnnotationLineage,
    Revision,
    Score,
    ScoreLineage,
    SessionLineage,
    TraceLineage,
)
from stepacc_dagster.storage.occurrences import Landed, SessionRow, TraceRow


def annotation_document(lineage: AnnotationLineage, revisions: Sequence[StoredAnnotation]) -> dict[str, Any]:
    """Return the document of an annotation revision; `revisions` are all of what it says something of."""
    return {
        "source": lineage.source,
        **_said(lineage.revision),
        "revisions": [
            {"id": each.id, "revision": each.revision, "author": each.author, "created_at": _iso(each.created_at)}
            for each in revisions
        ],
        "scores": [_fields(score) for score in lineage.scores],
    }


def trace_document(lineage: TraceLineage, configured: Configured | None) -> dict[str, Any]:
    """Return the document of a trace; `configured` is its source, None where that is not configured here."""
    return {
        "source": lineage.occurrence.source,
        "trace_id": lineage.occurrence.id,
        "trace": lineage.row and _fields(lineage.row),
        "store": configured and _store(configured),
        "url": configured and configured.link(lineage.occurrence.id),
        "landed": lineage.landed and _fields(lineage.landed),
        "evaluations": _evaluations(lineage.evaluations, configured),
    }


def session_document(lineage: SessionLineage, configured: Configured | None) -> dict[str, Any]:
    """Return the document of a session; `configured` is its source, None where that is not configured here."""
    return {
        "source": lineage.occurrence.source,
        "session_id": lineage.occurrence.id,
        "session": lineage.row and _fields(lineage.row),
        "store": configured and _store(configured),
        "traces": [_fields(row) for row in lineage.traces],
        "evaluations": _evaluations(lineage.evaluations, configured),
    }


def config_of(score: Score, configured: Configured | None) -> dict[str, Any] | None:
    """Return the config of an evaluation: as it was kept, else as the source has it now; None where neither is."""
    config = score.config
    if config is None and configured is not None:
        config = configured.config_of(score)
    return None if config is None else dict(config)


def _evaluations(evaluations: Sequence[ScoreLineage], configured: Configured | None) -> list[dict[str, Any]]:
    return [
        {
            **_fields(each.score),
            "config": config_of(each.score, configured),
            "annotation": each.revision and _said(each.revision),
        }
        for each in evaluations
    ]


def _store(configured: Configured) -> dict[str, Any]:
    return {**dataclasses.asdict(configured.place), "database_url_env": configured.url_env}


def _said(revision: Revision) -> dict[str, Any]:
    return {
        "id": revision.id,
        "revision": revision.revision,
        "target": {"type": revision.target_type, "id": revision.target_id},
        "partition_type": revision.partition_type,
        revision.key: revision.value,
        "withdrawn": revision.withdrawn,
        "in_force": revision.in_force,
        "author": revision.author,
        "note": revision.note,
        "origin": revision.origin,
        "created_at": _iso(revision.created_at),
        "erased_at": revision.erased_at and _iso(revision.erased_at),
    }


def _fields(row: Score | TraceRow | SessionRow | Landed) -> dict[str, Any]:
    values = {each.name: getattr(row, each.name) for each in dataclasses.fields(row)}
    return {name: _iso(value) if isinstance(value, datetime) else value for name, value in values.items()}


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()
