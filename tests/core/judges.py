"""Judges of answers, as users write them."""

import math
import sys
from typing import Any

from stepacc_core.references import ReferenceTrajectory


def contains_task(*, task: str | None, answer: Any, reference: ReferenceTrajectory | None) -> bool:
    """Right where the answer names the task."""
    del reference
    return task is not None and task in answer


def mostly(**_: Any) -> float:
    """Rather right."""
    return 0.75


def hardly(**_: Any) -> float:
    """Rather wrong."""
    return 0.25


def knows_reference(*, task: str | None, answer: Any, reference: ReferenceTrajectory | None) -> bool:
    """Right where the reference is the one of the cases."""
    del task, answer
    return reference is not None and reference.name == "by_order_id"


class Bench:
    """A judge among others."""

    @staticmethod
    def judge(**_: Any) -> bool:
        """Right."""
        return True


def raises(**_: Any) -> bool:
    """Fail."""
    return 1 / 0 > 0


def says_text(**_: Any) -> str:
    """Say yes in a word."""
    return "yes"


def says_nothing(**_: Any) -> None:
    """Forget to return."""


def too_much(**_: Any) -> float:
    """Go beyond one."""
    return 1.5


def far_too_much(**_: Any) -> int:
    """Return what no float can hold."""
    return 10**400


def exits(**_: Any) -> bool:
    """End as a program does."""
    return bool(sys.exit(3))


def not_a_number(**_: Any) -> float:
    """Return no number."""
    return math.nan


def other_words(question: str) -> bool:
    """Take other words."""
    return bool(question)
