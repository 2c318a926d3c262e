"""References of `agent.trajectory_match`: what is acceptable for a task, and whether a call or an answer is."""

from stepacc_core.marks import holds_mark
from stepacc_core.references.answers import check_answer
from stepacc_core.references.arguments import check_arguments, read_arguments
from stepacc_core.references.equality import canonical, same
from stepacc_core.references.model import (
    MISSING,
    AnswerCheck,
    AnswerResult,
    ArgumentCheck,
    Budget,
    Comparator,
    MatchMode,
    ReferenceElement,
    ReferenceGroup,
    ReferenceStep,
    ReferenceTrajectory,
    TaskReferences,
)
from stepacc_core.references.parse import parse_references
from stepacc_core.references.words import explain_references

__all__ = [
    "MISSING",
    "AnswerCheck",
    "AnswerResult",
    "ArgumentCheck",
    "Budget",
    "Comparator",
    "MatchMode",
    "ReferenceElement",
    "ReferenceGroup",
    "ReferenceStep",
    "ReferenceTrajectory",
    "TaskReferences",
    "canonical",
    "check_answer",
    "check_arguments",
    "explain_references",
    "holds_mark",
    "parse_references",
    "read_arguments",
    "same",
]
