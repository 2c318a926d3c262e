"""Who speaks which dialect: one ordered table, and the canonical span that its readers make together.

A span may speak several dialects at once (GenAI attributes with Traceloop's beside them, anything stored by MLflow).
Every dialect that recognises it is read, and field by field the first of the table that says something wins. MLflow
stands behind the producers: its server adds kind, name and input to their spans. To add a dialect, write a module with
`recognises` and `read` and give it its row.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from stepacc_core.conventions import (
    adk,
    claude_code,
    genai,
    genai_events,
    langfuse,
    langsmith,
    mcp,
    mlflow,
    model_attributes,
    openinference,
    pydantic_ai,
    traceloop,
    vercel,
)
from stepacc_core.conventions.declared import DeclaredMapping
from stepacc_core.conventions.fields import Fields, merge
from stepacc_core.conventions.naming import bare, without_affixes
from stepacc_core.conventions.values import text
from stepacc_core.errors import UnknownConventionError
from stepacc_core.model import CanonicalSpan, Gap, RawSpan, SpanKind


@dataclass(frozen=True, slots=True)
class Convention:
    """One row of the table.

    Attributes:
        name: what messages call it.
        read: how it is read.
        marks: attributes of which a span has at least one; their values do not matter.
        also: what tells such a span besides.
    """

    name: str
    read: Callable[[RawSpan], Fields]
    marks: frozenset[str] = frozenset()
    also: Callable[[RawSpan], bool] | None = None

    def recognises(self, span: RawSpan) -> bool:
        """Tell whether the convention applies to a span."""
        return not self.marks.isdisjoint(span.attributes) or (self.also is not None and self.also(span))


TABLE: tuple[Convention, ...] = (
    Convention("Traceloop (OpenLLMetry)", traceloop.read, traceloop.MARKS),
    Convention("OpenInference", openinference.read, openinference.MARKS),
    Convention("MCP", mcp.read, mcp.MARKS),
    Convention("OpenTelemetry GenAI", genai.read, genai.MARKS),
    Convention("OpenTelemetry GenAI events", genai_events.read, also=genai_events.recognises),
    Convention("Langfuse", langfuse.read, langfuse.MARKS),
    Convention("LangSmith", langsmith.read, langsmith.MARKS),
    Convention("Vercel AI SDK", vercel.read, vercel.MARKS),
    Convention("Google ADK", adk.read, adk.MARKS, also=adk.recognises),
    Convention("Pydantic AI", pydantic_ai.read, pydantic_ai.MARKS),
    Convention("Claude Code", claude_code.read, also=claude_code.recognises),
    Convention("MLflow", mlflow.read, mlflow.MARKS),
    Convention("model attributes", model_attributes.read, model_attributes.MARKS),
)

TOOL_NAME_ATTRIBUTES = ("gen_ai.tool.name", "tool.name", "ai.toolCall.name")
"""A span with one of these ran a tool, whatever kind it claims, unless it is a model's or an agent's own span."""

_NEVER_TOOLS = frozenset({"LLM", "EMBEDDING", "RERANKER", "GUARDRAIL", "EVALUATOR", "PROMPT"})
_NEVER_TOOL_OPERATIONS = frozenset(
    {"chat", "text_completion", "generate_content", "embeddings", "invoke_agent", "invoke_workflow"}
)
_UNPARSED_CALL = "Arguments of a call in the completion {!r} cannot be parsed; their text was kept."
_REASONS = (
    *genai.FINISH_REASONS,
    "gen_ai.completion.0.finish_reason",
    "ai.response.finishReason",
    "llm.finish_reason",
)
_MAKING_AN_AGENT = "create_agent"
_OWN_AGENT_NAME = "aip.agent.name"
_MARKS = frozenset[str]().union(*(convention.marks for convention in TABLE))
_TOLD_OTHERWISE = tuple((convention, convention.also) for convention in TABLE if convention.also is not None)


def recognised(span: RawSpan, mappings: Sequence[DeclaredMapping] = ()) -> bool:
    """Tell whether any convention knows the span."""
    return any(m.recognises(span) for m in mappings) or bool(spoken(span))


def spoken(span: RawSpan) -> tuple[Convention, ...]:
    """Return the conventions that recognise a span, in the order of the table.

    One pass over the span's attributes tells; few combinations of marks occur, and each is looked up in the table once.
    """
    also = tuple(convention.name for convention, tells in _TOLD_OTHERWISE if tells(span))
    return _rows(_MARKS.intersection(span.attributes), also)


@lru_cache(maxsize=1_024)
def _rows(marks: frozenset[str], also: tuple[str, ...]) -> tuple[Convention, ...]:
    return tuple(c for c in TABLE if c.name in also or not c.marks.isdisjoint(marks))


def require_recognised(spans: Iterable[RawSpan], mappings: Sequence[DeclaredMapping] = ()) -> None:
    """Make sure that a set of spans can be read at all; one recognised span is enough.

    Raises:
        UnknownConventionError: no convention knows any of them; the message lists those that exist.
    """
    count = 0
    for span in spans:
        if recognised(span, mappings):
            return
        count += 1
    known = ", ".join(convention.name for convention in TABLE[:-1])
    msg = (
        f"None of {count} spans follows a convention that can be read ({known}). Export them in one of these, or "
        "declare a mapping that names the attributes holding kind, tool name, arguments and agent name."
    )
    raise UnknownConventionError(msg)


def read_span(span: RawSpan, mappings: Sequence[DeclaredMapping] = ()) -> tuple[CanonicalSpan, tuple[Gap, ...]]:
    """Turn a raw span into a canonical one, with what had to be assumed.

    A span that no convention knows is of kind UNKNOWN.
    """
    own = [m.read(span) for m in mappings if m.recognises(span)]
    declared = merge(own)
    fields = merge([*own, *(c.read(span) for c in spoken(span))])
    kind = declared.kind or _kind(span, fields.kind)
    name, full_name, gaps = _tool_name(span, fields) if kind == "TOOL" else (None, None, ())
    arguments, more = _arguments(span, fields) if kind == "TOOL" else (None, ())
    is_model = kind == "LLM"
    if is_model and any(_is_unparsed(call.arguments) for call in fields.tool_calls):
        more = (Gap("unparsable_arguments", _UNPARSED_CALL.format(span.name), (span.span_id,)),)
    canonical = CanonicalSpan(
        trace_id=span.trace_id,
        span_id=span.span_id,
        kind=kind,
        name=span.name,
        parent_span_id=span.parent_span_id,
        start_time_unix_nano=span.start_time_unix_nano,
        end_time_unix_nano=span.end_time_unix_nano,
        status=span.status,
        tool_name=name,
        tool_full_name=full_name,
        tool_arguments=arguments,
        tool_call_id=fields.call_id if kind == "TOOL" else None,
        agent_name=_agent_name(span, kind, fields),
        tool_calls=fields.tool_calls if is_model else (),
        calls_announced=is_model and not fields.tool_calls and (fields.announced or _says_nothing(span, fields)),
        output=fields.output,
        input_tokens=fields.input_tokens,
        output_tokens=fields.output_tokens,
        cost_usd=fields.cost_usd,
    )
    return canonical, gaps + more


def _says_nothing(span: RawSpan, fields: Fields) -> bool:
    """Tell whether a model answered and neither the answer nor why it ended was recorded: it may have been calls."""
    if "gen_ai.response.id" not in span.attributes or fields.output is not None or span.status == "ERROR":
        return False
    return not any(key in span.attributes for key in _REASONS) and not genai_events.recognises(span)


def _kind(span: RawSpan, kind: SpanKind | None) -> SpanKind:
    operation = (text(span.attributes, "gen_ai.operation.name") or "").lower()
    if operation == _MAKING_AN_AGENT:
        return "CHAIN"  # also where a store calls it an agent
    named = text(span.attributes, *TOOL_NAME_ATTRIBUTES) is not None
    if named and kind not in _NEVER_TOOLS and operation not in _NEVER_TOOL_OPERATIONS:
        return "TOOL"
    return kind or "UNKNOWN"


def _tool_name(span: RawSpan, fields: Fields) -> tuple[str, str | None, tuple[Gap, ...]]:
    if fields.tool_name is None:
        name = without_affixes(span.name)
        detail = f"The tool span {span.name!r} names no tool; {name!r} was taken from the span's own name."
        return name, span.name if name != span.name else None, (Gap("missing_tool_name", detail, (span.span_id,)),)
    name = bare(fields.tool_name)
    return name, fields.tool_name if name != fields.tool_name else None, ()


def _arguments(span: RawSpan, fields: Fields) -> tuple[object, tuple[Gap, ...]]:
    arguments = fields.arguments
    if _is_unparsed(arguments):
        detail = f"The arguments of the tool span {span.name!r} cannot be parsed; their text was kept."
        return arguments, (Gap("unparsable_arguments", detail, (span.span_id,)),)
    return arguments, ()


def _is_unparsed(arguments: object) -> bool:
    return isinstance(arguments, str) and arguments.lstrip().startswith(("{", "["))


def _agent_name(span: RawSpan, kind: SpanKind, fields: Fields) -> str | None:
    """Return the agent's name in the contract's order; on other spans, the agent they say they belong to."""
    own = text(span.attributes, _OWN_AGENT_NAME)
    if kind == "AGENT":
        return own or fields.agent_name or span.name
    return own or fields.agent_name
