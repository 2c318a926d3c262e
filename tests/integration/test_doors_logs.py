"""Log records that hold the calls of completions meet their spans by every door, in every form and in every order."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from stepacc_core.otlp import read_otlp_log_lines
from stepacc_core.reading import canonicalise, trace_partition
from stepacc_core.steps import collect_steps
from stepacc_dagster.database import URL_VARIABLE
from stepacc_dagster.doors.otlp_protobuf import events_of, holds_logs
from stepacc_dagster.storage.raw_spans import landed_windows, read_window_spans
from stepacc_dagster.windows import window_of
from tests.cli_access import stepacc
from tests.fidelity import TRACES
from tests.integration.collect_access import JSON, PROTOBUF, SOURCE, Collector, body_of, collecting

FOLDER = TRACES / "otel-openai-v2" / "legacy"
SPANS, LOGS = (
    (FOLDER / f"llm_only_sequential.{kind}.jsonl").read_text("utf-8").strip() for kind in ("otlp", "otlp-logs")
)
CALLS = [
    ("lookup_order", {"order_id": "A-1001"}),
    ("check_refund_policy", {"order_id": "A-1001", "reason": "damaged"}),
    ("issue_refund", {"order_id": "A-1001", "amount": 42.5}),
]


def packed(line: str) -> bytes:
    """Serialize a request that is written as OTLP/JSON, with its ids in hex."""
    document = json.loads(line)
    _with_bytes(document)
    request = ExportLogsServiceRequest() if "resourceLogs" in document else ExportTraceServiceRequest()
    return ParseDict(document, request, ignore_unknown_fields=True).SerializeToString()


def _with_bytes(value: Any) -> None:
    """Write ids as protobuf's own JSON does."""
    for item in value if isinstance(value, list) else value.values() if isinstance(value, dict) else ():
        _with_bytes(item)
    if isinstance(value, dict):
        for key in {"traceId", "spanId", "parentSpanId"} & value.keys():
            value[key] = _base64(value[key])


def _base64(digits: str) -> str:
    return base64.b64encode(bytes.fromhex(digits)).decode()


def read_back(url: str, source: str) -> list[tuple[str, Any]]:
    """Read the steps of the one trace that is there."""
    engine = sa.create_engine(url)
    try:
        with engine.connect() as connection:
            days = landed_windows(connection, source, "daily")
            windows = (window_of(day, "daily") for day in days)
            [trace] = [each for window in windows for each in read_window_spans(connection, source, window)]
    finally:
        engine.dispose()
    return [(step.name, step.arguments) for step in collect_steps(trace_partition(canonicalise(*trace)))]


@pytest.mark.parametrize("order", [("logs", "spans"), ("spans", "logs"), ("logs", "spans", "logs", "spans")])
@pytest.mark.parametrize("form", ["json", "protobuf"])
def test_files_are_landed_in_any_order(
    order: tuple[str, ...], form: str, tmp_path: Path, migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(URL_VARIABLE, migrated_url)
    for name, line in (("spans", SPANS), ("logs", LOGS)):
        (tmp_path / name).write_bytes(line.encode() if form == "json" else packed(line))
    for name in order:
        assert stepacc("import", "traces", "--source", "s", tmp_path / name).code == 0

    assert read_back(migrated_url, "s") == CALLS
    [row] = stepacc("steps", *(tmp_path / name for name in dict.fromkeys(order)), "--json").rows
    assert [(step["name"], step["arguments"]) for step in row["steps"]] == CALLS


@pytest.mark.parametrize("order", [(LOGS, SPANS), (SPANS, LOGS)], ids=["logs first", "spans first"])
def test_one_file_may_hold_both(
    order: tuple[str, str], tmp_path: Path, migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(URL_VARIABLE, migrated_url)
    both = tmp_path / "both.jsonl"
    both.write_text("\n".join(order), "utf-8")
    assert stepacc("import", "traces", "--source", "s", both).code == 0

    assert read_back(migrated_url, "s") == CALLS
    [row] = stepacc("steps", both, "--json").rows
    assert [(step["name"], step["arguments"]) for step in row["steps"]] == CALLS


@pytest.fixture
def collector(migrated_url: str) -> Iterator[Collector]:
    with collecting(migrated_url) as running:
        yield running


@pytest.mark.parametrize("form", [JSON, PROTOBUF])
@pytest.mark.parametrize("order", [("logs", "traces"), ("traces", "logs"), ("logs", "traces", "logs", "traces")])
def test_a_receiver_takes_them_in_any_order(
    order: tuple[str, ...], form: str, collector: Collector, migrated_url: str
) -> None:
    lines = {"traces": SPANS, "logs": LOGS}
    for signal in order:
        body = lines[signal].encode() if form == JSON else packed(lines[signal])
        answer = collector.post(body, form, f"/v1/{signal}")
        assert (answer.status, answer.body) == (200, b"{}" if form == JSON else b"")

    assert read_back(migrated_url, SOURCE) == CALLS


def test_the_log_of_the_application_is_taken_and_left_out(collector: Collector, migrated_url: str) -> None:
    """It says nothing of an agent, and an exporter that is told so would complain with every batch."""
    record = {"traceId": "ab" * 16, "spanId": "cd" * 8, "timeUnixNano": "1", "body": {"stringValue": "hello"}}
    unbound = {"timeUnixNano": "1", "eventName": "gen_ai.choice", "body": {}}
    document = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record, unbound]}]}]}

    assert collector.post(json.dumps(document).encode(), JSON, "/v1/logs").json == {}
    engine = sa.create_engine(migrated_url)
    with engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT count(*) FROM stepacc.otel_spans")) == 0
    engine.dispose()


def test_records_that_cannot_be_read_are_counted_as_the_specification_says(collector: Collector) -> None:
    good = json.loads(LOGS)["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0]
    document = {"resourceLogs": [{"scopeLogs": [{"logRecords": [good, 7]}]}]}
    partial = collector.post(json.dumps(document).encode(), JSON, "/v1/logs").json["partialSuccess"]

    assert partial["rejectedLogRecords"] == "1"
    assert "the log record 7 cannot be read" in partial["errorMessage"]
    assert collector.post(b"\x0a\x7f broken", PROTOBUF, "/v1/logs").status == 400
    assert collector.post(b"", JSON, "/v1/logs").status == 400
    answer = collector.post(b"", PROTOBUF, "/v1/logs")
    assert ExportLogsServiceResponse.FromString(answer.body) == ExportLogsServiceResponse()


def test_a_span_without_a_readable_time_is_stored_and_warned_of(collector: Collector) -> None:
    """By the specification a message without any rejected span is a warning."""
    span = {"traceId": "ab" * 16, "spanId": "cd" * 8, "name": "x", "startTimeUnixNano": 1.5}
    document = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    partial = collector.post(json.dumps(document).encode(), JSON).json["partialSuccess"]

    assert partial["rejectedSpans"] == "0"
    assert "'x' was read without a time" in partial["errorMessage"]


def test_messages_of_both_signals_are_told_apart() -> None:
    """They begin alike; an empty one is of either."""
    for line in ((FOLDER / "llm_only_parallel.otlp-logs.jsonl").read_text("utf-8").strip(), LOGS):
        assert holds_logs(packed(line))
        assert list(events_of(packed(line), "it")) == list(read_otlp_log_lines([line]))
    for body in (packed(SPANS), body_of("a", "b"), body_of(), b"", b"\x0a\x7f broken"):
        assert not holds_logs(body)
