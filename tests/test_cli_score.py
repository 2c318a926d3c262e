"""`stepacc score`: files and annotations in, JSON lines out, no database."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from stepacc_core.partition_json import dump_partition
from stepacc_core.reading import session_partition, trace_partition
from tests.cli_access import RECORDED, RECORDED_SESSION, RECORDED_STEPS, Said, stepacc, stepacc_process
from tests.fidelity import TRACES, traces

# Contract of `agent.step_accuracy`, section 11.
KEYS = [
    "partition_type",
    "partition_id",
    "session_id",
    "task_id",
    "metric",
    "metric_version",
    "status",
    "code",
    "reason",
    "score",
    "metadata",
    "expected_from",
    "annotation",
]
[TRACE] = traces(str(RECORDED.relative_to(TRACES)))
FIRST, SECOND = traces(str(RECORDED_SESSION.relative_to(TRACES)))
WORKED = json.dumps(
    {
        "partition_type": "trace",
        "partition_id": "worked",
        "expected_steps": ["search", "open_document"],
        "spans": [
            {"trace_id": "t", "span_id": "root", "kind": "AGENT", "name": "agent", "start_time_unix_nano": 1},
            *(
                {
                    "trace_id": "t",
                    "span_id": name,
                    "parent_span_id": "root",
                    "kind": "TOOL",
                    "name": name,
                    "tool_name": name,
                    "start_time_unix_nano": start,
                }
                for start, name in enumerate(["preamble_call", "search", "open_document"], start=2)
            ),
        ],
    }
)
"""The worked example of the contract's section 5, as a canonical partition."""


def expecting(target_type: str, target_id: str, steps: Sequence[Any], **more: str) -> dict[str, Any]:
    """An entry of an annotations file."""
    return {"target": {"type": target_type, "id": target_id}, "expected_steps": steps, **more}


@pytest.fixture
def annotate(tmp_path: Path) -> Any:
    """Write annotations files, each under another name."""

    def write(*entries: dict[str, Any]) -> Path:
        path = tmp_path / f"annotations-{len(list(tmp_path.iterdir()))}.json"
        path.write_text(json.dumps({"annotations": entries}), "utf-8")
        return path

    return write


def score(*arguments: str | Path, annotations: Sequence[Path] = ()) -> Said:
    """Score the recorded trace, or what the arguments name."""
    given = [option for path in annotations for option in ("--annotations", path)]
    return stepacc("score", *(arguments or (RECORDED,)), *given)


def scores(said: Said) -> dict[str, float | None]:
    """The score of each partition."""
    return {row["partition_id"]: row["score"] for row in said.rows}


# rows


def test_a_scored_row_has_just_the_keys_of_the_contract_in_their_order(annotate: Any) -> None:
    said = score(annotations=[annotate(expecting("trace", TRACE.trace_id, RECORDED_STEPS))])
    assert said.code == 0
    [row] = said.rows
    assert list(row) == KEYS
    assert (row["partition_type"], row["partition_id"]) == ("trace", TRACE.trace_id)
    assert (row["metric"], row["metric_version"]) == ("agent.step_accuracy", "2.0.0")
    assert (row["status"], row["code"], row["reason"], row["score"]) == ("scored", None, None, 1.0)
    assert (row["expected_from"], row["annotation"]) == ("column", {"id": 1, "revision": 1})
    assert row["metadata"]["actual_steps"] == RECORDED_STEPS


def test_a_failed_row_has_code_and_sentence_and_makes_the_exit_code_1() -> None:
    said = score()
    assert said.code == 1
    [row] = said.rows
    assert list(row) == KEYS
    assert (row["status"], row["code"], row["score"]) == ("failed", "missing_expected_steps", None)
    assert TRACE.trace_id in row["reason"]
    assert said.err == "1 failed\n"


def test_a_row_that_is_not_applicable_has_its_reason_and_is_no_failure() -> None:
    said = score(TRACES / "otel-genai-openai" / "nocontent" / "llm_only_sequential.otlp.jsonl")
    assert said.code == 0
    [row] = said.rows
    assert list(row) == KEYS
    assert (row["status"], row["reason"]) == ("not_applicable", "content_not_recorded")
    assert (row["code"], row["score"]) == (None, None)


def test_one_bad_occurrence_costs_no_other_its_score(annotate: Any, tmp_path: Path) -> None:
    broken = json.loads(WORKED)
    del broken["spans"][1]["start_time_unix_nano"]
    made = tmp_path / "made.jsonl"
    made.write_text(f"{json.dumps(broken | {'partition_id': 'untimed'})}\n{WORKED}\n", "utf-8")
    said = score(made, RECORDED, annotations=[annotate(expecting("trace", TRACE.trace_id, RECORDED_STEPS))])
    assert said.code == 1
    assert scores(said) == {"untimed": None, "worked": pytest.approx(2 / 3), TRACE.trace_id: 1.0}
    assert said.rows[0]["code"] == "missing_start_time"


def test_two_runs_give_the_same_bytes(annotate: Any) -> None:
    path = annotate(expecting("session", "conv-42", [["issue_refund", "lookup_order"], "more"]))
    arguments = ("score", RECORDED_SESSION, RECORDED, "--annotations", path, "--partition-type", "session")
    first, second = (
        stepacc_process(*arguments, environment={"PYTHONHASHSEED": seed}, given=b"") for seed in ("1", "2")
    )
    assert first.out
    assert (first.code, first.err, first.out) == (second.code, second.err, second.out)


# what is measured against what


def test_the_worked_example_is_two_thirds_by_distance_and_nothing_by_position(tmp_path: Path) -> None:
    made = tmp_path / "worked.jsonl"
    made.write_text(WORKED, "utf-8")
    assert scores(score(made)) == {"worked": pytest.approx(2 / 3)}
    assert scores(score(made, "--config", "scoring_method=strict_position")) == {"worked": 0.0}
    assert scores(score(made, "--metric-version", "1.0.0")) == {"worked": 0.0}


def test_a_partition_keeps_the_steps_it_brings(annotate: Any, tmp_path: Path) -> None:
    made = tmp_path / "worked.jsonl"
    made.write_text(WORKED, "utf-8")
    said = score(made, annotations=[annotate(expecting("trace", "worked", ["preamble_call"]))])
    assert scores(said) == {"worked": pytest.approx(2 / 3)}
    assert said.rows[0]["annotation"] is None


def test_an_annotation_of_the_trace_goes_before_one_of_its_task(annotate: Any, tmp_path: Path) -> None:
    made = tmp_path / "made.jsonl"
    fields = {"expected_steps": None, "task_id": "refund"}
    both = [json.loads(WORKED) | fields, json.loads(WORKED) | fields | {"partition_id": "other"}]
    made.write_text("\n".join(json.dumps(partition) for partition in both), "utf-8")
    path = annotate(
        expecting("trace", "worked", ["preamble_call", "search", "open_document"]),
        expecting("task", "refund", ["search", "open_document"]),
    )
    said = score(made, annotations=[path])
    assert scores(said) == {"worked": 1.0, "other": pytest.approx(2 / 3)}
    assert [row["annotation"]["id"] for row in said.rows] == [1, 2]


def test_a_task_is_read_from_the_attribute_named_too(annotate: Any, tmp_path: Path) -> None:
    document = json.loads(RECORDED.read_text("utf-8"))
    document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"].append(
        {"key": "shop.case", "value": {"stringValue": "case-7"}}
    )
    path = tmp_path / "traces.jsonl"
    path.write_text(json.dumps(document), "utf-8")
    annotations = [annotate(expecting("task", "case-7", RECORDED_STEPS))]
    assert score(path, annotations=annotations).rows[0]["status"] == "failed"
    [row] = score(path, "--task-id-attribute", "shop.case", annotations=annotations).rows
    assert (row["task_id"], row["score"]) == ("case-7", 1.0)


def test_a_later_annotations_file_wins(annotate: Any) -> None:
    right = annotate(expecting("trace", TRACE.trace_id, RECORDED_STEPS))
    wrong = annotate(expecting("trace", TRACE.trace_id, ["another"]))
    assert scores(score(annotations=[wrong, right])) == {TRACE.trace_id: 1.0}
    assert scores(score(annotations=[right, wrong])) == {TRACE.trace_id: 0.0}


@pytest.mark.parametrize("ending", [".yaml", ".yml", ".json", ".csv"])
def test_annotations_may_be_yaml_json_or_csv(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"annotations{ending}"
    steps = json.dumps(RECORDED_STEPS)
    as_csv = f'target_type,target_id,expected_steps\ntrace,{TRACE.trace_id},"{steps.replace(chr(34), chr(34) * 2)}"\n'
    as_json = (
        f'{{"annotations": [{{"target": {{"type": "trace", "id": "{TRACE.trace_id}"}}, "expected_steps": {steps}}}]}}'
    )
    path.write_text(as_csv if ending == ".csv" else as_json, "utf-8")
    assert scores(score(annotations=[path])) == {TRACE.trace_id: 1.0}


def test_what_the_annotations_speak_of_is_scored_else_traces(annotate: Any) -> None:
    of_trace = expecting("trace", FIRST.trace_id, ["lookup_order"])
    of_session = expecting("session", "conv-42", ["lookup_order", "issue_refund"])
    of_tasks = expecting("task", "help", ["lookup_order"], partition_type="session")
    for annotations, wanted in (
        ([], {"trace"}),
        ([annotate(of_trace)], {"trace"}),
        ([annotate(of_session)], {"session"}),
        ([annotate(of_tasks)], {"session"}),
        ([annotate(of_trace, of_session)], {"trace", "session"}),
        ([annotate(of_trace), annotate(of_session)], {"trace", "session"}),
    ):
        rows = score(RECORDED_SESSION, annotations=annotations).rows
        assert {row["partition_type"] for row in rows} == wanted


def test_a_session_is_scored_as_one_sequence(annotate: Any) -> None:
    path = annotate(expecting("session", "conv-42", ["lookup_order", "issue_refund"]))
    [row] = score(RECORDED_SESSION, annotations=[path]).rows
    assert (row["partition_id"], row["session_id"], row["score"]) == ("conv-42", "conv-42", 1.0)
    assert row["metadata"]["total_steps"] == 2


def test_the_partition_type_that_is_asked_for_is_scored_and_no_other(annotate: Any, tmp_path: Path) -> None:
    path = annotate(expecting("session", "conv-42", ["lookup_order", "issue_refund"]))
    made = tmp_path / "made.jsonl"
    partitions = [session_partition("conv-42", [FIRST, SECOND]), trace_partition(FIRST), trace_partition(SECOND)]
    made.write_text("\n".join(dump_partition(partition) for partition in partitions), "utf-8")
    for file in (RECORDED_SESSION, made):
        for kind, count in (("trace", 2), ("session", 1)):
            rows = score(file, "--partition-type", kind, annotations=[path]).rows
            assert [row["partition_type"] for row in rows] == [kind] * count


def test_ready_made_partitions_are_all_scored_unless_a_type_is_asked_for(tmp_path: Path) -> None:
    made = tmp_path / "made.jsonl"
    partitions = [session_partition("conv-42", [FIRST, SECOND]), trace_partition(FIRST)]
    made.write_text("\n".join(dump_partition(partition) for partition in partitions), "utf-8")
    assert [row["partition_type"] for row in score(made).rows] == ["session", "trace"]


def test_a_config_is_a_fallback_for_what_nobody_annotated(annotate: Any) -> None:
    path = annotate(expecting("trace", FIRST.trace_id, ["lookup_order"]))
    said = score(RECORDED_SESSION, "--config", 'expected_steps=[["issue_refund"]]', annotations=[path])
    assert scores(said) == {FIRST.trace_id: 1.0, SECOND.trace_id: 1.0}
    assert [row["expected_from"] for row in said.rows] == ["column", "config"]


def test_a_group_under_strict_position_fails_by_occurrence(annotate: Any) -> None:
    path = annotate(
        expecting("trace", FIRST.trace_id, [["lookup_order"]]), expecting("trace", SECOND.trace_id, ["issue_refund"])
    )
    said = score(RECORDED_SESSION, "--config", "scoring_method=strict_position", annotations=[path])
    assert said.code == 1
    assert [(row["code"], row["score"]) for row in said.rows] == [("group_under_strict_position", None), (None, 1.0)]


# refusals


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--metric", "agent.charm"], ["agent.charm", "agent.step_accuracy"]),
        (["--metric-version", "9.9.9"], ["9.9.9", "1.0.0", "2.0.0"]),
        (["--config", "volume=11"], ["volume", "scoring_method"]),
        (["--config", "scoring_method=by_ear"], ["by_ear", "edit_distance", "strict_position"]),
        (["--config", "expected_steps=[]"], ["expected_steps"]),
        (["--config", 'expected_steps=[["a"]]', "--config", "scoring_method=strict_position"], ["strict_position"]),
        (["--metric-version", "1.0.0", "--config", "scoring_method=edit_distance"], ["scoring_method"]),
        (["--config", "loud"], ["--config", "loud", "key=value"]),
        (["--partition-type", "planet"], ["planet", "trace", "session"]),
        (["--annotations", "nowhere.yaml"], ["nowhere.yaml"]),
    ],
)
def test_a_wrong_option_is_told_with_what_is_allowed(options: list[str], words: list[str]) -> None:
    said = score(RECORDED, *options)
    assert (said.code, said.out) == (2, "")
    for word in words:
        assert word in said.complaint


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.txt", b"", ["'.txt'", ".yaml"]),
        ("a.yaml", b"annotations: [", ["YAML"]),
        ("a.yaml", b"annotations:\n- {target: {type: trace, id: x}, expected_steps: [[[a]]]}\n", ["entry 1", "`x`"]),
        ("a.json", b"{", ["JSON"]),
        ("a.csv", b"who,what\n1,2\n", ["who", "target_id"]),
        ("a.yaml", "annotations: [ä]".encode("latin-1"), ["UTF-8"]),
    ],
)
def test_an_annotations_file_that_cannot_be_taken_stops_the_command(
    name: str, content: bytes, words: list[str], tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    said = score(annotations=[tmp_path / name])
    assert (said.code, said.out) == (1, "")
    for word in [str(tmp_path / name), *words]:
        assert word in said.complaint


def test_a_line_that_cannot_be_read_makes_the_exit_code_1_though_all_others_are_scored(tmp_path: Path) -> None:
    made = tmp_path / "made.jsonl"
    made.write_text(f"{WORKED}\nnot json\n", "utf-8")
    said = score(made)
    assert said.code == 1
    assert scores(said) == {"worked": pytest.approx(2 / 3)}
    assert said.unread[0].startswith(f"{made}: line 2: ")


def test_files_with_nothing_to_score_are_no_failure_and_say_so(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    said = score(tmp_path / "empty.jsonl")
    assert (said.code, said.out, said.err) == (0, "", "There is nothing to score in these files.\n")
