"""What one criterion of a gate came to, and the words for it."""

from dataclasses import dataclass
from typing import Literal

Status = Literal["passed", "failed", "refused"]
CriterionName = Literal["scored", "mean", "coverage", "forbidden", "baseline"]

_DIGITS = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one criterion came to.

    Attributes:
        name: the criterion.
        status: `refused` where it could not be judged, which does not pass either.
        reason: a part of a sentence, with the value and what was asked; where refused, with the way out.
        value: the value; None where there is none.
        required: what was asked.
    """

    name: CriterionName
    status: Status
    reason: str
    value: float | None
    required: float


def number(value: float) -> str:
    """Return a number as people read it."""
    return f"{value:.{_DIGITS}f}"


def some(count: int, noun: str) -> str:
    """Return a count with its noun, as `1 trace` or `2 traces`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listed(names: tuple[str, ...], shown: int = 3) -> str:
    """Return names in a row, the first few of them."""
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more
