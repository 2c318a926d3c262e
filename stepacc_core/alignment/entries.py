"""The entries of an alignment, in the form of the metadata (contract of `agent.step_accuracy`, section 5)."""

from collections.abc import Sequence
from itertools import count
from typing import Any

from stepacc_core.alignment.choice import Span
from stepacc_core.alignment.matching import NOTHING, claims
from stepacc_core.alignment.plain import Edit
from stepacc_core.alignment.relation import Pattern
from stepacc_core.model import Step
from stepacc_core.trajectory import Group, Trajectory

Entry = dict[str, Any]


def entries(
    trajectory: Trajectory, steps: Sequence[Step], patterns: Sequence[Pattern], spans: Sequence[Span]
) -> list[Entry]:
    """Write out an alignment.

    Args:
        trajectory: the expected steps.
        steps: the observed steps.
        patterns: the pattern of each element.
        spans: what each element takes, empty groups left out.
    """
    found: list[Entry] = []
    names = [step.name for step in steps]
    done = 0
    indices: Sequence[int] = range(len(patterns))
    if trajectory.has_groups:
        indices = [index for index in indices if patterns[index] != ()]
    elements = trajectory.elements
    for index, (start, end) in zip(indices, spans, strict=True):
        element, pattern = elements[index], patterns[index]
        if done < start:
            found += _extra(names, done, start)
        done = end
        if isinstance(pattern, tuple):
            members = element.members if isinstance(element, Group) else ()
            found += _group(index, members, claims(pattern, start, end), start, names)
        elif start == end:
            found.append(_entry("delete", element, None, index, None))
        else:
            found.append(
                {
                    "op": "match" if pattern >> start & 1 else "substitute",
                    "expected": element,
                    "actual": names[start],
                    "expected_index": index,
                    "actual_index": start,
                }
            )
    if done < len(names):
        found += _extra(names, done, len(names))
    return found


def plain_entries(trajectory: Trajectory, names: Sequence[str], edits: Sequence[Edit]) -> list[Entry]:
    """Write out an alignment without groups, given the names of the observed steps and what is no match."""
    found: list[Entry] = []
    elements = trajectory.elements
    index = position = 0
    for op, element, step in edits:
        if index < element:
            found += _matches(elements[index:element], names[position:step], index, position)
        index, position = element, step
        if op == "insert":
            found.append(_entry(op, None, names[step], None, step))
            position += 1
        elif op == "delete":
            found.append(_entry(op, elements[element], None, element, None))
            index += 1
        else:
            found.append(_entry(op, elements[element], names[step], element, step))
            index += 1
            position += 1
    return found + _matches(elements[index:], names[position:], index, position)


def _matches(elements: Sequence[Any], names: Sequence[str], index: int, position: int) -> list[Entry]:
    return [
        {"op": "match", "expected": element, "actual": name, "expected_index": at, "actual_index": step}
        for at, step, element, name in zip(count(index), count(position), elements, names, strict=False)
    ]


def _entry(op: str, expected: Any, actual: str | None, expected_index: int | None, actual_index: int | None) -> Entry:
    return {
        "op": op,
        "expected": expected,
        "actual": actual,
        "expected_index": expected_index,
        "actual_index": actual_index,
    }


def _extra(names: list[str], start: int, end: int) -> list[Entry]:
    return [_entry("insert", None, names[position], None, position) for position in range(start, end)]


def _group(index: int, members: tuple[str, ...], claimed: list[int], start: int, names: list[str]) -> list[Entry]:
    held = set(claimed)
    missing = iter([name for member, name in enumerate(members) if member not in held])
    made: list[Entry] = []
    for position, member in enumerate(claimed, start):
        if member != NOTHING:
            made.append(
                {
                    "op": "match",
                    "expected": members[member],
                    "actual": names[position],
                    "expected_index": index,
                    "actual_index": position,
                    "group": index,
                }
            )
        elif (name := next(missing, None)) is not None:
            made.append({**_entry("substitute", name, names[position], index, position), "group": index})
        else:
            made.append({**_entry("insert", None, names[position], None, position), "group": index})
    return made + [{**_entry("delete", name, None, index, None), "group": index} for name in missing]
