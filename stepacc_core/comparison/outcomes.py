"""What one criterion of a gate came to, and the words for it."""

from dataclasses import dataclass
from typing import Literal

Status = Literal["passed", "failed", "refused"]
CriterionName = Literal["scored", "mean", "coverage", "forbidden", "baseline"]

_DIGITS = 3
_TIE = 1e-9
"""A value this far below what was asked meets it; such differences are of rounding."""


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


def meets(value: float, least: float) -> bool:
    """Tell whether a value is at least what was asked."""
    return value >= least - _TIE


def number_below(value: float, least: float) -> str:
    """Return a number that does not meet what was asked, with as many digits as it takes to see that."""
    digits = _DIGITS
    while float(f"{value:.{digits}f}") >= least and value < least:
        digits += 1
    return f"{value:.{digits}f}"


def some(count: int, noun: str) -> str:
    """Return a count with its noun, as `1 trace` or `2 traces`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listed(names: tuple[str, ...], shown: int = 3) -> str:
    """Return names in a row, the first few of them."""
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more
