"""Assessments of traces in MLflow 3, by its REST API.

MLflow gives each assessment an id of its own, so that logging one again would make a second: what is there is looked
for first. That of a session is on its first trace, with the session in its metadata, where MLflow's own evaluation of
sessions puts them.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from stepacc_dagster.errors import RefusedScoreError
from stepacc_dagster.storage.write_backs import DueScore
from stepacc_dagster.writeback import entries
from stepacc_dagster.writeback.http import Client

_SESSION = "mlflow.trace.session"
_TRACES = "/api/3.0/mlflow/traces"
_UPDATED = ("feedback", "rationale", "metadata")


class MlflowDestination:
    """Writes scores as assessments.

    Args:
        client: the server; a POST whose answer was lost must not be sent again unseen.
        source: name of the source.
    """

    batch_size = 1

    def __init__(self, client: Client, source: str) -> None:
        self._client = client
        self._source = source

    def check(self) -> None:
        """Ask for something that only an MLflow server answers, and only those it knows."""
        self._client.ask_json("GET", "/api/2.0/mlflow/experiments/search", parameters={"max_results": "1"})

    def write(self, scores: Sequence[DueScore]) -> list[str]:
        """Write scores, one after the other: each in the place of an earlier one of its version and config."""
        for score in scores:
            if score.trace_id is None:
                msg = "the first trace of the session is not known"
                raise RefusedScoreError(msg, 404)
            self._write(entries.mlflow_trace_id(score.trace_id), assessment(self._source, score))
        return []

    def _write(self, trace_id: str, told: dict[str, Any]) -> None:
        path = f"{_TRACES}/{quote(trace_id, safe='')}"
        info = self._client.ask_json("GET", path).get("trace", {}).get("trace_info", {})
        there = [each["assessment_id"] for each in info.get("assessments", []) if is_same(each, told)]
        if not there:
            self._client.ask("POST", f"{path}/assessments", json={"assessment": {**told, "trace_id": trace_id}})
            return
        changed = {name: told[name] for name in _UPDATED}
        body = {"assessment": {**changed, "trace_id": trace_id}, "update_mask": ",".join(_UPDATED)}
        self._client.ask("PATCH", f"{path}/assessments/{quote(there[0], safe='')}", json=body)


def assessment(source: str, score: DueScore) -> dict[str, Any]:
    """Return a score as MLflow takes it; the version is in the name, by which MLflow averages."""
    metadata = {name: str(said) for name, said in entries.details(source, score).items()}
    if score.partition_type == "session":
        metadata[_SESSION] = score.partition_id
    number = entries.value(score)
    if number is not None:
        feedback: dict[str, Any] = {"value": number}
    else:
        why = score.code or score.reason or "not_a_number"
        feedback = {"error": {"error_code": why, "error_message": entries.explanation(score)}}
    return {
        "assessment_name": f"{score.metric} {score.metric_version}",
        "source": {"source_type": "CODE", "source_id": f"{entries.AUTHOR} {source} {entries.identifier(score)}"},
        "feedback": feedback,
        "rationale": entries.explanation(score),
        "metadata": metadata,
    }


def is_same(there: Mapping[str, Any], told: Mapping[str, Any]) -> bool:
    """Whether an assessment that is there is the one that would be written, with whatever result."""
    metadata = there.get("metadata", {})
    pairs = (
        (there.get("assessment_name"), told["assessment_name"]),
        (there.get("source", {}).get("source_id"), told["source"]["source_id"]),
        *((metadata.get(name), told["metadata"].get(name)) for name in ("config_hash", _SESSION)),
    )
    return all(found == wanted for found, wanted in pairs)
