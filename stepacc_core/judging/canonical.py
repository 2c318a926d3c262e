"""Equal calls: one form for all ways in which the same call can be written (contract, section 3)."""

from collections.abc import Hashable
from typing import Any

from stepacc_core.model import Step
from stepacc_core.names import StepKind, fold
from stepacc_core.references.arguments import read_arguments
from stepacc_core.references.equality import canonical

StepKey = tuple[StepKind, str]
Call = tuple[StepKey, Hashable]
"""What is called, and its arguments in canonical form."""


def step_key(step: Step) -> StepKey:
    """Return what two steps have in common whose names compare as equal: the kind, and a tool's name folded."""
    return (step.kind, step.name if step.kind == "AGENT" else fold(step.name))


def call_of(step: Step) -> Call:
    """Return what two steps have in common that are the same call."""
    return (step_key(step), canonical_arguments(step.arguments))


def canonical_arguments(arguments: Any) -> Hashable:
    """Return one form for all equal arguments; text that is no JSON object is compared as it is."""
    named = read_arguments(arguments)
    return canonical(arguments if named is None else named)
