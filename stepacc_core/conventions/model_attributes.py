"""The last resort: a span that names a model or holds a completion is a model call, whoever wrote it."""

from stepacc_core.conventions.fields import Fields
from stepacc_core.model import RawSpan

MARKS = frozenset(
    {
        "gen_ai.request.model",
        "gen_ai.response.model",
        "gen_ai.output.messages",
        "gen_ai.completion",
        "llm.model_name",
    }
)
"""Attributes that only model calls have."""

_MODEL = Fields(kind="LLM")


def read(span: RawSpan) -> Fields:  # noqa: ARG001 - every reader takes the span
    """Read the span as a model call."""
    return _MODEL
