"""Langfuse's traces and observations as JSON, in every shape it gives them out.

| document | from |
|---|---|
| `{"trace": {...}, "observations": [...]}` | the download of one trace |
| a trace with `observations` inside | the API |
| a session with `traces` inside | the download of one session |
| `{"data": [...]}` of traces or observations | a page of the API |
| one observation, camelCase or snake_case | table and storage exports |

An observation becomes a span in the attributes of Langfuse's own SDK, which `conventions/langfuse.py` reads. Spans
that Langfuse got over OpenTelemetry keep their first attributes in `metadata.attributes`; those are put back beside.
Where a trace has several observations without a parent, or none, the trace itself is their root, as it was up to SDK 2.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from stepacc_core.conventions.values import identifier, mapping
from stepacc_core.errors import ReadError
from stepacc_core.exports.fields import (
    BAD,
    bad_record,
    below,
    capitalised,
    first,
    moved,
    nanoseconds,
    optional_id,
    part,
    records,
    required_id,
)
from stepacc_core.model import RawSpan
from stepacc_core.otlp_fields import Times, read_times, span_time_error

_OBSERVATION = (
    ("input", "langfuse.observation.input"),
    ("output", "langfuse.observation.output"),
    ("model", "langfuse.observation.model.name"),
    ("level", "langfuse.observation.level"),
    ("usageDetails", "langfuse.observation.usage_details"),
    ("usage_details", "langfuse.observation.usage_details"),
    ("costDetails", "langfuse.observation.cost_details"),
    ("cost_details", "langfuse.observation.cost_details"),
    *(
        (field, attribute)
        for fields, attribute in (
            (("environment",), "langfuse.environment"),
            (("sessionId", "session_id"), "session.id"),
            (("userId", "user_id"), "user.id"),
            (("traceName", "trace_name"), "langfuse.trace.name"),
            (("tags",), "langfuse.trace.tags"),
        )
        for field in fields
    ),
)
_TRACE = (
    ("name", "langfuse.trace.name"),
    ("sessionId", "session.id"),
    ("session_id", "session.id"),
    ("userId", "user.id"),
    ("user_id", "user.id"),
    ("tags", "langfuse.trace.tags"),
)
_OF_OTEL = ("attributes", "resourceAttributes", "scope")
_TYPES = frozenset(
    {
        "span",
        "event",
        "generation",
        "agent",
        "tool",
        "chain",
        "retriever",
        "embedding",
        "guardrail",
        "evaluator",
    }
)


def recognises(document: Any) -> bool:
    """Tell whether a document is an observation, or a trace, session or page."""
    if not isinstance(document, Mapping):
        return False
    if _is_observation(document) or _is_trace(document):
        return True
    listed = (*records(document.get("data")), *records(document.get("traces")))
    return any(_is_observation(each) or _is_trace(each) for each in listed)


def read(where: str, document: Any) -> Iterator[RawSpan | ReadError]:
    """Yield the spans of a document, and errors in the place of observations that cannot be read."""
    if not isinstance(document, Mapping):
        yield bad_record(where, "observation", document, ValueError("it is no object"))
    elif _is_observation(document):
        yield from _observation(where, document, {})
    elif isinstance(document.get("data"), list) or isinstance(document.get("traces"), list):
        for name in ("data", "traces"):
            listed = document.get(name)
            for place, inner in enumerate(listed if isinstance(listed, list) else (), start=1):
                yield from _below_page(f"{where}, {name}[{place - 1}]", inner)
    else:
        yield from _trace(where, document)


def _below_page(where: str, document: Any) -> Iterator[RawSpan | ReadError]:
    if isinstance(document, Mapping) and _is_observation(document):
        yield from _observation(where, document, {})
    else:
        yield from _trace(where, document)


def _is_observation(document: Mapping[str, Any]) -> bool:
    kind = document.get("type")
    timed = "startTime" in document or "start_time" in document
    return isinstance(kind, str) and kind.lower() in _TYPES and timed and "id" in document


def _is_trace(document: Mapping[str, Any]) -> bool:
    observations = document.get("observations")
    if not isinstance(observations, list):
        return False
    return isinstance(document.get("trace"), Mapping) or "id" in document


def _trace(where: str, document: Any) -> Iterator[RawSpan | ReadError]:
    held = document.get("observations") if isinstance(document, Mapping) else None
    if not isinstance(held, list) or (held and not records(held)):
        why = ValueError("it holds no observations; export them with it, or export the observations themselves")
        yield bad_record(where, "trace", document, why)
        return
    trace = part(document, "trace") or document
    try:
        trace_id = required_id(trace, "id", "id")
        shared = _of_trace(trace)
    except BAD as error:
        yield bad_record(where, "trace", trace, error)
        return
    found = [
        item
        for number, observation in enumerate(held, start=1)
        for item in _observation(f"{where}, observation {number}", observation, shared, trace_id)
    ]
    spans = [span for span in found if isinstance(span, RawSpan)]
    tops = [span for span in spans if span.parent_span_id is None]
    if spans and len(tops) != 1:
        yield from _root(where, trace, trace_id, shared)
        found = [replace(s, parent_span_id=trace_id) if isinstance(s, RawSpan) and s in tops else s for s in found]
    yield from found


def _root(
    where: str, trace: Mapping[str, Any], trace_id: str, shared: Mapping[str, Any]
) -> Iterator[RawSpan | ReadError]:
    name = trace.get("name")
    times = read_times(trace.get("timestamp"), None, nanoseconds)
    try:
        attributes = moved(trace, (("input", "langfuse.observation.input"), ("output", "langfuse.observation.output")))
        yield RawSpan(
            trace_id=trace_id,
            span_id=trace_id,
            name=name if isinstance(name, str) else "",
            start_time_unix_nano=times.start,
            attributes={**attributes, **shared, "langfuse.observation.type": "span"},
            scope_name="langfuse",
        )
    except BAD as error:
        yield bad_record(where, "trace", trace, error)
    else:
        if times.problems:
            yield span_time_error(capitalised(where), "trace", name if isinstance(name, str) else "", times.problems)


def _of_trace(trace: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in mapping(trace.get("metadata")).items() if key not in _OF_OTEL}
    return moved(trace, _TRACE) | below("langfuse.trace.metadata", metadata)


def _observation(
    where: str, observation: Any, shared: Mapping[str, Any], trace_id: str | None = None
) -> Iterator[RawSpan | ReadError]:
    try:
        start, end = first(observation, "startTime", "start_time"), first(observation, "endTime", "end_time")
        times = read_times(start, end, nanoseconds)
        span = _span(observation, times, shared, trace_id)
    except BAD as error:
        yield bad_record(where, "observation", observation, error)
    else:
        yield span
        if times.problems:
            yield span_time_error(capitalised(where), "observation", span.name, times.problems)


def _span(observation: Mapping[str, Any], times: Times, shared: Mapping[str, Any], trace_id: str | None) -> RawSpan:
    metadata = mapping(observation.get("metadata"))
    scope = mapping(metadata.get("scope"))
    name, message = observation.get("name"), first(observation, "statusMessage", "status_message")
    return RawSpan(
        trace_id=trace_id or required_id(observation, "trace id", "traceId", "trace_id"),
        span_id=required_id(observation, "id", "id"),
        name=name if isinstance(name, str) else "",
        parent_span_id=optional_id(observation, "parentObservationId", "parent_observation_id"),
        start_time_unix_nano=times.start,
        end_time_unix_nano=times.end,
        status="ERROR" if observation.get("level") == "ERROR" else "UNSET",
        status_message=message if isinstance(message, str) else "",
        attributes=_attributes(observation, metadata, shared),
        resource=mapping(metadata.get("resourceAttributes")),
        scope_name=identifier(scope.get("name")) or "langfuse",
        scope_version=identifier(scope.get("version")) or "",
    )


def _attributes(
    observation: Mapping[str, Any], metadata: Mapping[str, Any], shared: Mapping[str, Any]
) -> dict[str, Any]:
    own = {key: value for key, value in metadata.items() if key not in _OF_OTEL}
    attributes = {
        **mapping(metadata.get("attributes")),
        **shared,
        **below("langfuse.observation.metadata", own),
        **moved(observation, _OBSERVATION),
        "langfuse.observation.type": str(observation.get("type")).lower(),
    }
    usage = part(observation, "usage")
    if usage:
        attributes.setdefault("langfuse.observation.usage_details", dict(usage))
    cost = first(observation, "totalCost", "total_cost", "calculatedTotalCost")
    if cost is not None:
        attributes.setdefault("langfuse.observation.cost_details", {"total": cost})
    message = _tool_message(observation)
    if message:
        attributes["langfuse.observation.type"] = "tool"
        attributes.setdefault("langfuse.observation.metadata.tool_call_id", message["tool_call_id"])
    return attributes


def _tool_message(observation: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the message of a tool that a span put out: SDK 2 has no type for tools, LangChain's callback says so."""
    if str(observation.get("type")).lower() != "span":
        return {}
    output = mapping(observation.get("output"))
    return output if output.get("type") == "tool" and output.get("tool_call_id") else {}
