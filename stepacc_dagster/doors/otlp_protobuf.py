"""OTLP as protobuf: messages to raw spans and log events.

The messages are those of `opentelemetry-proto`. `ExportTraceServiceRequest` and `TracesData` have the same form, so one
stands for both, and likewise for log records. Spans and log events come out equal to those that `stepacc_core.otlp`
reads from the same request as JSON.
"""

import base64
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from stepacc_core.errors import ReadError
from stepacc_core.log_records import LogEvent
from stepacc_core.model import RawEvent, RawSpan, SpanStatus
from stepacc_core.otlp_fields import Times, event_time, read_times, span_time_error
from stepacc_dagster.doors.framing import split

if TYPE_CHECKING:
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
    from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
    from opentelemetry.proto.trace.v1.trace_pb2 import Span

_STATUSES: dict[int, SpanStatus] = {1: "OK", 2: "ERROR"}


def read_protobuf(chunks: Iterable[bytes]) -> Iterator[RawSpan | LogEvent | ReadError]:
    """Yield spans and log events of a file of messages in their order, and an error in the place of what is broken.

    Args:
        chunks: the bytes of the file, in pieces of any size. Of a file with lengths one message at a time is held.
    """
    for number, message in enumerate(split(chunks), start=1):
        if isinstance(message, ReadError):
            yield message
        else:
            read = events_of if holds_logs(message) else spans_of
            yield from read(message, f"Message {number}")


def holds_logs(message: bytes) -> bool:
    """Tell a serialized `LogsData` from `TracesData`, which begin alike: only a log record has its time in field 1."""
    request = ExportLogsServiceRequest()
    try:
        request.ParseFromString(message)
    except DecodeError:
        return False
    return any(
        record.time_unix_nano or record.observed_time_unix_nano
        for resource_logs in request.resource_logs
        for scope_logs in resource_logs.scope_logs
        for record in scope_logs.log_records[:1]
    )


def events_of(message: bytes, where: str) -> Iterator[LogEvent | ReadError]:
    """Yield the log records of one message that belong to a span, as events, or an error.

    Args:
        message: a serialized `ExportLogsServiceRequest` or `LogsData`.
        where: what it is in messages, as `Message 3`.
    """
    request = ExportLogsServiceRequest()
    try:
        request.ParseFromString(message)
    except DecodeError as error:
        yield ReadError(f"{where} is no ExportLogsServiceRequest in protobuf ({error}); it was not read.")
        return
    for resource_logs in request.resource_logs:
        for scope_logs in resource_logs.scope_logs:
            for record in scope_logs.log_records:
                trace_id, span_id = _id(record.trace_id), _id(record.span_id)
                if trace_id is not None and span_id is not None:
                    yield (trace_id, span_id), _log_event(record)


def spans_of(message: bytes, where: str) -> Iterator[RawSpan | ReadError]:
    """Yield the spans of one message, and an error in the place of a span, or of all, that cannot be read.

    Args:
        message: a serialized `ExportTraceServiceRequest` or `TracesData`.
        where: what it is in messages, as `Message 3`.
    """
    request = ExportTraceServiceRequest()
    try:
        request.ParseFromString(message)
    except DecodeError as error:
        yield ReadError(f"{where} is no ExportTraceServiceRequest in protobuf ({error}); it was not read.")
        return
    for resource_spans in request.resource_spans:
        resource = _attributes(resource_spans.resource.attributes)
        for scope_spans in resource_spans.scope_spans:
            scope = scope_spans.scope
            name, version = _text(scope.name), _text(scope.version)
            for span in scope_spans.spans:
                times = read_times(span.start_time_unix_nano, span.end_time_unix_nano)
                try:
                    yield _span(span, times, resource, name, version)
                except ValueError as error:
                    shown = repr(span.name[:80])
                    yield ReadError(f"{where}: the span {shown} cannot be read: {error}. The others were read.")
                else:
                    if times.problems:
                        yield span_time_error(where, "span", _text(span.name), times.problems)


def _span(span: "Span", times: Times, resource: Mapping[str, Any], scope_name: str, scope_version: str) -> RawSpan:
    trace_id, span_id = _id(span.trace_id), _id(span.span_id)
    if trace_id is None or span_id is None:
        msg = f"it has no {'trace' if trace_id is None else 'span'} id"
        raise ValueError(msg)
    return RawSpan(
        trace_id=trace_id,
        span_id=span_id,
        name=_text(span.name),
        parent_span_id=_id(span.parent_span_id),
        start_time_unix_nano=times.start,
        end_time_unix_nano=times.end,
        status=_STATUSES.get(span.status.code, "UNSET"),
        status_message=_text(span.status.message),
        attributes=_attributes(span.attributes),
        events=tuple(
            RawEvent(_text(e.name), event_time(e.time_unix_nano), _attributes(e.attributes)) for e in span.events
        ),
        resource=resource,
        scope_name=scope_name,
        scope_version=scope_version,
    )


def _log_event(record: "LogRecord") -> RawEvent:
    attributes = _attributes(record.attributes)
    if record.HasField("body"):
        attributes["body"] = _value(record.body)
    time = event_time(record.time_unix_nano) or event_time(record.observed_time_unix_nano)
    named = attributes.get("event.name")
    return RawEvent(_text(record.event_name) or (named if isinstance(named, str) else ""), time, attributes)


def _id(value: bytes) -> str | None:
    return value.hex() if any(value) else None


def _text(value: str) -> str:
    return value.replace("\x00", "\ufffd") if "\x00" in value else value


def _attributes(pairs: "Iterable[KeyValue]") -> dict[str, Any]:
    return {_text(pair.key): _value(pair.value) for pair in pairs}


def _value(value: "AnyValue") -> Any:
    kind = value.WhichOneof("value")
    return None if kind is None else _READERS[kind](getattr(value, kind))


def _double(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _same(value: Any) -> Any:
    return value


_READERS: dict[str, Callable[[Any], Any]] = {
    "string_value": _text,
    "bool_value": _same,
    "int_value": _same,
    "double_value": _double,
    "array_value": lambda held: [_value(item) for item in held.values],
    "kvlist_value": lambda held: _attributes(held.values),
    "bytes_value": lambda held: base64.b64encode(held).decode("ascii"),
    "string_value_strindex": lambda _: None,  # an index into a table that only profiles have
}
