"""From a canonical partition to the ordered steps an agent took (contract of `agent.step_accuracy`, section 3).

Works on any canonical partition, also one written by hand: nothing here relies on a reader having cleaned it. All of
it is iterative and close to linear, for traces of tens of thousands of spans and chains as deep.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from stepacc_core.conventions.naming import without_affixes
from stepacc_core.errors import FailureCode, ScoringError
from stepacc_core.model import CanonicalPartition, CanonicalSpan, NotApplicableReason, Step, ToolCall
from stepacc_core.names import StepKind

REQUIRED_KINDS = frozenset({"TOOL", "AGENT", "LLM"})
_STEP_KINDS = frozenset({"TOOL", "AGENT"})
_ANNOUNCE = frozenset({"LLM", "AGENT"})
_NAMED_MISSING = 3
_UNTIMED = 2**63

_Found = tuple[tuple[int, str, str, str, int], CanonicalSpan, ToolCall | None]
"""What decides the place of a step, its span, and its call where it was read from a completion."""


@dataclass(frozen=True, slots=True)
class TraceSpans:
    """The spans of one trace, each once, with the ids of its roots and the spans that are steps."""

    trace_id: str
    spans: tuple[CanonicalSpan, ...]
    roots: frozenset[str]
    step_spans: tuple[CanonicalSpan, ...]


def collect_steps(partition: CanonicalPartition) -> tuple[Step, ...]:
    """Return the steps of a trace, or of all traces of a session merged, in the order of execution.

    A step is a TOOL or AGENT span that is not a root. A trace without any such span contributes the tool calls of
    its completions. Order: start time, span name by code point, span id, place of the call in its completion.

    Raises:
        ScoringError: `missing_start_time`, naming spans that are or hold steps and have no start time.
    """
    return tuple([_step(span, call) for _, span, call in _in_order(partition)])


def step_names(partition: CanonicalPartition) -> list[tuple[str, StepKind]]:
    """Return name and kind of each of `collect_steps`, in less time.

    Raises:
        ScoringError: as `collect_steps`.
    """
    return [_name_and_kind(span, call) for _, span, call in _in_order(partition)]


def _in_order(partition: CanonicalPartition) -> list[_Found]:
    found: list[_Found] = []
    untimed: list[CanonicalSpan] = []
    for trace in traces_of(partition.spans):
        for index, span, call in _taken(trace):
            if span.start_time_unix_nano:
                found.append(((span.start_time_unix_nano, span.name, span.span_id, span.trace_id, index), span, call))
            else:
                untimed.append(span)
    if untimed:
        raise _missing_start_time(untimed)
    found.sort(key=itemgetter(0))
    return found


def required_kinds_present(partition: CanonicalPartition) -> bool:
    """Tell whether the partition holds a span of kind TOOL, AGENT or LLM."""
    return any(span.kind in REQUIRED_KINDS for span in partition.spans)


def not_applicable_reason(partition: CanonicalPartition) -> NotApplicableReason | None:
    """Return why no score can be given however many steps there are, or None.

    `no_required_kinds`: no TOOL, AGENT or LLM span. `content_not_recorded`: a trace, even one among several of a
    session, whose completions asked for tools without recording the calls, and that has no step span either.
    """
    if not required_kinds_present(partition):
        return "no_required_kinds"
    if any(map(_hides_calls, partition.spans)):
        for trace in traces_of(partition.spans):
            if not trace.step_spans and any(map(_hides_calls, trace.spans)):
                return "content_not_recorded"
    return None


def describe(partition: CanonicalPartition) -> dict[str, Any]:
    """Return what can be read of a partition as one JSON object: status, reason, steps and gaps."""
    reason: str | None = not_applicable_reason(partition)
    steps: tuple[Step, ...] = ()
    if reason is None:
        try:
            steps = collect_steps(partition)
        except ScoringError as error:
            reason = error.code.value
    return {
        "partition_type": partition.partition_type,
        "partition_id": partition.partition_id,
        "session_id": partition.session_id,
        "status": "ok" if reason is None else "not_scorable",
        "reason": reason,
        "steps": [
            {
                "name": step.name,
                "kind": step.kind,
                "from": step.origin,
                "full_name": step.full_name,
                "arguments": step.arguments,
                "span_id": step.span_id,
            }
            for step in steps
        ],
        "gaps": [{"kind": gap.kind, "detail": gap.detail, "span_ids": list(gap.span_ids)} for gap in partition.gaps],
    }


def traces_of(spans: Iterable[CanonicalSpan]) -> tuple[TraceSpans, ...]:
    """Group spans by trace, in the order in which the traces appear; the first copy of a repeated span counts."""
    traces: dict[str, dict[str, CanonicalSpan]] = {}
    for span in spans:
        traces.setdefault(span.trace_id, {}).setdefault(span.span_id, span)
    return tuple(_trace(trace_id, tuple(by_id.values())) for trace_id, by_id in traces.items())


def _trace(trace_id: str, spans: tuple[CanonicalSpan, ...]) -> TraceSpans:
    roots = find_roots(spans)
    steps = tuple([span for span in spans if span.kind in _STEP_KINDS and span.span_id not in roots])
    return TraceSpans(trace_id, spans, roots, steps)


def find_roots(spans: Sequence[CanonicalSpan]) -> frozenset[str]:
    """Return the ids of the roots of one trace, of which each span is given once.

    Spans without a parent are roots. Where there is none, the one span whose parent is not in the trace is the root,
    if all other spans are below it and it is no TOOL span: the trace was cut off above the agent.
    """
    roots = frozenset([span.span_id for span in spans if not _parent(span)])
    if roots:
        return roots
    ids = {span.span_id for span in spans}
    orphans = [span for span in spans if _parent(span) not in ids]
    if len(orphans) != 1 or orphans[0].kind == "TOOL" or _below(orphans[0].span_id, spans) != len(spans):
        return frozenset()
    return frozenset({orphans[0].span_id})


def _parent(span: CanonicalSpan) -> str | None:
    """Return the parent's id; empty and all zeros mean none, also in partitions written by hand."""
    parent = span.parent_span_id
    return parent if parent and parent.strip("0") else None


def _below(top: str, spans: Sequence[CanonicalSpan]) -> int:
    """Count the span with this id and all spans below it."""
    children: dict[str, list[str]] = {}
    for span in spans:
        children.setdefault(span.parent_span_id or "", []).append(span.span_id)
    count = 0
    waiting = [top]
    while waiting:
        count += 1
        waiting += children.pop(waiting.pop(), ())
    return count


def _taken(trace: TraceSpans) -> Iterable[tuple[int, CanonicalSpan, ToolCall | None]]:
    """Return the spans that are steps, or the calls of completions with their span and their place in it."""
    if trace.step_spans:
        return [(0, span, None) for span in trace.step_spans]
    return _embedded(trace)


def _embedded(trace: TraceSpans) -> Iterator[tuple[int, CanonicalSpan, ToolCall]]:
    """Yield the calls of the trace's completions, each id and name once: where it was recorded first."""
    seen: set[tuple[str, str]] = set()
    models = [span for span in trace.spans if span.kind == "LLM" and span.tool_calls]
    models.sort(key=_model_order)
    for span in models:
        for index, call in enumerate(span.tool_calls):
            if call.id:  # the same call told again, as in a repeated history; ids may start anew in each completion
                if (call.id, call.name) in seen:
                    continue
                seen.add((call.id, call.name))
            yield index, span, call


def _name_and_kind(span: CanonicalSpan, call: ToolCall | None) -> tuple[str, StepKind]:
    if call is not None:
        return call.name, "TOOL"
    if span.kind == "AGENT":
        return span.agent_name or span.name, "AGENT"
    return span.tool_name or without_affixes(span.name), "TOOL"


def _step(span: CanonicalSpan, call: ToolCall | None) -> Step:
    name, kind = _name_and_kind(span, call)
    if call is not None:
        return Step(
            name=name,
            origin="completion",
            full_name=call.full_name,
            arguments=call.arguments,
            call_id=call.id,
            trace_id=span.trace_id,
            span_id=span.span_id,
        )
    if kind == "AGENT":
        return Step(name=name, kind=kind, trace_id=span.trace_id, span_id=span.span_id, status=span.status)
    return Step(
        name=name,
        full_name=span.tool_full_name,
        arguments=span.tool_arguments,
        call_id=span.tool_call_id,
        trace_id=span.trace_id,
        span_id=span.span_id,
        status=span.status,
        output=span.output,
    )


def _model_order(span: CanonicalSpan) -> tuple[int, str, str]:
    """Order by start, spans without one last: what they repeat then counts where its time is known."""
    return (span.start_time_unix_nano or _UNTIMED, span.name, span.span_id)


def _hides_calls(span: CanonicalSpan) -> bool:
    return span.kind in _ANNOUNCE and span.calls_announced and not span.tool_calls


def _missing_start_time(spans: list[CanonicalSpan]) -> ScoringError:
    named = {(span.trace_id, span.span_id): span for span in spans}
    shown = ", ".join(f"{s.name!r} ({s.span_id})" for s in list(named.values())[:_NAMED_MISSING])
    more = f" and {len(named) - _NAMED_MISSING} more" if len(named) > _NAMED_MISSING else ""
    msg = (
        f"The order of the steps is unknown: {shown}{more} have no start time. "
        "Record start_time_unix_nano, in nanoseconds since 1970, on every tool, agent and model span."
    )
    return ScoringError(FailureCode.MISSING_START_TIME, msg)
