"""`stepacc doctor` on sources: each fault is made for real, and told with what to do."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
import sqlalchemy as sa
from dagster._core.scheduler.instigation import InstigatorStatus

from stepacc_core.model import RawSpan
from stepacc_core.policy import StepPolicy
from stepacc_dagster.sources import FollowSettings, SettleSettings
from tests.cli_access import stepacc
from tests.integration import store_access
from tests.integration.doctor_access import SENSOR, Examined, beat, describe, doctor, switch, tick
from tests.integration.evaluation_access import Workshop
from tests.integration.evaluation_samples import MONDAY, SOURCE, TUESDAY, WEDNESDAY, agent_trace, day, tool_span
from tests.integration.following_access import Follower

WEEK = (MONDAY, TUESDAY, WEDNESDAY)
ABOUT = f"Source {SOURCE}"
_SECOND = 1_000_000_000


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of stepacc with one source."""
    monkeypatch.setenv("STEPACC_HOME", str(tmp_path / "home"))
    describe(tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def workshop(home: Path, dagster_instance: dg.DagsterInstance, migrated_engine: sa.Engine) -> Workshop:
    """The source of that folder, with an annotated trace a day, not yet ingested, and a living daemon."""
    assert home.exists()
    workshop = Workshop(dagster_instance, migrated_engine)
    workshop.land(*(agent_trace(f"t {key}", key, "search", task="refund") for key in WEEK))
    workshop.annotate("task", "refund", ["search"])
    beat(dagster_instance)
    return workshop


def unfollowed(workshop: Workshop) -> None:
    """Switch the sensor off, so that nobody takes care of what is out of date."""
    switch(workshop.instance, InstigatorStatus.STOPPED)


def expect(found: Examined, fragment: str, level: str, remedy: str = "", about: str = ABOUT) -> None:
    """See that exactly one finding says so, how bad it is, and what to do."""
    one = found.one(fragment, about)
    assert one.level == level, one
    assert remedy in (one.what_to_do or ""), one


def sources(found: Examined) -> set[str]:
    return {each.about for each in found.findings if each.about.startswith("Source")}


# the defs.yaml


def test_one_bad_source_hides_no_other(workshop: Workshop, home: Path) -> None:
    Follower(workshop).settle()
    broken = describe(home, "broken", start_date="yesterday")
    metric = describe(home, "unknown", metric="acme.nothing")
    again = describe(home, folder="again")
    (home / "defs" / "torn").mkdir()
    (home / "defs" / "torn" / "defs.yaml").write_text("type: [")
    found = doctor()
    expect(found, "start_date", "error", "Correct the file", f"Source in {broken}")
    expect(found, "acme.nothing", "error", "Correct the file", f"Source in {metric}")
    expect(found, "cannot be read as YAML", "error", about="Source in")
    twice = [each for each in found.findings if f"source `{SOURCE}` has another defs.yaml" in each.what]
    assert [each.level for each in twice] == ["error"]
    assert str(again) in twice[0].what or str(again) in twice[0].about
    expect(found, "3 of 3 occurrences scored", "ok")
    assert found.said.code == 1
    alone = doctor("--source", SOURCE)
    assert alone.bad("error") == [twice[0].what]
    expect(alone, "3 of 3 occurrences scored", "ok")


@pytest.mark.usefixtures("workshop")
def test_a_source_that_is_not_there_is_told_with_those_that_are() -> None:
    expect(doctor("--source", "nobody"), "There is no source 'nobody' in", "error", about="Source nobody")
    assert SOURCE in doctor("--source", "nobody").one("There is no source").what


@pytest.mark.usefixtures("workshop")
def test_one_source_alone_can_be_examined(home: Path) -> None:
    describe(home, "other")
    assert sources(doctor("--source", "other")) == {"Source other"}
    assert sources(doctor()) == {"Source other", ABOUT}


def test_traces_of_a_source_that_nobody_configured_are_told(workshop: Workshop, home: Path) -> None:
    assert not doctor().says("not configured")
    workshop.execute("UPDATE stepacc.otel_spans SET source = 'suport' WHERE trace_id = :id", id=f"t {MONDAY}")
    expect(doctor(), "not configured in", "note", "--source", "Other sources")
    assert doctor().one("not configured in").what.endswith(": suport.")
    (home / "defs" / SOURCE / "defs.yaml").unlink()
    found = doctor()
    expect(found, "No source is configured", "note", "stepacc demo", "Sources")
    assert found.one("not configured in").what.endswith(f": suport, {SOURCE}.")


# the store


@pytest.fixture
def phoenix(workshop: Workshop) -> Workshop:
    """The workshop, with the tables of a Phoenix in a schema beside."""
    store_access.load(workshop.engine, "phoenix", "phoenix")
    return workshop


def test_a_store_is_opened_and_what_it_lacks_is_told(phoenix: Workshop, home: Path) -> None:
    describe(home, store="{kind: phoenix, schema: phoenix}")
    expect(doctor(), "(phoenix, phoenix.spans) can be read", "ok")
    describe(home, store="{kind: phoenix, schema: phoenix, projects: [nobody]}")
    expect(doctor(), "'nobody'", "error", "`store`")
    phoenix.execute("ALTER TABLE phoenix.spans RENAME COLUMN span_kind TO kind")
    describe(home, store="{kind: phoenix, schema: phoenix}")
    expect(doctor(), "no column phoenix.spans.span_kind", "error", "`store_url_env`")


@pytest.mark.parametrize(
    ("url", "fragment"),
    [
        (None, "`PHOENIX_URL` is not set"),
        ("mysql://u:s3cr3t@host/db", "begins with mysql://"),
        ("postgresql://u:s3cr3t@127.0.0.1:1/db", "does not answer"),
    ],
)
def test_a_store_elsewhere_that_cannot_be_reached_hides_nothing_else(
    workshop: Workshop, home: Path, monkeypatch: pytest.MonkeyPatch, url: str | None, fragment: str
) -> None:
    Follower(workshop).settle()
    if url:
        monkeypatch.setenv("PHOENIX_URL", url)
    describe(home, store="{kind: phoenix}", store_url_env="PHOENIX_URL")
    found = doctor()
    expect(found, fragment, "error", "what was ingested is kept")
    expect(found, "3 of 3 occurrences scored", "ok")
    assert "s3cr3t" not in found.said.out


def test_a_source_with_a_database_of_its_own_is_examined_there(
    workshop: Workshop, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Follower(workshop).settle()
    describe(home, database_url_env="SUPPORT_URL")
    expect(doctor(), "`SUPPORT_URL` is not set", "error", about="Database of SUPPORT_URL")
    monkeypatch.setenv("SUPPORT_URL", workshop.engine.url.render_as_string(hide_password=False))
    found = doctor()
    expect(found, "at revision", "ok", about="Database of SUPPORT_URL")
    expect(found, "3 of 3 occurrences scored", "ok")


# the sensor


def test_a_sensor_is_told_as_the_instance_has_it(workshop: Workshop, home: Path) -> None:
    instance = workshop.instance
    Follower(workshop).settle()
    expect(doctor(), f"The sensor {SENSOR} should be on, and the daemon has never run it", "warning", "code location")
    state = switch(instance, InstigatorStatus.DECLARED_IN_CODE)
    tick(instance, state, ago=7_200)
    expect(doctor(), f"The sensor {SENSOR} is on and last ticked 2 hours ago", "warning")
    tick(instance, state, ago=30, error="The database at h:1/d does not answer: start the server.")
    failed = doctor()
    expect(
        failed, "failed: The database at h:1/d does not answer: start the server.", "error", "with the tick in the UI"
    )
    tick(instance, state, ago=1)
    expect(doctor(), f"The sensor {SENSOR} is on, last ticked", "ok")
    describe(home, follow="{enabled: false}")
    expect(doctor(), f"The sensor {SENSOR} is off (`follow.enabled` is false)", "note", "stepacc backfill")
    switch(instance, InstigatorStatus.RUNNING)
    expect(doctor(), f"The sensor {SENSOR} is on, last ticked", "ok")
    switch(instance, InstigatorStatus.STOPPED)
    describe(home)
    expect(doctor(), f"The sensor {SENSOR} is off (somebody stopped it in the UI)", "note", "Start it in the UI")


def test_a_store_that_was_not_asked_for_long_is_told(workshop: Workshop) -> None:
    Follower(workshop).settle()
    tick(workshop.instance, switch(workshop.instance, InstigatorStatus.RUNNING))
    workshop.execute("UPDATE stepacc.feeds SET checked_at = now() - interval '3 hours'")
    expect(doctor(), "was last asked for changes 3 hours ago, although the sensor is on", "warning")
    unfollowed(workshop)
    workshop.instance.wipe_daemon_heartbeats()
    expect(doctor(), "was last asked for changes 3 hours ago", "ok")


# windows


def test_windows_never_ingested_are_told_until_they_are(workshop: Workshop) -> None:
    expect(doctor(), "Nothing of this source has been ingested yet", "note", "stepacc materialize")
    follower = Follower(workshop)
    asked = follower.look()
    expect(doctor(), f"3 windows ({MONDAY} to {WEDNESDAY}) with new traces never ingested; the runs", "note", "Wait")
    workshop.execute("UPDATE stepacc.windows SET request_again_at = request_again_at - interval '1 day'")
    expect(doctor(), f"3 windows ({MONDAY} to {WEDNESDAY}) with new traces never ingested.", "warning", "backfill")
    workshop.execute("UPDATE stepacc.windows SET request_again_at = request_again_at + interval '1 day'")
    unfollowed(workshop)
    expect(doctor(), f"3 windows ({MONDAY} to {WEDNESDAY}) with new traces never ingested.", "warning", "backfill")
    for run in asked:
        follower.run(run)
    assert "never ingested" not in doctor().said.out
    expect(doctor(), f"3 windows with traces up to date, {MONDAY} to {WEDNESDAY}", "ok")


@pytest.mark.usefixtures("workshop")
def test_nothing_landed_is_told_with_the_command_that_imports(home: Path) -> None:
    describe(home, "empty")
    expect(doctor(), "No trace of source empty has landed", "note", "stepacc import traces", "Source empty")


def test_windows_out_of_date_are_told_by_what_is_to_be_done(workshop: Workshop) -> None:
    unfollowed(workshop)
    follower = Follower(workshop)
    follower.settle()
    workshop.land([tool_span(f"t {TUESDAY}", "late", "answer", day(TUESDAY).start_ns + 36_000 * _SECOND)])
    workshop.annotate("trace", f"t {MONDAY}", ["answer"])
    follower.look()  # what is new is noted; nothing is run
    found = doctor()
    expect(found, f"1 window ({TUESDAY}) with new or changed spans", "warning", "stepacc backfill --source support")
    expect(found, f"1 window ({MONDAY}) not scored since annotations", "warning", "stepacc backfill --source support")
    assert not found.says("up to date")


def test_windows_of_another_version_only_are_told(workshop: Workshop, home: Path) -> None:
    unfollowed(workshop)
    Follower(workshop, version="1.0.0").settle()
    expect(doctor(), f"3 windows ({MONDAY} to {WEDNESDAY}) scored by other versions", "warning", "stepacc backfill")
    describe(home, follow="{rescore: false}")
    expect(doctor(), "only, as `follow.rescore` is false", "note", "stepacc backfill")
    describe(home, metric_version="1.0.0")
    expect(doctor(), "3 windows with traces up to date", "ok")


def test_a_window_that_failed_is_told_with_its_sentence(workshop: Workshop) -> None:
    workshop.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF NEW.window_key = '{TUESDAY}' THEN RAISE EXCEPTION 'refused here' USING ERRCODE = '23514'; END IF; "
        "RETURN NEW; END $$"
    )
    workshop.execute("CREATE TRIGGER refuse BEFORE INSERT ON stepacc.traces FOR EACH ROW EXECUTE FUNCTION refuse()")
    Follower(workshop).settle()
    found = doctor()
    expect(found, f"1 window ({TUESDAY}) failed: The database says: refused here.", "error", "--only failed")
    expect(found, "2 of 2 occurrences scored", "ok")


def test_windows_outside_the_partitions_are_told(workshop: Workshop, home: Path) -> None:
    Follower(workshop).settle()
    describe(home, start_date=f"'{TUESDAY}'")
    expect(
        doctor(), f"1 window with traces before the source's first partition {TUESDAY} ({MONDAY})", "note", "start_date"
    )
    expect(doctor(), "2 windows with traces up to date", "ok")


# coverage


def test_coverage_is_told_by_version_with_what_is_missing(workshop: Workshop) -> None:
    workshop.land(*(agent_trace(f"u {n}", TUESDAY, "search", task=f"task {n % 2}") for n in range(5)))
    workshop.land(agent_trace("alone", MONDAY, "search"))
    Follower(workshop, version="1.0.0").settle()
    Follower(workshop).settle()
    found = doctor()
    expect(found, "agent.step_accuracy 2.0.0 (config", "warning", f"stepacc scores --source {SOURCE}")
    assert "3 of 9 occurrences scored (33 %); 6 failed. Of the newest, without a score: missing_expected_steps (6)" in (
        found.one("agent.step_accuracy 2.0.0 (config").what
    )
    expect(found, "agent.step_accuracy 1.0.0 (config", "ok")
    expect(
        found, "Nobody annotated 6 of the newest 9 traces: 3 of task task 0, 2 of task task 1, 1 of no task.", "note"
    )
    workshop.annotate("task", "task 0", ["search"])
    workshop.annotate("trace", "alone", ["search"])
    expect(doctor(), "Nobody annotated 2 of the newest 9 traces: 2 of task task 1.", "note", "annotations import")
    workshop.withdraw("trace", "alone")
    expect(doctor(), "Nobody annotated 3 of the newest 9 traces", "note")


def test_sessions_left_out_on_purpose_are_no_complaint(workshop: Workshop, home: Path) -> None:
    settings = {"partition_types": {"trace": "fail", "session": "skip"}}
    workshop.land(agent_trace("s1", MONDAY, "search", task="refund", session="s"))
    describe(home, partition_types="[trace, session]", unannotated="{session: skip}")
    Follower(workshop, **settings).settle()
    expect(doctor(), "Nobody annotated 1 of the newest 1 session: 1 of task refund; they are left out", "ok")
    expect(doctor(), "4 of 5 occurrences scored (80 %); 1 skipped, without a row.", "note")
    workshop.annotate("task", "refund", ["search"], "session")
    assert not doctor().says("Nobody annotated")


def test_the_counts_are_those_of_the_scores_or_say_what_differs(workshop: Workshop) -> None:
    Follower(workshop).settle()
    told = "3 of 3 occurrences scored (100 %)."
    found = doctor().one("occurrences scored", ABOUT)
    assert (found.what.endswith(told), len(stepacc("scores", "--json").rows)) == (True, 3)
    assert stepacc("erase", "--trace", f"t {MONDAY}", "--yes").code == 0
    workshop.annotate("task", "refund", ["search", "answer"])  # which has every window scored again
    Follower(workshop).settle()
    found = doctor().one("occurrences scored", ABOUT)
    assert found.what.endswith(
        "2 of 2 occurrences scored (100 %). `stepacc scores` shows 3 rows, with 1 of what was erased."
    )
    assert len(stepacc("scores", "--json").rows) == len(WEEK)


def running(trace_id: str) -> list[RawSpan]:
    """Return a trace that began ninety minutes ago, and whose root has not ended."""
    begun = int((datetime.now(UTC) - timedelta(minutes=90)).timestamp()) * _SECOND
    return [
        replace(span, start_time_unix_nano=begun, end_time_unix_nano=begun + 1)
        for span in agent_trace(trace_id, MONDAY, "search", task="refund")
        if span.parent_span_id
    ]


def test_what_has_not_settled_is_told_with_the_oldest(workshop: Workshop, home: Path) -> None:
    workshop.land(running("open one"))
    Follower(workshop).settle()
    expect(doctor(), "1 occurrence had not settled when their window was scored, the oldest open one, which", "note")
    assert "which began 90 minutes ago" in doctor().one("had not settled").what
    Follower(workshop, settling=SettleSettings(close_hours=1), version="1.0.0").settle()
    describe(home, settling="{close_hours: 1}", metric_version="1.0.0")
    assert not doctor().says("had not settled")


def test_what_its_store_has_no_longer_is_told(workshop: Workshop) -> None:
    follower = Follower(workshop)
    follower.settle()
    workshop.execute("DELETE FROM stepacc.otel_spans WHERE trace_id = :id", id=f"t {TUESDAY}")
    workshop.land(agent_trace("another", TUESDAY, "search", task="refund"))
    follower.settle()
    expect(doctor(), "1 of 4 newest traces are gone from their store", "note", "nothing to do")


# the entry agent


def entered(trace_id: str, key: str, agent: str, session: str | None = None) -> list[RawSpan]:
    """Return a trace in which an agent below the root takes the request."""
    root, *calls = agent_trace(trace_id, key, "search", task="refund", session=session)
    plain = {name: value for name, value in root.attributes.items() if name.startswith(("stepacc", "gen_ai.conv"))}
    start = root.start_time_unix_nano or 0
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent}
    below = replace(
        root, span_id="agent", parent_span_id="root", start_time_unix_nano=start + 1_000, attributes=attributes
    )
    return [
        replace(root, name="request", attributes={"openinference.span.kind": "CHAIN", **plain}),
        below,
        *(replace(call, parent_span_id="agent") for call in calls),
    ]


def test_an_agent_that_begins_many_alignments_is_told_as_the_run_tells_it(workshop: Workshop) -> None:
    workshop.land(*(entered(f"e {n}", MONDAY, "Boss") for n in range(3)))
    Follower(workshop).settle()
    found = doctor()
    expect(found, "Agent `Boss` is the first, unexpected step of 3 of 6 alignments", "warning", "defs.yaml")
    assert "`step_policy: {entry_agent: root}`" in found.one("Agent `Boss`").what
    run = str(workshop.metadata("step_accuracy_scores", MONDAY)["hint"])
    assert run == found.one("Agent `Boss`").what.replace("3 of 6", "3 of 4")


def test_an_agent_that_begins_sessions_is_told_too(workshop: Workshop, home: Path) -> None:
    workshop.land(*(entered(f"e {n}", MONDAY, "Boss", session=f"s {n}") for n in range(3)))
    workshop.annotate("task", "refund", ["search"], "session")
    describe(home, partition_types="[session]")
    Follower(workshop, partition_types={"session": "fail"}).settle()
    expect(doctor(), "Agent `Boss` is the first, unexpected step of 3 of 3 alignments", "warning")


def test_few_such_traces_or_tools_are_no_reason(workshop: Workshop) -> None:
    workshop.land(*(entered(f"e {n}", MONDAY, "Boss") for n in range(2)))
    for n in range(4):
        root, log, search = agent_trace(f"f {n}", MONDAY, "log", "search", task="refund")
        workshop.land([root, replace(log, name="log"), search])
    Follower(workshop).settle()
    assert not doctor().says("unexpected step")


def test_a_setting_that_is_made_is_not_asked_for(workshop: Workshop, home: Path) -> None:
    for n in range(3):
        request, boss, search = entered(f"e {n}", MONDAY, "Boss")
        start = (boss.start_time_unix_nano or 0) + 1_000
        helper = {**boss.attributes, "gen_ai.agent.name": "Helper"}
        workshop.land(
            [request, boss, replace(boss, span_id="2", start_time_unix_nano=start, attributes=helper), search]
        )
    policy = StepPolicy(entry_agent="root")
    describe(home, step_policy="{entry_agent: root}")
    Follower(workshop, step_policy=policy).settle()
    assert "hint" not in workshop.metadata("step_accuracy_scores", MONDAY)
    assert not doctor().says("unexpected step")


# bounds


@pytest.fixture
def locked(workshop: Workshop) -> Iterator[Workshop]:
    """The workshop, settled, while somebody holds the table of the scores."""
    Follower(workshop).settle()
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with workshop.engine.begin() as connection:
            connection.execute(sa.text("LOCK TABLE stepacc.scores IN ACCESS EXCLUSIVE MODE"))
            held.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(30)
    yield workshop
    done.set()
    thread.join()


@pytest.mark.usefixtures("locked")
def test_a_table_that_does_not_answer_is_told_and_the_rest_too() -> None:
    begun = time.monotonic()
    found = doctor()
    assert time.monotonic() - begun < 60  # and not until the lock is given back
    expect(found, "Its newest traces and scores could not be read", "error", "load of the server")
    expect(found, "3 windows with traces up to date", "ok")


def test_many_windows_are_told_in_few_words(workshop: Workshop) -> None:
    unfollowed(workshop)
    days = [(datetime(2024, 1, 1, tzinfo=UTC) + timedelta(days=n)).date().isoformat() for n in range(600)]
    with workshop.engine.begin() as connection:
        connection.execute(
            sa.text(
                "INSERT INTO stepacc.windows (source, window_key, change) "
                "SELECT 'support', unnest(CAST(:days AS text[])), 1"
            ),
            {"days": days},
        )
    Follower(workshop, follow=FollowSettings(max_runs=1)).look()
    found = doctor()
    expect(
        found,
        f"600 windows with traces before the source's first partition 2025-11-01 (2024-01-01 to {days[-1]})",
        "note",
    )
    assert len(found.findings) < 30
