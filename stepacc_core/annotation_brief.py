"""Annotations in one line, for lists of many."""

from collections.abc import Iterator, Sequence
from typing import Any

from stepacc_core.annotations import EXPECTED_STEPS_KEY
from stepacc_core.errors import ScoringError
from stepacc_core.references.model import ReferenceElement, ReferenceGroup, TaskReferences
from stepacc_core.references.parse import parse_references
from stepacc_core.trajectory import parse_trajectory

_NAMED = 3
"""Elements that are named where there are more."""
_LONGEST_NAME = 30


def brief(key: str, value: Any) -> str:
    """Return in a few words what an annotation says, with how many steps or references it has.

    Args:
        key: `expected_steps` or `reference_trajectories`.
        value: what is stored under it; what is not valid is said to be so.
    """
    try:
        return _steps(value) if key == EXPECTED_STEPS_KEY else _references(value)
    except ScoringError as error:
        return f"not valid ({error.code.value})"


def _steps(value: Any) -> str:
    trajectory = parse_trajectory(value)
    elements = [each if isinstance(each, str) else each.members for each in trajectory.elements]
    return f"{_counted(trajectory.total_steps, 'step')}: {_listed(elements)}"


def _references(value: Any) -> str:
    references = parse_references(value)
    told = [f"{each.name} {_listed([*map(_names, each.elements)]) or 'nothing'}" for each in references.references]
    shown = "; ".join(told[:1]) + (f" and {len(told) - 1} more" if len(told) > 1 else "")
    return f"{_counted(len(told), 'reference')}, {references.match}{''.join(_also(references))}: {shown}"


def _also(references: TaskReferences) -> Iterator[str]:
    if references.forbidden:
        yield f", {len(references.forbidden)} forbidden"
    if references.final_answer is not None:
        yield ", answer checked"


def _names(element: ReferenceElement) -> str | tuple[str, ...]:
    if isinstance(element, ReferenceGroup):
        return tuple(member.name for member in element.members)
    return element.name


def _listed(elements: Sequence[str | tuple[str, ...]]) -> str:
    more = [f"and {len(elements) - _NAMED} more"] if len(elements) > _NAMED else []
    return ", ".join([*map(_element, elements[:_NAMED]), *more])


def _element(element: str | tuple[str, ...]) -> str:
    if isinstance(element, str):
        return element if len(element) <= _LONGEST_NAME else f"{element[: _LONGEST_NAME - 1]}…"
    members = [_element(name) for name in element[:_NAMED]]
    more = ["…"] if len(element) > _NAMED else []
    return f"[{', '.join([*members, *more])}]"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
