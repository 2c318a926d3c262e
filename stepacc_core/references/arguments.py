"""Checking the arguments of a call against a step of a reference (contract section 3)."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from stepacc_core.marks import holds_mark
from stepacc_core.references.model import MISSING, ArgumentCheck, ReferenceStep, Verdict

OTHERS = "*"
"""The name of the check of `args_exact`, which is about the arguments that nobody named."""

_UNPARSABLE = Verdict(holds=False, reason="unparsable")
_HIDDEN = Verdict(None, "redacted")


def read_arguments(arguments: Any) -> Mapping[str, Any] | None:
    """Return the arguments of a call by name; none at all for null, a missing value and blank text.

    Returns:
        None where they cannot be told apart by name: text that is no JSON, or a value that is no object.
    """
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments) if arguments.strip() else None
        except (ValueError, RecursionError):
            return None
    if arguments is None:
        return {}
    return arguments if isinstance(arguments, Mapping) else None


def check_arguments(step: ReferenceStep, arguments: Any) -> tuple[ArgumentCheck, ...]:
    """Check the arguments of an observed call.

    Args:
        step: the step of the reference; the checks come in the order of its `args`, that of `args_exact` last.
        arguments: an object, its JSON text, or None; blank text is a call without arguments.

    Returns:
        One check for each argument that the step names, and one for all others where it says `args_exact`. Each fails
        with the reason `unparsable` where the arguments are no JSON object, and cannot be told where that may be due
        to a redaction.
    """
    if not step.args and not step.args_exact:
        return ()
    given = read_arguments(arguments)
    if given is not None:
        return tuple(_checks(step, given))
    verdict = _HIDDEN if holds_mark(arguments) else _UNPARSABLE
    names = {name: comparator.written() for name, comparator in step.args.items()}
    if step.args_exact:
        names[OTHERS] = _no_others()
    return tuple(
        ArgumentCheck(name, written, arguments, verdict.holds, verdict.reason) for name, written in names.items()
    )


def _checks(step: ReferenceStep, given: Mapping[str, Any]) -> Iterator[ArgumentCheck]:
    for name, comparator in step.args.items():
        value = given.get(name, MISSING)
        verdict = comparator.judge(value)
        actual = None if value is MISSING else value
        yield ArgumentCheck(name, comparator.written(), actual, verdict.holds, verdict.reason)
    if step.args_exact:
        others = {name: value for name, value in given.items() if name not in step.args}
        yield ArgumentCheck(OTHERS, _no_others(), others, not others)


def _no_others() -> dict[str, Any]:
    return {"absent": True}
