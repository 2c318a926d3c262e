"""Whose a span is: the sessions and users that its attributes name, in whatever convention."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stepacc_core.conventions.values import identifier, lookup, may_hold
from stepacc_core.model import RawSpan
from stepacc_core.reading import SESSION_ID_ATTRIBUTES

USER_ID_ATTRIBUTES = (
    "user.id",
    "enduser.id",
    "enduser.pseudo.id",
    "langfuse.user.id",
    "traceloop.association.properties.user_id",
    "gcp.vertex.agent.user_id",
    "mlflow.trace.user",
    "langsmith.metadata.user_id",
    "ai.telemetry.metadata.userId",
    "metadata.user_id",
    "metadata.langfuse_user_id",
)
"""Where a user's id is looked for: OpenTelemetry (and OpenInference, Langfuse and Phoenix by it), its older name and
its pseudonym, then what single frameworks and stores write."""


class _Names:
    """Attributes that may name somebody, with the attributes in which to look for them."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = tuple(paths)
        self.holders = frozenset[str]().union(*map(may_hold, paths))

    def found_in(self, attributes: Mapping[str, Any]) -> Iterator[str]:
        if not self.holders.isdisjoint(attributes):
            for path in self.paths:
                ident = identifier(lookup(attributes, path))
                if ident is not None:
                    yield ident


_SESSIONS = _Names(SESSION_ID_ATTRIBUTES)
_USERS = _Names(USER_ID_ATTRIBUTES)


def sessions_named(span: RawSpan) -> set[str]:
    """Return the ids of all sessions that a span names, in its attributes."""
    return set(_SESSIONS.found_in(span.attributes))


def users_named(span: RawSpan) -> set[str]:
    """Return the ids of all users that a span names, in its attributes, its resource or its events."""
    holders = (span.attributes, span.resource, *(event.attributes for event in span.events))
    return {ident for holder in holders for ident in _USERS.found_in(holder)}
