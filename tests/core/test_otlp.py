"""OTLP/JSON in every spelling becomes the same raw spans, and what is bad costs nothing else."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepacc_core.errors import ReadError, SpanTimeError
from stepacc_core.log_records import join_logs
from stepacc_core.model import RawEvent, RawSpan
from stepacc_core.otlp import read_otlp_lines, read_otlp_log_lines
from stepacc_core.reading import canonicalise, trace_partition
from stepacc_core.steps import describe
from tests.fidelity import TRACES, manifest, raw_spans

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
SPAN_ID = "b7ad6b7169203331"
MOMENT = 1_796_034_572_114_663_583


def document(*spans: Any, **scope: Any) -> dict[str, Any]:
    """Make a TracesData object of spans in one scope."""
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "bot"}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": list(spans)}]}]}


def otlp_span(**fields: Any) -> dict[str, Any]:
    """Make one span as an exporter writes it."""
    return {
        "traceId": TRACE_ID,
        "spanId": SPAN_ID,
        "name": "chat",
        "startTimeUnixNano": str(MOMENT),
        "endTimeUnixNano": str(MOMENT + 1),
        **fields,
    }


def read(*documents: Any) -> list[RawSpan | ReadError]:
    """Read documents written one a line."""
    return list(read_otlp_lines(json.dumps(each) for each in documents))


def one(**fields: Any) -> RawSpan:
    """Read a span with these fields; it must be readable."""
    (span,) = read(document(otlp_span(**fields)))
    assert isinstance(span, RawSpan), span
    return span


def attribute(value: dict[str, Any]) -> Any:
    """Read one attribute value."""
    return one(attributes=[{"key": "a", "value": value}]).attributes["a"]


class TestSpellings:
    """One span, however it is written."""

    def test_a_span_is_read_with_its_resource_and_scope(self) -> None:
        """Every field of the raw span."""
        event = {"name": "gen_ai.choice", "timeUnixNano": "5", "attributes": [{"key": "i", "value": {"intValue": "0"}}]}
        status = {"code": 2, "message": "boom"}
        pairs = [{"key": "k", "value": {"stringValue": "v"}}]
        span = otlp_span(parentSpanId="00F067AA0BA902B7", status=status, attributes=pairs, events=[event], links=[{}])
        assert read(document(span, name="lib", version="1.2")) == [
            RawSpan(
                trace_id=TRACE_ID,
                span_id=SPAN_ID,
                name="chat",
                parent_span_id="00f067aa0ba902b7",
                start_time_unix_nano=MOMENT,
                end_time_unix_nano=MOMENT + 1,
                status="ERROR",
                status_message="boom",
                attributes={"k": "v"},
                events=(RawEvent("gen_ai.choice", 5, {"i": 0}),),
                resource={"service.name": "bot"},
                scope_name="lib",
                scope_version="1.2",
            )
        ]

    def test_base64_ids_are_the_same_spans_as_hex(self) -> None:
        """Protobuf's own JSON mapping writes bytes so; a whole recorded file gives equal spans."""
        encoded = (TRACES / "otlp-encodings" / "parallel.base64_ids.json").read_text("utf-8")
        assert list(read_otlp_lines(encoded.splitlines())) == raw_spans("pydantic-ai/parallel.otlp.jsonl")
        assert one(traceId=base64.b64encode(bytes.fromhex(TRACE_ID)).decode()).trace_id == TRACE_ID

    def test_text_that_only_looks_like_base64_stays_as_it_is(self) -> None:
        """An id of another store is kept."""
        assert one(spanId="not base64!=").span_id == "not base64!="
        assert one(traceId="tr-1fa477").trace_id == "tr-1fa477"

    def test_snake_case_fields_and_enum_names_are_understood(self) -> None:
        """A whole recorded file, rewritten so, gives equal spans."""
        text = (TRACES / "pydantic-ai" / "parallel.otlp.jsonl").read_text("utf-8")
        snake = [json.dumps(_snake(json.loads(line))) for line in text.splitlines()]
        assert list(read_otlp_lines(snake)) == raw_spans("pydantic-ai/parallel.otlp.jsonl")
        assert one(status={"code": "STATUS_CODE_ERROR"}).status == one(status={"code": "2"}).status == "ERROR"
        codes: list[Any] = [0, 1, "STATUS_CODE_OK", "?", None, []]
        assert [one(status={"code": code}).status for code in codes] == ["UNSET", "OK", "OK", *["UNSET"] * 3]

    def test_an_indented_document_and_a_list_of_documents_are_read(self) -> None:
        """Also several indented ones in one file, and a byte order mark."""
        doc = document(otlp_span())
        for text in (
            json.dumps(doc, indent=2),
            json.dumps([doc], indent=4),
            json.dumps([doc]),
            "\ufeff" + json.dumps(doc),
        ):
            assert [type(found) for found in read_otlp_lines(text.splitlines())] == [RawSpan], text
        twice = (json.dumps(doc, indent=2) + "\n") * 2
        assert len(list(read_otlp_lines(twice.splitlines()))) == 2

    def test_bytes_and_blank_lines_are_fine(self) -> None:
        """As a file opened in binary gives them."""
        line = json.dumps(document(otlp_span(name="é")), ensure_ascii=False).encode()
        (span,) = list(read_otlp_lines([b"\n", line + b"\r\n", b"   "]))
        assert isinstance(span, RawSpan)
        assert span.name == "é"

    @pytest.mark.parametrize("parent", [None, "", "0" * 16, "AAAAAAAAAAA="])
    def test_no_parent_is_none(self, parent: str | None) -> None:
        """Null, empty and all zeros, also in base64."""
        assert one(parentSpanId=parent).parent_span_id is None


def _snake(value: Any) -> Any:
    if isinstance(value, list):
        return [_snake(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {"".join("_" + c.lower() if c.isupper() else c for c in key): _snake(item) for key, item in value.items()}


class TestTimes:
    """Integers, never rounded."""

    @pytest.mark.parametrize("written", [MOMENT, str(MOMENT), {"low": MOMENT & 0xFFFFFFFF, "high": MOMENT >> 32}])
    def test_every_digit_is_kept(self, written: Any) -> None:
        """Text, number, and the two halves that old JavaScript exporters write."""
        assert one(startTimeUnixNano=written).start_time_unix_nano == MOMENT

    @pytest.mark.parametrize("written", [None, 0, "0", ""])
    def test_zero_is_no_time(self, written: Any) -> None:
        """An exporter writes zero for unset."""
        assert one(startTimeUnixNano=written).start_time_unix_nano is None

    @pytest.mark.parametrize("written", [1.5, "1.796034572114663e18", "soon", True, [1], -5, 2**63, "9" * 30, {}])
    @pytest.mark.parametrize(("field", "what"), [("startTimeUnixNano", "start time"), ("endTimeUnixNano", "end time")])
    def test_anything_else_costs_the_time_and_not_the_span(self, written: Any, field: str, what: str) -> None:
        """A float was rounded by its writer already; the error says so, and the occurrence is the scorer's to fail."""
        span, error = read(document(otlp_span(**{field: written})))
        assert isinstance(span, RawSpan)
        starts = {"startTimeUnixNano": (None, MOMENT + 1), "endTimeUnixNano": (MOMENT, None)}
        assert (span.start_time_unix_nano, span.end_time_unix_nano) == starts[field]
        assert isinstance(error, SpanTimeError)
        assert str(error).startswith(f"Line 1: the span 'chat' was read without a time, since its {what} ")

    def test_a_step_without_a_readable_start_fails_its_occurrence(self) -> None:
        """It is not left out: fewer steps would be a wrong score."""
        tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "x"}
        spans = (
            otlp_span(spanId="1" * 16),
            otlp_span(spanId="2" * 16, parentSpanId="1" * 16, attributes=tool, startTimeUnixNano=1.5),
        )
        trace = canonicalise(TRACE_ID, [item for item in read(document(*spans)) if isinstance(item, RawSpan)])
        assert describe(trace_partition(trace))["reason"] == "missing_start_time"

    def test_the_time_of_an_event_decides_nothing(self) -> None:
        """One that cannot be read costs neither the event nor the span."""
        assert one(events=[{"name": "e", "timeUnixNano": "soon"}]).events == (RawEvent("e", None, {}),)


class TestValues:
    """Attribute values become JSON values."""

    @pytest.mark.parametrize(
        ("written", "value"),
        [
            ({"stringValue": "x"}, "x"),
            ({"string_value": "x"}, "x"),
            ({"intValue": "9007199254740993"}, 9007199254740993),
            ({"intValue": 7}, 7),
            ({"boolValue": False}, False),
            ({"doubleValue": 42.0}, 42.0),
            ({"doubleValue": "NaN"}, "NaN"),
            ({"bytesValue": "AAE="}, "AAE="),
            ({"arrayValue": {"values": [{"intValue": "1"}, {"stringValue": "b"}]}}, [1, "b"]),
            ({"arrayValue": {}}, []),
            ({"kvlistValue": {"values": [{"key": "k", "value": {"array_value": {"values": []}}}]}}, {"k": []}),
            ({}, None),
            ({"futureValue": 1}, None),
        ],
    )
    def test_each_kind_of_value(self, written: dict[str, Any], value: Any) -> None:
        """In both cases, and unknown kinds as None."""
        assert attribute(written) == value

    def test_attributes_written_as_a_plain_object_are_understood(self) -> None:
        """As some exporters do."""
        written = {"a": 1, "b": {"stringValue": "x"}, "c": {"d": 2}}
        assert one(attributes=written).attributes == {"a": 1, "b": "x", "c": {"d": 2}}

    def test_nul_and_lone_surrogates_become_the_replacement_character(self) -> None:
        """No database holds them; a true pair stays."""
        line = json.dumps(document(otlp_span(name="a\x00b\ud800c\U0001f600")))
        (span,) = list(read_otlp_lines([line]))
        assert isinstance(span, RawSpan)
        assert span.name == "a\ufffdb\ufffdc\U0001f600"

    def test_numbers_that_json_does_not_have_become_text(self) -> None:
        """Not a number, infinity, and numbers beyond a double."""
        for literal, value in (("NaN", "NaN"), ("-Infinity", "-Infinity"), ("1e999", "1e999")):
            line = json.dumps(document(otlp_span(attributes=[{"key": "a", "value": {"doubleValue": 0.5}}])))
            (span,) = list(read_otlp_lines([line.replace("0.5", literal)]))
            assert isinstance(span, RawSpan)
            assert span.attributes == {"a": value}


class TestBadInput:
    """An error names its line, and everything else is read."""

    @pytest.mark.parametrize("bad", ["{", '{"resourceSpans": [', "nope", '{"a": 1}', "[1]", "3", '"x"', "null"])
    @pytest.mark.parametrize("place", [1, 2, 3])
    def test_a_bad_line_costs_no_other(self, bad: str, place: int) -> None:
        """Wherever it stands."""
        lines = [json.dumps(document(otlp_span(spanId=i * 16))) for i in "ab"]
        lines.insert(place - 1, bad)
        found = list(read_otlp_lines(lines))
        errors = [item for item in found if isinstance(item, ReadError)]
        assert [item.span_id[0] for item in found if isinstance(item, RawSpan)] == ["a", "b"]
        assert len(errors) == 1
        assert str(errors[0]).startswith(f"Line {place} ")

    def test_a_bad_span_costs_no_other_of_its_line(self) -> None:
        """Without an id, or no object at all."""
        found = read(document(otlp_span(spanId=None), 7, otlp_span(), otlp_span(traceId="0" * 32)))
        assert [type(item).__name__ for item in found] == ["ReadError", "ReadError", "RawSpan", "ReadError"]
        assert "it has no span id" in str(found[0])
        assert "it has no trace id" in str(found[3])

    def test_text_nested_too_deeply_is_an_error(self) -> None:
        """Not a crash."""
        deep = "[" * 100_000 + "]" * 100_000
        found = list(read_otlp_lines([deep, json.dumps(document(otlp_span()))]))
        assert [type(item) for item in found] == [ReadError, RawSpan]

    def test_an_attribute_nested_too_deeply_is_an_error(self) -> None:
        """Readable JSON, but nothing could compare or store it."""
        deep: Any = {"stringValue": "x"}
        plain: Any = "x"
        for _ in range(250):
            deep = {"arrayValue": {"values": [deep]}}
            plain = [plain]
        spans = otlp_span(attributes=[{"key": "a", "value": deep}]), otlp_span(attributes={"a": plain}), otlp_span()
        assert [type(item) for item in read(document(*spans))][1:] == [ReadError, RawSpan]

    def test_a_cut_off_indented_document_is_one_error(self) -> None:
        """Not one for each of its lines."""
        lines = json.dumps(document(otlp_span()), indent=2).splitlines()[:-3]
        assert [type(item) for item in read_otlp_lines(lines)] == [ReadError]

    def test_other_signals_hold_no_spans_and_are_no_error(self) -> None:
        """A collector may write them into one file."""
        assert read({"resourceLogs": []}, {"resourceMetrics": [{}]}, {}) == []

    def test_reading_is_lazy(self) -> None:
        """The first span is there before the second line is asked for."""

        def lines() -> Iterator[str]:
            yield json.dumps(document(otlp_span()))
            pytest.fail("asked for more than was needed")

        assert isinstance(next(read_otlp_lines(lines())), RawSpan)


class TestLogs:
    """Log records join the spans they belong to."""

    def test_records_become_events_of_their_span(self) -> None:
        """The body is an attribute; records without a span are left out."""
        body = {"kvlistValue": {"values": [{"key": "index", "value": {"intValue": "0"}}]}}
        record = {"traceId": TRACE_ID, "spanId": SPAN_ID, "observedTimeUnixNano": "9", "eventName": "gen_ai.choice"}
        records = [{**record, "body": body}, {"body": body}]
        line = json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]})
        found = list(read_otlp_log_lines([line, "{}", "bad"]))
        event = RawEvent("gen_ai.choice", 9, {"body": {"index": 0}})
        assert found[0] == ((TRACE_ID, SPAN_ID), event)
        assert [type(item) for item in found[1:]] == [ReadError]

    def test_joining_twice_adds_nothing(self) -> None:
        """A delivery may repeat; spans without records pass as they are."""
        span, other = one(), one(spanId="c" * 16)
        event = RawEvent("gen_ai.choice", 9, {"body": "x"})
        records = [((TRACE_ID, SPAN_ID), event)] * 2
        joined = list(join_logs([span, other], records))
        assert joined[0].events == (event,)
        assert joined[1] is other
        assert list(join_logs(joined, records)) == joined


def test_every_recorded_file_is_read_without_an_error() -> None:
    """All spans with a start and a name."""
    for entry in manifest():
        spans = raw_spans(entry["file"])
        assert len(spans) == sum(trace["spans"] for trace in entry["traces"]), entry["file"]
        assert all(span.start_time_unix_nano and span.name for span in spans)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, st.sampled_from(sorted(otlp_span(status={}, attributes=[], events=[], parentSpanId=""))))
def test_any_value_in_any_field_gives_a_span_or_an_error(value: Any, field: str) -> None:
    """Never a crash, and nothing that a database could not hold."""
    found, *problems = read(document(otlp_span(**{field: value})))
    assert isinstance(found, RawSpan | ReadError)
    assert all(isinstance(problem, SpanTimeError) for problem in problems)
    str((found, problems)).encode()


@given(JSON, st.sampled_from(["resourceSpans", "resource", "scopeSpans", "scope", "spans", "attributes"]))
def test_any_value_at_any_level_gives_spans_or_errors(value: Any, level: str) -> None:
    """Also where a list should be."""
    doc = document(otlp_span())
    group = doc["resourceSpans"][0]
    places: dict[str, Any] = {
        "resourceSpans": doc,
        "resource": group,
        "scopeSpans": group,
        "scope": group["scopeSpans"][0],
        "spans": group["scopeSpans"][0],
        "attributes": group["resource"],
    }
    places[level][level] = value
    assert all(isinstance(found, RawSpan | ReadError) for found in read(doc))
    assert all(isinstance(found, tuple | ReadError) for found in read_otlp_log_lines([json.dumps(doc)]))


@given(st.text())
def test_any_text_gives_errors_and_no_crash(text: str) -> None:
    """Whatever a file holds."""
    assert all(isinstance(found, RawSpan | ReadError) for found in read_otlp_lines(text.splitlines()))
