"""Forbidden steps, as the metadata of `agent.trajectory_match` tell them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Forbidden:
    """An occurrence in which something forbidden ran: names of steps, and sequences as `cancel > charge`."""

    partition_id: str
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ForbiddenSearch:
    """What came of looking for forbidden steps.

    Attributes:
        found: the occurrences in which something forbidden ran.
        looked_at: how many were looked at: those that are scored.
        failed: how many failed, so that nobody looked.
        not_applicable: how many the metric does not apply to, so that nobody looked.
        erased: how many were scored, and what was found in them was erased.
        without_row: how many were not evaluated.
    """

    found: tuple[Forbidden, ...] = ()
    looked_at: int = 0
    failed: int = 0
    not_applicable: int = 0
    erased: int = 0
    without_row: int = 0

    @property
    def unseen(self) -> dict[str, int]:
        """How many of the known occurrences nothing is known of, and why; only where there are any."""
        counts = {
            "failed": self.failed,
            "not applicable": self.not_applicable,
            "erased": self.erased,
            "without an evaluation": self.without_row,
        }
        return {why: count for why, count in counts.items() if count}


def forbidden_in(metadata: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the forbidden steps that ran; None where the metric that wrote the metadata does not look for them."""
    found = metadata.get("forbidden")
    if not isinstance(found, list):
        return None
    return tuple(each if isinstance(each, str) else " > ".join(map(str, each)) for each in found)
