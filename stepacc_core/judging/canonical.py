"""Equal calls: one text for all forms in which the same arguments can be written (contract, section 3)."""

import json
from collections.abc import Mapping
from typing import Any

from stepacc_core.conventions.values import decode
from stepacc_core.model import Step
from stepacc_core.names import StepKind, fold

NO_ARGUMENTS = "{}"

StepKey = tuple[StepKind, str]
Call = tuple[StepKind, str, str]
"""Kind, comparable name and canonical arguments."""


def step_key(step: Step) -> StepKey:
    """Return what two steps have in common whose names compare as equal: the kind, and a tool's name folded."""
    return (step.kind, step.name if step.kind == "AGENT" else fold(step.name))


def call_of(step: Step) -> Call:
    """Return what two steps have in common that are the same call."""
    return (*step_key(step), canonical_arguments(step.arguments))


def canonical_arguments(arguments: Any) -> str:
    """Return one text for all equal arguments.

    None, blank text and `{}` are no arguments; text that is JSON stands for its value. `1` is `1.0` and neither is
    `true` nor `"1"`; the order of keys does not count, that of a list does.
    """
    if isinstance(arguments, str):
        if not arguments.strip():
            return NO_ARGUMENTS
        try:
            arguments = decode(arguments)
        except ValueError:
            return canonical(arguments)
    return NO_ARGUMENTS if arguments is None else canonical(arguments)


def canonical(value: Any) -> str:
    """Return one text for all equal JSON values; what is no JSON value is told apart by its `repr`."""
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), default=repr)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
