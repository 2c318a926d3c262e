"""`stepacc annotations`: files checked and stored as revisions, listed and withdrawn."""

import json
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.cli_access import Said, stepacc, stepacc_process

TASKS = """
source: shop
annotations:
- {target: {type: task, id: refund}, expected_steps: [lookup, [policy, history]], author: ann, note: agreed}
- {target: {type: session, id: s-1}, expected_steps: [lookup]}
"""
BOTH = """
source: shop
annotations:
- target: {type: task, id: refund}
  expected_steps: [lookup]
  reference_trajectories:
    references:
    - {name: short, steps: [{tool: lookup, args: {on: {date: 2026-01-02}}}]}
"""
CHANGED = TASKS.replace("[lookup]", "[lookup, pay]")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, migrated_url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of stepacc beside a migrated database."""
    monkeypatch.setenv("STEPACC_DATABASE_URL", migrated_url)
    monkeypatch.setenv("STEPACC_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def configure(home: Path, *names: str) -> None:
    """Configure sources."""
    for name in names:
        (home / "defs" / name).mkdir(parents=True)
        attributes = {"source": name, "start_date": "2026-01-01"}
        document = {"type": "stepacc_dagster.StepAccuracyComponent", "attributes": attributes}
        (home / "defs" / name / "defs.yaml").write_text(json.dumps(document))


def file(tmp_path: Path, content: str, name: str = "tasks.yaml") -> Path:
    """Write an annotations file."""
    path = tmp_path / name
    path.write_text(content, "utf-8")
    return path


def imported(path: Path, *options: str) -> Said:
    """Import a file."""
    return stepacc("annotations", "import", path, *options)


def listed(*options: str) -> list[dict[str, Any]]:
    """What is listed of the source `shop`."""
    return stepacc("annotations", "list", "--source", "shop", "--json", *options).rows


def stored(engine: sa.Engine) -> int:
    """How many revisions are stored."""
    with engine.connect() as connection:
        count: int = connection.execute(sa.text("SELECT count(*) FROM stepacc.annotations")).scalar_one()
        return count


def test_a_file_becomes_revisions_and_a_second_import_adds_none(tmp_path: Path) -> None:
    path = file(tmp_path, TASKS)
    said = imported(path)
    assert (said.code, said.out) == (0, "")
    assert said.err == "2 annotations of source `shop`: 2 new revisions, 0 in force already.\n"
    assert "0 new revisions" in imported(path).err
    file(tmp_path, CHANGED)
    assert "1 new revision," in imported(path).err
    assert [(row["target"], row["revision"], row["expected_steps"]) for row in listed()] == [
        ({"type": "session", "id": "s-1"}, 2, ["lookup", "pay"]),
        ({"type": "task", "id": "refund"}, 1, ["lookup", ["policy", "history"]]),
    ]


def test_import_tells_each_revision_as_json(tmp_path: Path) -> None:
    path = file(tmp_path, TASKS)
    assert [row["new"] for row in imported(path, "--json").rows] == [True, True]
    file(tmp_path, CHANGED)
    first, second = imported(path, "--json").rows
    target = {"type": "task", "id": "refund"}
    assert first == {"source": "shop", "target": target, "key": "expected_steps", "id": 1, "revision": 1, "new": False}
    assert (second["revision"], second["new"]) == (2, True)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.yaml", TASKS),
        (
            "a.json",
            json.dumps([{"source": "shop", "target": {"type": "task", "id": "refund"}, "expected_steps": ["a"]}]),
        ),
        ("a.csv", 'source,target_type,target_id,expected_steps\nshop,task,refund,"[""a""]"\n'),
    ],
)
def test_yaml_json_and_csv_are_taken(tmp_path: Path, name: str, content: str) -> None:
    assert imported(file(tmp_path, content, name)).code == 0
    assert {"type": "task", "id": "refund"} in [row["target"] for row in listed()]


def test_one_bad_entry_stores_nothing_of_any_file_and_is_named(tmp_path: Path, migrated_engine: sa.Engine) -> None:
    good = file(tmp_path, TASKS)
    bad = file(tmp_path, TASKS + "- {target: {type: task, id: pay}, expected_steps: [[[deep]]]}\n", "bad.yaml")
    said = stepacc("annotations", "import", good, bad)
    assert (said.code, said.out) == (1, "")
    for word in (str(bad), "entry 3", "`pay`"):
        assert word in said.complaint
    assert stored(migrated_engine) == 0


def test_check_looks_at_every_file_and_stores_nothing(tmp_path: Path, migrated_engine: sa.Engine) -> None:
    bad, good = file(tmp_path, "annotations: []", "bad.yaml"), file(tmp_path, TASKS)
    said = stepacc("annotations", "check", good)
    assert (said.code, said.err) == (0, f"{good}: 2 annotations, all well formed.\n")
    said = stepacc("annotations", "check", bad, good)
    assert said.code == 1
    assert [line.split()[0].strip("`:") for line in said.err.splitlines()] == [str(bad), str(good)]
    first, second = stepacc("annotations", "check", bad, good, "--json").rows
    assert (first["file"], first["annotations"]) == (str(bad), 0)
    assert str(bad) in first["error"]
    assert first["explained"] == []
    assert (second["file"], second["annotations"], second["error"]) == (str(good), 2, None)
    assert stored(migrated_engine) == 0


def test_check_says_in_words_what_each_annotation_says(tmp_path: Path) -> None:
    path = file(tmp_path, BOTH)
    said = stepacc("annotations", "check", path)
    assert (said.code, said.err) == (0, f"{path}: 2 annotations, all well formed.\n")
    assert said.out == (
        "\ntask `refund` (trace partitions), expected_steps:\n"
        "  1 step is expected, in this order:\n"
        "    1. `lookup`\n"
        "\ntask `refund` (trace partitions), reference_trajectories:\n"
        "  A run passes that takes the steps of one reference in this order; others may come between them "
        "(match: in_order).\n"
        "  Reference `short`:\n"
        "    1. the tool `lookup`, where `on` is the day 2026-01-02\n"
        "  Nothing is said of the final answer.\n"
    )
    [row] = stepacc("annotations", "check", path, "--json").rows
    assert [(one["target"]["id"], one["key"], one["words"][0][:10]) for one in row["explained"]] == [
        ("refund", "expected_steps", "1 step is "),
        ("refund", "reference_trajectories", "A run pass"),
    ]


def test_the_schema_for_editors_is_printed() -> None:
    said = stepacc("annotations", "schema")
    assert (said.code, said.err) == (0, "")
    assert "reference_trajectories" in json.dumps(json.loads(said.out))
    assert stepacc("annotations", "schema", "--json").out == said.out


# keys


def test_the_keys_of_one_target_are_revisioned_and_withdrawn_apart(tmp_path: Path) -> None:
    path = file(tmp_path, BOTH)
    assert [(row["key"], row["revision"], row["new"]) for row in imported(path, "--json").rows] == [
        ("expected_steps", 1, True),
        ("reference_trajectories", 1, True),
    ]
    file(tmp_path, BOTH.replace("2026-01-02", "2026-01-03"))
    assert [(row["key"], row["revision"], row["new"]) for row in imported(path, "--json").rows] == [
        ("expected_steps", 1, False),
        ("reference_trajectories", 2, True),
    ]
    [steps, references] = listed()
    assert steps["expected_steps"] == ["lookup"]
    [reference] = references["reference_trajectories"]["references"]
    assert reference["steps"] == [{"tool": "lookup", "args": {"on": {"date": "2026-01-03"}}}]
    gone = stepacc("annotations", "withdraw", "refund", "--key", "reference_trajectories", "--source", "shop")
    assert "the `reference_trajectories` of task `refund`" in gone.err
    assert [set(row) & {"expected_steps", "reference_trajectories"} for row in listed()] == [{"expected_steps"}]
    assert "1 reference, in_order: short lookup" in stepacc("annotations", "list", "--source", "shop", "--history").out


def test_a_bad_reference_stores_nothing_and_is_named_with_its_key(tmp_path: Path, migrated_engine: sa.Engine) -> None:
    path = file(tmp_path, BOTH.replace("2026-01-02", "soon"), "bad.yaml")
    said = imported(path)
    assert (said.code, said.out) == (1, "")
    for word in (str(path), "task `refund`", "reference `short`", "`steps[0].args.on.date`", "'soon'"):
        assert word in said.complaint
    assert stored(migrated_engine) == 0


# sources


def test_the_source_is_the_files_own_else_the_one_named_else_the_only_configured(tmp_path: Path, home: Path) -> None:
    entry = "annotations: [{{target: {{type: task, id: {0}}}, expected_steps: [a]}}]"
    own = file(tmp_path, "source: own\n" + entry.format("x"))
    assert imported(own, "--source", "other", "--json").rows[0]["source"] == "own"
    none = file(tmp_path, entry.format("y"), "none.yaml")
    assert imported(none, "--source", "other", "--json").rows[0]["source"] == "other"
    configure(home, "shop")
    assert imported(none, "--json").rows[0]["source"] == "shop"


@pytest.mark.parametrize("names", [(), ("shop", "bank")], ids=["none", "two"])
def test_without_exactly_one_configured_source_one_must_be_named(
    tmp_path: Path, home: Path, names: tuple[str, ...]
) -> None:
    configure(home, *names)
    path = file(tmp_path, "annotations: [{target: {type: task, id: x}, expected_steps: [a]}]")
    for arguments in (["import", str(path)], ["list"], ["withdraw", "x"]):
        said = stepacc("annotations", *arguments)
        assert said.code == 1
        assert "--source" in said.complaint
        for name in names:
            assert f"`{name}`" in said.complaint


def test_an_author_is_kept_where_the_entry_names_none(tmp_path: Path) -> None:
    imported(file(tmp_path, TASKS), "--author", "bob")
    assert [(row["target"]["type"], row["author"]) for row in listed()] == [("session", "bob"), ("task", "ann")]
    assert {row["origin"] for row in listed()} == {"tasks.yaml"}


# withdrawing


def test_a_withdrawal_is_a_revision_and_the_history_keeps_all(tmp_path: Path) -> None:
    imported(file(tmp_path, TASKS))
    imported(file(tmp_path, CHANGED))
    said = stepacc(
        "annotations", "withdraw", "s-1", "--type", "session", "--source", "shop", "--author", "cy", "--note", "wrong"
    )
    assert said.code == 0
    assert "revision 3" in said.err
    assert [row["target"]["id"] for row in listed()] == ["refund"]
    history = [row for row in listed("--history") if row["target"]["id"] == "s-1"]
    assert [(row["revision"], row["expected_steps"], row["withdrawn"]) for row in history] == [
        (1, ["lookup"], False),
        (2, ["lookup", "pay"], False),
        (3, None, True),
    ]
    assert (history[2]["author"], history[2]["note"]) == ("cy", "wrong")
    assert "(withdrawn)" in stepacc("annotations", "list", "--source", "shop", "--history").out


def test_what_was_withdrawn_can_be_said_again(tmp_path: Path) -> None:
    path = file(tmp_path, TASKS)
    imported(path)
    [gone] = stepacc("annotations", "withdraw", "refund", "--source", "shop", "--json").rows
    target = {"type": "task", "id": "refund"}
    assert gone == {"source": "shop", "target": target, "key": "expected_steps", "id": 3, "revision": 2, "new": True}
    assert [(row["revision"], row["new"]) for row in imported(path, "--json").rows] == [(3, True), (1, False)]


def test_to_withdraw_what_is_not_in_force_is_told(tmp_path: Path, migrated_engine: sa.Engine) -> None:
    imported(file(tmp_path, TASKS))
    for arguments in (["nobody"], ["s-1"], ["refund", "--partition-type", "session"]):
        said = stepacc("annotations", "withdraw", *arguments, "--source", "shop")
        assert (said.code, said.out) == (1, "")
        assert "No `expected_steps` are in force" in said.complaint
        assert f"`{arguments[0]}`" in said.complaint
    said = stepacc("annotations", "withdraw", "t", "--type", "trace", "--partition-type", "session", "--source", "shop")
    assert said.code == 1
    assert "partition_type" in said.complaint
    assert stored(migrated_engine) == 2


# tables


def test_brackets_in_what_people_write_are_shown_and_no_markup(tmp_path: Path) -> None:
    steps = ["[bold]", "[/red]", "lookup"]
    entry = {
        "target": {"type": "task", "id": "[/x]"},
        "expected_steps": [steps],
        "note": "[link]\x1b[2J",
        "source": "shop",
    }
    imported(file(tmp_path, json.dumps([entry]), "a.json"))
    said = stepacc("annotations", "list", "--source", "shop")
    assert said.code == 0
    text = "".join(char for char in said.out if char not in " │\n")
    for shown in ("[[bold],[/red],lookup]", "task[/x]", r"[link]\x1b[2J"):
        assert shown in text


def test_long_annotations_are_a_line_with_their_count_and_whole_as_json(tmp_path: Path) -> None:
    steps = [f"a_step_{number}" for number in range(30)]
    references = {"references": [{"name": f"way {n}", "steps": [*steps, {"tool": "last"}]} for n in range(4)]}
    entry = {"target": {"type": "task", "id": "x"}, "expected_steps": steps, "source": "shop"}
    imported(file(tmp_path, json.dumps([{**entry, "reference_trajectories": references}]), "a.json"))

    said = stepacc("annotations", "list", "--source", "shop").out
    [row] = [line for line in said.splitlines() if "30 steps: a_step_0, a_step_1, a_step_2, and 27 more" in line]
    assert "task x" in row
    assert "4 references, in_order: way 0 a_step_0, a_step_1, a_step_2" in said
    assert len(said.splitlines()) < 12
    assert [row.get("expected_steps", steps) for row in listed()] == [steps, steps]


# standard input and doubts


def given(text: str, *words: str) -> Said:
    """Run a command on standard input."""
    return stepacc_process("annotations", *words, "-", given=text.encode())


@pytest.mark.parametrize(
    "text",
    [
        TASKS,
        json.dumps([{"target": {"type": "task", "id": "refund"}, "source": "shop", "expected_steps": ["a"]}]),
        'source,target_type,target_id,expected_steps\nshop,task,refund,"[""a""]"\n',
    ],
    ids=["yaml", "json", "csv"],
)
def test_annotations_come_from_standard_input_too(text: str) -> None:
    said = given(text, "import")
    assert (said.code, said.out) == (0, "")
    assert {"type": "task", "id": "refund"} in [row["target"] for row in listed()]
    assert {row["origin"] for row in listed()} == {"standard input"}


def test_what_is_bad_on_standard_input_is_named_so_and_it_is_read_once() -> None:
    said = given("[{target: {type: task, id: t}, expected_step: [a]}]", "check")
    assert said.code == 1
    assert said.err.startswith(
        "`standard input` is not taken, none of its entries: entry 1 (task `t`), line 1: unknown"
    )
    assert stepacc("annotations", "check", "-", "-").code == 2


def test_what_has_no_effect_is_told_and_taken(tmp_path: Path) -> None:
    path = file(tmp_path, TASKS.replace("[policy, history]", "[]"))
    doubt = "`expected_steps[1]` is a group without members, which counts for nothing."
    said = stepacc("annotations", "check", path)
    assert said.code == 0
    assert f"warning: task `refund` (trace partitions): {doubt}" in said.err
    [row] = stepacc("annotations", "check", path, "--json").rows
    assert [one["doubts"] for one in row["explained"]] == [[doubt], []]
    assert doubt in imported(path).err
