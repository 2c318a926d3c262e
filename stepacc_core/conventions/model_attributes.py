"""The last resort: a span that names a model or holds a completion is a model call, whoever wrote it."""

from stepacc_core.conventions.fields import Fields
from stepacc_core.model import RawSpan

_MARKS = (
    "gen_ai.request.model",
    "gen_ai.response.model",
    "gen_ai.output.messages",
    "gen_ai.completion",
    "llm.model_name",
)


def recognises(span: RawSpan) -> bool:
    """Tell whether the span carries attributes that only model calls have."""
    return any(mark in span.attributes for mark in _MARKS)


def read(span: RawSpan) -> Fields:  # noqa: ARG001 - every reader takes the span
    """Read the span as a model call."""
    return Fields(kind="LLM")
