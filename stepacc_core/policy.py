"""A source's step policy: what of a trace is no step although the literal rule counts it.

The same agent is the root span in one framework and a span below the root in another; a hand-off is recorded as a tool,
as an agent, or as both. The contract's literal reading is the default; a policy makes expected steps written for one
framework fit another. A span that a policy leaves out stays in the partition as a CHAIN span, with a gap.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, get_args

from stepacc_core.errors import ConfigError
from stepacc_core.model import CanonicalPartition, CanonicalSpan, Gap
from stepacc_core.names import fold
from stepacc_core.steps import TraceSpans, traces_of

EntryAgent = Literal["step", "root"]
Handoffs = Literal["both", "tool", "agent", "none"]

_HANDOFF_PREFIXES = tuple(fold(name) for name in ("transfer_to", "handoff_to", "transfer_back_to", "delegate_to"))
_HANDOFF_NAMES = frozenset(fold(name) for name in ("handoff", "transfer"))


@dataclass(frozen=True, slots=True)
class StepPolicy:
    """Which spans count as steps.

    Args:
        entry_agent: `step` counts the agent that took the request when its span lies below the root; `root` does not.
        handoffs: what of a hand-off, or of an agent called as a tool, counts: the tool call and the agent (`both`),
            one of them, or neither (`none`).
        ignore: names of tools and agents that are never steps; compared as expected names are.

    Raises:
        ConfigError: a setting is refused; the sentence says what was given and what is allowed.
    """

    entry_agent: EntryAgent = "step"
    handoffs: Handoffs = "both"
    ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse settings that do not exist."""
        for name, allowed in (("entry_agent", get_args(EntryAgent)), ("handoffs", get_args(Handoffs))):
            if getattr(self, name) not in allowed:
                msg = f"Step policy `{name}` is {getattr(self, name)!r}; use {', '.join(allowed)}."
                raise ConfigError(msg)

    def settings(self) -> Mapping[str, Any]:
        """Return what differs from the literal reading, for the config hash: empty for the default."""
        chosen = {"entry_agent": self.entry_agent, "handoffs": self.handoffs, "ignore": sorted(set(self.ignore))}
        return {name: value for name, value in chosen.items() if value not in ("step", "both", [])}


LITERAL = StepPolicy()
"""The contract's reading."""


def apply_policy(partition: CanonicalPartition, policy: StepPolicy) -> CanonicalPartition:
    """Return the partition with the spans that the policy leaves out turned into CHAIN spans, and gaps that say so."""
    if policy == LITERAL:
        return partition
    left_out: dict[tuple[str, str], str] = {}
    for trace in traces_of(partition.spans):
        for span, reason in _left_out(trace, policy):
            left_out.setdefault((trace.trace_id, span.span_id), reason)
    if not left_out and not policy.ignore:
        return partition
    spans = tuple(
        _without_ignored_calls(
            replace(span, kind="CHAIN") if (span.trace_id, span.span_id) in left_out else span, policy
        )
        for span in partition.spans
    )
    reasons = sorted(set(left_out.values()))
    gaps = tuple(
        Gap("left_out_by_policy", f"Not counted as steps: {reason}.", tuple(_ids_of(left_out, reason)))
        for reason in reasons
    )
    return replace(partition, spans=spans, gaps=(*partition.gaps, *gaps))


def _ids_of(left_out: Mapping[tuple[str, str], str], reason: str) -> Iterator[str]:
    return (span_id for (_, span_id), why in left_out.items() if why == reason)


def _left_out(trace: TraceSpans, policy: StepPolicy) -> Iterator[tuple[CanonicalSpan, str]]:
    for span in trace.step_spans:
        if _is_ignored(span, policy):
            yield span, "names the source ignores"
    if policy.entry_agent == "root" and (entry := _entry_agent(trace)):
        yield entry, "the entry agent"
    if policy.handoffs != "both":
        yield from _handoffs(trace, policy.handoffs)


def _entry_agent(trace: TraceSpans) -> CanonicalSpan | None:
    """Return the agent that took the request: the outermost agent below the root that starts before any other step."""
    first = min(trace.step_spans, key=_order, default=None)
    return first if first is not None and first.kind == "AGENT" else None


def _handoffs(trace: TraceSpans, kept: Handoffs) -> Iterator[tuple[CanonicalSpan, str]]:
    """Yield the spans of hand-offs that do not count: a tool call passing control, or the agent it goes to."""
    by_id = {span.span_id: span for span in trace.spans}
    ordered = sorted(trace.step_spans, key=_order)
    passing: dict[str, CanonicalSpan] = {}
    for span in ordered:
        if span.kind == "AGENT" and (tool := _enclosing_tool(span, by_id)):
            passing[span.span_id] = tool
    for before, after in pairwise(ordered):
        if before.kind == "TOOL" and after.kind == "AGENT" and _names_a_handoff(before):
            passing.setdefault(after.span_id, before)
    for agent_id, tool in passing.items():
        if kept in ("agent", "none"):
            yield tool, "tool calls that hand over to an agent"
        if kept in ("tool", "none"):
            yield by_id[agent_id], "agents that a tool call handed over to"


def _enclosing_tool(agent: CanonicalSpan, by_id: Mapping[str, CanonicalSpan]) -> CanonicalSpan | None:
    """Return the TOOL span an agent runs in, unless another agent lies between."""
    seen = {agent.span_id}
    parent = by_id.get(agent.parent_span_id or "")
    while parent is not None and parent.span_id not in seen and parent.kind != "AGENT":
        if parent.kind == "TOOL":
            return parent
        seen.add(parent.span_id)
        parent = by_id.get(parent.parent_span_id or "")
    return None


def _names_a_handoff(span: CanonicalSpan) -> bool:
    name = fold(span.tool_name or span.name)
    return name in _HANDOFF_NAMES or name.startswith(_HANDOFF_PREFIXES)


def _is_ignored(span: CanonicalSpan, policy: StepPolicy) -> bool:
    if span.kind == "AGENT":
        return (span.agent_name or span.name) in policy.ignore
    return _ignores_tool(span.tool_name or span.name, policy)


def _ignores_tool(name: str, policy: StepPolicy) -> bool:
    return fold(name) in {fold(ignored) for ignored in policy.ignore}


def _without_ignored_calls(span: CanonicalSpan, policy: StepPolicy) -> CanonicalSpan:
    kept = tuple(call for call in span.tool_calls if not _ignores_tool(call.name, policy))
    return span if len(kept) == len(span.tool_calls) else replace(span, tool_calls=kept)


def _order(span: CanonicalSpan) -> tuple[int, str, str]:
    return span.start_time_unix_nano or 0, span.name, span.span_id
