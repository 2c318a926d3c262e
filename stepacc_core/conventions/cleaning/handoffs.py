"""Hand-offs that a producer records under the agents' names: the call is named in the completion that made it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from stepacc_core.conventions import mlflow
from stepacc_core.conventions.cleaning.draft import Draft
from stepacc_core.conventions.values import text
from stepacc_core.model import CanonicalSpan, Gap, RawSpan, ToolCall
from stepacc_core.names import fold

_SPAN_PREFIX = "handoff to "
_ARROW = re.compile(r".*→ (.+)\.handoff", re.DOTALL)
_UNKNOWN = "unknown"


def name_handoffs(draft: Draft) -> Draft:
    """Name the hand-off spans of the OpenAI Agents SDK by the call that the model made.

    The call is taken from the last completion before the hand-off, among its calls that no tool span ran. Where
    there is none, the name is the one the SDK gives by default; the gap says that it was assumed.
    """
    handoffs = [span for span in draft.of_kind("TOOL") if _is_handoff(draft.raw[span.span_id])]
    if not handoffs:
        return draft
    ran = {fold(span.tool_name or "") for span in draft.of_kind("TOOL")} - {fold(s.tool_name or "") for s in handoffs}
    models = draft.of_kind("LLM")
    taken: set[tuple[str, int]] = set()
    changes, gaps = [], []
    for span in handoffs:
        target = _target(draft.raw[span.span_id])
        found = _call(span, target, list(_candidates(span, models, ran, taken)))
        if found is None:
            name = _default_name(target)
            changes.append(replace(span, tool_name=name, tool_full_name=None, tool_arguments=None))
            detail = f"The hand-off {span.name!r} has no call recorded; its usual name {name!r} was assumed."
        else:
            place, call = found
            taken.add(place)
            named = replace(span, tool_name=call.name, tool_full_name=call.full_name, tool_arguments=call.arguments)
            changes.append(replace(named, tool_call_id=call.id))
            detail = f"The hand-off {span.name!r} was named {call.name!r} after the call in the completion before it."
        gaps.append(Gap("handoff_named", detail, (span.span_id,)))
    named_ids = {span.span_id for span in changes}
    kept = [g for g in draft.gaps if g.kind != "missing_tool_name" or not named_ids.intersection(g.span_ids)]
    return replace(draft, gaps=tuple(kept)).changed(changes, gaps)


def _is_handoff(raw: RawSpan) -> bool:
    if (text(raw.attributes, "traceloop.span.kind") or "").lower() == "handoff" or mlflow.is_handoff(raw):
        return True
    return raw.name.startswith(_SPAN_PREFIX) and text(raw.attributes, "tool.name", "gen_ai.tool.name") is None


def _target(raw: RawSpan) -> str | None:
    """Return the agent that takes over, where the span tells."""
    if raw.name.startswith(_SPAN_PREFIX):
        return raw.name.removeprefix(_SPAN_PREFIX).strip() or None
    named = _ARROW.fullmatch(raw.name)
    told = text(raw.attributes, "gen_ai.handoff.to_agent") or mlflow.handoff_target(raw)
    target = told or (named.group(1) if named else None)
    return None if target == _UNKNOWN else target


def _candidates(
    span: CanonicalSpan, models: Sequence[CanonicalSpan], ran: set[str], taken: set[tuple[str, int]]
) -> Iterator[tuple[tuple[str, int], ToolCall]]:
    """Yield the calls that may be this hand-off, those of the last completion first."""
    start = span.start_time_unix_nano or 0
    for model in reversed(models):
        if model.start_time_unix_nano and model.start_time_unix_nano <= start:
            for index, call in enumerate(model.tool_calls):
                place = (model.span_id, index)
                if fold(call.name) not in ran and place not in taken:
                    yield place, call


def _call(
    span: CanonicalSpan, target: str | None, candidates: list[tuple[tuple[str, int], ToolCall]]
) -> tuple[tuple[str, int], ToolCall] | None:
    if not candidates:
        return None
    last_model = candidates[0][0][0]
    same = [entry for entry in candidates if entry[0][0] == last_model]
    wanted = fold(re.sub(r"\W", "", target or span.name))
    return next((entry for entry in same if wanted in fold(entry[1].name)), same[0])


def _default_name(target: str | None) -> str:
    """Return `transfer_to_` and the agent's name in the SDK's form, or plain `handoff` for an unknown target."""
    return "handoff" if target is None else "transfer_to_" + re.sub(r"\W", "_", target).lower()
