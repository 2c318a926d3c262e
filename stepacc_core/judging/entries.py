"""An alignment with a reference written out: the entries of `agent.step_accuracy`, with the argument checks."""

from typing import Any

from stepacc_core.alignment import Operation
from stepacc_core.judging.judge import Judged
from stepacc_core.references import (
    ArgumentCheck,
    ReferenceElement,
    ReferenceGroup,
    ReferenceStep,
    ReferenceTrajectory,
)

Entry = dict[str, Any]


def entries(judged: Judged) -> list[Entry]:
    """Return an entry for each operation, in the order of the observed steps.

    `actual_index` is that of the steps compared, ignored ones and folded attempts left out. A matched pair whose
    reference step names arguments has `checks`; an optional step says so, and one with folded attempts their number.
    """
    return [_entry(judged, operation) for operation in judged.alignment.operations]


def _entry(judged: Judged, operation: Operation) -> Entry:
    wanted = _reference_step(judged.reference, operation)
    observed = operation.observed
    entry: Entry = {
        "op": operation.op,
        "expected": wanted.name if wanted else None,
        "actual": None if observed is None else judged.attempts.steps[observed].name,
        "expected_index": operation.element,
        "actual_index": observed,
    }
    if operation.group is not None:
        entry["group"] = operation.group
    if wanted and wanted.optional:
        entry["optional"] = True
    if observed is not None:
        if checks := judged.checks.get(observed):
            entry["checks"] = [_check(check) for check in checks]
        if attempts := judged.attempts.folded.get(observed):
            entry["attempts"] = attempts
    return entry


def _reference_step(reference: ReferenceTrajectory, operation: Operation) -> ReferenceStep | None:
    if operation.element is None:
        return None
    element = reference.elements[operation.element]
    return element.members[operation.member or 0] if isinstance(element, ReferenceGroup) else element


def _check(check: ArgumentCheck) -> Entry:
    found = {"name": check.name, "expected": check.expected, "actual": check.actual, "holds": check.holds}
    return found if check.reason is None else {**found, "reason": check.reason}


def authored(reference: ReferenceTrajectory) -> list[str | list[str]]:
    """Return the names of a reference's steps as in `expected_steps`: lists for groups."""
    return [_names(element) for element in reference.elements]


def _names(element: ReferenceElement) -> str | list[str]:
    return [member.name for member in element.members] if isinstance(element, ReferenceGroup) else element.name
