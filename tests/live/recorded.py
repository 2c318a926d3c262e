"""Recorded traces as requests of OTLP/HTTP, moved to other days."""

import base64
import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.fidelity import TRACES

DAY_NS = 86_400_000_000_000
PROJECT_ATTRIBUTE = "openinference.project.name"


@dataclass(frozen=True)
class Recording:
    """The requests of one recorded file."""

    file: str
    requests: tuple[ExportTraceServiceRequest, ...]

    @property
    def spans(self) -> list[Span]:
        """Its spans, in their order."""
        return [span for request in self.requests for span in _spans(request)]

    @property
    def trace_ids(self) -> list[str]:
        """The ids of its traces, each once, by their start."""
        by_start = sorted(self.spans, key=lambda span: span.start_time_unix_nano)
        return list(dict.fromkeys(span.trace_id.hex() for span in by_start))

    def bodies(self, project: str) -> Iterator[bytes]:
        """Yield the bodies to send, which name the project for servers that look there."""
        for request in self.requests:
            for resource_spans in request.resource_spans:
                resource_spans.resource.attributes.add(key=PROJECT_ATTRIBUTE).value.string_value = project
            yield gzip.compress(request.SerializeToString())

    def split(self, late: Callable[[Span], bool]) -> "tuple[Recording, Recording]":
        """Return the spans that are sent at first, and those that come late."""
        return self._only(lambda span: not late(span)), self._only(late)

    def _only(self, wanted: Callable[[Span], bool]) -> "Recording":
        kept = []
        for request in self.requests:
            copy = ExportTraceServiceRequest()
            copy.CopyFrom(request)
            for scope_spans in (scope for resource in copy.resource_spans for scope in resource.scope_spans):
                spans = [span for span in scope_spans.spans if wanted(span)]
                del scope_spans.spans[:]
                scope_spans.spans.extend(spans)
            if any(True for _ in _spans(copy)):
                kept.append(copy)
        return Recording(self.file, tuple(kept))


def recording(file: str, days_back: int = 0) -> Recording:
    """Read a recorded file, some whole days earlier than it was recorded."""
    lines = (TRACES / file).read_text("utf-8").splitlines()
    requests = [ParseDict(_base64_ids(json.loads(line)), ExportTraceServiceRequest()) for line in lines if line]
    for span in (span for request in requests for span in _spans(request)):
        span.start_time_unix_nano -= days_back * DAY_NS
        span.end_time_unix_nano -= days_back * DAY_NS
        for event in span.events:
            event.time_unix_nano -= days_back * DAY_NS
    return Recording(file, tuple(requests))


def _spans(request: ExportTraceServiceRequest) -> Iterator[Span]:
    for resource_spans in request.resource_spans:
        for scope_spans in resource_spans.scope_spans:
            yield from scope_spans.spans


def _base64_ids(value: Any) -> Any:
    """Return OTLP/JSON, whose ids are hex, as the JSON of protobuf, whose bytes are base64."""
    if isinstance(value, dict):
        return {
            key: base64.b64encode(bytes.fromhex(inner)).decode()
            if key in {"traceId", "spanId", "parentSpanId"} and isinstance(inner, str)
            else _base64_ids(inner)
            for key, inner in value.items()
        }
    return [_base64_ids(inner) for inner in value] if isinstance(value, list) else value
