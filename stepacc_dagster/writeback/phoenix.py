"""Annotations of traces and sessions in Arize Phoenix, by its REST API of version 14 or newer.

Phoenix has one annotation per name, identifier and trace or session: writing it again takes its place.
"""

from collections.abc import Sequence
from typing import Any

from stepacc_core.model import PartitionType
from stepacc_dagster.storage.write_backs import DueScore
from stepacc_dagster.writeback import entries
from stepacc_dagster.writeback.http import Client

_DOORS: dict[PartitionType, tuple[str, str]] = {
    "trace": ("/v1/trace_annotations", "trace_id"),
    "session": ("/v1/session_annotations", "session_id"),
}


class PhoenixDestination:
    """Writes scores as annotations.

    Args:
        client: the server.
        source: name of the source.
    """

    batch_size = 100

    def __init__(self, client: Client, source: str) -> None:
        self._client = client
        self._source = source

    def check(self) -> None:
        """Ask for something that only a Phoenix server answers, and only those it knows."""
        self._client.ask_json("GET", "/v1/projects", parameters={"limit": "1"})

    def write(self, scores: Sequence[DueScore]) -> list[str]:
        """Write scores; none of a kind where one of them is refused, as when its trace is not there."""
        for kind, (door, _) in _DOORS.items():
            if data := [annotation(self._source, score) for score in scores if score.partition_type == kind]:
                self._client.ask("POST", door, json={"data": data}, parameters={"sync": "true"})
        return []


def annotation(source: str, score: DueScore) -> dict[str, Any]:
    """Return a score as Phoenix takes it."""
    ident = entries.otel_trace_id(score.partition_id) if score.partition_type == "trace" else score.partition_id
    result = {
        "score": entries.value(score),
        "label": entries.label(score),
        "explanation": entries.explanation(score),
    }
    return {
        _DOORS[score.partition_type][1]: ident,
        "name": score.metric,
        "identifier": entries.identifier(score),
        "annotator_kind": "CODE",
        "result": {name: said for name, said in result.items() if said is not None},
        "metadata": entries.details(source, score),
    }
