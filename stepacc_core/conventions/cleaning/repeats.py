"""One call recorded twice: by nested spans, by a second instrumentation, or by wrappers of one agent or model."""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import replace

from stepacc_core.conventions.cleaning.draft import Ancestry, Draft, ancestry, as_chain, by_start, overlap
from stepacc_core.model import CanonicalSpan, Gap, RawSpan, ToolCall
from stepacc_core.names import fold

_THROUGH = frozenset({"CHAIN", "UNKNOWN"})


def nested_tools(draft: Draft) -> Draft:
    """Fold a tool span into the tool span of the same call above it: MCP client and server spans, wrappers.

    The outer span counts, unless it is the root, which is no step. Across an agent or a model nothing is folded, and
    within one instrumentation only spans of one call id are: a tool may really call itself.
    """
    above = draft.nearest_above("TOOL", across=_THROUGH | {"TOOL"})
    changes, gaps = [], []
    for span in draft.top_down():
        outer = above.get(span.span_id)
        if span.kind == "TOOL" and outer is not None and outer.parent_span_id and _same_call(draft, outer, span):
            changes.append(as_chain(span))
            detail = f"{span.name!r} records the same call as {outer.name!r} above it; one step was counted."
            gaps.append(Gap("recorded_twice", detail, (outer.span_id, span.span_id)))
    return draft.changed(changes, gaps)


def _same_call(draft: Draft, outer: CanonicalSpan, inner: CanonicalSpan) -> bool:
    if outer.tool_call_id and inner.tool_call_id and outer.tool_call_id != inner.tool_call_id:
        return False
    is_mcp = _is_mcp(draft.raw[inner.span_id])
    outer_name, inner_name = fold(outer.tool_name or ""), fold(inner.tool_name or "")
    if outer_name != inner_name:
        return is_mcp and bool(inner_name) and outer_name.endswith(inner_name)
    one_id = outer.tool_call_id is not None and outer.tool_call_id == inner.tool_call_id
    return is_mcp or one_id or draft.raw[outer.span_id].scope_name != draft.raw[inner.span_id].scope_name


def _is_mcp(raw: RawSpan) -> bool:
    return "mcp.method.name" in raw.attributes or raw.name.startswith("MCP ")


def second_instrumentation(draft: Draft) -> Draft:
    """Fold the spans of an instrumentation all of whose tool spans another instrumentation recorded as well.

    The two are told apart by their scopes; calls are paired by call id, else by name and shared time. The scope with
    more tool spans counts, then the one that began first. Agents and models of the other are folded where the first
    has their like. Spans above one another, and roots, are no partners: the two recordings stand side by side.
    """
    by_scope: dict[str, list[CanonicalSpan]] = {}
    for span in draft.of_kind("TOOL"):
        if span.parent_span_id is not None:
            by_scope.setdefault(draft.raw[span.span_id].scope_name, []).append(span)
    if len(by_scope) < 2:  # noqa: PLR2004 - one scope has no second
        return draft
    tree = ancestry(draft)
    scopes = sorted(by_scope, key=lambda scope: -len(by_scope[scope]))
    kept, changes, gaps = [scopes[0]], [], []
    for scope in scopes[1:]:
        like = next((first for first in kept if _all_paired(by_scope[scope], by_scope[first], tree)), None)
        if like is None:
            kept.append(scope)
            continue
        folded = [as_chain(span) for span in _like_spans(draft, scope, like, tree)]
        changes += folded
        detail = f"The instrumentation {scope!r} records the calls that {like!r} records too; one step each counts."
        gaps.append(Gap("recorded_twice", detail, tuple(span.span_id for span in folded)))
    return draft.changed(changes, gaps)


def _all_paired(spans: list[CanonicalSpan], others: list[CanonicalSpan], tree: Ancestry) -> bool:
    """Tell whether each span has a partner of its own among the others; both lists are ordered by start."""
    ids = {(fold(other.tool_name or ""), other.tool_call_id) for other in others if other.tool_call_id}
    with_ids = {name for name, _ in ids}
    free: dict[str, deque[CanonicalSpan]] = {}
    for other in others:
        free.setdefault(fold(other.tool_name or ""), deque()).append(other)
    for span in spans:
        name = fold(span.tool_name or "")
        if span.tool_call_id and name in with_ids:
            if (name, span.tool_call_id) not in ids:
                return False
        elif not _take_partner(span, free.get(name, deque()), tree):
            return False
    return True


def _take_partner(span: CanonicalSpan, free: deque[CanonicalSpan], tree: Ancestry) -> bool:
    """Take the first that shares time with the span; those that ended before it began are of no use to later ones."""
    while free and not overlap(free[0], span) and by_start(free[0]) < by_start(span):
        free.popleft()
    if not free or not overlap(free[0], span):
        return False
    partner = free.popleft()
    return not tree.is_above(partner, span) and not tree.is_above(span, partner)


def _like_spans(draft: Draft, scope: str, like: str, tree: Ancestry) -> list[CanonicalSpan]:
    """Return the spans of a scope that the other scope has too: all its tools, agents of one name, models.

    An agent above that of the other scope is the outer span of one agent, and left for `wrapped_agents` to fold the
    inner one: which of them is a root decides whether the agent is a step.
    """
    agents = [s for s in draft.of_kind("AGENT") if draft.raw[s.span_id].scope_name == scope]
    others: dict[str | None, list[CanonicalSpan]] = {}
    for span in draft.of_kind("AGENT"):
        if draft.raw[span.span_id].scope_name == like:
            others.setdefault(span.agent_name, []).append(span)
    doubled = {
        span.span_id
        for span in agents
        if (found := others.get(span.agent_name)) and not any(tree.is_above(span, other) for other in found)
    }
    has_models = any(draft.raw[s.span_id].scope_name == like for s in draft.of_kind("LLM"))
    return [
        span
        for span in draft.of_kind("TOOL", "AGENT", "LLM")
        if draft.raw[span.span_id].scope_name == scope
        and (span.kind == "TOOL" or span.span_id in doubled or (span.kind == "LLM" and has_models))
    ]


def same_call_id(draft: Draft) -> Draft:
    """Fold tool spans that share name and call id with an earlier one, wherever they are in the trace."""
    first: dict[tuple[str, str], CanonicalSpan] = {}
    changes, gaps = [], []
    for span in draft.of_kind("TOOL"):
        if span.tool_call_id is None or span.parent_span_id is None:
            continue
        earlier = first.setdefault((span.tool_call_id, fold(span.tool_name or "")), span)
        if earlier is not span:
            changes.append(as_chain(span))
            detail = f"{span.name!r} has the call id {span.tool_call_id!r} of an earlier span; one step was counted."
            gaps.append(Gap("recorded_twice", detail, (earlier.span_id, span.span_id)))
    return draft.changed(changes, gaps)


def wrapped_agents(draft: Draft) -> Draft:
    """Fold an agent span into the agent span of the same name right above it: one agent, two spans.

    Without a name of its own (the span's name stands for it) only a direct child is folded.
    """
    above = draft.nearest_above("AGENT", across=_THROUGH)
    changes, gaps = [], []
    for span in draft.top_down():
        outer = above.get(span.span_id)
        if span.kind != "AGENT" or outer is None or span.agent_name != outer.agent_name:
            continue
        if span.agent_name == span.name and span.parent_span_id != outer.span_id:
            continue
        changes.append(as_chain(span))
        detail = f"{span.name!r} and {outer.name!r} above it are one agent; one was counted."
        gaps.append(Gap("recorded_twice", detail, (outer.span_id, span.span_id)))
    return draft.changed(changes, gaps)


def nested_models(draft: Draft) -> Draft:
    """Count the calls of a completion once where a model span wraps another, and do not miss those of the inner."""
    above = draft.nearest_above("LLM", across=_THROUGH | {"LLM"})
    changes: dict[str, CanonicalSpan] = {}
    gaps = []
    for span in draft.top_down():
        outer = above.get(span.span_id)
        if span.kind != "LLM" or outer is None:
            continue
        outer = changes.get(outer.span_id, outer)
        if span.tool_calls and not outer.tool_calls and outer.calls_announced:
            changes[outer.span_id] = replace(outer, calls_announced=False)
        elif span.calls_announced and _tells(outer):
            changes[span.span_id] = replace(span, calls_announced=False)
        elif span.tool_calls and _covers(outer.tool_calls, span.tool_calls):
            changes[span.span_id] = as_chain(span)
            detail = f"{span.name!r} records the completion of {outer.name!r} above it; its calls count once."
            gaps.append(Gap("recorded_twice", detail, (outer.span_id, span.span_id)))
    return draft.changed(changes.values(), gaps)


def models_beside(draft: Draft) -> Draft:
    """Let a completion that was recorded without its content be told by the span that another library made of it.

    Libraries that do not pass on their context record it side by side: below one parent and at one time.
    """
    models = draft.of_kind("LLM")
    hidden = [span for span in models if span.calls_announced]
    if not hidden or len(hidden) == len(models):
        return draft
    telling: dict[str | None, list[CanonicalSpan]] = {}
    for span in filter(_tells, models):
        telling.setdefault(span.parent_span_id, []).append(span)
    told = [
        replace(span, calls_announced=False)
        for span in hidden
        if any(
            overlap(span, other) and draft.raw[span.span_id].scope_name != draft.raw[other.span_id].scope_name
            for other in telling.get(span.parent_span_id, ())
        )
    ]
    return draft.changed(told, ())


def _tells(model: CanonicalSpan) -> bool:
    """Tell whether the content of a completion was recorded: its calls, or that there were none."""
    return bool(model.tool_calls) or (model.output is not None and not model.calls_announced)


def _covers(outer: Sequence[ToolCall], inner: Sequence[ToolCall]) -> bool:
    return not Counter(map(_identity, inner)) - Counter(map(_identity, outer))


def _identity(call: ToolCall) -> tuple[str, str]:
    return ("id", call.id) if call.id is not None else (fold(call.name), repr(call.arguments))
