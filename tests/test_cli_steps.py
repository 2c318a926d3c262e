"""`stepacc steps`: which steps the reader finds in files of any form, and what is said of what it cannot read."""

import gzip
import json
import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepacc_core.partition_json import dump_partition
from stepacc_core.reading import trace_partition
from tests.cli_access import COMMAND, RECORDED, RECORDED_SESSION, RECORDED_STEPS, stepacc, stepacc_process
from tests.fidelity import TRACES, manifest, traces

KEYS = ["partition_type", "partition_id", "session_id", "status", "reason", "steps", "gaps"]
STEP_KEYS = ["name", "kind", "from", "full_name", "arguments", "span_id"]
LINE = RECORDED.read_text("utf-8")


def names(row: dict[str, Any]) -> list[str]:
    """The names of the steps of a row."""
    return [step["name"] for step in row["steps"]]


def span(**fields: Any) -> str:
    """A line with one span."""
    known = {"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331", "name": "GET /"}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [known | fields]}]}]})


def foreign(path: Path) -> Path:
    """Write a file whose one span no recogniser knows."""
    attributes = [{"key": "http.method", "value": {"stringValue": "GET"}}]
    path.write_text(span(startTimeUnixNano="1700000000000000000", attributes=attributes), "utf-8")
    return path


# what is printed


def test_a_trace_is_one_object_a_line_with_just_these_keys() -> None:
    said = stepacc("steps", RECORDED, "--json")
    assert (said.code, said.err) == (0, "")
    [row] = said.rows
    assert list(row) == KEYS
    assert all(list(step) == STEP_KEYS for step in row["steps"])
    assert (row["partition_type"], row["status"], row["reason"], row["gaps"]) == ("trace", "ok", None, [])
    assert [(step["name"], step["kind"], step["from"]) for step in row["steps"]] == [
        (name, "TOOL", "span") for name in RECORDED_STEPS
    ]
    assert row["steps"][0]["arguments"] == {"order_id": "A-1001"}


def test_sessions_follow_their_traces() -> None:
    rows = stepacc("steps", RECORDED_SESSION, "--json").rows
    assert [(row["partition_type"], names(row)) for row in rows] == [
        ("trace", ["lookup_order"]),
        ("trace", ["issue_refund"]),
        ("session", ["lookup_order", "issue_refund"]),
    ]
    assert rows[2]["partition_id"] == rows[0]["session_id"] == "conv-42"


def test_text_names_partition_kind_and_step() -> None:
    said = stepacc("steps", RECORDED_SESSION)
    assert said.out.splitlines()[-3:] == [
        "session conv-42",
        "    1  TOOL   lookup_order",
        "    2  TOOL   issue_refund",
    ]


def test_what_cannot_be_scored_says_why() -> None:
    said = stepacc("steps", TRACES / "otel-genai-openai" / "nocontent" / "llm_only_sequential.otlp.jsonl", "--json")
    [row] = said.rows
    assert (row["status"], row["reason"], row["steps"]) == ("not_scorable", "content_not_recorded", [])
    assert said.code == 0


@pytest.mark.parametrize("file", [entry["file"] for entry in manifest()])
def test_every_recorded_file_is_read_without_a_complaint(file: str) -> None:
    said = stepacc("steps", TRACES / file, "--json")
    assert (said.code, said.err) == (0, "")
    assert {row["partition_id"] for row in said.rows if row["partition_type"] == "trace"} == {
        trace.trace_id for trace in traces(file)
    }


def test_a_name_from_a_trace_cannot_steer_the_terminal(tmp_path: Path) -> None:
    document = json.loads(LINE)
    spans = [s for r in document["resourceSpans"] for c in r["scopeSpans"] for s in c["spans"]]
    for given in spans:
        for attribute in given["attributes"]:
            if attribute["value"].get("stringValue") == "issue_refund":
                attribute["value"]["stringValue"] = "issue\x1b[2J\nrefund"
    path = tmp_path / "odd.jsonl"
    path.write_text(json.dumps(document), "utf-8")
    assert r"issue\x1b[2J\nrefund" in stepacc("steps", path).out
    assert "issue\x1b[2J\nrefund" in [names(row)[-1] for row in stepacc("steps", path, "--json").rows]


# forms of files


def indented(path: Path) -> None:
    """One document over many lines."""
    path.write_text(json.dumps(json.loads(LINE), indent=2), "utf-8")


def compressed(path: Path) -> None:
    """Lines, gzipped; the name does not say so."""
    path.write_bytes(gzip.compress(LINE.encode()))


def marked(path: Path) -> None:
    """With a byte order mark and Windows line ends, as some editors write."""
    path.write_bytes(b"\xef\xbb\xbf" + LINE.encode().replace(b"\n", b"\r\n"))


def spaced(path: Path) -> None:
    """With empty lines around."""
    path.write_text(f"\n\n{LINE}\n\n", "utf-8")


def canonical(path: Path) -> None:
    """As canonical partitions."""
    [trace] = traces(str(RECORDED.relative_to(TRACES)))
    path.write_text(dump_partition(trace_partition(trace)) + "\n", "utf-8")


def canonical_indented(path: Path) -> None:
    """As one canonical partition over many lines, its spans first."""
    [trace] = traces(str(RECORDED.relative_to(TRACES)))
    fields = json.loads(dump_partition(trace_partition(trace)))
    path.write_text(json.dumps({"spans": fields.pop("spans")} | fields, indent=1), "utf-8")


FORMS = [indented, compressed, marked, spaced, canonical, canonical_indented]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_the_form_of_a_file_makes_no_difference(form: Callable[[Path], None], tmp_path: Path) -> None:
    form(tmp_path / "traces")
    said = stepacc("steps", tmp_path / "traces", "--json")
    assert (said.code, said.err) == (0, "")
    assert said.rows == stepacc("steps", RECORDED, "--json").rows


@pytest.mark.parametrize("form", [compressed, indented, canonical], ids=lambda form: form.__name__)
def test_standard_input_is_read_like_a_file(form: Callable[[Path], None], tmp_path: Path) -> None:
    form(tmp_path / "traces")
    said = stepacc_process("steps", "--json", "-", given=(tmp_path / "traces").read_bytes())
    assert (said.code, said.err) == (0, "")
    assert said.rows == stepacc("steps", RECORDED, "--json").rows


def test_a_named_pipe_is_read_like_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(LINE,))
    writer.start()
    said = stepacc("steps", pipe, "--json")
    writer.join()
    assert said.rows == stepacc("steps", RECORDED, "--json").rows


def test_ids_in_base64_are_read_as_their_hex() -> None:
    said = stepacc("steps", TRACES / "otlp-encodings" / "parallel.base64_ids.json", "--json")
    [trace] = [row for row in said.rows if row["partition_type"] == "trace"]
    assert len(bytes.fromhex(trace["partition_id"])) == 16
    assert names(trace) == ["get_weather", "get_weather", "get_time"]


def test_log_records_are_joined_to_spans_of_another_file_in_any_order() -> None:
    folder = TRACES / "otel-openai-v2" / "legacy"
    spans, logs = folder / "llm_only_sequential.otlp.jsonl", folder / "llm_only_sequential.otlp-logs.jsonl"
    [alone] = stepacc("steps", spans, "--json").rows
    [joined] = stepacc("steps", spans, logs, "--json").rows
    assert (alone["reason"], names(alone)) == ("content_not_recorded", [])
    assert names(joined) == RECORDED_STEPS
    assert stepacc("steps", logs, spans, "--json").rows == [joined]


def test_an_attribute_called_partition_type_does_not_make_a_partition_of_a_trace(tmp_path: Path) -> None:
    document = json.loads(LINE)
    attribute = {"key": "partition_type", "value": {"stringValue": "daily"}}
    document["resourceSpans"][0]["resource"]["attributes"].insert(0, attribute)
    path = tmp_path / "odd.jsonl"
    path.write_text(json.dumps(document), "utf-8")
    assert stepacc("steps", path, "--json").rows == stepacc("steps", RECORDED, "--json").rows


def test_partitions_and_traces_may_be_mixed(tmp_path: Path) -> None:
    canonical(tmp_path / "made.jsonl")
    rows = stepacc("steps", RECORDED_SESSION, tmp_path / "made.jsonl", "--json").rows
    assert sorted(row["partition_type"] for row in rows) == ["session", "trace", "trace", "trace"]


# what cannot be read


def test_a_broken_line_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    path.write_text(f'{{"resourceSpans": [\n{LINE}not json\n', "utf-8")
    said = stepacc("steps", path, "--json")
    assert said.code == 1
    assert [names(row) for row in said.rows] == [RECORDED_STEPS]
    assert [problem.split(" is ")[0] for problem in said.unread] == [f"{path}: Line 1", f"{path}: Line 3"]


def test_a_huge_broken_line_costs_neither_the_others_nor_the_screen(tmp_path: Path) -> None:
    path = tmp_path / "huge.jsonl"
    path.write_text(f'{{"x": "{"a" * 20_000_000}\n{LINE}', "utf-8")
    said = stepacc("steps", path, "--json")
    assert said.code == 1
    assert [names(row) for row in said.rows] == [RECORDED_STEPS]
    [problem] = said.unread
    assert problem.startswith(f"{path}: Line 1")
    assert len(problem) < 500


def test_a_bad_partition_is_named_by_line_partition_span_and_field(tmp_path: Path) -> None:
    canonical(tmp_path / "some.jsonl")
    good = (tmp_path / "some.jsonl").read_text("utf-8")
    bad = json.loads(good) | {"partition_id": "p-1"}
    bad["spans"][2]["start_time_unix_nano"] = "noon"
    path = tmp_path / "some.jsonl"
    path.write_text(f'{{"partition_type": "trace",\n{json.dumps(bad)}\n{good}', "utf-8")
    said = stepacc("steps", path, "--json")
    assert said.code == 1
    assert [names(row) for row in said.rows] == [RECORDED_STEPS]
    first, second = said.unread
    assert first.startswith(f"{path}: line 1: ")
    assert second.startswith(f"{path}: line 2: Partition `p-1`, span `{bad['spans'][2]['span_id']}`")
    assert "`start_time_unix_nano`" in second


def test_spans_no_recogniser_knows_are_told_with_the_conventions_that_can_be_read(tmp_path: Path) -> None:
    said = stepacc("steps", foreign(tmp_path / "http.jsonl"))
    assert (said.code, said.out) == (1, "")
    [problem] = said.unread
    for convention in ("OpenInference", "OpenTelemetry GenAI", "Traceloop", "Langfuse", "Vercel AI SDK"):
        assert convention in problem


def test_spans_no_recogniser_knows_do_not_cost_the_partitions_beside_them(tmp_path: Path) -> None:
    canonical(tmp_path / "made.jsonl")
    said = stepacc("steps", foreign(tmp_path / "http.jsonl"), tmp_path / "made.jsonl", "--json")
    assert said.code == 1
    assert [names(row) for row in said.rows] == [RECORDED_STEPS]
    assert len(said.unread) == 1


BINARY = bytes(range(256)) * 40


@pytest.mark.parametrize("content", [BINARY, LINE.encode("utf-16")], ids=["bytes", "utf-16"])
def test_a_file_that_is_no_text_is_told_in_one_sentence(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "traces.bin"
    path.write_bytes(content)
    said = stepacc("steps", path)
    assert (said.code, said.out) == (1, "")
    [problem] = said.unread
    assert problem.startswith(f"{path}: ")
    assert "OTLP/JSON" in problem


def test_of_a_file_that_breaks_off_what_stands_before_is_read(tmp_path: Path) -> None:
    packed = gzip.compress(f"{LINE}{json.dumps({'resourceSpans': [], 'x': os.urandom(5_000).hex()})}\n".encode())
    path = tmp_path / "cut.gz"
    path.write_bytes(packed[:-2_000])
    said = stepacc("steps", path, "--json")
    assert said.code == 1
    assert [names(row) for row in said.rows] == [RECORDED_STEPS]
    [problem] = said.unread
    assert problem.startswith(f"{path}: the file is damaged or cut off")


@pytest.mark.parametrize(
    "content", [b"\x1f\x8b" + BINARY, b"\x1f\x8b", gzip.compress(b"x" * 999, mtime=0)[:-8] + b"\0" * 8]
)
def test_a_damaged_gzip_file_is_told_in_a_sentence(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bad.gz"
    path.write_bytes(content)
    said = stepacc("steps", path)
    assert said.code == 1
    assert f"{path}: the file is damaged or cut off" in said.unread[0]


def test_of_very_many_problems_some_are_named_and_the_others_counted(tmp_path: Path) -> None:
    path = tmp_path / "novel.txt"
    path.write_text("It was a dark and stormy night.\n" * 5_000, "utf-8")
    said = stepacc("steps", path)
    assert said.code == 1
    assert len(said.unread) == 51
    assert said.unread[-1] == "4950 more"


@pytest.mark.parametrize("content", ["", "\n \n", "{}", '{"resourceSpans": []}', '{"resourceMetrics": []}'])
def test_a_file_without_spans_is_no_failure_and_says_so(content: str, tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_text(content, "utf-8")
    said = stepacc("steps", path)
    assert (said.code, said.out, said.err) == (0, "", "No traces were found in these files.\n")


def test_a_folder_or_a_file_that_is_not_there_is_a_wrong_use(tmp_path: Path) -> None:
    for path, word in ((tmp_path, "directory"), (tmp_path / "none.jsonl", "exist")):
        said = stepacc("steps", path)
        assert said.code == 2
        assert str(path) in said.complaint
        assert word in said.complaint


def test_standard_input_cannot_be_given_twice_nor_closed() -> None:
    said = stepacc_process("steps", "-", "-", given=LINE.encode())
    assert said.code == 2
    assert "once" in said.complaint
    said = stepacc_process("-c", 'exec "$0" "$@" <&-', *COMMAND, "steps", "-", command=["/bin/sh"])
    assert said.code == 2
    assert "closed" in said.complaint


def test_an_output_that_takes_no_more_is_told_in_a_sentence() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*COMMAND, "steps", RECORDED], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert done.stderr.decode().startswith("Error: The system says: No space left on device")


def test_a_reader_that_leaves_ends_the_command_quietly(tmp_path: Path) -> None:
    lines = [
        json.dumps(json.loads(LINE.replace(traces(str(RECORDED.relative_to(TRACES)))[0].trace_id, f"{n:032x}")))
        for n in range(1, 200)
    ]
    path = tmp_path / "many.jsonl"
    path.write_text("\n".join(lines), "utf-8")
    with subprocess.Popen(
        [*COMMAND, "steps", path, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"{")
        process.stdout.close()
        assert process.stderr.read() == b""
