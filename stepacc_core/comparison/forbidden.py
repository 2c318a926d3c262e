"""Forbidden steps, as the metadata of `agent.trajectory_match` tell them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Forbidden:
    """An occurrence in which something forbidden ran: names of steps, and sequences as `cancel > charge`."""

    partition_id: str
    steps: tuple[str, ...]


def forbidden_in(metadata: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the forbidden steps that ran; None where the metric that wrote the metadata does not look for them."""
    found = metadata.get("forbidden")
    if not isinstance(found, list):
        return None
    return tuple(each if isinstance(each, str) else " > ".join(map(str, each)) for each in found)
