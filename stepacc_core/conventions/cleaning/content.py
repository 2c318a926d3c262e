"""What was not recorded: arguments taken from the completion instead, and content that is missing."""

from collections import Counter
from dataclasses import replace

from stepacc_core.conventions.cleaning.draft import Draft
from stepacc_core.conventions.cleaning.unspanned import ONLY_AGENTS
from stepacc_core.conventions.values import sequence
from stepacc_core.model import CanonicalSpan, Gap
from stepacc_core.names import fold

_NAMED = 5
_TOOL_LISTS = ("crewai.agent.tools", "gen_ai.tool.definitions", "gen_ai.agent.tools")


def arguments_from_completions(draft: Draft) -> Draft:
    """Take arguments that a tool span lacks, or holds without their names, from the call of the same id."""
    calls = {call.id: call for span in draft.of_kind("LLM") for call in span.tool_calls if call.id is not None}
    changes, missing = [], []
    for span in draft.of_kind("TOOL"):
        if isinstance(span.tool_arguments, dict):
            continue
        call = calls.get(span.tool_call_id) if span.tool_call_id is not None else None
        if call is not None and isinstance(call.arguments, dict):
            changes.append(replace(span, tool_arguments=call.arguments))
        elif span.tool_arguments is None:
            missing.append(span.span_id)
    detail = f"{len(missing)} tool spans have no arguments recorded; they may have had none."
    gaps = [Gap("arguments_not_recorded", detail, tuple(missing))] if missing else []
    filled = {span.span_id for span in changes}
    kept = [g for g in draft.gaps if g.kind != "unparsable_arguments" or not filled.issuperset(g.span_ids)]
    unresolved = draft if len(kept) == len(draft.gaps) else replace(draft, gaps=tuple(kept))
    return unresolved.changed(changes, gaps)


def calls_without_span(draft: Draft) -> Draft:
    """Tell of calls in completions that no tool span ran, in a trace whose tool and agent spans are the steps."""
    models = [span for span in draft.of_kind("LLM") if span.tool_calls]
    tools = draft.of_kind("TOOL")
    ran = {span.tool_call_id for span in tools} - {None}
    if all(call.id in ran for span in models for call in span.tool_calls):
        return draft
    if not any(span.parent_span_id for span in (*tools, *draft.of_kind("AGENT"))):
        return draft
    asked: Counter[str] = Counter()
    names: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    for call in (call for span in models for call in span.tool_calls):
        if call.id is not None:
            if (call.id, call.name) in seen:
                continue
            seen.add((call.id, call.name))
        folded = fold(call.name)
        asked[folded] += 1
        names.setdefault(folded, call.name)
    left = asked - Counter(fold(span.tool_name or "") for span in tools)
    if not left:
        return draft
    listed = sorted(names[name] for name in left)
    shown = ", ".join(listed[:_NAMED]) + (f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else "")
    detail = (
        f"{left.total()} calls in completions have no tool span ({shown}) and are no steps: there is no such tool, the "
        "call was refused, it hands in the answer, or it ran where nothing was recorded."
    )
    holders = [s.span_id for s in models if any(fold(call.name) in left for call in s.tool_calls)]
    return draft.changed((), [Gap("calls_without_span", detail, tuple(holders))])


def hidden_content(draft: Draft) -> Draft:
    """Tell of completions whose calls were not recorded, and of agents none of whose tool calls could be."""
    hidden = [span.span_id for span in draft.of_kind("LLM") if span.calls_announced]
    gaps: list[Gap] = []
    changes: list[CanonicalSpan] = []
    if hidden:
        detail = f"{len(hidden)} completions asked for tools, or may have, and no calls were recorded; turn content on."
        gaps.append(Gap("content_not_recorded", detail, tuple(hidden)))
    if not draft.of_kind("TOOL", "LLM"):
        agents = draft.of_kind("AGENT")
        silent = [span for span in agents if draft.raw[span.span_id].scope_name == ONLY_AGENTS]
        changes = [replace(span, calls_announced=True) for span in silent]
        equipped = [
            span.span_id
            for span in agents
            if span in silent or any(sequence(draft.raw[span.span_id].attributes.get(key)) for key in _TOOL_LISTS)
        ]
        if equipped:
            detail = (
                f"{len(equipped)} agents have tools, but the producer records neither tool calls nor completions; "
                "whatever tools they called is unknown."
            )
            gaps.append(Gap("calls_not_recorded", detail, tuple(equipped)))
    return draft.changed(changes, gaps)
