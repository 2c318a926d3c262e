"""Scores of traces and sessions in Langfuse, by its public API.

A score has the id that we give it, so that writing it again takes its place. Langfuse has no way to say that there is
no number: what cannot be scored is not written, and removed where it was.
"""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from stepacc_dagster.errors import RefusedScoreError
from stepacc_dagster.storage.write_backs import DueScore
from stepacc_dagster.writeback import entries
from stepacc_dagster.writeback.http import Client

_SCORES = "/api/public/scores"
_NOT_FOUND = 404


class LangfuseDestination:
    """Writes numeric scores.

    Args:
        client: the server.
        source: name of the source.
    """

    batch_size = 1

    def __init__(self, client: Client, source: str) -> None:
        self._client = client
        self._source = source

    def check(self) -> None:
        """Ask for the project of the keys."""
        self._client.ask_json("GET", "/api/public/projects")

    def write(self, scores: Sequence[DueScore]) -> list[str]:
        """Write scores, one after the other."""
        for score in scores:
            if entries.value(score) is not None:
                self._client.ask("POST", _SCORES, json=langfuse_score(self._source, score))
            elif score.is_there:
                self._remove(entries.stable_id(self._source, score))
        return []

    def _remove(self, ident: str) -> None:
        try:
            self._client.ask("DELETE", f"{_SCORES}/{quote(ident, safe='')}")
        except RefusedScoreError as error:
            if error.status != _NOT_FOUND:  # it may have been removed before
                raise


def langfuse_score(source: str, score: DueScore) -> dict[str, Any]:
    """Return a score as Langfuse takes it; the version is in the name, by which Langfuse averages."""
    target = "traceId" if score.partition_type == "trace" else "sessionId"
    return {
        "id": entries.stable_id(source, score),
        target: score.partition_id,
        "name": f"{score.metric} {score.metric_version}",
        "value": entries.value(score),
        "dataType": "NUMERIC",
        "comment": entries.explanation(score),
        "metadata": entries.details(source, score),
    }
