"""OTLP/JSON: text to raw spans and log events, lazily, one line at a time.

A file holds one `TracesData` (or `LogsData`) object a line, as the OpenTelemetry file exporter writes it; a single
indented document is read too. Accepted on the way: hex and base64 ids, lowerCamelCase and snake_case fields, 64-bit
integers as text or numbers, enums as numbers or names. Unknown fields are ignored. Times are never rounded.

A line, or a span, that cannot be read becomes a `ReadError` that names the line; the others are still read. NUL and
lone surrogates, which no database holds, become U+FFFD.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from stepacc_core.conventions.values import decode
from stepacc_core.errors import ReadError
from stepacc_core.log_records import LogEvent
from stepacc_core.model import RawEvent, RawSpan
from stepacc_core.otlp_fields import (
    Times,
    event_time,
    items,
    read_attributes,
    read_id,
    read_status,
    read_times,
    read_value,
    span_time_error,
)
from stepacc_core.shown import begun

_ItemT = TypeVar("_ItemT")
_SHOWN = 80
_BAD = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def read_otlp_lines(lines: Iterable[str | bytes]) -> Iterator[RawSpan | ReadError]:
    """Yield the spans of OTLP/JSON text in their order, and an error in the place of what cannot be read.

    Args:
        lines: the lines of a file, or any other pieces that each hold one object. Bytes are taken as UTF-8.

    Yields:
        Raw spans; for a line that is no JSON or no OTLP object, or a span without an id, a `ReadError` that names the
        line (the caller adds the file). A span with a time that is no integer comes without it, and a `SpanTimeError`
        after it.
    """
    return _read(lines, _spans)


def read_otlp_log_lines(lines: Iterable[str | bytes]) -> Iterator[LogEvent | ReadError]:
    """Yield the log records of OTLP/JSON text that belong to a span, as events, with the key of their span.

    The record's body is under `body` in the event's attributes. Records without a span are left out.

    Args:
        lines: as for `read_otlp_lines`.
    """
    return _read(lines, _logs)


def read_otlp(lines: Iterable[str | bytes]) -> Iterator[RawSpan | LogEvent | ReadError]:
    """Yield spans and log records of OTLP/JSON text, in whatever order and mixture they stand in it.

    Args:
        lines: as for `read_otlp_lines`.
    """
    return _read(lines, _spans, _logs)


def _read(
    lines: Iterable[str | bytes], *signals: Callable[[int, Mapping[str, Any]], Iterator[_ItemT]]
) -> Iterator[_ItemT | ReadError]:
    for number, document in _documents(lines):
        if isinstance(document, ReadError):
            yield document
            continue
        for entry in _entries(number, document):
            if isinstance(entry, ReadError):
                yield entry
            else:
                for read in signals:
                    yield from read(number, entry)


def _documents(lines: Iterable[str | bytes]) -> Iterator[tuple[int, Any]]:
    """Yield line numbers with parsed objects or errors; an indented document is read as a whole."""
    numbered = ((number, _text_of(line)) for number, line in enumerate(lines, start=1))
    filled = ((number, written) for number, written in numbered if written)
    for number, written in filled:
        if _opens_indented(written):
            yield from _whole([(number, written), *filled])
        else:
            yield _line(number, written)
            yield from (_line(later, text) for later, text in filled)
        return


def _opens_indented(line: str) -> bool:
    return line in ("{", "[") or (line[0] in "{[" and line[-1] in "{[,")


def _line(number: int, written: str) -> tuple[int, Any]:
    try:
        return number, decode(written)
    except ValueError as error:
        return number, _line_error(number, f"is not JSON ({error})", written)


def _whole(numbered: list[tuple[int, str]]) -> Iterator[tuple[int, Any]]:
    """Yield the documents of indented text; where it is none, its lines, since the first may just be cut off."""
    decoder = json.JSONDecoder()
    written = "\n".join(line for _, line in numbered)
    at = 0
    while at < len(written):
        number = numbered[written.count("\n", 0, at)][0]
        try:
            _, end = decoder.raw_decode(written, at)
            yield number, decode(written[at:end])
        except (ValueError, RecursionError) as error:
            lines = [_line(*line) for line in numbered] if at == 0 else []
            if any(isinstance(document, Mapping) for _, document in lines):
                yield from lines
            else:
                yield number, _line_error(number, f"begins text that is not JSON ({error})", written[at : at + 200])
            return
        at = end
        while at < len(written) and written[at].isspace():
            at += 1


def _text_of(line: str | bytes) -> str:
    written = line.decode("utf-8", "replace") if isinstance(line, bytes) else line
    return written.strip().removeprefix("\ufeff")


def _line_error(number: int, what: str, written: str) -> ReadError:
    quote = begun(written, _SHOWN)
    return ReadError(f"Line {number} {what}: {quote!r}. It must hold one OTLP/JSON object; the other lines were read.")


def _spans(number: int, document: Mapping[str, Any]) -> Iterator[RawSpan | ReadError]:
    for resource_spans in items(document, "resourceSpans", "resource_spans"):
        resource = _resource(resource_spans)
        for scope_spans in items(resource_spans, "scopeSpans", "scope_spans", "instrumentationLibrarySpans"):
            scope = _part(scope_spans, "scope", "instrumentationLibrary")
            name, version = _text(scope.get("name")), _text(scope.get("version"))
            for span in items(scope_spans, "spans", "spans"):
                try:
                    times = read_times(*_times(span))
                    yield _span(span, times, resource, name, version)
                except _BAD as error:
                    yield _item_error(number, "span", span, error)
                else:
                    if times.problems:
                        yield span_time_error(f"Line {number}", "span", _text(span.get("name")), times.problems)


def _logs(number: int, document: Mapping[str, Any]) -> Iterator[LogEvent | ReadError]:
    for resource_logs in items(document, "resourceLogs", "resource_logs"):
        for scope_logs in items(resource_logs, "scopeLogs", "scope_logs", "instrumentationLibraryLogs"):
            for record in items(scope_logs, "logRecords", "log_records"):
                try:
                    found = _log(record)
                except _BAD as error:
                    yield _item_error(number, "log record", record, error)
                else:
                    if found is not None:
                        yield found


def _entries(number: int, document: Any) -> Iterator[Mapping[str, Any] | ReadError]:
    """Yield the requests of one document, or of a list of documents."""
    for entry in document if isinstance(document, list) else (document,):
        if not isinstance(entry, Mapping):
            yield _line_error(number, "is not an OTLP object", json.dumps(entry)[:200])
        elif entry and not any(isinstance(key, str) and _SIGNAL.fullmatch(key) for key in entry):
            yield _line_error(number, "has no resourceSpans", json.dumps(entry)[:200])
        else:
            yield entry


_SIGNAL = re.compile("resource_?(spans|logs|metrics|profiles)", re.IGNORECASE)


def _item_error(number: int, what: str, item: Any, error: Exception) -> ReadError:
    name = item.get("name") if isinstance(item, Mapping) else item
    shown = begun(repr(name), _SHOWN)
    reason = "it nests too deeply" if isinstance(error, RecursionError) else str(error) or type(error).__name__
    return ReadError(f"Line {number}: the {what} {shown} cannot be read: {reason}. The others of the line were read.")


def _get(holder: Mapping[str, Any], camel: str, snake: str) -> Any:
    value = holder.get(camel)
    return holder.get(snake) if value is None else value


def _part(holder: Any, *keys: str) -> Mapping[str, Any]:
    """Return the first of these fields that holds an object, else an empty one."""
    for key in keys if isinstance(holder, Mapping) else ():
        found = holder.get(key)
        if isinstance(found, Mapping):
            return found
    return {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _resource(resource_spans: Any) -> Mapping[str, Any]:
    if not isinstance(resource_spans, Mapping):
        return {}
    try:
        return read_attributes(_part(resource_spans, "resource").get("attributes"))
    except _BAD:
        return {}


def _times(span: Mapping[str, Any]) -> tuple[Any, Any]:
    start = _get(span, "startTimeUnixNano", "start_time_unix_nano")
    return start, _get(span, "endTimeUnixNano", "end_time_unix_nano")


def _span(
    span: Mapping[str, Any], times: Times, resource: Mapping[str, Any], scope_name: str, scope_version: str
) -> RawSpan:
    trace_id = read_id(_get(span, "traceId", "trace_id"))
    span_id = read_id(_get(span, "spanId", "span_id"))
    if trace_id is None or span_id is None:
        missing = "trace id" if trace_id is None else "span id"
        msg = f"it has no {missing}"
        raise ValueError(msg)
    status = _part(span, "status")
    return RawSpan(
        trace_id=trace_id,
        span_id=span_id,
        name=_text(span.get("name")),
        parent_span_id=read_id(_get(span, "parentSpanId", "parent_span_id")),
        start_time_unix_nano=times.start,
        end_time_unix_nano=times.end,
        status=read_status(status.get("code")),
        status_message=_text(status.get("message")),
        attributes=read_attributes(span.get("attributes")),
        events=tuple(_event(event) for event in items(span, "events") if isinstance(event, Mapping)),
        resource=resource,
        scope_name=scope_name,
        scope_version=scope_version,
    )


def _event(event: Mapping[str, Any]) -> RawEvent:
    return RawEvent(
        name=_text(event.get("name")),
        time_unix_nano=event_time(_get(event, "timeUnixNano", "time_unix_nano")),
        attributes=read_attributes(event.get("attributes")),
    )


def _log(record: Mapping[str, Any]) -> LogEvent | None:
    trace_id = read_id(_get(record, "traceId", "trace_id"))
    span_id = read_id(_get(record, "spanId", "span_id"))
    if trace_id is None or span_id is None:
        return None
    attributes = dict(read_attributes(record.get("attributes")))
    body = record.get("body")
    if isinstance(body, Mapping):
        attributes["body"] = read_value(body)
    observed = _get(record, "observedTimeUnixNano", "observed_time_unix_nano")
    time = event_time(_get(record, "timeUnixNano", "time_unix_nano")) or event_time(observed)
    name = _text(_get(record, "eventName", "event_name")) or _text(attributes.get("event.name"))
    return (trace_id, span_id), RawEvent(name, time, attributes)
