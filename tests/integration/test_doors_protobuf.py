"""Files of OTLP in protobuf are told from text and read like the same spans in JSON, whatever is broken in them."""

import gzip
import io
import json
from pathlib import Path

import pytest
import sqlalchemy as sa
from google.protobuf.internal.encoder import _VarintBytes  # type: ignore[attr-defined]
from google.protobuf.json_format import MessageToDict, ParseDict
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from stepacc_core.errors import ReadError
from stepacc_core.model import RawSpan
from stepacc_core.otlp import read_otlp_lines
from stepacc_dagster.database import URL_VARIABLE
from stepacc_dagster.doors.framing import HEAD, looks_like_protobuf, split
from stepacc_dagster.doors.otlp_protobuf import read_protobuf, spans_of
from tests.cli_access import stepacc
from tests.fidelity import TRACES, manifest
from tests.integration.collect_access import body_of

FRAMINGS = {
    "single": lambda messages: b"".join(messages[:1]),
    "big-endian lengths": lambda messages: b"".join(len(m).to_bytes(4, "big") + m for m in messages),
    "varint lengths": lambda messages: b"".join(_VarintBytes(len(m)) + m for m in messages),
}


def chunked(data: bytes) -> io.BytesIO:
    """Return bytes as a file gives them, line by line."""
    return io.BytesIO(data)


@pytest.mark.parametrize("framing", FRAMINGS)
def test_a_file_is_told_and_its_spans_are_read(framing: str) -> None:
    messages = [body_of("a", "b", trace=1), body_of("c", trace=2)]
    data = FRAMINGS[framing](messages)

    assert looks_like_protobuf(data[:HEAD])
    spans = list(read_protobuf(chunked(data)))
    expected = ["a", "b"] if framing == "single" else ["a", "b", "c"]
    assert [span.name for span in spans if isinstance(span, RawSpan)] == expected


@pytest.mark.parametrize("entry", manifest(), ids=lambda entry: str(entry["file"]))
def test_text_is_never_taken_for_protobuf(entry: dict[str, str]) -> None:
    assert not looks_like_protobuf((TRACES / entry["file"]).read_bytes()[:HEAD])


@pytest.mark.parametrize("text", [b"", b"\n", b"\n\n\n{", b"{\n\n\n\n\n", b'\n{"a": 1}', b"{\n \n", b"not json\n"])
def test_odd_text_is_never_taken_for_protobuf(text: bytes) -> None:
    assert not looks_like_protobuf(text)


@pytest.mark.parametrize("framing", ["big-endian lengths", "varint lengths"])
def test_a_file_that_is_cut_off_gives_what_stands_before(framing: str) -> None:
    data = FRAMINGS[framing]([body_of("a"), body_of("b")])
    found = list(read_protobuf(chunked(data[:-3])))

    assert isinstance(found[0], RawSpan)
    assert isinstance(found[1], ReadError)
    assert str(found[1]).startswith("Message 2 is cut off")


def test_a_broken_message_costs_only_itself() -> None:
    broken = b"\x0a\x7f broken"
    data = FRAMINGS["big-endian lengths"]([body_of("a"), broken, body_of("c")])
    found = list(read_protobuf(chunked(data)))

    assert [item.name if isinstance(item, RawSpan) else "error" for item in found] == ["a", "error", "c"]
    assert "Message 2" in str(found[1])


@given(st.lists(st.binary(max_size=300), max_size=5), st.integers(1, 50))
def test_pieces_of_any_size_give_the_same_messages(bodies: list[bytes], size: int) -> None:
    data = FRAMINGS["big-endian lengths"]([body_of("first"), *bodies])
    pieces = [data[at : at + size] for at in range(0, len(data), size)]

    assert list(split(pieces)) == [body_of("first"), *bodies]


@given(st.binary(max_size=200))
def test_no_bytes_at_all_raise(data: bytes) -> None:
    for item in (*read_protobuf([data]), *spans_of(data, "it"), *read_protobuf([body_of("a") + data])):
        assert isinstance(item, RawSpan | ReadError)


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("packed", [False, True])
def test_the_commands_take_it(
    framing: str, tmp_path: Path, migrated_url: str, monkeypatch: pytest.MonkeyPatch, *, packed: bool
) -> None:
    [line] = (TRACES / "otlp-encodings" / "parallel.base64_ids.json").read_text().splitlines()
    data = FRAMINGS[framing]([_from_base64(line)])
    file = tmp_path / "no-suffix"
    file.write_bytes(gzip.compress(data) if packed else data)
    monkeypatch.setenv(URL_VARIABLE, migrated_url)
    said = stepacc("import", "traces", file, "--source", "s", "--json")

    assert (said.code, said.rows[0]["new"]) == (0, 6)
    steps = [step["name"] for step in stepacc("steps", file, "--json").rows[0]["steps"]]
    assert sorted(steps) == ["get_time", "get_weather", "get_weather"]
    engine = sa.create_engine(migrated_url)
    with engine.connect() as connection:
        rows = connection.execute(sa.text("SELECT span_id, attributes FROM stepacc.otel_spans"))
        stored = {row.span_id: row.attributes for row in rows}
    engine.dispose()
    assert stored == {s.span_id: s.attributes for s in read_otlp_lines([line]) if isinstance(s, RawSpan)}


def _from_base64(line: str) -> bytes:
    """Serialize a request that is written in protobuf's own JSON."""
    return ParseDict(json.loads(line), ExportTraceServiceRequest(), ignore_unknown_fields=True).SerializeToString()


def test_protobuf_and_json_of_one_request_are_the_same_spans() -> None:
    request = ExportTraceServiceRequest()
    resource_spans = request.resource_spans.add()
    resource_spans.resource.attributes.add(key="service.name").value.string_value = "bot"
    scope_spans = resource_spans.scope_spans.add()
    scope_spans.scope.name, scope_spans.scope.version = "scope", "1"
    span = scope_spans.spans.add(trace_id=b"\x01" * 16, span_id=b"\x02" * 8, parent_span_id=b"\x03" * 8, name="a")
    span.start_time_unix_nano, span.end_time_unix_nano = 2**62, 2**62 + 1
    span.status.code, span.status.message = Status.STATUS_CODE_ERROR, "broken"
    values = span.attributes
    values.add(key="text").value.string_value = "a\x00b"
    values.add(key="yes").value.bool_value = True
    values.add(key="whole").value.int_value = -(2**63)
    values.add(key="real").value.double_value = 0.1
    values.add(key="nan").value.double_value = float("nan")
    values.add(key="low").value.double_value = float("-inf")
    values.add(key="bytes").value.bytes_value = b"\x00\xff"
    values.add(key="none")
    values.add(key="list").value.array_value.values.add().int_value = 7
    values.add(key="object").value.kvlist_value.values.add(key="in").value.string_value = "side"
    event = span.events.add(name="asked", time_unix_nano=5)
    event.attributes.add(key="n").value.int_value = 1
    document = MessageToDict(request)
    [written] = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    written.update(traceId="01" * 16, spanId="02" * 8, parentSpanId="03" * 8)

    [of_protobuf] = spans_of(request.SerializeToString(), "it")
    [of_json] = read_otlp_lines([json.dumps(document)])
    assert isinstance(of_json, RawSpan)
    assert of_protobuf == of_json
