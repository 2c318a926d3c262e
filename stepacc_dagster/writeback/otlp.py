"""Evaluation events by OTLP over HTTP: `gen_ai.evaluation.result` of OpenTelemetry's conventions for generative AI.

An event cannot be taken back or replaced: each evaluation is sent once, and once more where the note of it was lost.
Receivers tell such a repetition by `stepacc.score_id`.
"""

import re
from collections.abc import Mapping, Sequence

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs, SeverityNumber
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from stepacc_core._version import __version__
from stepacc_dagster.storage.write_backs import DueScore
from stepacc_dagster.writeback import entries
from stepacc_dagster.writeback.http import Client

EVENT = "gen_ai.evaluation.result"

_LOGS = "/v1/logs"
_HEADERS = {"Content-Type": "application/x-protobuf"}
_TRACE_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
_SPAN_ID = re.compile(r"[0-9a-f]{16}", re.ASCII)


class OtlpDestination:
    """Sends scores as events.

    Args:
        client: the receiver.
        source: name of the source.
    """

    batch_size = 100

    def __init__(self, client: Client, source: str) -> None:
        self._client = client
        self._source = source

    def check(self) -> None:
        """Send a request without events, which every receiver takes."""
        self._send(ExportLogsServiceRequest())

    def write(self, scores: Sequence[DueScore]) -> list[str]:
        """Send events; what a receiver says of events that it left out is returned: it does not say which."""
        answer = self._send(logs_request(self._source, scores))
        rejected = answer.partial_success.rejected_log_records
        if not rejected:
            return []
        return [f"{rejected} of {len(scores)} events were left out: {answer.partial_success.error_message}"]

    def _send(self, request: ExportLogsServiceRequest) -> ExportLogsServiceResponse:
        answer = self._client.ask("POST", _LOGS, data=request.SerializeToString(), headers=_HEADERS)
        if answer.headers.get("Content-Type", "").startswith(_HEADERS["Content-Type"]):
            return ExportLogsServiceResponse.FromString(answer.content)
        return ExportLogsServiceResponse()


def logs_request(source: str, scores: Sequence[DueScore]) -> ExportLogsServiceRequest:
    """Return scores as a request of OTLP."""
    resource = Resource(attributes=_attributes({"service.name": entries.AUTHOR}))
    scope = InstrumentationScope(name=entries.AUTHOR, version=__version__)
    records = [log_record(source, score) for score in scores]
    logs = ResourceLogs(resource=resource, scope_logs=[ScopeLogs(scope=scope, log_records=records)])
    return ExportLogsServiceRequest(resource_logs=[logs])


def log_record(source: str, score: DueScore) -> LogRecord:
    """Return the event of a score, a child of the root span of its trace where that has ids of OpenTelemetry."""
    at = int(score.evaluated_at.timestamp() * 1_000_000) * 1_000
    told: dict[str, str | int | float | None] = {
        "gen_ai.evaluation.name": score.metric,
        "gen_ai.evaluation.score.value": entries.value(score),
        "gen_ai.evaluation.score.label": entries.label(score),
        "gen_ai.evaluation.explanation": entries.explanation(score),
        "gen_ai.conversation.id": score.partition_id if score.partition_type == "session" else score.session_id,
        "error.type": score.code,
        "stepacc.partition_id": score.partition_id,
        **{f"stepacc.{name}": said for name, said in entries.details(source, score).items()},
    }
    trace_id = entries.otel_trace_id(score.partition_id) if score.partition_type == "trace" else ""
    parented = _TRACE_ID.fullmatch(trace_id) is not None
    span_id = score.root_span_id or ""
    return LogRecord(
        time_unix_nano=at,
        observed_time_unix_nano=at,
        severity_number=SeverityNumber.SEVERITY_NUMBER_INFO,
        event_name=EVENT,
        attributes=_attributes({name: said for name, said in told.items() if said is not None}),
        trace_id=bytes.fromhex(trace_id) if parented else b"",
        span_id=bytes.fromhex(span_id) if parented and _SPAN_ID.fullmatch(span_id) else b"",
    )


def _attributes(told: Mapping[str, str | float]) -> list[KeyValue]:
    return [KeyValue(key=name, value=_any_value(said)) for name, said in told.items()]


def _any_value(said: str | float) -> AnyValue:
    if isinstance(said, str):
        return AnyValue(string_value=said)
    return AnyValue(int_value=said) if isinstance(said, int) else AnyValue(double_value=said)
