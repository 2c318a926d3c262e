"""Exports of other tools are told by content, and give the steps and ids that they hold."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepacc_core.conventions.recognise import recognised
from stepacc_core.errors import ReadError, SpanTimeError
from stepacc_core.exports.documents import read_documents
from stepacc_core.exports.fields import nanoseconds
from stepacc_core.exports.formats import TABLE, read_trace_lines
from stepacc_core.model import RawSpan
from stepacc_core.otlp import read_otlp_lines
from stepacc_core.reading import read_traces, trace_partition
from stepacc_core.steps import collect_steps
from tests.cli_access import stepacc
from tests.fidelity import TRACES, manifest

EXPORTS = Path(__file__).parent / "data" / "exports"
EXPECTED: dict[str, list[dict[str, Any]]] = json.loads((EXPORTS / "expected.json").read_text("utf-8"))


def read(text: str) -> list[RawSpan | ReadError]:
    """Read a text line by line, as a file."""
    found = read_trace_lines(text.splitlines(keepends=True))
    return [item for item in found if not isinstance(item, tuple)]


def spans_of(file: str) -> list[RawSpan]:
    """Read an export, which must be free of errors."""
    found = read((EXPORTS / file).read_text("utf-8"))
    assert [str(item) for item in found if isinstance(item, ReadError)] == []
    return [item for item in found if isinstance(item, RawSpan)]


def test_every_export_is_expected_to_hold_something() -> None:
    assert {path.name for path in EXPORTS.glob("*.json*")} - {"expected.json"} == set(EXPECTED)


@pytest.mark.parametrize("file", EXPECTED)
def test_the_steps_of_an_export_are_read(file: str) -> None:
    traces = read_traces(spans_of(file))

    assert [
        {
            "session": trace.session_id,
            "task": trace.task_id,
            "spans": len(trace.spans),
            "steps": [[step.name, step.arguments] for step in collect_steps(trace_partition(trace))],
        }
        for trace in traces
    ] == EXPECTED[file]


@pytest.mark.parametrize("file", EXPECTED)
def test_every_span_of_an_export_is_recognised_by_a_convention(file: str) -> None:
    assert all(recognised(span) for span in spans_of(file))


@pytest.mark.parametrize("file", EXPECTED)
def test_exactly_one_format_recognises_an_export(file: str) -> None:
    [document, *_] = read_documents((EXPORTS / file).read_text("utf-8").splitlines())
    assert not isinstance(document, ReadError)

    assert [each.name.lower() for each in TABLE if each.recognises(document[1])] == [file.partition("-")[0]]


@pytest.mark.parametrize("entry", manifest(), ids=lambda entry: str(entry["file"]))
def test_otlp_is_read_as_before(entry: dict[str, str]) -> None:
    lines = (TRACES / entry["file"]).read_text("utf-8").splitlines()

    assert list(read_trace_lines(lines)) == list(read_otlp_lines(lines))


@pytest.mark.parametrize("file", EXPECTED)
def test_layout_makes_no_difference(file: str) -> None:
    documents = [d[1] for d in read_documents((EXPORTS / file).read_text("utf-8").splitlines()) if isinstance(d, tuple)]
    by_line = read("\n".join(json.dumps(document) for document in documents))
    indented = read("\n".join(json.dumps(document, indent=1) for document in documents))
    listed = read(json.dumps(documents))
    listed_indented = read(json.dumps(documents, indent=2))

    assert by_line == indented == listed == listed_indented == spans_of(file)


@pytest.mark.parametrize("file", EXPECTED)
def test_the_commands_take_an_export_from_a_gzipped_file_of_any_name(file: str, tmp_path: Path) -> None:
    packed = tmp_path / "something"
    packed.write_bytes(gzip.compress((EXPORTS / file).read_bytes()))
    said = stepacc("steps", packed, "--json")

    assert said.code == 0
    traces = [row for row in said.rows if row["partition_type"] == "trace"]
    assert [[step["name"] for step in row["steps"]] for row in traces] == [
        [name for name, _ in trace["steps"]] for trace in EXPECTED[file]
    ]


def test_what_a_run_holds_stands_in_its_span() -> None:
    root, model, tool, *_, failed, _ = spans_of("langsmith-runs.jsonl")

    assert root.parent_span_id is None
    assert (tool.trace_id, tool.parent_span_id) == (root.trace_id, root.span_id)
    assert (model.start_time_unix_nano, model.end_time_unix_nano) == (
        1_796_040_001_123_456_000,
        1_796_040_002_654_321_000,
    )
    assert model.attributes["gen_ai.usage.input_tokens"] == 41
    assert model.attributes["gen_ai.usage.cost"] == 0.00071
    assert model.attributes["gen_ai.request.model"] == "gpt-5"
    assert (tool.status, tool.attributes["gen_ai.tool.call.id"]) == ("OK", "call_1")
    assert (failed.status, failed.status_message) == ("ERROR", "RuntimeError('bank is closed')")
    assert failed.attributes["gen_ai.tool.call.id"] == "call_3"


def test_milliseconds_of_a_run_are_exact() -> None:
    first, _ = spans_of("langsmith-client-tools.jsonl")

    assert first.start_time_unix_nano == 1_796_040_000_131_000_000


@pytest.mark.parametrize("file", ["langsmith-query.json", "langsmith-list.json", "langsmith-child-runs.json"])
def test_runs_are_the_same_in_every_envelope(file: str) -> None:
    assert spans_of(file) == spans_of("langsmith-runs.jsonl")


def test_a_run_without_ids_above_it_takes_them_from_its_dotted_order() -> None:
    order = "20261130T120000000000Zroot.20261130T120001000000Zmiddle.20261130T120002000000Zleaf"
    [span] = read(json.dumps({"id": "leaf", "run_type": "tool", "name": "t", "dotted_order": order}))

    assert isinstance(span, RawSpan)
    assert (span.trace_id, span.parent_span_id) == ("root", "middle")


def test_what_an_observation_holds_stands_in_its_span() -> None:
    root, model, tool, _, failed = spans_of("langfuse-download.json")

    assert (root.resource, root.scope_name, root.scope_version) == ({"service.name": "bot"}, "langfuse-sdk", "5.0.4")
    assert root.attributes["gen_ai.agent.name"] == "support"
    assert root.attributes["langfuse.observation.type"] == "agent"
    assert (tool.start_time_unix_nano, tool.end_time_unix_nano) == (
        1_796_040_002_120_000_000,
        1_796_040_003_340_000_000,
    )
    assert tool.attributes["langfuse.observation.metadata.tool_call_id"] == "call_1"
    assert model.attributes["langfuse.observation.usage_details"] == {"input": 41, "output": 12, "total": 53}
    assert (failed.status, failed.status_message) == ("ERROR", "bank is closed")


def test_observations_without_a_common_root_get_their_trace_as_root() -> None:
    root, *others = spans_of("langfuse-sdk-2.json")

    assert (root.span_id, root.parent_span_id, root.name) == ("trace-v2", None, "LangGraph")
    assert {span.parent_span_id for span in others} == {"trace-v2"}


def test_a_trajectory_without_times_keeps_its_order() -> None:
    spans = spans_of("atif-without-times.json")

    assert [span.start_time_unix_nano for span in spans] == [1, 2, 3, 4, 5, 6]


def test_a_trajectory_with_times_keeps_both() -> None:
    starts = [span.start_time_unix_nano or 0 for span in spans_of("atif-subagent.json")]

    assert starts == sorted(set(starts))
    assert starts[:3] == [1_796_040_000_000_000_000, 1_796_040_001_500_000_000, 1_796_040_001_500_000_001]


def test_a_subagent_stands_below_the_call_that_started_it() -> None:
    spans = {span.name: span for span in spans_of("atif-subagent.json")}

    assert spans["invoke_agent billing"].parent_span_id == spans["execute_tool ask_billing"].span_id
    assert spans["execute_tool check_policy"].parent_span_id == spans["invoke_agent billing"].span_id
    assert spans["execute_tool issue_refund"].attributes["gen_ai.tool.call.result"] == "done"


def test_a_continued_trajectory_is_a_trace_of_its_own_in_the_same_session() -> None:
    whole, continued = spans_of("atif-without-times.json"), spans_of("atif-continued.json")

    assert whole[0].trace_id == "run-9"
    assert continued[0].trace_id.startswith("run-9:")
    assert {span.attributes.get("session.id") for span in (whole[0], continued[0])} == {"run-9"}
    assert continued == spans_of("atif-continued.json")


BROKEN = [
    ('{"run_type": "tool", "name": "lost", "id": null}', "Line 2: the run 'lost' cannot be read: it has no id"),
    ('{"run_type": "tool", "id": "x", "parent_run_id": "y"}', "no trace_id"),
    ('{"run_type": "tool", "id": ', "Line 2 is not JSON"),
    ("17", "Line 2: the run 17 cannot be read"),
]


@pytest.mark.parametrize(("line", "said"), BROKEN)
def test_a_broken_run_is_named_with_its_line_and_the_others_are_kept(line: str, said: str) -> None:
    good = '{"run_type": "tool", "id": "%s", "name": "t"}'
    first, error, last = read("\n".join([good % "a", line, good % "b"]))

    assert isinstance(first, RawSpan)
    assert isinstance(last, RawSpan)
    assert said in str(error)


@pytest.mark.parametrize("written", ["yesterday", "1969-01-01T00:00:00", "9999-99-99T00:00:00", 1e300, True, [], {}])
def test_a_record_whose_start_cannot_be_read_comes_without_it_and_is_named(written: Any) -> None:
    """In every format: its steps are not lost in silence, and the occurrence is the scorer's to fail."""
    run = {"run_type": "tool", "id": "r", "name": "t", "start_time": written}
    observation = {"id": "o", "traceId": "x", "type": "TOOL", "name": "t", "startTime": written}
    for record in (run, observation):
        span, error = read(json.dumps(record))
        assert isinstance(span, RawSpan)
        assert span.start_time_unix_nano is None
        assert isinstance(error, SpanTimeError)
        assert "'t' was read without a time, since its start time" in str(error)


def test_a_broken_observation_is_named_with_its_record() -> None:
    document = json.loads((EXPORTS / "langfuse-download.json").read_text("utf-8"))
    del document["observations"][3]["id"]
    found = read(json.dumps(document, indent=2))

    assert [type(item) for item in found] == [RawSpan, RawSpan, RawSpan, ReadError, RawSpan]
    assert str(found[3]).startswith("Record 1, observation 4: the observation 'check_policy' cannot be read")


def test_traces_without_observations_are_refused_with_advice() -> None:
    page = {"data": [json.loads((EXPORTS / "langfuse-api-trace.json").read_text("utf-8"))]}
    page["data"].append({"id": "t", "timestamp": "2026-11-30T12:00:00Z", "observations": ["an-id"]})
    found = read(json.dumps(page))

    assert isinstance(found[-1], ReadError)
    assert "it holds no observations; export them" in str(found[-1])


def test_a_broken_step_is_named_and_the_others_are_kept() -> None:
    document = json.loads((EXPORTS / "atif-without-times.json").read_text("utf-8"))
    whole = [item.name for item in read(json.dumps(document)) if isinstance(item, RawSpan)]
    document["steps"][2] = "soon"
    found = read(json.dumps(document))

    [error] = [str(item) for item in found if isinstance(item, ReadError)]
    assert error.startswith("Line 1, step 3: the step 'soon' cannot be read")
    assert [item.name for item in found if isinstance(item, RawSpan)][1:] == ["chat m", "execute_tool run", "chat m"]
    assert len(whole) > len(found)


def test_a_step_whose_time_cannot_be_read_keeps_its_place() -> None:
    """Steps are ordered by number, so the time counts on from the one before, as where there is none."""
    document = json.loads((EXPORTS / "atif-without-times.json").read_text("utf-8"))
    whole = read(json.dumps(document))
    document["steps"][2]["timestamp"] = "soon"
    found = read(json.dumps(document))

    [error] = [str(item) for item in found if isinstance(item, ReadError)]
    assert error.startswith("Line 1, step 3: the step 'chat m' was read without a time, since its start time 'soon'")
    assert [item for item in found if isinstance(item, RawSpan)] == whole


def test_a_version_that_is_not_known_is_refused() -> None:
    [error] = read('{"schema_version": "ATIF-v2.0", "steps": []}')

    assert "'ATIF-v2.0'; versions 1.x can be read" in str(error)


def test_a_list_that_is_cut_off_gives_what_stands_before() -> None:
    text = (EXPORTS / "langsmith-list.json").read_text("utf-8")
    *spans, error = read(text[: len(text) * 2 // 3].replace("}, {", "},\n{"))

    assert spans == spans_of("langsmith-runs.jsonl")[: len(spans)]
    assert len(spans) > 2
    assert f"Record {len(spans) + 1} is not JSON" in str(error)


def test_what_nobody_knows_is_refused_as_otlp_is() -> None:
    [error] = read('{"hello": "world"}')

    assert "resourceSpans" in str(error)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2026-11-30T12:00:00Z", 1_796_040_000_000_000_000),
        ("2026-11-30 12:00:00.123456789", 1_796_040_000_123_456_789),
        ("2026-11-30T12:00:00.1234567899+00:00", 1_796_040_000_123_456_789),
        ("2026-11-30T14:00:00.5+0200", 1_796_040_000_500_000_000),
        (1_796_040_000_123, 1_796_040_000_123_000_000),
        (1_796_040_000_123.25, 1_796_040_000_123_250_000),
        ("", None),
        (None, None),
    ],
)
def test_times_are_exact(written: Any, expected: int | None) -> None:
    assert nanoseconds(written, "time") == expected


DEEP: Any = "end"
for _ in range(400):
    DEEP = [DEEP]

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2),
    st.just(DEEP),
)


@given(st.data())
def test_odd_values_never_raise(data: st.DataObject) -> None:
    file = data.draw(st.sampled_from(sorted(EXPECTED)))
    documents = [d[1] for d in read_documents((EXPORTS / file).read_text("utf-8").splitlines()) if isinstance(d, tuple)]
    for _ in range(data.draw(st.integers(1, 4))):
        holder = data.draw(st.sampled_from([h for document in documents for h in holders(document)]))
        name = data.draw(st.sampled_from(sorted(holder)))
        holder[name] = data.draw(ODD)
    found = read("\n".join(json.dumps(document) for document in documents))

    assert all(isinstance(item, RawSpan | ReadError) for item in found)
    spans = [item for item in found if isinstance(item, RawSpan)]
    assert all(isinstance(trace_partition(trace).partition_id, str) for trace in read_traces(spans))


def holders(value: Any) -> list[dict[str, Any]]:
    """Return every object in a JSON value that has a field."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    below = [holder for item in inner for holder in holders(item)]
    return [value, *below] if isinstance(value, dict) and value else below
