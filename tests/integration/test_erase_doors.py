"""What was erased does not come back: by whatever door, in whatever pieces, from whatever store."""

import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from stepacc_dagster.demo import data
from stepacc_dagster.demo.run import run_demo
from stepacc_dagster.stores.settings import PhoenixSettings
from tests.cli_access import Said, stepacc
from tests.integration.collect_access import body_of, collecting, landed
from tests.integration.erase_access import NOTHING, Desk, person_trace, places
from tests.integration.evaluation_samples import MONDAY, SOURCE, TUESDAY, agent_trace, tool_span
from tests.integration.store_access import DAY, SETTINGS, StoreName, load, run
from tests.integration.test_store_changes import STORES

ANN = "ann@example.org"
USERS: dict[StoreName, str] = {
    "phoenix": """UPDATE spans SET attributes = attributes || '{"user": {"id": "ann@example.org"}}'
                  WHERE parent_id IS NULL AND trace_rowid = (SELECT id FROM traces WHERE trace_id = :id)""",
    "mlflow": "INSERT INTO trace_request_metadata VALUES (:id, 'mlflow.trace.user', 'ann@example.org')",
    "langfuse_v2": "UPDATE traces SET user_id = 'ann@example.org' WHERE id = :id",
}
"""How each store is told the user of a trace."""
TAKE: dict[StoreName, str] = {
    "phoenix": "SELECT trace_id FROM traces ORDER BY 1 LIMIT 1",
    "mlflow": "SELECT request_id FROM trace_info ORDER BY 1 LIMIT 1",
    "langfuse_v2": "SELECT id FROM traces ORDER BY 1 LIMIT 1",
}
ONE_DAY = {"start_date": "2026-11-01", "partition_types": {"trace": "fail"}}


@pytest.fixture
def desk(migrated_engine: sa.Engine, migrated_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """An empty desk."""
    monkeypatch.setenv("STEPACC_DATABASE_URL", migrated_url)
    monkeypatch.setenv("STEPACC_HOME", str(tmp_path / "home"))
    return Desk(migrated_engine, tmp_path / "home")


def erase(*arguments: str) -> Said:
    said = stepacc("erase", *arguments, "--yes")
    assert "Traceback" not in said.err
    return said


def test_late_spans_of_an_erased_trace_are_left_out(desk: Desk) -> None:
    desk.configure()
    spans = agent_trace("a", MONDAY, "search", "open", task="refund")
    desk.land(spans[:2])
    desk.evaluate(MONDAY)
    before = desk.current()
    assert erase("--trace", "a").code == 0
    told = desk.land(spans, agent_trace("b", MONDAY, "search"))
    assert (told.new, told.changed, told.same, told.erased) == (2, 0, 0, 3)
    desk.evaluate(MONDAY)
    assert desk.stored("a") == NOTHING
    assert desk.rows("SELECT trace_id, gone_upstream_at FROM stepacc.traces WHERE erased_at IS NOT NULL") == [
        ("a", None)
    ]
    assert {key: score for key, score in desk.current().items() if key[2] != "b"} == before


@pytest.mark.parametrize("option", ["--session", "--user"])
def test_another_trace_of_an_erased_session_or_user_is_not_stored(desk: Desk, option: str) -> None:
    desk.configure()
    desk.land(person_trace("a", MONDAY, ANN, "search", session=ANN))
    assert erase(option, ANN).code == 0
    told = desk.land(person_trace("b", TUESDAY, ANN, "search", session=ANN), agent_trace("c", TUESDAY, "search"))
    assert (told.new, told.erased) == (2, 2)
    assert places(desk.engine, ANN) == {}
    assert [(row.door, row.traces, row.raw_spans) for row in desk.audit()] == [("command", 1, 2), ("landing", 1, 0)]


def test_a_trace_that_turns_out_to_be_an_erased_users_is_erased_as_a_whole(desk: Desk) -> None:
    """Children end, and are sent, before the root that names the user."""
    desk.configure()
    desk.land(person_trace("before", MONDAY, ANN, "search"))
    assert erase("--user", ANN).code == 0
    root, first, second = person_trace("a", MONDAY, ANN, "search", "open")
    desk.land([first])
    desk.evaluate(MONDAY)
    assert desk.stored("a") == {"raw_spans": 1, "spans": 1, "score_metadata": 1}

    told = desk.land([root], agent_trace("b", MONDAY, "search"))

    assert (told.new, told.erased) == (2, 1)
    assert desk.stored("a") == NOTHING
    assert desk.erased() == ["a"]
    door = desk.audit()[-1]
    assert (door.door, door.source, door.target_type, door.raw_spans, door.spans) == ("landing", SOURCE, "user", 1, 1)
    assert door.target_digest == desk.audit()[0].target_digest
    assert desk.land([second]).erased == 1
    assert desk.stored("a") == NOTHING


def test_spans_that_come_in_one_landing_are_left_out_whatever_their_order(desk: Desk) -> None:
    """Also where the span that names the user comes thousands of spans later."""
    desk.configure()
    assert erase("--user", ANN, "--unseen").code == 0
    root, *_ = person_trace("a", MONDAY, ANN)
    start = root.start_time_unix_nano or 0
    many = [tool_span("a", f"s{n}", "search", start + n) for n in range(5_500)]
    told = desk.land(many, [root])
    assert (told.erased, desk.stored("a")) == (501, NOTHING)


def test_a_user_who_is_known_by_a_raw_span_alone_is_erased_at_the_ingest_of_what_was_landed_before(desk: Desk) -> None:
    """As where somebody else than stepacc writes into its table of raw spans."""
    desk.configure()
    assert erase("--user", ANN, "--unseen").code == 0
    desk.land(agent_trace("a", MONDAY, "search"), agent_trace("b", MONDAY, "search"))
    run(
        desk.engine,
        """UPDATE stepacc.otel_spans SET attributes = attributes || '{"user.id": "ann@example.org"}'
           WHERE trace_id = 'a' AND span_id = 'root'""",
    )
    desk.evaluate(MONDAY)
    assert desk.stored("a") == NOTHING
    assert desk.rows("SELECT trace_id FROM stepacc.traces") == [("b",)]
    assert [row.door for row in desk.audit()] == ["command", "ingest"]


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("option", ["--trace", "--user"])
def test_a_store_of_others_is_only_read_and_brings_nothing_back(desk: Desk, store: StoreName, option: str) -> None:
    load(desk.engine, store)
    trace_id = desk.one(TAKE[store])
    run(desk.engine, USERS[store], id=trace_id)
    desk.configure(store={"kind": store}, start_date="2026-11-01")
    desk.evaluate(DAY.key, store=SETTINGS[store](), **ONE_DAY)
    before = desk.current()
    held = places_of_store(desk, store)

    said = erase(option, ANN if option == "--user" else trace_id, "--json")

    [document] = said.rows
    assert (said.code, document["removed"]["traces"], document["left"]) == (0, 1, [])
    assert f"({store}: public." in document["stores"][0]
    assert "it still holds the spans" in document["stores"][0]
    assert desk.stored(trace_id) == NOTHING
    desk.evaluate(DAY.key, store=SETTINGS[store](), **ONE_DAY)
    assert desk.stored(trace_id) == NOTHING
    assert desk.erased() == [trace_id]
    assert desk.current() == before
    assert places_of_store(desk, store) == held
    assert erase(option, ANN if option == "--user" else trace_id).err.startswith(
        "Looking" if option == "--user" else "Nothing was left to erase."
    )


def places_of_store(desk: Desk, store: StoreName) -> list[Any]:
    tables = {"phoenix": "spans", "mlflow": "spans", "langfuse_v2": "observations"}
    return desk.rows(f"SELECT ctid::text, r::text FROM public.{tables[store]} r ORDER BY 1")  # noqa: S608


@pytest.mark.parametrize("store", STORES)
def test_a_trace_of_an_erased_user_is_never_taken_from_a_store(desk: Desk, store: StoreName) -> None:
    load(desk.engine, store)
    trace_id = desk.one(TAKE[store])
    run(desk.engine, USERS[store], id=trace_id)
    desk.configure(store={"kind": store}, start_date="2026-11-01")
    assert erase("--user", ANN, "--unseen").code == 0
    desk.evaluate(DAY.key, store=SETTINGS[store](), **ONE_DAY)
    assert desk.stored(trace_id) == NOTHING
    assert desk.rows("SELECT trace_id FROM stepacc.traces WHERE trace_id = :id", id=trace_id) == []
    assert desk.one("SELECT count(*) FROM stepacc.traces") > 0
    assert [row.door for row in desk.audit()] == ["command"]


def test_a_trace_that_a_store_assigns_to_an_erased_user_later_is_erased_at_its_ingest(desk: Desk) -> None:
    load(desk.engine, "phoenix")
    desk.configure(store={"kind": "phoenix"}, start_date="2026-11-01")
    settings: dict[str, Any] = {"store": PhoenixSettings(), **ONE_DAY}
    desk.evaluate(DAY.key, **settings)
    trace_id = desk.one(TAKE["phoenix"])
    assert erase("--user", ANN, "--unseen").code == 0
    run(desk.engine, USERS["phoenix"], id=trace_id)
    before = desk.current()
    desk.evaluate(DAY.key, **settings)
    assert desk.stored(trace_id) == NOTHING
    assert desk.current() == before
    assert [row.door for row in desk.audit()] == ["command", "ingest"]


def test_what_a_store_expects_of_an_erased_trace_is_not_taken_over_again(desk: Desk) -> None:
    load(desk.engine, "mlflow")
    desk.configure(store={"kind": "mlflow"}, start_date="2026-11-01")
    settings: dict[str, Any] = {"store": SETTINGS["mlflow"](), **ONE_DAY}
    desk.evaluate(DAY.key, **settings)
    desk.observe(**settings)
    trace_id = desk.one("SELECT target_id FROM stepacc.annotations")
    assert erase("--trace", trace_id).code == 0
    run(desk.engine, "UPDATE assessments SET value = :value", value=json.dumps(["another"]))
    desk.observe(**settings)
    assert desk.rows("SELECT value FROM stepacc.annotations") == [(None,)]


def test_what_a_receiver_gets_of_an_erased_trace_is_acknowledged_and_not_stored(desk: Desk, migrated_url: str) -> None:
    """A client that is told otherwise would send it again and again."""
    desk.configure("received")
    body = body_of("search", "open", attributes={"user.id": ANN})
    with collecting(migrated_url) as collector:
        assert collector.post(body).status == 200
        assert len(landed(migrated_url)) == 2
        assert erase("--user", ANN).code == 0
        answer = collector.post(body)
        assert (answer.status, answer.body) == (200, b"")
        assert collector.post(body_of("late", trace=1)).status == 200
        assert landed(migrated_url) == {}


def test_the_demo_runs_again_without_what_was_erased_of_it(desk: Desk, migrated_url: str) -> None:
    """Also without its first trace, by which it tells where the others lie, and an annotated one."""
    first = run_demo(migrated_url, print)
    day = min(date.fromisoformat(score.window_key) for score in first.scores)
    spans = data.recorded_spans()
    oldest = min(spans, key=lambda span: span.start_time_unix_nano or 0).trace_id
    annotated = {entry.target.id for entry in data.annotations() if entry.target.type == "trace"}
    gone = {oldest, min(annotated - {oldest})}
    for trace_id in gone:
        assert erase("--trace", trace_id).code == 0
    starts = "SELECT trace_id, min(start_time_unix_nano) FROM stepacc.otel_spans GROUP BY 1 ORDER BY 1"
    before = desk.rows(starts)

    again = run_demo(migrated_url, print, today=day + timedelta(days=30))

    assert [run.success for run in again.runs] == [True]
    assert desk.rows(starts) == before
    assert gone.isdisjoint(row.trace_id for row in before)
    kept = {(score.partition_id, score.score) for score in first.scores}
    assert {(score.partition_id, score.score) for score in again.scores} == kept
    assert stepacc("demo").code == 0
