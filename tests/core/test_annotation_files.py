"""Annotation files: taken whole or not at all."""

import json
from pathlib import Path
from typing import Any

import pytest

from stepacc_core.annotation_brief import brief
from stepacc_core.annotation_files import FileFormat, parse_annotations
from stepacc_core.annotation_sense import doubts
from stepacc_core.annotation_words import explain
from stepacc_core.annotations import Annotation, AnnotationTarget, annotation_in_force
from stepacc_core.errors import AnnotationError
from stepacc_core.model import CanonicalPartition

CASES = Path(__file__).parents[1] / "cases"
YAML = """
source: support_agent
annotations:
  - target: {type: task, id: refund_damaged_item}
    partition_type: trace
    expected_steps: [lookup_order, [fetch_policy, fetch_history], issue_refund]
    author: qa@example.org
    note: confirmed with the refunds team
  - target: {type: session, id: conv-42}
    expected_steps: [lookup_order]
"""
JSON = """
{"source": "support_agent", "annotations": [
  {"target": {"type": "task", "id": "refund_damaged_item"}, "partition_type": "trace",
   "expected_steps": ["lookup_order", ["fetch_policy", "fetch_history"], "issue_refund"],
   "author": "qa@example.org", "note": "confirmed with the refunds team"},
  {"target": {"type": "session", "id": "conv-42"}, "expected_steps": ["lookup_order"]}
]}
"""
CSV = """\
source,target_type,target_id,expected_steps,author,note
support_agent,task,refund_damaged_item,"[""lookup_order"", [""fetch_policy"", ""fetch_history""], ""issue_refund""]",\
qa@example.org,confirmed with the refunds team
support_agent,session,conv-42,"[""lookup_order""]",,
"""


@pytest.mark.parametrize(
    ("text", "file_format"), [(YAML, "yaml"), (JSON, "json"), (CSV, "csv"), ("\ufeff" + CSV, "csv")]
)
def test_the_same_annotations_can_be_written_in_three_formats(text: str, file_format: FileFormat) -> None:
    assert parse_annotations(text, file_format, name="f") == (
        Annotation(
            AnnotationTarget("task", "refund_damaged_item", "trace"),
            ["lookup_order", ["fetch_policy", "fetch_history"], "issue_refund"],
            source="support_agent",
            author="qa@example.org",
            note="confirmed with the refunds team",
        ),
        Annotation(AnnotationTarget("session", "conv-42", "session"), ["lookup_order"], source="support_agent"),
    )


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("{target: {type: task, id: t}}", ["entry 2 (task `t`)", "expected_steps"]),
        ("{target: {type: task, id: t}, expected_steps: []}", ["entry 2", "hold no step"]),
        ("{target: {type: task, id: t}, expected_steps: [a, [b, [c]]]}", ["entry 2", "group inside a group"]),
        ("{target: {type: task, id: t}, expected_steps: [yes]}", ["entry 2", "True"]),
        ("{target: {type: task, id: 7}, expected_steps: [a]}", ["entry 2 (task `7`)", "target.id", "7"]),
        (
            "{target: {type: span, id: t}, expected_steps: [a]}",
            ["entry 2", "target.type", "'trace', 'session' or 'task'"],
        ),
        ("{target: {type: task, id: t}, expected_step: [a]}", ["entry 2", "expected_step"]),
        ("{target: {type: trace, id: t}, partition_type: session, expected_steps: [a]}", ["entry 2", "does not fit"]),
        ("{target: {type: task, id: first}, expected_steps: [b]}", ["entry 2", "entry 1 already"]),
        ("just text", ["entry 2"]),
        ("{target: {type: task, id: t}, note: n}", ["entry 2", "expected_steps", "reference_trajectories"]),
        ("{target: {type: task, id: t}, expected_steps: }", ["entry 2", "`expected_steps` has no value"]),
        (
            "{target: {type: task, id: t}, reference_trajectories: , expected_steps: [a]}",
            ["entry 2", "`reference_trajectories` has no value"],
        ),
        ("{target: {type: task, id: t}, reference_trajectories: []}", ["entry 2 (task `t`)", "empty list"]),
        (
            (
                "{target: {type: task, id: t}, expected_steps: [a], reference_trajectories: {references: "
                "[{name: x, steps: [{tool: b, args: {on: {date: 2.1.2026}}}]}]}}"
            ),
            ["entry 2 (task `t`)", "`reference_trajectories`", "reference `x`", "`steps[0].args.on.date`", "2.1.2026"],
        ),
        ("{target: {type: task, id: f}, reference_trajectories: '{'}", ["entry 2 (task `f`)", "no valid JSON"]),
    ],
)
def test_one_bad_entry_refuses_the_file_and_is_named(entry: str, said: list[str]) -> None:
    text = f"annotations:\n- {{target: {{type: task, id: first}}, expected_steps: [a]}}\n- {entry}\n"

    with pytest.raises(AnnotationError, match=r"`bad\.yaml` is not taken") as caught:
        parse_annotations(text, "yaml", name="bad.yaml")

    assert [part for part in said if part not in str(caught.value)] == []


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (
            "expected_step: [a]",
            (
                "line 4: unknown key `expected_step`; known are target, partition_type, expected_steps, "
                "reference_trajectories, source, author, note, confirmed (did you mean `expected_steps`?)"
            ),
        ),
        ("reference_trajectories: {references: [{steps: [\n    {tool: a, arg: {}}]}]}", "line 5: "),
        ("reference_trajectories: {references: [{steps: [\n    {tool: a, arg: {}}]}]}", "(did you mean `args`?)"),
        ("note: 7\n  expected_steps: [a]", "line 4: `note`: it must be text, and is 7"),
        ("expected_steps: 7", "line 4: `expected_steps`: it must be a list, and is 7"),
        ('expected_steps: [a, " "]', "line 4: `expected_steps[1]` is ' ', a blank name"),
        ('expected_steps: [a, [b, "\\t"]]', "`expected_steps[1][1]`"),
        ("expected_steps: [[]]", "hold no step"),
        ('reference_trajectories: [{tool: " "}]', "`steps[0]`: a blank name"),
        ("reference_trajectories: [[]]", "`steps[0]`: a group without members"),
        ("reference_trajectories: [a, {any_order: []}]", "`steps[1]`: a group without members"),
        (
            "reference_trajectories: {references: [{name: x, steps: []}]}",
            "reference `x`: without steps every run passes",
        ),
        ('reference_trajectories: {references: [[a]], forbidden: [" "]}', "`forbidden`: a blank name"),
        ('source: " "\n  expected_steps: [a]', "line 4: `source`: ' ' is blank; write a name"),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_without_jargon(entry: str, said: str) -> None:
    text = f"annotations:\n\n- target: {{type: task, id: t}}\n  {entry}\n"
    with pytest.raises(AnnotationError) as caught:
        parse_annotations(text, "yaml", name="f")
    assert said in str(caught.value)
    for jargon in ("Extra inputs", "Input should", "Field required"):
        assert jargon not in str(caught.value)


def test_lines_are_told_of_json_and_csv_too() -> None:
    document = '{"annotations": [\n {"target": {"type": "task", "id": "t"},\n  "expected_stepz": ["a"]}]}'
    with pytest.raises(AnnotationError, match=r"entry 1 \(task `t`\), line 3: unknown key `expected_stepz`"):
        parse_annotations(document, "json", name="f")
    with pytest.raises(AnnotationError, match=r"unknown key `kind` of `target`; known are type, id"):
        parse_annotations('[{"target": {"kind": "task", "id": "t"}, "expected_steps": ["a"]}]', "json", name="f")
    with pytest.raises(AnnotationError, match=r"entry 2 \(task `u`\), line 3: "):
        parse_annotations('target_type,target_id,expected_steps\ntask,t,"[""a""]"\ntask,u,"[]"\n', "csv", name="f")
    with pytest.raises(AnnotationError, match=r"unknown columns expected_step; .*\(did you mean `expected_steps`\?\)"):
        parse_annotations("target_id,expected_step\n", "csv", name="f")


def test_what_the_contract_allows_without_effect_is_a_doubt() -> None:
    text = (
        "- {target: {type: task, id: t}, expected_steps: [a, []],"
        " reference_trajectories: {references: [{name: x, steps: []}], forbidden: [b]}}\n"
        "- {target: {type: task, id: u}, expected_steps: [a, [b]],"
        " reference_trajectories: {match: exact, references: [{steps: []}]}}\n"
    )
    group, vacuous, *fine = [doubts(annotation) for annotation in parse_annotations(text, "yaml", name="f")]
    assert group == ("`expected_steps[1]` is a group without members, which counts for nothing.",)
    assert vacuous[0].startswith("Reference `x` has no steps, so with match: in_order every path passes")
    assert fine == [(), ()]


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("expected_steps", ["a"], "1 step: a"),
        ("expected_steps", ["a", ["b", "c"], "d", "e", "f"], "6 steps: a, [b, c], d, and 2 more"),
        ("expected_steps", ["x" * 40], f"1 step: {'x' * 29}…"),
        ("reference_trajectories", ["a", "b"], "1 reference, in_order: reference 1 a, b"),
        (
            "reference_trajectories",
            {"references": [{"name": "short", "steps": ["a"]}, ["b"]], "forbidden": ["c"], "match": "exact"},
            "2 references, exact, 1 forbidden: short a and 1 more",
        ),
        ("reference_trajectories", {"match": "exact", "references": [[]]}, "1 reference, exact: reference 1 nothing"),
        ("expected_steps", 7, "not valid (invalid_expected_steps)"),
    ],
)
def test_an_annotation_is_told_in_a_line(key: str, value: Any, said: str) -> None:
    assert brief(key, value) == said


def test_every_bad_entry_is_named_at_once() -> None:
    with pytest.raises(AnnotationError, match=r"entry 1.*entry 3"):
        parse_annotations("[{}, {target: {type: task, id: t}, expected_steps: [a]}, 3]", "yaml", name="f")


@pytest.mark.parametrize(
    ("text", "file_format"),
    [
        ("", "yaml"),
        ("annotations: {", "yaml"),
        ("annotations: []", "yaml"),
        ("sources: x\nannotations: [{}]", "yaml"),
        ("{", "json"),
        ("[" * 100_000, "json"),
        ("3", "json"),
        ("", "csv"),
        ("a,b\n1,2\n", "csv"),
        ("target_id,expected_steps\n", "csv"),
        ('target_id\n"unclosed\n', "csv"),
    ],
)
def test_what_is_no_annotations_file_is_refused_by_name(text: str, file_format: FileFormat) -> None:
    with pytest.raises(AnnotationError, match="`f`"):
        parse_annotations(text, file_format, name="f")


def _annotation(kind: Any, ident: str, partition_type: Any, *steps: str) -> Annotation:
    return Annotation(AnnotationTarget(kind, ident, partition_type), list(steps))


@pytest.mark.parametrize(
    ("partition", "steps"),
    [
        (CanonicalPartition("trace", "t1", task_id="refund"), ["own"]),
        (CanonicalPartition("trace", "t2", task_id="refund"), ["task"]),
        (CanonicalPartition("trace", "t2", task_id=None), None),
        (CanonicalPartition("session", "t1", task_id="refund"), ["session-task"]),
        (CanonicalPartition("session", "c1", task_id="refund"), ["session-own"]),
    ],
)
def test_the_own_annotation_comes_before_that_of_the_task_and_only_for_its_type(
    partition: CanonicalPartition, steps: list[str] | None
) -> None:
    annotations = [
        _annotation("trace", "t1", "trace", "own"),
        _annotation("task", "refund", "trace", "task"),
        _annotation("session", "c1", "session", "session-own"),
        _annotation("task", "refund", "session", "session-task"),
    ]

    found = annotation_in_force(annotations, partition)

    assert (found.value if found else None) == steps


@pytest.mark.parametrize(
    ("text", "file_format"),
    [
        ("[{target: {type: task, id: t}, expected_steps: [a], expected_steps: [b]}]", "yaml"),
        ("[{target: {type: task, id: t, id: u}, expected_steps: [a]}]", "yaml"),
        ('[{"target": {"type": "task", "id": "t"}, "expected_steps": ["a"], "expected_steps": ["b"]}]', "json"),
        ("target_type,target_id,target.id,expected_steps\ntask,t,u,[]\n", "csv"),
    ],
)
def test_what_stands_twice_is_refused_rather_than_decided(text: str, file_format: FileFormat) -> None:
    with pytest.raises(AnnotationError, match="twice"):
        parse_annotations(text, file_format, name="f")


BOMB = (
    "l0: &l0 [x, x, x, x]\n"
    + "".join(f"l{n}: &l{n} [*l{n - 1}, *l{n - 1}, *l{n - 1}, *l{n - 1}]\n" for n in range(1, 14))
    + "annotations: [*l13]\n"
)
"""Some 270 million names in a few hundred characters."""


@pytest.mark.parametrize(
    ("text", "file_format"),
    [
        (BOMB, "yaml"),
        ("target_type,target_id,expected_steps\ntask,t," + "[" * 100_000 + "\n", "csv"),
    ],
)
def test_a_file_that_unfolds_without_end_is_refused_in_a_short_sentence(text: str, file_format: FileFormat) -> None:
    with pytest.raises(AnnotationError) as caught:
        parse_annotations(text, file_format, name="f")

    assert len(str(caught.value)) < 5_000


REFERENCES_YAML = """
annotations:
  - target: {type: task, id: refund}
    expected_steps: [lookup]
    reference_trajectories:
      references:
        - {name: short, steps: [{tool: lookup, args: {on: {date: 2026-01-02}, 1: no, day: 2026-01-02}}]}
  - target: {type: task, id: pay}
    reference_trajectories: [lookup, [policy, history]]
"""
SHORT = {
    "references": [
        {
            "name": "short",
            "steps": [{"tool": "lookup", "args": {"on": {"date": "2026-01-02"}, "1": False, "day": "2026-01-02"}}],
        }
    ]
}
"""Keys and dates are the text that stands in the file."""
REFERENCES_JSON = json.dumps(
    [
        {"target": {"type": "task", "id": "refund"}, "expected_steps": ["lookup"], "reference_trajectories": SHORT},
        {"target": {"type": "task", "id": "pay"}, "reference_trajectories": ["lookup", ["policy", "history"]]},
    ]
)
QUOTED = json.dumps(SHORT).replace('"', '""')
REFERENCES_CSV = f"""\
target_type,target_id,expected_steps,reference_trajectories
task,refund,"[""lookup""]","{QUOTED}"
task,pay,,"[""lookup"", [""policy"", ""history""]]"
"""


@pytest.mark.parametrize(
    ("text", "file_format"), [(REFERENCES_YAML, "yaml"), (REFERENCES_JSON, "json"), (REFERENCES_CSV, "csv")]
)
def test_an_entry_has_either_key_or_both_and_each_is_an_annotation(text: str, file_format: FileFormat) -> None:
    refund, pay = AnnotationTarget("task", "refund", "trace"), AnnotationTarget("task", "pay", "trace")

    assert parse_annotations(text, file_format, name="f") == (
        Annotation(refund, ["lookup"], "expected_steps"),
        Annotation(refund, SHORT, "reference_trajectories"),
        Annotation(pay, ["lookup", ["policy", "history"]], "reference_trajectories"),
    )


def test_two_entries_may_have_one_target_but_not_under_one_key() -> None:
    entry = "- {target: {type: task, id: t}, %s: [a]}\n"
    steps, references = entry % "expected_steps", entry % "reference_trajectories"

    assert [one.key for one in parse_annotations(steps + references, "yaml", name="f")] == [
        "expected_steps",
        "reference_trajectories",
    ]
    with pytest.raises(AnnotationError, match=r"entry 3: the `reference_trajectories` of task `t` .* entry 2 already"):
        parse_annotations(steps + references + references, "yaml", name="f")


def test_each_key_is_in_force_apart() -> None:
    target = AnnotationTarget("task", "refund", "trace")
    own = AnnotationTarget("trace", "t", "trace")
    annotations = [Annotation(own, ["steps"]), Annotation(target, ["references"], "reference_trajectories")]
    partition = CanonicalPartition("trace", "t", task_id="refund")

    assert annotation_in_force(annotations, partition) == annotations[0]
    assert annotation_in_force(annotations, partition, "reference_trajectories") == annotations[1]


def test_yaml_merges_still_work_though_keys_are_text() -> None:
    text = "x: &x {type: task}\nannotations: []\n"
    with pytest.raises(AnnotationError, match="`x`"):
        parse_annotations(text, "yaml", name="f")
    text = "- target: &x {type: task, id: t}\n  expected_steps: [a]\n- target: {<<: *x, id: u}\n  expected_steps: [b]\n"

    assert [one.target.id for one in parse_annotations(text, "yaml", name="f")] == ["t", "u"]


def test_annotations_are_said_in_words() -> None:
    text = (CASES / "annotation_words.yaml").read_text(encoding="utf-8")
    said = [
        line
        for annotation in parse_annotations(text, "yaml", name="f")
        for line in (f"{annotation.target}, {annotation.key}:", *explain(annotation), "")
    ]

    assert "\n".join(said) == (CASES / "annotation_words.txt").read_text(encoding="utf-8")
