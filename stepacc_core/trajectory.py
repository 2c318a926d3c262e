"""Expected steps: parsing and validating a trajectory (contract of `agent.step_accuracy`, section 2)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stepacc_core.errors import FailureCode, ScoringError
from stepacc_core.shown import shown


@dataclass(frozen=True, slots=True)
class Group:
    """Expected steps that may come in any order, consecutively; a multiset of names."""

    members: tuple[str, ...]


Element = str | Group


@dataclass(frozen=True, slots=True)
class Trajectory:
    """A valid sequence of plain steps and groups with at least one step in all."""

    elements: tuple[Element, ...]
    total_steps: int
    """Steps in all, a group's members counted one by one."""
    has_groups: bool

    def authored(self) -> list[str | list[str]]:
        """Return the trajectory as its author wrote it: names, and lists of names for groups."""
        return [e if isinstance(e, str) else list(e.members) for e in self.elements]


def parse_trajectory(value: Any) -> Trajectory:
    """Turn authored expected steps into a trajectory.

    Args:
        value: a list whose elements are names or lists of names, or JSON text of such a list.

    Raises:
        ScoringError: `invalid_annotation_json` for text that is no JSON, `nested_group` for a group in a group,
            `invalid_expected_steps` for anything else that is not a trajectory with at least one step.
    """
    if isinstance(value, str):
        value = _parse_json(value)
    if not _is_list(value):
        msg = f"Expected steps must be a list of names and lists of names, not {shown(value)}; write [first, second]."
        raise ScoringError(FailureCode.INVALID_EXPECTED_STEPS, msg)
    elements: list[Element] = []
    total = 0
    has_groups = False
    for index, element in enumerate(value):
        if isinstance(element, str) and element:
            elements.append(element)
            total += 1
        elif _is_list(element):
            elements.append(_parse_group(index, element))
            total += len(element)
            has_groups = True
        else:
            raise _bad_name((index,), element)
    if not total:
        msg = f"Expected steps {shown(value)} hold no step, so there is nothing to score against; name at least one."
        raise ScoringError(FailureCode.INVALID_EXPECTED_STEPS, msg)
    return Trajectory(tuple(elements), total, has_groups)


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        msg = f"Expected steps {shown(text)} are not valid JSON ({error}); write a JSON list of names."
        raise ScoringError(FailureCode.INVALID_ANNOTATION_JSON, msg) from None


def _parse_group(index: int, members: Sequence[Any]) -> Group:
    for position, member in enumerate(members):
        if isinstance(member, str) and member:
            continue
        if _is_list(member):
            msg = (
                f"expected_steps[{index}][{position}] is a group inside a group, {shown(member)}; "
                "groups have one level, so list its members in the outer group."
            )
            raise ScoringError(FailureCode.NESTED_GROUP, msg)
        raise _bad_name((index, position), member)
    return Group(tuple(members))


def _bad_name(path: tuple[int, ...], value: Any) -> ScoringError:
    where = "".join(f"[{index}]" for index in path)
    msg = f"expected_steps{where} is {shown(value)}; a step is a non-empty name, and a group is a list of names."
    return ScoringError(FailureCode.INVALID_EXPECTED_STEPS, msg)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)
