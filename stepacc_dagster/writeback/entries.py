"""What is said of a score wherever it is written back."""

import math
import re
import uuid
from typing import Any

from stepacc_core.comparison.observations import SHOWN_HASH
from stepacc_dagster.storage.write_backs import DueScore

AUTHOR = "stepacc"
"""Who is named as the source of what is written."""

_PLAIN_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
_MLFLOW_ID = re.compile(r"tr-([0-9a-f]{32})", re.ASCII)
_NAMESPACE = uuid.UUID("0d4c1c6b-2a0e-5c5e-9a53-6b7c3d1f0b52")


def identifier(score: DueScore) -> str:
    """Return what tells scores of a metric apart: its version, and the beginning of the config's hash."""
    return f"{score.metric_version}+{score.config_hash[:SHOWN_HASH]}"


def stable_id(source: str, score: DueScore) -> str:
    """Return a UUID that is the same whenever a score of this occurrence, metric, version and config is written."""
    named = (source, score.partition_type, score.partition_id, score.metric, score.metric_version, score.config_hash)
    return str(uuid.uuid5(_NAMESPACE, "\x00".join(named)))


def value(score: DueScore) -> float | None:
    """Return the number that is written; None for what has no score, and for a score that JSON has no number for."""
    return score.score if score.score is not None and math.isfinite(score.score) else None


def label(score: DueScore) -> str | None:
    """Return in a few words why there is no number; None where there is one."""
    if value(score) is not None:
        return None
    if score.status == "failed":
        return f"failed: {score.code}"
    if score.status == "not_applicable":
        return f"not applicable: {score.reason}"
    return f"no number: {score.score}"


def explanation(score: DueScore) -> str:
    """Return the reasons of a score in a sentence: counts of steps, never what is in a trace."""
    parts = []
    if score.message:
        parts.append(score.message.rstrip("."))
    elif (why := label(score)) is not None:
        parts.append(why)
    if score.total_steps is not None and score.correct_steps is not None:
        parts.append(f"{score.correct_steps} of {score.total_steps} expected steps where they were due")
    if score.edit_distance is not None:
        parts.append(f"edit distance {score.edit_distance}")
    if score.annotation_revision is not None:
        parts.append(f"measured against revision {score.annotation_revision} of the annotation")
    parts.append(f"{score.metric} {score.metric_version}, config {score.config_hash[:SHOWN_HASH]}")
    return "; ".join(parts) + "."


def details(source: str, score: DueScore) -> dict[str, Any]:
    """Return what leads from a score that was written back to where it is kept."""
    told = {
        "written_by": AUTHOR,
        "source": source,
        "partition_type": score.partition_type,
        "metric_version": score.metric_version,
        "config_hash": score.config_hash,
        "status": score.status,
        "score_id": score.score_id,
        "annotation_revision": score.annotation_revision,
        "dagster_run_id": score.dagster_run_id,
    }
    return {name: said for name, said in told.items() if said is not None}


def otel_trace_id(trace_id: str) -> str:
    """Return the id of a trace as OpenTelemetry has it, where MLflow gave it another form."""
    found = _MLFLOW_ID.fullmatch(trace_id)
    return found[1] if found else trace_id


def mlflow_trace_id(trace_id: str) -> str:
    """Return the id of a trace as MLflow has it, where it is that of OpenTelemetry."""
    return f"tr-{trace_id}" if _PLAIN_ID.fullmatch(trace_id) else trace_id
