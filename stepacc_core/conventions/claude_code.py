"""Claude Code and its Agent SDK, native telemetry: `span.type` of `claude_code.*`."""

from collections.abc import Mapping
from typing import Any

from stepacc_core.conventions.arguments import arguments_of
from stepacc_core.conventions.fields import Fields
from stepacc_core.conventions.values import integer, parsed, text
from stepacc_core.model import RawSpan, SpanKind

_PREFIX = "claude_code."
_KINDS: dict[str, SpanKind] = {"interaction": "AGENT", "llm_request": "LLM", "tool": "TOOL"}
_ARGUMENTS = ("full_command", "file_path", "subagent_type")
_HIDDEN = "<REDACTED>"


def recognises(span: RawSpan) -> bool:
    """Tell whether the span is one of this producer's, by its name or its type; some versions write bare types."""
    return span.name.startswith(_PREFIX) or (text(span.attributes, "span.type") or "").startswith(_PREFIX)


def read(span: RawSpan) -> Fields:
    """Read what the span says in this convention."""
    attributes = span.attributes
    kind = _KINDS.get((text(attributes, "span.type") or span.name).removeprefix(_PREFIX), "CHAIN")
    return Fields(
        kind=kind,
        tool_name=text(attributes, "tool_name") if kind == "TOOL" else None,
        arguments=_arguments(attributes) if kind == "TOOL" else None,
        call_id=text(attributes, "tool_use_id"),
        agent_name=text(attributes, "subagent_type") if kind == "AGENT" else None,
        output=parsed(attributes.get("response.model_output")),
        input_tokens=integer(attributes, "input_tokens"),
        output_tokens=integer(attributes, "output_tokens"),
    )


def _arguments(attributes: Mapping[str, Any]) -> Any:
    """Return the recorded input, else the parts of it that have attributes of their own; hidden ones are None."""
    written = attributes.get("tool_input")
    if written is not None:
        return None if written == _HIDDEN else arguments_of(written)
    parts = {key: attributes[key] for key in _ARGUMENTS if attributes.get(key) not in (None, _HIDDEN)}
    return parts or None
