"""Calls that were made and have no span of their own: one is added for each, so that it counts like any other."""

from collections.abc import Iterator
from dataclasses import replace

from stepacc_core.conventions.cleaning.draft import Draft
from stepacc_core.conventions.crewai import ROLE
from stepacc_core.conventions.naming import bare
from stepacc_core.conventions.values import identifier, mapping, sequence, text
from stepacc_core.model import CanonicalSpan, Gap, RawSpan, ToolCall
from stepacc_core.names import fold

ONLY_AGENTS = "opentelemetry.instrumentation.genai.smolagents"
"""The scope of an instrumentation that makes spans for agents, and none for their models and tools."""

_SMOLAGENTS_MARKS = frozenset({"smolagents.max_steps", "final_answer_checks"})
"""Attributes that OpenInference and MLflow give to the agents of smolagents; stores may not keep the scope."""
_MESSAGES = "gen_ai.output.messages"
_HOSTED = "server_tool_call"
_THROUGH = frozenset({"CHAIN", "UNKNOWN"})
_RUN = ".run"
_UNNAMED_AGENTS = frozenset({"CodeAgent", "ToolCallingAgent"})
"""What an agent without a name is called; only one with a name can be called as a tool."""


def calls_from_completions(draft: Draft) -> Draft:
    """Add a tool span for each call of a completion that nothing could make a span for.

    - Calls that the model's provider ran itself (`server_tool_call`): no application sees them.
    - All calls, in a trace without any tool span whose agents are recorded by an instrumentation that knows no tools:
      CrewAI's of Traceloop, and OpenTelemetry's of smolagents.

    Elsewhere a call without a span was not run. The added span bears start and name of the model's span and its id
    with a number, so that the order of steps is that of the calls. Where no other span is a step, nothing is added: all
    calls of completions count then.
    """
    models = [span for span in draft.of_kind("LLM") if span.tool_calls]
    if not models:
        return draft
    tools, agents = draft.of_kind("TOOL"), draft.of_kind("AGENT")
    is_every = not tools and any(map(_knows_no_tools, (draft.raw[span.span_id] for span in agents)))
    if not is_every and not any(map(_may_be_hosted, (draft.raw[span.span_id] for span in models))):
        return draft
    if not any(span.parent_span_id for span in (*tools, *agents)):
        return draft
    managed = {fold(_called(span)) for span in agents if _is_smolagents(draft.raw[span.span_id])}
    seen = {span.tool_call_id for span in tools} - {None}
    added, gaps = [], []
    for model in models:
        hosted = set(_hosted(draft.raw[model.span_id]))
        new = []
        for number, call in enumerate(model.tool_calls, start=1):
            wanted = (is_every and fold(call.name) not in managed) or (call.id, call.name) in hosted
            if wanted and call.id not in seen:
                seen |= {call.id} - {None}
                new.append(_call_span(model, number, call))
        if new:
            added += new
            detail = (
                f"{len(new)} calls in the completion {model.name!r} have no span and cannot have one; it was added."
            )
            gaps.append(Gap("calls_from_completions", detail, (model.span_id,)))
    return draft.with_added(added, gaps)


def _knows_no_tools(raw: RawSpan) -> bool:
    return ROLE in raw.attributes or raw.scope_name == ONLY_AGENTS


def _may_be_hosted(raw: RawSpan) -> bool:
    """Tell without parsing whether the provider may have run calls of a completion."""
    written = raw.attributes.get(_MESSAGES)
    return written is not None and (not isinstance(written, str) or _HOSTED in written)


def _hosted(raw: RawSpan) -> Iterator[tuple[str | None, str | None]]:
    """Yield id and name of the calls that the provider ran."""
    if not _may_be_hosted(raw):
        return
    for message in sequence(raw.attributes.get(_MESSAGES)):
        for part in sequence(mapping(message).get("parts")):
            found = mapping(part)
            if found.get("type") == _HOSTED:
                yield identifier(found.get("id")), bare(text(found, "name") or "")


def _call_span(model: CanonicalSpan, number: int, call: ToolCall) -> CanonicalSpan:
    return CanonicalSpan(
        trace_id=model.trace_id,
        span_id=f"{model.span_id}/{number:06d}",
        kind="TOOL",
        name=model.name,
        parent_span_id=model.parent_span_id or model.span_id,
        start_time_unix_nano=model.start_time_unix_nano,
        tool_name=call.name,
        tool_full_name=call.full_name,
        tool_arguments=call.arguments,
        tool_call_id=call.id,
    )


def managed_agents(draft: Draft) -> Draft:
    """Add the tool call by which a smolagents agent runs another one: only the agent run has a span.

    The added span stands around the agent's, with the arguments and id of the call in the completion before it. An
    agent that calls others from code it wrote has no such call.
    """
    found = [span for span in draft.of_kind("AGENT") if _is_smolagents(draft.raw[span.span_id])]
    if len(found) < 2:  # noqa: PLR2004 - one manages another
        return draft
    above = draft.nearest_above("AGENT", across=_THROUGH)
    ids = {span.span_id for span in found}
    taken: set[tuple[str, int]] = set()
    added, gaps = [], []
    for agent in found:
        outer = above.get(agent.span_id)
        if outer is None or outer.span_id not in ids or _called(agent) in _UNNAMED_AGENTS:
            continue
        call = _call_before(draft, agent, taken)
        added += [_around(agent, call), replace(agent, parent_span_id=f"{agent.span_id}/call")]
        detail = f"{agent.name!r} ran as a tool, and the call has no span of its own; it was added."
        gaps.append(Gap("agent_call_added", detail, (agent.span_id,)))
    return draft.with_added(added, gaps)


def _is_smolagents(raw: RawSpan) -> bool:
    return "smolagents" in raw.scope_name or not _SMOLAGENTS_MARKS.isdisjoint(raw.attributes)


def _called(agent: CanonicalSpan) -> str:
    return (agent.agent_name or agent.name).removesuffix(_RUN)


def _call_before(draft: Draft, agent: CanonicalSpan, taken: set[tuple[str, int]]) -> ToolCall | None:
    """Return the call of this agent in the last completion before it that has one left, parallel ones in order."""
    for model in reversed(draft.of_kind("LLM")):
        if (model.start_time_unix_nano or 0) <= (agent.start_time_unix_nano or 0):
            for index, call in enumerate(model.tool_calls):
                if fold(call.name) == fold(_called(agent)) and (model.span_id, index) not in taken:
                    taken.add((model.span_id, index))
                    return call
    return None


def _around(agent: CanonicalSpan, call: ToolCall | None) -> CanonicalSpan:
    """Make the span of the call; its name sorts before that of the agent, which starts at the same moment."""
    tool = bare(_called(agent))
    return CanonicalSpan(
        trace_id=agent.trace_id,
        span_id=f"{agent.span_id}/call",
        kind="TOOL",
        name=agent.name.removesuffix(_RUN) if agent.name.endswith(_RUN) else f"execute_tool {tool}",
        parent_span_id=agent.parent_span_id,
        start_time_unix_nano=agent.start_time_unix_nano,
        end_time_unix_nano=agent.end_time_unix_nano,
        status=agent.status,
        tool_name=tool,
        tool_full_name=_called(agent) if tool != _called(agent) else None,
        tool_arguments=call.arguments if call else None,
        tool_call_id=call.id if call else None,
    )
