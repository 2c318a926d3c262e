"""`stepacc erase`: what it removes, what it keeps, and what it says."""

import json
import os
import pty
import subprocess
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from stepacc_core.errors import AnnotationError
from tests.cli_access import COMMAND, RECORDED, Said, stepacc
from tests.integration.erase_access import NOTHING, Desk, named, person_trace, places
from tests.integration.evaluation_samples import MONDAY, SOURCE, TUESDAY, agent_trace

ANN = "ann@example.org"


@pytest.fixture
def desk(migrated_engine: sa.Engine, migrated_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Two scored traces of Ann's in one session, one trace in another, and one of Bob's."""
    monkeypatch.setenv("STEPACC_DATABASE_URL", migrated_url)
    monkeypatch.setenv("STEPACC_HOME", str(tmp_path / "home"))
    desk = Desk(migrated_engine, tmp_path / "home")
    desk.configure()
    desk.land(
        person_trace("a1", MONDAY, ANN, "search", task="refund", session="s"),
        person_trace("a2", TUESDAY, ANN, "open", task="refund", session="s"),
        person_trace("a3", TUESDAY, ANN, "search", task="refund", session="t"),
        person_trace("b1", MONDAY, "bob", "search", task="refund", session="u", hour=10),
    )
    desk.annotate("task", "refund", ["search"])
    desk.annotate("task", "refund", ["search"], "session")
    desk.evaluate(MONDAY, TUESDAY)
    return desk


def erase(*arguments: str) -> Said:
    return stepacc("erase", *arguments, "--yes")


def content(desk: Desk, trace_id: str, session_id: str) -> list[Any]:
    """Every row about a trace and its session, with its physical place, which a change would move."""
    named = {"traces": "trace_id", "spans": "trace_id", "otel_spans": "trace_id", "scores": "partition_id"}
    queries = [
        f"SELECT ctid::text, r::text FROM stepacc.{table} r WHERE {column} IN (:id, :session) ORDER BY 1"  # noqa: S608
        for table, column in {**named, "sessions": "session_id"}.items()
    ]
    return [tuple(row) for query in queries for row in desk.rows(query, id=trace_id, session=session_id)]


def test_a_trace_loses_its_content_and_keeps_ids_window_and_scores(desk: Desk) -> None:
    before, others = desk.current(), content(desk, "b1", "u")
    rows = {row.id: row for row in desk.rows("SELECT * FROM stepacc.scores")}

    said = erase("--trace", "a1", "--json", "--reason", "asked by letter", "--author", "dpo")

    removed = {
        "traces": 1, "raw_spans": 2, "spans": 2, "score_metadata": 2, "messages": 0, "annotations": 0,
    }  # fmt: skip
    assert (said.code, said.rows[0]["removed"], said.rows[0]["left"]) == (0, removed, [])
    assert desk.stored("a1") == NOTHING
    marked = {row["partition_id"]: row["erased_at"] for row in stepacc("scores", "--source", SOURCE, "--json").rows}
    assert {ident for ident, at in marked.items() if at} == {"a1", "s"}
    shown = stepacc("scores", "--source", SOURCE)
    assert [line.split()[2] for line in shown.out.splitlines() if "erased 2" in line] == ["a1", "s"]
    assert "1 erased, of which the bare score is kept." in shown.err
    [bare] = desk.rows("SELECT * FROM stepacc.traces WHERE trace_id = 'a1'")
    assert (bare.session_id, bare.task_id, bare.window_key) == ("s", "refund", MONDAY)
    assert (bare.root_span_id, bare.end_time_unix_nano, bare.span_count, bare.gaps) == (None, None, 0, [])
    assert bytes(bare.spans_hash) == b""
    assert bare.erased_at is not None
    assert desk.current() == before
    for row in desk.rows("SELECT * FROM stepacc.scores"):
        old = rows[row.id]
        kept = ("score", "annotation_id", "reference_hash", "evaluated_at", "confirmed_at", "dagster_run_id")
        assert [getattr(row, name) for name in kept] == [getattr(old, name) for name in kept]
        is_erased = row.partition_id in {"a1", "s"}
        assert row.steps_hash == (f"erased:{row.id}" if is_erased else old.steps_hash)
    assert content(desk, "b1", "u") == others
    [audit] = desk.audit()
    assert (audit.door, audit.source, audit.target_type) == ("command", "", "trace")
    assert (audit.author, audit.reason, audit.traces, audit.raw_spans) == ("dpo", "asked by letter", 1, 2)
    assert {name: getattr(audit, name) for name in removed} == removed


def test_a_session_loses_the_content_of_all_its_traces_also_of_those_not_ingested_yet(desk: Desk) -> None:
    desk.land(agent_trace("late", TUESDAY, "search", session="s", hour=12), agent_trace("other", TUESDAY, "x"))

    assert erase("--session", "s").code == 0

    assert [desk.stored(ident) for ident in ("a1", "a2", "late", "s")] == [NOTHING] * 4
    assert desk.erased() == ["a1", "a2"]
    assert desk.rows("SELECT session_id FROM stepacc.sessions WHERE erased_at IS NOT NULL") == [("s",)]
    assert desk.stored("a3")["raw_spans"] == 2
    assert desk.stored("other")["raw_spans"] == 2


def test_a_user_loses_every_trace_and_leaves_no_trace_of_the_id(desk: Desk) -> None:
    desk.land(person_trace("elsewhere", MONDAY, ANN, "search"), source="other")

    said = erase("--user", ANN, "--json")

    assert (said.code, said.rows[0]["removed"]["traces"]) == (0, 4)
    assert desk.erased() == ["a1", "a2", "a3"]
    assert [desk.stored(ident)["raw_spans"] for ident in ("a1", "a2", "a3", "elsewhere", "b1")] == [0, 0, 0, 0, 2]
    assert places(desk.engine, ANN) == {}
    assert ANN not in said.out + said.err
    [audit] = desk.audit()
    [tombstone] = desk.rows("SELECT * FROM stepacc.tombstones WHERE kind = 'user'")
    assert (audit.target_digest, tombstone.source) == (tombstone.key, "")


@pytest.mark.parametrize(
    "attributes",
    [
        {"enduser__id": 42},
        {"langfuse__user__id": " 42 "},
        {"traceloop__association__properties__user_id": "42"},
        {"metadata": '{"user_id": "42"}'},
        {"ai__telemetry__metadata__userId": '"42"'},
    ],
    ids=str,
)
def test_a_user_is_found_by_whatever_a_convention_writes(desk: Desk, attributes: dict[str, Any]) -> None:
    desk.land(named(agent_trace("hers", MONDAY, "search"), **attributes), person_trace("his", MONDAY, "421", "search"))
    assert erase("--user", "42").code == 0
    assert desk.stored("hers") == NOTHING
    assert desk.stored("his")["raw_spans"] == 2


@pytest.mark.parametrize("user", ["Zoë", 'Ann "A" O\'Neil', "back\\slash", "a+b@example.org"])
def test_an_id_is_found_however_json_writes_its_letters(desk: Desk, user: str) -> None:
    inside = json.dumps({"user_id": user})
    desk.land(named(agent_trace("hers", MONDAY, "search"), metadata=inside), person_trace("also", MONDAY, user, "open"))
    assert erase("--user", user).code == 0
    assert desk.stored("hers") == desk.stored("also") == NOTHING
    assert desk.stored("b1")["raw_spans"] == 2


def test_one_source_is_erased_and_another_with_the_same_ids_is_not(desk: Desk) -> None:
    desk.land(person_trace("a1", MONDAY, ANN, "search"), source="other")
    assert erase("--user", ANN, "--source", SOURCE).code == 0
    remaining = desk.rows("SELECT DISTINCT source, trace_id FROM stepacc.otel_spans ORDER BY 1, 2")
    assert remaining == [("other", "a1"), (SOURCE, "b1")]
    assert desk.land(person_trace("a9", MONDAY, ANN, "search"), source="other").new == 2


def test_what_was_said_of_a_trace_or_its_session_is_emptied_and_of_a_task_it_stays(desk: Desk) -> None:
    desk.annotate("trace", "a1", ["search", "open"])
    desk.annotate("session", "s", ["search", "open"], "session")
    desk.score(MONDAY)
    lineage = "SELECT score_id, annotation_id, annotation_revision FROM stepacc.score_lineage ORDER BY 1"
    before = desk.rows(lineage)

    assert erase("--trace", "a1").code == 0

    said = desk.rows("SELECT * FROM stepacc.annotations ORDER BY id")
    assert [(row.target_type, row.value, row.note, row.erased_at is None) for row in said] == [
        ("task", ["search"], "note on refund", True),
        ("task", ["search"], "note on refund", True),
        ("trace", None, "", False),
        ("session", None, "", False),
    ]
    assert [row.withdrawn for row in said] == [False] * 4
    assert desk.rows(lineage) == before
    hashes = desk.rows("SELECT reference_hash FROM stepacc.scores WHERE annotation_id > 2")
    assert {row.reference_hash.partition(":")[0] for row in hashes} == {"erased"}
    listed = stepacc("annotations", "list", "--source", SOURCE)
    assert listed.out.count("(erased)") == 2


def test_nothing_is_said_again_of_what_was_erased(desk: Desk, tmp_path: Path) -> None:
    assert erase("--trace", "a1").code == 0
    for kind, ident in (("trace", "a1"), ("session", "s")):
        file = tmp_path / f"{kind}.yaml"
        file.write_text(f"annotations: [{{target: {{type: {kind}, id: {ident}}}, expected_steps: [x]}}]")
        refused = stepacc("annotations", "import", file, "--source", SOURCE)
        assert refused.code == 1
        assert refused.complaint.startswith(f"The {kind} '{ident}' of source `support` was erased")
    with pytest.raises(AnnotationError):
        desk.annotate("trace", "a1", ["x"])
    desk.annotate("trace", "b1", ["x"])


def test_an_erased_trace_and_its_session_are_scored_by_nobody_again_nor_retired(desk: Desk) -> None:
    """Not after another annotation, by another version, or where unannotated ones are skipped."""
    assert erase("--trace", "a1").code == 0
    before = {key: score for key, score in desk.current().items() if key[2] in {"a1", "s"}}
    desk.annotate("task", "refund", ["open"])
    desk.annotate("task", "refund", ["open"], "session")
    desk.evaluate(MONDAY, TUESDAY)
    desk.evaluate(MONDAY, TUESDAY, version="1.0.0")
    desk.score(MONDAY, TUESDAY, partition_types={"trace": "skip", "session": "skip"})
    after = desk.current()
    assert {key: score for key, score in after.items() if key[2] in {"a1", "s"}} == before
    assert before == {("2.0.0", "trace", "a1"): 1.0, ("2.0.0", "session", "s"): 0.5}
    newly = {("trace", "a2"), ("trace", "a3"), ("trace", "b1"), ("session", "t"), ("session", "u")}
    assert {key[1:] for key in after if key[0] == "1.0.0"} == newly
    assert after["2.0.0", "trace", "a2"] == 1.0
    assert desk.rows("SELECT DISTINCT unsettled FROM stepacc.window_scores") == [(0,)]


def test_a_trace_that_comes_to_a_session_with_an_erased_trace_is_scored_and_the_session_is_not(desk: Desk) -> None:
    assert erase("--trace", "a1").code == 0
    before = desk.current()
    desk.land(agent_trace("new", MONDAY, "search", task="refund", session="s", hour=1))
    desk.evaluate(MONDAY, TUESDAY)
    assert desk.current() == before | {("2.0.0", "trace", "new"): 1.0}
    [session] = desk.rows("SELECT * FROM stepacc.sessions WHERE session_id = 's'")
    assert (session.trace_count, session.erased_at is not None) == (3, True)


def test_erasing_twice_changes_nothing_more(desk: Desk) -> None:
    assert erase("--user", ANN).code == 0
    rows = [
        desk.rows(f"SELECT ctid::text, r::text FROM stepacc.{table} r ORDER BY 1")  # noqa: S608 (names of this test)
        for table in ("traces", "sessions", "scores", "annotations", "erasures", "tombstones", "windows")
    ]
    said = erase("--user", ANN, "--json")
    assert (said.code, said.rows[0]["erased_before"]) == (0, True)
    assert set(said.rows[0]["removed"].values()) == {0}
    assert rows == [
        desk.rows(f"SELECT ctid::text, r::text FROM stepacc.{table} r ORDER BY 1")  # noqa: S608 (names of this test)
        for table in ("traces", "sessions", "scores", "annotations", "erasures", "tombstones", "windows")
    ]


def test_without_a_terminal_it_shows_what_would_go_and_refuses(desk: Desk) -> None:
    said = stepacc("erase", "--trace", "a1")
    assert said.code == 2
    assert said.complaint == "Nothing was removed: there is no terminal to ask on. Add --yes to remove this for good."
    [row] = [line.split() for line in said.err.splitlines() if line.strip().startswith(SOURCE)]
    assert row == [SOURCE, "1", "2", "2", "2", "0", "0"]
    assert desk.stored("a1") == {"raw_spans": 2, "spans": 2, "score_metadata": 1}
    assert desk.audit() == []


@pytest.mark.parametrize(("answer", "code", "left"), [("n", 1, 2), ("y", 0, 0)])
def test_on_a_terminal_it_asks(desk: Desk, answer: str, code: int, left: int) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "erase", "--trace", "a1"], stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        os.close(theirs)
        os.write(ours, f"{answer}\n".encode())
        _, err = process.communicate(timeout=120)
    os.close(ours)
    assert "Remove this for good? [y/N]" in err.decode()
    assert (process.returncode, desk.stored("a1")["raw_spans"]) == (code, left)


@pytest.mark.parametrize("option", ["--trace", "--session", "--user"])
def test_an_unknown_id_is_an_error_unless_what_comes_later_is_to_be_kept_out(desk: Desk, option: str) -> None:
    refused = erase(option, "nobody")
    assert refused.code == 1
    assert "--unseen" in refused.complaint
    assert desk.audit() == []
    assert erase(option, "nobody", "--unseen").code == 0
    landed = desk.land(person_trace("nobody", MONDAY, "nobody", "search", session="nobody"))
    assert (landed.new, landed.erased) == (0, 2)
    assert desk.stored("nobody") == NOTHING
    for command in (("lineage", "trace"), ("scores", "--trace")):
        told = stepacc(*command, "nobody")
        assert (told.code, "Trace `nobody` was erased 2" in told.complaint) == (1, True)


def test_the_beginning_of_an_id_is_not_enough(desk: Desk) -> None:
    assert erase("--trace", "a").code == 1
    assert desk.erased() == []


@pytest.mark.parametrize(
    "arguments", [[], ["--trace", "a1", "--session", "s"], ["--trace", " "], ["--trace", "a1", "--source", ""]]
)
def test_wrong_use_is_refused(desk: Desk, arguments: list[str]) -> None:
    assert erase(*arguments).code == 2
    assert desk.audit() == []


def test_a_store_of_others_is_named_as_still_holding_the_spans(desk: Desk) -> None:
    (desk.home / "defs" / SOURCE / "defs.yaml").unlink()
    said = erase("--trace", "a1")
    assert said.code == 0
    assert "Source `support` is not configured on this machine" in said.err


def test_an_event_log_in_which_nothing_can_be_changed_is_named(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "own"))
    said = erase("--trace", "a1")
    assert said.code == 1
    assert f"The events of the Dagster instance {tmp_path / 'own'} are not in Postgres" in said.err
    assert desk.stored("a1") == NOTHING


def test_traces_whose_user_nothing_tells_any_more_are_counted(desk: Desk) -> None:
    with desk.engine.begin() as connection:
        connection.execute(sa.text("DELETE FROM stepacc.otel_spans WHERE trace_id = 'a3'"))
    said = erase("--user", ANN)
    assert said.code == 1
    assert "1 trace of source `support` could not be searched for the user" in said.err
    assert desk.erased() == ["a1", "a2"]


def test_importing_the_same_file_again_brings_nothing_back(desk: Desk) -> None:
    assert stepacc("import", "traces", "--source", SOURCE, RECORDED).code == 0
    [(trace_id, spans)] = desk.rows(
        "SELECT trace_id, count(*) FROM stepacc.otel_spans WHERE trace_id NOT IN ('a1', 'a2', 'a3', 'b1') GROUP BY 1"
    )
    assert erase("--trace", trace_id).code == 0
    again = stepacc("import", "traces", "--source", SOURCE, RECORDED)
    assert (again.code, f", {spans} of erased traces left out" in again.err) == (0, True)
    assert desk.stored(trace_id) == NOTHING
