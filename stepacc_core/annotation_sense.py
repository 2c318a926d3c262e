"""What an annotation may not say although a metric could be run on it, and what it says that nobody may have meant.

A blank name and a group without members say nothing, and the contracts do not say that they are valid; so files with
them are refused. What a contract does allow, though it is of no effect, is a doubt: it is told, and taken.
"""

from collections.abc import Iterator

from stepacc_core.annotations import EXPECTED_STEPS_KEY, Annotation
from stepacc_core.references.model import Budget, ReferenceGroup, ReferenceTrajectory, TaskReferences
from stepacc_core.references.parse import parse_references
from stepacc_core.shown import shown
from stepacc_core.trajectory import Group, Trajectory, parse_trajectory


def senseless_steps(trajectory: Trajectory) -> str | None:
    """Say which name of expected steps is blank; None where none is."""
    for index, element in enumerate(trajectory.elements):
        members = element.members if isinstance(element, Group) else (element,)
        for place, name in enumerate(members):
            if not name.strip():
                where = f"[{index}][{place}]" if isinstance(element, Group) else f"[{index}]"
                return f"`{EXPECTED_STEPS_KEY}{where}` is {shown(name)}, a blank name; write the name of a step"
    return None


def senseless_references(references: TaskReferences) -> str | None:
    """Say which part of references says nothing; None where every part does."""
    for reference in references.references:
        for index, element in enumerate(reference.elements):
            where = f"reference `{reference.name}`, `steps[{index}]`"
            members = element.members if isinstance(element, ReferenceGroup) else (element,)
            if not members:
                return f"{where}: a group without members; name them, or leave the group out"
            if any(not step.name.strip() for step in members):
                return f"{where}: a blank name; write the name of a step"
    for key, names in (("forbidden", [name for each in references.forbidden for name in each]),
                       ("ignore", references.ignore)):  # fmt: skip
        if any(not name.strip() for name in names):
            return f"`{key}`: a blank name; write the name of a step"
    return next((_lets_all_pass(each) for each in references.references if _is_vacuous(each, references)), None)


def doubts(annotation: Annotation) -> tuple[str, ...]:
    """Return what a valid annotation says that has no effect, a sentence for each."""
    if annotation.key == EXPECTED_STEPS_KEY:
        return tuple(_doubts_of_steps(parse_trajectory(annotation.value)))
    return tuple(_doubts_of_references(parse_references(annotation.value)))


def _doubts_of_steps(trajectory: Trajectory) -> Iterator[str]:
    for index, element in enumerate(trajectory.elements):
        if isinstance(element, Group) and not element.members:
            yield f"`{EXPECTED_STEPS_KEY}[{index}]` is a group without members, which counts for nothing."


def _doubts_of_references(references: TaskReferences) -> Iterator[str]:
    for each in references.references:
        if not each.elements and references.match != "exact":
            yield (
                f"Reference `{each.name}` has no steps, so with match: {references.match} every path passes that holds "
                "nothing forbidden; write match: exact where nothing should be called."
            )


def _is_vacuous(reference: ReferenceTrajectory, references: TaskReferences) -> bool:
    asked = references.forbidden or references.final_answer or references.budget != Budget()
    return not reference.elements and references.match != "exact" and not asked


def _lets_all_pass(reference: ReferenceTrajectory) -> str:
    return (
        f"reference `{reference.name}`: without steps every run passes; write match: exact where nothing should be "
        "called, or say what is forbidden or what the answer should be"
    )
