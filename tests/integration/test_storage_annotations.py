"""Annotations are revisions that are only ever added, and the newest one in force sets the expectation."""

from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa

from stepacc_core.errors import AnnotationError
from stepacc_core.fingerprint import fingerprint
from stepacc_core.model import AnnotationRef, CanonicalPartition
from stepacc_dagster.storage.annotations import Added, AnnotationEntry, add_annotations, list_annotations, withdraw
from tests.integration.storage_access import session_partitions, together, trace_partitions, write_window
from tests.integration.storage_samples import MONDAY, SOURCE, TUESDAY, trace


def test_a_changed_value_is_a_new_revision(migrated_engine: sa.Engine) -> None:
    """The same value again is not; every revision stays to be read."""
    [first] = _add(migrated_engine, _entry(["a"], author="ann", note="first", origin="file.yaml"))
    assert (first.revision, first.new) == (1, True)
    assert _add(migrated_engine, _entry(["a"], author="someone else")) == [Added(first.id, 1, new=False)]
    [second] = _add(migrated_engine, _entry(["a", ["b", "c"]], author="ben"))
    assert (second.revision, second.new) == (2, True)
    with migrated_engine.connect() as conn:
        newest, history = list_annotations(conn, SOURCE), list_annotations(conn, SOURCE, history=True)
    assert newest == history[1:]
    assert [(a.id, a.revision, a.value, a.author, a.note, a.origin) for a in history] == [
        (first.id, 1, ["a"], "ann", "first", "file.yaml"),
        (second.id, 2, ["a", ["b", "c"]], "ben", "", ""),
    ]
    assert newest[0].value_hash == fingerprint(["a", ["b", "c"]])


def test_a_withdrawal_is_a_revision_too(migrated_engine: sa.Engine) -> None:
    """It hides what was said, once; saying the same again afterwards is new."""
    _add(migrated_engine, _entry(["a"]))
    with migrated_engine.begin() as conn:
        withdrawn = withdraw(conn, SOURCE, "trace", "t", author="ann", note="wrong trace")
        assert withdrawn is not None
        assert withdrawn.revision == 2
        assert withdraw(conn, SOURCE, "trace", "t") is None
        assert withdraw(conn, SOURCE, "trace", "never annotated") is None
        assert list_annotations(conn, SOURCE) == []
        last = list_annotations(conn, SOURCE, history=True)[-1]
    assert (last.withdrawn, last.value, last.value_hash, last.note) == (True, None, None, "wrong trace")
    assert _add(migrated_engine, _entry(["a"]))[0].revision == 3


def test_entries_for_one_target_are_revisions_in_order(migrated_engine: sa.Engine) -> None:
    """Also within one call, repeats included; the answer has one place per entry."""
    added = _add(
        migrated_engine, _entry(["a"]), _entry(["b"], target_id="u"), _entry(["b"]), _entry(["b"]), _entry(["a"])
    )
    assert [(a.revision, a.new) for a in added] == [(1, True), (1, True), (2, True), (2, False), (3, True)]
    assert added[2].id == added[3].id
    assert _add(migrated_engine) == []


def test_many_entries_at_once(migrated_engine: sa.Engine) -> None:
    """More than one statement takes."""
    entries = [_entry([f"step {n}"], target_id=f"t{n}") for n in range(2_500)]
    added = _add(migrated_engine, *entries)
    with migrated_engine.connect() as conn:
        stored = {a.id: a.value for a in list_annotations(conn, SOURCE)}
    assert [stored[a.id] for a in added] == [entry.value for entry in entries]


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ([["a", ["nested"]], 7, None], [["a", ["nested"]], 7, None]),
        ([], []),
        ({"not": "a list"}, {"not": "a list"}),
        ("not JSON", "not JSON"),
        ("null", "null"),
        ('["a", ["b"]]', ["a", ["b"]]),
        (False, False),
        (["a\x00b", "\ud800"], ["a\ufffdb", "\ufffd"]),
    ],
)
def test_a_value_is_kept_as_given(migrated_engine: sa.Engine, value: Any, stored: Any) -> None:
    """Valid or not: whether it is a trajectory is the metric's to say. Text of a JSON list is that list."""
    _add(migrated_engine, _entry(value))
    write_window(migrated_engine, MONDAY, trace("t"))
    [partition] = trace_partitions(migrated_engine, MONDAY)
    assert (partition.expected_steps, type(partition.expected_steps)) == (stored, type(stored))
    assert _add(migrated_engine, _entry(value))[0].new is False
    assert _add(migrated_engine, _entry(stored))[0].new is False


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"target_type": "span"}, "'span'; write trace or session or task"),
        ({"partition_type": "task"}, "'task'; write trace or session"),
        ({"target_id": ""}, "has no id"),
        ({"value": None}, "withdraw it"),
        ({"target_type": "session"}, "write partition_type session"),
    ],
)
def test_an_entry_nothing_would_be_scored_against_is_refused(fields: dict[str, Any], words: str) -> None:
    """In words, before anything is written."""
    with pytest.raises(AnnotationError, match=words):
        _entry(**{"value": ["a"], **fields})


def test_writers_at_once_make_one_chain_of_revisions(migrated_engine: sa.Engine) -> None:
    """No revision is lost or numbered twice, and equal values are said once."""
    together(*(partial(_add, migrated_engine, _entry([f"step {n}"])) for n in range(6)))
    together(*[partial(_add, migrated_engine, _entry(["the same"]))] * 4)
    with migrated_engine.connect() as conn:
        history = list_annotations(conn, SOURCE, target_type="trace", target_id="t", history=True)
    assert [a.revision for a in history] == list(range(1, 8))


def test_the_annotation_of_the_very_trace_goes_before_the_tasks(migrated_engine: sa.Engine) -> None:
    """Withdrawn, it lets the task's through; with neither there is none."""
    write_window(migrated_engine, MONDAY, trace("t", task_id="k"), trace("u", task_id="k"), trace("v"))
    [own, task] = _add(migrated_engine, _entry(["own"]), _task(["task"]))
    assert _expected(trace_partitions(migrated_engine, MONDAY)) == {
        "t": (["own"], AnnotationRef(own.id, 1)),
        "u": (["task"], AnnotationRef(task.id, 1)),
        "v": (None, None),
    }
    with migrated_engine.begin() as conn:
        withdraw(conn, SOURCE, "trace", "t")
    assert _expected(trace_partitions(migrated_engine, MONDAY))["t"] == (["task"], AnnotationRef(task.id, 1))
    [newer] = _add(migrated_engine, _task(["newer"]))
    assert _expected(trace_partitions(migrated_engine, MONDAY))["t"] == (["newer"], AnnotationRef(newer.id, 2))
    with migrated_engine.begin() as conn:
        withdraw(conn, SOURCE, "task", "k")
    assert _expected(trace_partitions(migrated_engine, MONDAY))["u"] == (None, None)


def test_annotations_are_for_one_partition_type_key_and_source(migrated_engine: sa.Engine) -> None:
    """Others of the same target say nothing here."""
    write_window(migrated_engine, MONDAY, trace("t", session_id="t", task_id="k"))
    _add(
        migrated_engine,
        _entry(["session"], target_type="session", partition_type="session"),
        _entry(["other key"], key="forbidden_steps"),
        _entry(["other source"], source="other"),
        _entry(["task of sessions"], target_type="task", target_id="k", partition_type="session"),
    )
    assert _expected(trace_partitions(migrated_engine, MONDAY)) == {"t": (None, None)}
    [session] = session_partitions(migrated_engine, MONDAY)
    assert session.expected_steps == ["session"]


def test_a_sessions_task_is_that_of_its_first_trace(migrated_engine: sa.Engine) -> None:
    """Whatever tasks the later ones have; the session's own annotation goes before."""
    write_window(migrated_engine, MONDAY, trace("b", session_id="s", task_id="k"))
    write_window(migrated_engine, TUESDAY, trace("a", TUESDAY, session_id="s", task_id="later"))
    _add(migrated_engine, _task(["trace"]), _task(["k"], partition_type="session"), _task(["later"], target_id="later"))
    assert _expected(session_partitions(migrated_engine, MONDAY))["s"][0] == ["k"]
    _add(migrated_engine, _entry(["own"], target_type="session", target_id="s", partition_type="session"))
    assert _expected(session_partitions(migrated_engine, MONDAY))["s"][0] == ["own"]
    assert session_partitions(migrated_engine, TUESDAY) == []


def test_odd_and_endless_ids_are_found_again(migrated_engine: sa.Engine) -> None:
    """What is cut in a trace's id is cut in its annotation's target."""
    ids = ["x\x00y", "".join(chr(0x4E00 + n % 5_000) for n in range(3_000))]
    write_window(migrated_engine, MONDAY, *(trace(i) for i in ids))
    _add(migrated_engine, *(_entry(["a"], target_id=i) for i in ids))
    assert [p.expected_steps for p in trace_partitions(migrated_engine, MONDAY)] == [["a"], ["a"]]
    with migrated_engine.connect() as conn:
        assert len(list_annotations(conn, SOURCE, target_type="trace", target_id=ids[1])) == 1


def _entry(value: Any, **fields: Any) -> AnnotationEntry:
    return AnnotationEntry(**{"source": SOURCE, "target_type": "trace", "target_id": "t", "value": value, **fields})


def _task(value: Any, **fields: Any) -> AnnotationEntry:
    return _entry(value, **{"target_type": "task", "target_id": "k", **fields})


def _add(engine: sa.Engine, *entries: AnnotationEntry) -> list[Added]:
    with engine.begin() as conn:
        return add_annotations(conn, entries)


def _expected(partitions: list[CanonicalPartition]) -> dict[str, tuple[Any, AnnotationRef | None]]:
    return {p.partition_id: (p.expected_steps, p.annotation) for p in partitions}
