"""LangSmith's runs as JSON: one a line, in a list, or in the answer of the API (`{"runs": [...]}`).

Also read is a run with its `child_runs` inside. The fields are those of LangSmith's documented run format; a run
becomes a span in the attributes of LangSmith's own OpenTelemetry export, which `conventions/langsmith.py` reads:

| run | span |
|---|---|
| `id` | span id |
| `trace_id`, else the first run of `dotted_order` | trace id |
| `parent_run_id`, else the run before the last of `dotted_order`, else the run around it | parent |
| `start_time`, `end_time`: ISO 8601, in UTC without a zone, or milliseconds | start, end |
| `status`, `error` | status and its message |
| `extra.metadata` | attribute `metadata`: task, session, thread or conversation id are found there |
| `extra.tool_call_id`, `extra.metadata.tool_call_id`, `outputs.output.tool_call_id` | `gen_ai.tool.call.id` |

`session_id` is the project in LangSmith, and no session.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from stepacc_core.conventions.values import mapping, parsed
from stepacc_core.errors import ReadError
from stepacc_core.exports.fields import (
    BAD,
    bad_record,
    capitalised,
    first,
    moved,
    nanoseconds,
    optional_id,
    part,
    records,
    required_id,
)
from stepacc_core.model import RawSpan, SpanStatus
from stepacc_core.otlp_fields import Times, read_times, span_time_error

_ATTRIBUTES = (
    ("run_type", "langsmith.span.kind"),
    ("session_id", "langsmith.trace.session_id"),
    ("session_name", "langsmith.trace.session_name"),
    ("inputs", "gen_ai.prompt"),
    ("outputs", "gen_ai.completion"),
    ("prompt_tokens", "gen_ai.usage.input_tokens"),
    ("completion_tokens", "gen_ai.usage.output_tokens"),
    ("total_cost", "gen_ai.usage.cost"),
    ("tags", "langsmith.span.tags"),
)
_STATUSES: dict[str, SpanStatus] = {"success": "OK", "error": "ERROR"}
_ENVELOPES = ("runs", "data")
_DEEPEST = 200
"""Levels of `child_runs` that are read."""


def recognises(document: Any) -> bool:
    """Tell whether a document is a run, or holds a list of runs."""
    if not isinstance(document, Mapping):
        return False
    return _is_run(document) or any(any(map(_is_run, records(document.get(name)))) for name in _ENVELOPES)


def read(where: str, document: Any) -> Iterator[RawSpan | ReadError]:
    """Yield the spans of a document, runs before the runs inside them, and errors in the place of bad runs."""
    if not isinstance(document, Mapping):
        yield bad_record(where, "run", document, ValueError("it is no object"))
        return
    listed = next((document[name] for name in _ENVELOPES if isinstance(document.get(name), list)), None)
    if listed is None or _is_run(document):
        yield from _with_children(where, document)
        return
    for place, run in enumerate(listed, start=1):
        yield from _with_children(f"{where}, run {place}", run)


def _is_run(document: Mapping[str, Any]) -> bool:
    return "run_type" in document and "id" in document


def _with_children(where: str, top: Any) -> Iterator[RawSpan | ReadError]:
    waiting: list[tuple[Any, RawSpan | None, int]] = [(top, None, 0)]
    while waiting:
        run, around, depth = waiting.pop()
        span: RawSpan | None = None
        try:
            times = read_times(run.get("start_time"), run.get("end_time"), nanoseconds)
            span = _span(run, times, around)
        except BAD as error:
            yield bad_record(where, "run", run, error)
        else:
            yield span
            if times.problems:
                yield span_time_error(capitalised(where), "run", span.name, times.problems)
        inner = run.get("child_runs") if isinstance(run, Mapping) and depth < _DEEPEST else None
        if isinstance(inner, list):
            waiting += [(child, span or around, depth + 1) for child in reversed(inner)]


def _span(run: Mapping[str, Any], times: Times, around: RawSpan | None) -> RawSpan:
    span_id = required_id(run, "id", "id")
    path = _path(run.get("dotted_order"))
    parent_id = optional_id(run, "parent_run_id") or (path[-2] if len(path) > 1 else None)
    if parent_id is None and around is not None:
        parent_id = around.span_id
    trace_id = optional_id(run, "trace_id") or (path[0] if path else None)
    if trace_id is None:
        trace_id = around.trace_id if around is not None else None if parent_id else span_id
    if trace_id is None:
        msg = "it has no trace_id and no dotted_order, and is no root"
        raise ValueError(msg)
    name, error = run.get("name"), run.get("error")
    return RawSpan(
        trace_id=trace_id,
        span_id=span_id,
        name=name if isinstance(name, str) else "",
        parent_span_id=parent_id,
        start_time_unix_nano=times.start,
        end_time_unix_nano=times.end,
        status="ERROR" if error else _STATUSES.get(str(run.get("status")).lower(), "UNSET"),
        status_message=error if isinstance(error, str) else "",
        attributes=_attributes(run),
        scope_name="langsmith",
    )


def _path(dotted_order: Any) -> list[str]:
    """Return the ids in a dotted order, `<start>Z<id>.<start>Z<id>`, from the root to the run."""
    parts = dotted_order.split(".") if isinstance(dotted_order, str) and dotted_order.strip() else []
    ids = [part_.partition("Z")[2].strip() for part_ in parts]
    return ids if all(ids) else []


def _attributes(run: Mapping[str, Any]) -> dict[str, Any]:
    attributes = moved(run, _ATTRIBUTES)
    extra = part(run, "extra")
    metadata = part(extra, "metadata")
    if metadata:
        attributes |= moved(extra, (("metadata", "metadata"),))
    model = first(metadata, "ls_model_name")
    if model is not None:
        attributes["gen_ai.request.model"] = model
    kind = str(run.get("run_type")).lower()
    if kind == "tool":
        attributes |= _of_tool(run, extra, metadata)
    elif kind == "llm":
        messages = part(run, "outputs").get("messages")
        if isinstance(messages, list):  # only what the model put out stands there, so it is no history
            attributes["gen_ai.completion"] = messages
    return attributes


def _of_tool(run: Mapping[str, Any], extra: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if isinstance(run.get("name"), str):
        found["gen_ai.tool.name"] = run["name"]
    output = mapping(part(run, "outputs").get("output"))
    call_id = first(extra, "tool_call_id") or first(metadata, "tool_call_id")
    call_id = call_id or first(output, "tool_call_id") or first(part(output, "kwargs"), "tool_call_id")
    if call_id is not None:
        found["gen_ai.tool.call.id"] = call_id
    inputs = part(run, "inputs")
    if set(inputs) == {"input"}:  # LangChain gives all arguments as one text, or one object
        inner = parsed(inputs["input"])
        if isinstance(inner, Mapping):
            found["gen_ai.prompt"] = inner
    return found
