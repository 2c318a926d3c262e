"""One run recorded as several traces: a second instrumentation whose spans land in traces of their own."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from stepacc_core.model import CanonicalTrace, Gap


def repeated_in_other_traces(traces: Sequence[CanonicalTrace]) -> tuple[CanonicalTrace, ...]:
    """Take the calls out of single model spans whose every call a fuller trace of the set records as well.

    A client library instrumented beside a framework that does not pass its context on records each completion as a
    trace of its own. Call ids tell it; a trace with other spans than its model span, or with a call of its own, is
    left as it is.
    """
    holders: dict[str, list[CanonicalTrace]] = {}
    for trace in traces:
        for call_id in _call_ids(trace):
            holders.setdefault(call_id, []).append(trace)
    return tuple(_without_repeats(trace, holders) for trace in traces)


def _call_ids(trace: CanonicalTrace) -> Iterable[str]:
    found = {call.id for span in trace.spans for call in span.tool_calls if call.id is not None}
    return found | {span.tool_call_id for span in trace.spans if span.tool_call_id is not None}


def _without_repeats(trace: CanonicalTrace, holders: dict[str, list[CanonicalTrace]]) -> CanonicalTrace:
    if len(trace.spans) != 1 or not trace.spans[0].tool_calls:
        return trace
    span = trace.spans[0]
    fuller: set[str] | None = None
    for call in span.tool_calls:
        others = {t.trace_id for t in holders.get(call.id or "", ()) if len(t.spans) > 1 and _share_time(t, trace)}
        fuller = others if fuller is None else fuller & others
    if not fuller:
        return trace
    detail = f"The calls of this completion are recorded in the trace {min(fuller)} too; they count there."
    gap = Gap("recorded_in_other_trace", detail, (span.span_id,))
    return replace(trace, spans=(replace(span, tool_calls=()),), gaps=(*trace.gaps, gap))


def _share_time(one: CanonicalTrace, other: CanonicalTrace) -> bool:
    if None in (one.start_time_unix_nano, other.start_time_unix_nano):
        return False
    starts = max(one.start_time_unix_nano or 0, other.start_time_unix_nano or 0)
    return starts <= min(one.end_time_unix_nano or starts, other.end_time_unix_nano or starts)
