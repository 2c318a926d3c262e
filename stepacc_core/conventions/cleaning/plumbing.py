"""Spans and calls that look like steps and are the framework's own business."""

from dataclasses import replace

from stepacc_core.conventions.cleaning.draft import Draft, as_chain
from stepacc_core.conventions.naming import NOT_AN_ID
from stepacc_core.conventions.values import identifier, mapping, sequence, text
from stepacc_core.model import CanonicalSpan, Gap, RawSpan

_MERGED = "(merged tools)"
_IDENTITIES = ("aip.agent.name", "agent.name", "graph.node.id", "gen_ai.agent.name")
_FINAL = "FinalAnswerTool"
"""The class of the tool by which a smolagents agent answers; MLflow records no other name of it."""
_STRUCTURED_OUTPUT = "IMPORTANT: This StructuredOutputTool should only be invoked as the last"
"""How Strands begins the description of the tool that takes a structured answer."""
_METADATA_PREFIXES = ("langfuse.observation.metadata.", "traceloop.association.properties.")


def merged_tools(draft: Draft) -> Draft:
    """Take the span that sums up parallel calls (Google ADK) for no step."""
    found = [span for span in draft.of_kind("TOOL") if span.tool_name == _MERGED]
    gaps = [
        Gap("not_a_step", f"{span.name!r} only sums up calls that have spans of their own.", (span.span_id,))
        for span in found
    ]
    return draft.changed(map(as_chain, found), gaps)


def graph_nodes(draft: Draft) -> Draft:
    """Take nodes of a LangGraph graph that are called an agent only because of their name for no step.

    OpenInference calls every run whose name contains `agent` an AGENT. Such a span is a node, not an agent, when it
    is named like its node and has no identity of an agent, or is the node `agent` that wraps each model call.
    """
    found = [span for span in draft.of_kind("AGENT") if _is_graph_node(draft.raw[span.span_id])]
    gaps = [
        Gap("not_a_step", f"{span.name!r} is a node of a graph and not an agent of its own.", (span.span_id,))
        for span in found
    ]
    return draft.changed(map(as_chain, found), gaps)


def _is_graph_node(raw: RawSpan) -> bool:
    if _metadata(raw, "langgraph_node") != raw.name:
        return False
    if raw.name.lower() == "agent":
        return True
    named = text(raw.attributes, *_IDENTITIES) or _metadata(raw, "lc_agent_name") == raw.name
    return not named and _metadata(raw, "ls_integration") != "langchain_create_agent"


def _metadata(raw: RawSpan, key: str) -> str | None:
    for prefix in _METADATA_PREFIXES:
        if prefix + key in raw.attributes:
            return identifier(raw.attributes[prefix + key])
    return identifier(mapping(raw.attributes.get("metadata")).get(key))


def output_tools(draft: Draft) -> Draft:
    """Take the tool by which a model hands in its answer for no step: `final_answer`, `final_result`.

    Only where the producer is known to work so (smolagents, Pydantic AI, Strands): elsewhere it is a tool like any
    other. Strands names the tool after the type of the answer, and its description tells it.
    """
    strands = {span.tool_name or "" for span in draft.of_kind("TOOL") if _hands_in(draft.raw[span.span_id])}
    producers = [raw for raw in draft.raw.values() if raw.scope_name or raw.attributes]
    smolagents = any(
        "smolagents" in raw.scope_name or raw.name.removesuffix(".__call__") == _FINAL for raw in producers
    )
    pydantic_ai = any(map(_is_pydantic_ai, producers))
    if not smolagents and not pydantic_ai and not strands:
        return draft
    always = {"final_answer", _FINAL} | strands if smolagents else strands
    changes, gaps = [], []
    for span in draft.of_kind("TOOL", "LLM"):
        names = always | (_output_names(draft.raw[span.span_id]) if pydantic_ai else set())
        changed = _without(span, names)
        if changed is not span:
            changes.append(changed)
            detail = f"{span.name!r} hands in the answer ({', '.join(sorted(names))}), which is no step."
            gaps.append(Gap("not_a_step", detail, (span.span_id,)))
    return draft.changed(changes, gaps)


def _without(span: CanonicalSpan, names: set[str]) -> CanonicalSpan:
    if span.kind == "TOOL":
        return as_chain(span) if span.tool_name in names else span
    kept = tuple(call for call in span.tool_calls if call.name not in names)
    return span if len(kept) == len(span.tool_calls) else replace(span, tool_calls=kept)


def _hands_in(raw: RawSpan) -> bool:
    return (text(raw.attributes, "gen_ai.tool.description") or "").startswith(_STRUCTURED_OUTPUT)


def _is_pydantic_ai(raw: RawSpan) -> bool:
    return raw.scope_name == "pydantic-ai" or "model_request_parameters" in raw.attributes


def _output_names(raw: RawSpan) -> set[str]:
    """Return the names of the output tools that a request lists, else the default one."""
    parameters = mapping(raw.attributes.get("model_request_parameters"))
    listed = sequence(parameters.get("output_tools"))
    if not listed:
        functions = [mapping(tool).get("name") for tool in sequence(parameters.get("function_tools"))]
        return set() if "final_result" in functions else {"final_result"}
    names = (identifier(mapping(tool).get("name")) for tool in listed)
    return {name for name in names if name and name not in NOT_AN_ID}
