"""The entries of an alignment, in the form of the metadata (contract of `agent.step_accuracy`, section 5)."""

from collections.abc import Sequence
from typing import Any

from stepacc_core.alignment.choice import Span
from stepacc_core.alignment.matching import NOTHING, claims
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
    made = []
    for position, member in enumerate(claimed, start):
        if member != NOTHING:
            made.append(_entry("match", members[member], names[position], index, position))
        elif (name := next(missing, None)) is not None:
            made.append(_entry("substitute", name, names[position], index, position))
        else:
            made.append(_entry("insert", None, names[position], None, position))
    made += [_entry("delete", name, None, index, None) for name in missing]
    for entry in made:
        entry["group"] = index
    return made
