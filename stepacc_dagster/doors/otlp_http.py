"""What OTLP over HTTP says of requests and answers (OpenTelemetry protocol specification, section OTLP/HTTP).

An answer has the content type of its request. Errors are a `google.rpc.Status`, of which only the message is used. A
client tries again after 429, 502, 503 and 504 only; older Python exporters give up at 429, so it is not used here.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsPartialSuccess,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)
from starlette.responses import JSONResponse, Response

from stepacc_core.errors import ReadError, SpanTimeError
from stepacc_core.log_records import LogEvent, carrier, is_kept
from stepacc_core.model import RawSpan
from stepacc_core.otlp import read_otlp_lines, read_otlp_log_lines
from stepacc_dagster.doors.otlp_protobuf import events_of, spans_of

Encoding = Literal["protobuf", "json"]
Signal = Literal["traces", "logs"]

CONTENT_TYPES: Mapping[str, Encoding] = {"application/x-protobuf": "protobuf", "application/json": "json"}

_MEDIA: Mapping[Encoding, str] = {encoding: media for media, encoding in CONTENT_TYPES.items()}
_EMPTY = "The request is empty and so is no JSON."
_PIECE = 1024 * 1024
"""Bytes that are unpacked at a time, and then counted."""
_LONGEST_MESSAGE = 2_000
"""Characters of a message in an answer."""
_NAMED = 5
"""Spans that an answer names, of those that could not be read."""
_UNITS: Mapping[Signal, str] = {"traces": "rejectedSpans", "logs": "rejectedLogRecords"}


@dataclass(frozen=True, slots=True)
class Read:
    """The spans of a request, how many of it could not be read, and what is wrong, for the first few.

    A message without a rejected span is a warning: of a span that was read without its time.
    """

    spans: list[RawSpan]
    rejected: int
    message: str

    @property
    def unusable(self) -> bool:
        """Tell whether nothing at all of the request could be read."""
        return self.rejected > 0 and not self.spans


def read_request(body: bytes, encoding: Encoding, signal: Signal = "traces") -> Read:
    """Read an `ExportTraceServiceRequest` or `ExportLogsServiceRequest`; what cannot be read is counted, never raised.

    Log records that belong to a span and say something of an agent come as the spans that carry them; others, the
    application's own log, are left out.
    """
    found = spans_of(body, "The request") if encoding == "protobuf" else _json_spans(body)
    if signal == "logs":
        found = _carriers(events_of(body, "The request") if encoding == "protobuf" else _json_logs(body))
    spans: list[RawSpan] = []
    errors: list[str] = []
    rejected = 0
    for item in found:
        if isinstance(item, RawSpan):
            spans.append(item)
        else:
            errors.append(str(item))
            rejected += not isinstance(item, SpanTimeError)
    message = " ".join(islice(errors, _NAMED))
    if len(errors) > _NAMED:
        message += f" And {len(errors) - _NAMED} more."
    return Read(spans, rejected, message[:_LONGEST_MESSAGE])


def _json_spans(body: bytes) -> Iterator[RawSpan | ReadError]:
    # One piece for the reader, whatever line ends stand in it: an empty one is no JSON either.
    return read_otlp_lines([body]) if body.strip() else iter([ReadError(_EMPTY)])


def _json_logs(body: bytes) -> Iterator[LogEvent | ReadError]:
    return read_otlp_log_lines([body]) if body.strip() else iter([ReadError(_EMPTY)])


def _carriers(found: Iterator[LogEvent | ReadError]) -> Iterator[RawSpan | ReadError]:
    for item in found:
        if isinstance(item, ReadError):
            yield item
        elif is_kept(item[1]):
            yield carrier(item)


def unpacked(body: bytes, count: Callable[[int], None]) -> bytes:
    """Unpack gzip.

    Args:
        body: one or several gzip members.
        count: called with the size of each piece, before the next one is made; what it raises ends the work.

    Raises:
        ValueError: it is no gzip, or not all of it.
    """
    pieces: list[bytes] = []
    rest = body
    try:
        while rest:
            member = zlib.decompressobj(wbits=31)
            while not member.eof:
                piece = member.decompress(rest, _PIECE)
                rest = member.unconsumed_tail
                if not piece and not rest and not member.eof:
                    msg = "The body is cut off: its gzip has no end."
                    raise ValueError(msg)
                count(len(piece))
                pieces.append(piece)
            rest = member.unused_data
    except zlib.error as error:
        msg = f"The body is no gzip ({error}), although its Content-Encoding says so."
        raise ValueError(msg) from None
    return b"".join(pieces)


def accepted(encoding: Encoding, signal: Signal, rejected: int = 0, message: str = "") -> Response:
    """Answer that a request is stored, but for so many spans or log records; a message without any is a warning."""
    if encoding == "json":
        partial = {_UNITS[signal]: str(rejected), "errorMessage": message}
        return JSONResponse({"partialSuccess": partial} if rejected or message else {})
    answer: ExportTraceServiceResponse | ExportLogsServiceResponse
    if signal == "logs":
        logs = ExportLogsPartialSuccess(rejected_log_records=rejected, error_message=message)
        answer = ExportLogsServiceResponse(partial_success=logs if rejected or message else None)
    else:
        spans = ExportTracePartialSuccess(rejected_spans=rejected, error_message=message)
        answer = ExportTraceServiceResponse(partial_success=spans if rejected or message else None)
    return Response(answer.SerializeToString(), media_type=_MEDIA[encoding])


def refused(status: int, message: str, encoding: Encoding, retry_after: int | None = None) -> Response:
    """Answer that nothing of a request is stored.

    Args:
        status: 4xx or 5xx.
        message: a sentence for whoever runs the client.
        encoding: of the request.
        retry_after: seconds after which the client may try again, where that helps.
    """
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    if encoding == "json":
        return JSONResponse({"message": message}, status_code=status, headers=headers)
    return Response(_status_message(message), status_code=status, headers=headers, media_type=_MEDIA[encoding])


def _status_message(message: str) -> bytes:
    """Serialize a `google.rpc.Status` that has only its field 2, the message."""
    text = message.encode("utf-8", "replace")[:_LONGEST_MESSAGE]
    length = bytearray()
    size = len(text)
    while size > 0x7F:  # noqa: PLR2004 - seven bits a byte
        length.append(size & 0x7F | 0x80)
        size >>= 7
    length.append(size)
    return b"\x12" + bytes(length) + text
