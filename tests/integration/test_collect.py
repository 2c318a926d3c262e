"""`stepacc collect` takes what exporters send, and says of everything else what is wrong with it."""

import gzip
import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from google.protobuf.json_format import MessageToDict
from google.rpc.status_pb2 import Status as RpcStatus  # type: ignore[import-untyped]
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from stepacc_core.model import RawSpan
from stepacc_core.otlp import read_otlp_lines
from stepacc_dagster.database import URL_VARIABLE
from tests.cli_access import stepacc_process
from tests.fidelity import TRACES
from tests.integration.collect_access import (
    JSON,
    PROTOBUF,
    SOURCE,
    Answer,
    Collector,
    body_of,
    collecting,
    landed,
    request_of,
)
from tests.integration.conftest import Server

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def url(server: Server, _migrated_template: str) -> Iterator[str]:
    """A database for the tests that only look at answers or at their own trace."""
    with server.database(_migrated_template) as url:
        yield url


@pytest.fixture(scope="module")
def collector(url: str) -> Iterator[Collector]:
    """A receiver over it, with a small limit."""
    with collecting(url, "--max-request-mib", "1") as collector:
        yield collector


def status_of(answer: Answer) -> str:
    """Return the message of an error in protobuf."""
    assert answer.headers["content-type"] == PROTOBUF
    return str(RpcStatus.FromString(answer.body).message)


EXPORTERS: dict[str, Callable[[str], SpanExporter]] = {
    "protobuf": lambda url: OTLPSpanExporter(url, timeout=30),
    "protobuf, gzipped": lambda url: OTLPSpanExporter(url, timeout=30, compression=Compression.Gzip),
}


@pytest.mark.parametrize("form", EXPORTERS)
def test_what_a_real_exporter_sends_arrives_as_it_was(collector: Collector, url: str, form: str) -> None:
    kept = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource.create({"service.name": "bot"}), shutdown_on_exit=False)
    exporter = EXPORTERS[form](f"{collector.url}/v1/traces")
    provider.add_span_processor(BatchSpanProcessor(exporter))
    provider.add_span_processor(BatchSpanProcessor(kept))
    tracer = provider.get_tracer("the.scope", "1.2")
    with (
        tracer.start_as_current_span("invoke_agent bot", attributes={"gen_ai.operation.name": "invoke_agent"}),
        tracer.start_as_current_span("execute_tool look") as called,
    ):
        called.set_attributes({"text": "Zoë", "whole": 2**60, "real": 0.5, "yes": True, "list": ["a", "b"]})
        called.add_event("asked", {"n": 1}, timestamp=1_796_000_000_000_000_007)
        called.set_status(trace.StatusCode.ERROR, "no such order")
    provider.shutdown()

    sent = {key(span): span for span in kept.get_finished_spans()}
    rows = {found: row for found, row in landed(url).items() if found in sent}
    assert len(sent) == 2
    assert rows.keys() == sent.keys()
    for found, span in sent.items():
        row = rows[found]
        assert row.source == SOURCE
        assert row.name == span.name
        assert row.parent_span_id == (f"{span.parent.span_id:016x}" if span.parent else None)
        assert (row.start_time_unix_nano, row.end_time_unix_nano) == (span.start_time, span.end_time)
        assert (row.status, row.status_message) == (span.status.status_code.name, span.status.description or "")
        assert row.attributes == json.loads(json.dumps(dict(span.attributes or {}), default=list))
        assert [(e["name"], e["time_unix_nano"], e["attributes"]) for e in row.events] == [
            (e.name, e.timestamp, dict(e.attributes or {})) for e in span.events
        ]
        assert row.resource == dict(span.resource.attributes)
        assert (row.scope_name, row.scope_version) == ("the.scope", "1.2")


def key(span: ReadableSpan) -> tuple[str, str]:
    """Return the ids of a span as they are stored."""
    context = span.get_span_context()
    assert context is not None
    return f"{context.trace_id:032x}", f"{context.span_id:016x}"


@pytest.mark.parametrize("recorded", ["strands/sequential.otlp.jsonl", "pydantic-ai/parallel.otlp.jsonl"])
@pytest.mark.parametrize("packed", [False, True])
def test_json_lands_as_a_file_does(collector: Collector, url: str, recorded: str, *, packed: bool) -> None:
    for line in (TRACES / recorded).read_bytes().splitlines():
        body, headers = (gzip.compress(line), {"Content_Encoding": "gzip"}) if packed else (line, {})
        answer = collector.post(body, f"{JSON}; charset=utf-8", **headers)
        assert (answer.status, answer.json) == (200, {})
        assert answer.headers["content-type"] == JSON
    rows = landed(url)
    for span in read_otlp_lines((TRACES / recorded).read_bytes().splitlines()):
        assert isinstance(span, RawSpan)
        row = rows[span.trace_id, span.span_id]
        assert (row.name, row.attributes, row.start_time_unix_nano) == (
            span.name,
            span.attributes,
            span.start_time_unix_nano,
        )


def test_indented_json_is_taken(collector: Collector, url: str) -> None:
    document = MessageToDict(request_of("indented"))
    span = document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    span.update(traceId="ab" * 16, spanId="cd" * 8)

    assert collector.post(json.dumps(document, indent=2).encode(), JSON).status == 200
    assert landed(url)["ab" * 16, "cd" * 8].name == "indented"


def test_the_same_request_again_changes_nothing(collector: Collector, url: str) -> None:
    body = body_of("once", trace=77)
    first = [collector.post(body).status, landed(url)[f"{77:032x}", f"{1:016x}"]]
    second = [collector.post(body).status, landed(url)[f"{77:032x}", f"{1:016x}"]]

    assert first == second
    assert first[0] == 200


@pytest.mark.parametrize(("body", "kind"), [(b"", PROTOBUF), (b"{}", JSON), (b'{"resourceSpans": []}', JSON)])
def test_a_request_without_spans_is_accepted(collector: Collector, body: bytes, kind: str) -> None:
    answer = collector.post(body, kind)

    assert answer.status == 200
    assert answer.body == (b"" if kind == PROTOBUF else b"{}")


def test_spans_that_cannot_be_read_are_counted_and_the_others_landed(collector: Collector, url: str) -> None:
    request = request_of("good", "no id", "from the future", trace=78)
    spans = request.resource_spans[0].scope_spans[0].spans
    spans[1].span_id = b""
    spans[2].start_time_unix_nano = 2**64 - 1
    answer = collector.post(request.SerializeToString())

    assert answer.status == 200
    partial = ExportTraceServiceResponse.FromString(answer.body).partial_success
    assert partial.rejected_spans == 1
    assert "'no id'" in partial.error_message
    assert "'from the future'" in partial.error_message
    names = [row.name for (trace_id, _), row in landed(url).items() if trace_id == f"{78:032x}"]
    assert sorted(names) == ["from the future", "good"]


def test_spans_that_cannot_be_read_are_counted_in_json_too(collector: Collector) -> None:
    good = {"traceId": "12" * 16, "spanId": "34" * 8, "name": "good"}
    document = {"resourceSpans": [{"scopeSpans": [{"spans": [good, {"name": "lost"}]}]}]}
    answer = collector.post(json.dumps(document).encode(), JSON)

    assert answer.status == 200
    assert answer.json["partialSuccess"]["rejectedSpans"] == "1"
    assert "'lost'" in answer.json["partialSuccess"]["errorMessage"]


GARBAGE = [
    (b"\xff\xfe garbage", PROTOBUF, {}, 400, "no ExportTraceServiceRequest"),
    (b'{"resourceSpans": [', JSON, {}, 400, "not JSON"),
    (b'{"hello": 1}', JSON, {}, 400, "no resourceSpans"),
    (b"", JSON, {}, 400, "empty"),
    (b"[" * 100_000, JSON, {}, 400, "not JSON"),
    (request_of("a").SerializeToString()[:-3], PROTOBUF, {}, 400, "no ExportTraceServiceRequest"),
    (b"plain", PROTOBUF, {"Content_Encoding": "gzip"}, 400, "no gzip"),
    (gzip.compress(body_of("a"), mtime=0)[:-5], PROTOBUF, {"Content_Encoding": "gzip"}, 400, "cut off"),
    (body_of("a"), PROTOBUF, {"Content_Encoding": "br"}, 415, "Content-Encoding 'br'"),
    (body_of("a"), "text/plain", {}, 415, "Content-Type 'text/plain'"),
    (b"x" * (MIB + 1), PROTOBUF, {}, 413, "fewer spans"),
    (gzip.compress(b"\n" * (MIB + 1), mtime=0), JSON, {"Content_Encoding": "gzip"}, 413, "fewer spans"),
]


@pytest.mark.parametrize(("body", "kind", "headers", "status", "said"), GARBAGE)
def test_garbage_is_refused_for_good_with_a_sentence(  # noqa: PLR0913, PLR0917 (one parameter for each column)
    collector: Collector, body: bytes, kind: str, headers: dict[str, str], status: int, said: str
) -> None:
    answer = collector.post(body, kind, **headers)

    assert answer.status == status
    assert said in (status_of(answer) if kind == PROTOBUF else answer.json["message"])
    assert "retry-after" not in {name.lower() for name in answer.headers}


def test_a_gzip_bomb_takes_no_more_memory_than_a_request_may(collector: Collector) -> None:
    bomb = gzip.compress(bytes(16 * MIB)) * 60  # 960 MiB in less than one
    before = peak_kib(collector)
    assert len(bomb) < MIB
    answers = {collector.post(bomb, PROTOBUF, Content_Encoding="gzip").status for _ in range(3)}

    assert answers == {413}
    assert peak_kib(collector) - before < 64 * 1024


def peak_kib(collector: Collector) -> int:
    """Return the most memory that the receiver ever had."""
    status = Path(f"/proc/{collector.process.pid}/status")
    if not status.exists():
        pytest.skip("only Linux tells the memory of another process")
    return int(status.read_text().partition("VmHWM:")[2].split()[0])


def test_metrics_are_refused_with_advice(collector: Collector) -> None:
    answer = collector.post(b"", PROTOBUF, "/v1/metrics")

    assert answer.status == 404
    assert "OTEL_METRICS_EXPORTER=none" in status_of(answer)


def test_a_web_page_cannot_write(collector: Collector) -> None:
    answer = collector.post(body_of("a"), Origin="https://evil.example")

    assert answer.status == 403


def test_health_is_told(collector: Collector) -> None:
    assert (collector.get("/healthz").status, collector.get("/healthz").json) == (200, {"status": "ok"})


def test_other_paths_and_methods_are_refused(collector: Collector) -> None:
    assert collector.get("/").status == 404
    assert collector.get("/v1/traces").status == 405


def test_the_largest_request_that_is_allowed_is_taken(url: str) -> None:
    body = body_of("large", trace=80, attributes={"text": "x" * (2 * MIB)})
    with collecting(url, "--max-request-mib", "3") as collector:
        assert collector.post(body).status == 200
        assert collector.post(gzip.compress(body), Content_Encoding="gzip").status == 200


def test_a_receiver_for_others_needs_a_token() -> None:
    said = stepacc_process("collect", "--host", "0.0.0.0", "--port", "0", "--source", SOURCE)  # noqa: S104

    assert said.code == 2
    assert "--token-env" in said.complaint


@pytest.mark.parametrize("environment", [{}, {"THE_TOKEN": " "}])
def test_the_variable_that_is_named_must_hold_a_token(environment: dict[str, str]) -> None:
    said = stepacc_process(
        "collect", "--token-env", "THE_TOKEN", "--port", "0", "--source", SOURCE, environment=environment
    )

    assert said.code == 2
    assert "THE_TOKEN" in said.complaint


def test_only_the_bearer_of_the_token_may_send(url: str) -> None:
    body = body_of("allowed", trace=81)
    with collecting(url, "--host", "0.0.0.0", "--token-env", "THE_TOKEN", THE_TOKEN="sesame") as collector:  # noqa: S104, S106
        local = Collector(collector.url.replace("0.0.0.0", "127.0.0.1"), collector.process)  # noqa: S104
        refused = [
            local.post(body),
            local.post(body, Authorization="Bearer sesam"),
            local.post(body, Authorization="Bearer sésame".encode().decode("latin-1")),
            local.post(body, Authorization="Basic sesame"),
        ]
        allowed = local.post(body, Authorization="Bearer sesame")
        page = local.post(body, Authorization="bearer sesame", Origin="https://app.example")
        healthy = local.get("/healthz")

    assert [answer.status for answer in refused] == [401] * 4
    assert {answer.headers["www-authenticate"] for answer in refused} == {"Bearer"}
    assert [allowed.status, page.status, healthy.status] == [200, 200, 200]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_what_it_did(url: str, number: signal.Signals) -> None:
    with collecting(url) as collector:
        collector.post(body_of("a", "b", trace=82 + number))
        stopped = collector.end(number)

    assert stopped == {"event": "stopped", "requests": 1, "transactions": 1, "new": 2, "changed": 0, "same": 0}


def test_a_busy_port_is_named(collector: Collector, url: str) -> None:
    port = collector.url.rpartition(":")[2]
    said = stepacc_process("collect", "--port", port, "--source", SOURCE, environment={URL_VARIABLE: url})

    assert said.code == 1
    assert f"Port {port} of 127.0.0.1 cannot be used" in said.complaint


def test_a_database_without_tables_is_refused_at_the_start(postgres_url: str) -> None:
    said = stepacc_process("collect", "--port", "0", "--source", SOURCE, environment={URL_VARIABLE: postgres_url})

    assert said.code == 1
    assert "stepacc db upgrade" in said.complaint
