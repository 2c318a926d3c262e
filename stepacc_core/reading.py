"""From raw spans to canonical traces and partitions: every door that reads traces goes through here."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stepacc_core.conventions.cleaning import clean
from stepacc_core.conventions.cleaning.across import repeated_in_other_traces
from stepacc_core.conventions.cleaning.deliveries import delivered_once, without_placeholders
from stepacc_core.conventions.cleaning.draft import by_start, draft_of
from stepacc_core.conventions.declared import DeclaredMapping
from stepacc_core.conventions.recognise import read_span
from stepacc_core.conventions.values import identifier, lookup, may_hold
from stepacc_core.log_records import carried_joined
from stepacc_core.model import CanonicalPartition, CanonicalSpan, CanonicalTrace, Gap, RawSpan
from stepacc_core.steps import find_roots

TASK_ID_ATTRIBUTES = ("stepacc.task_id", "task_id", "metadata.task_id", "langfuse.trace.metadata.task_id")
"""Where a task id is looked for, first that is present (contract, section 11)."""

SESSION_ID_ATTRIBUTES = (
    "session.id",
    "gen_ai.conversation.id",
    "langfuse.session.id",
    "traceloop.association.properties.session_id",
    "gcp.vertex.agent.session_id",
    "mlflow.trace.session",
    "langsmith.metadata.session_id",
    "langsmith.metadata.thread_id",
    "ai.telemetry.metadata.sessionId",
    "metadata.session_id",
    "metadata.conversation_id",
    "metadata.thread_id",
)
"""Where a session id is looked for. `mcp.session.id` is a transport's and `langsmith.trace.session_id` a project's."""

_UNREADABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """How a source's traces are read. The defaults read every known convention."""

    task_id_attributes: tuple[str, ...] = TASK_ID_ATTRIBUTES
    session_id_attributes: tuple[str, ...] = SESSION_ID_ATTRIBUTES
    mappings: tuple[DeclaredMapping, ...] = ()


DEFAULTS = ReadSettings()


def group_by_trace(spans: Iterable[RawSpan]) -> dict[str, list[RawSpan]]:
    """Group raw spans by trace id, traces and spans in the order in which they come."""
    traces: dict[str, list[RawSpan]] = {}
    for span in spans:
        traces.setdefault(span.trace_id, []).append(span)
    return traces


def read_traces(spans: Iterable[RawSpan], settings: ReadSettings = DEFAULTS) -> tuple[CanonicalTrace, ...]:
    """Read a whole set of spans, such as a file: its traces by start, calls repeated across traces counted once."""
    traces = [canonicalise(trace_id, group, settings) for trace_id, group in group_by_trace(spans).items()]
    return repeated_in_other_traces(sorted(traces, key=_by_start))


def canonicalise(trace_id: str, raw_spans: Sequence[RawSpan], settings: ReadSettings = DEFAULTS) -> CanonicalTrace:
    """Read the spans of one trace, in any order, and clean them.

    An odd span never costs the others: what it does not say is assumed or left out, with a gap. Equal spans give an
    equal trace in whatever order they arrive.
    """
    once, repeated = delivered_once(raw_spans)
    whole, apart = carried_joined(once)
    raw, placeholders = without_placeholders(whole)
    raw.sort(key=_raw_order)
    spans: list[CanonicalSpan] = []
    gaps: list[Gap] = [*repeated, *apart, *placeholders]
    for span in raw:
        canonical, assumed = _read(span, settings)
        spans.append(canonical)
        gaps += assumed
    draft = clean(draft_of(spans, raw, gaps))
    cleaned = tuple(draft.spans.values())
    roots = find_roots(cleaned)
    root_id = next((span.span_id for span in sorted(cleaned, key=by_start) if span.span_id in roots), None)
    raw.sort(key=lambda span: span.span_id != root_id)
    attributes = [span.attributes for span in raw]
    task_id = _first_id(attributes, settings.task_id_attributes)
    return CanonicalTrace(
        trace_id=trace_id,
        session_id=_first_id(attributes, settings.session_id_attributes),
        task_id=task_id or _first_id([span.resource for span in raw], settings.task_id_attributes),
        root_span_id=root_id,
        start_time_unix_nano=min((s.start_time_unix_nano for s in cleaned if s.start_time_unix_nano), default=None),
        end_time_unix_nano=max((s.end_time_unix_nano for s in cleaned if s.end_time_unix_nano), default=None),
        spans=cleaned,
        gaps=draft.gaps,
    )


def trace_partition(trace: CanonicalTrace) -> CanonicalPartition:
    """Make the partition that is one trace."""
    return CanonicalPartition(
        partition_type="trace",
        partition_id=trace.trace_id,
        session_id=trace.session_id,
        task_id=trace.task_id,
        spans=trace.spans,
        gaps=trace.gaps,
    )


def session_partition(session_id: str, traces: Iterable[CanonicalTrace]) -> CanonicalPartition:
    """Make the partition that is one session: its traces by start time, with the task of the first."""
    ordered = sorted(traces, key=_by_start)
    return CanonicalPartition(
        partition_type="session",
        partition_id=session_id,
        session_id=session_id,
        task_id=ordered[0].task_id if ordered else None,
        spans=tuple(span for trace in ordered for span in trace.spans),
        gaps=tuple(gap for trace in ordered for gap in trace.gaps),
    )


def _by_start(trace: CanonicalTrace) -> tuple[bool, int, str]:
    start = trace.start_time_unix_nano
    return (start is None, start or 0, trace.trace_id)


def _raw_order(span: RawSpan) -> tuple[bool, int, str, str]:
    start = span.start_time_unix_nano
    return (not start, start or 0, span.name, span.span_id)


def _read(span: RawSpan, settings: ReadSettings) -> tuple[CanonicalSpan, tuple[Gap, ...]]:
    try:
        return read_span(span, settings.mappings)
    except _UNREADABLE as error:
        plain = CanonicalSpan(
            trace_id=span.trace_id,
            span_id=span.span_id,
            kind="UNKNOWN",
            name=span.name,
            parent_span_id=span.parent_span_id,
            start_time_unix_nano=span.start_time_unix_nano,
            end_time_unix_nano=span.end_time_unix_nano,
            status=span.status,
        )
        detail = f"The attributes of {span.name!r} cannot be read ({type(error).__name__}); its kind is unknown."
        return plain, (Gap("unreadable_span", detail, (span.span_id,)),)


def _first_id(holders: Sequence[Mapping[str, Any]], paths: Sequence[str]) -> str | None:
    """Return the id that the first of these attributes has, taking them in order and in each the paths in order."""
    names = set[str]().union(*holders)
    possible = [path for path in paths if not names.isdisjoint(may_hold(path))]
    for holder in holders if possible else ():
        for path in possible:
            found = identifier(lookup(holder, path))
            if found is not None:
                return found
    return None
