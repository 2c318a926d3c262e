"""Suggesting expected steps from good runs of a task: a guess with its support, for a person to confirm."""

from stepacc_core.suggest.runs import Run, run_of
from stepacc_core.suggest.suggesting import SuggestSettings, suggest
from stepacc_core.suggest.suggestion import Suggested, SuggestedElement, Suggestion, Unsteady

__all__ = [
    "Run",
    "SuggestSettings",
    "Suggested",
    "SuggestedElement",
    "Suggestion",
    "Unsteady",
    "run_of",
    "suggest",
]
