"""The sensor of a source: exactly what is out of date is brought up to date, once, whatever happened."""

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg
import pytest
import sqlalchemy as sa

from stepacc_core import CanonicalPartition, Result, register
from stepacc_core.metrics import registry
from stepacc_core.model import RawSpan
from stepacc_dagster.automation import RANGE_END, RANGE_START
from stepacc_dagster.local.evaluation import LocalEvaluation
from stepacc_dagster.sources import FollowSettings, SettleSettings, reader_version
from stepacc_dagster.storage.annotations import AnnotationEntry, add_annotations
from stepacc_dagster.storage.partitions import load_trace_partitions
from stepacc_dagster.stores.settings import PhoenixSettings
from tests.integration.evaluation_access import Workshop
from tests.integration.evaluation_samples import (
    MONDAY,
    SOURCE,
    TUESDAY,
    WEDNESDAY,
    ToyMetric,
    agent_trace,
    day,
    tool_span,
)
from tests.integration.following_access import Asked, Follower
from tests.integration.storage_access import together

WEEK = (MONDAY, TUESDAY, WEDNESDAY)
_SECOND = 1_000_000_000
NOW = timedelta()


@pytest.fixture
def workshop(dagster_instance: dg.DagsterInstance, migrated_engine: sa.Engine) -> Workshop:
    """An annotated trace a day, not yet ingested."""
    workshop = Workshop(dagster_instance, migrated_engine)
    workshop.land(*(agent_trace(f"t {key}", key, "search", task="refund") for key in WEEK))
    workshop.annotate("task", "refund", ["search"])
    return workshop


def told(asked: list[Asked]) -> list[tuple[tuple[str, ...], bool]]:
    return [(run.keys, run.ingest) for run in asked]


def late(workshop: Workshop, key: str, tool: str = "late") -> None:
    workshop.land([tool_span(f"t {key}", f"late {tool}", tool, day(key).start_ns + 10 * 3_600 * _SECOND)])


def test_what_is_new_is_ingested_and_scored_and_then_left_alone(workshop: Workshop) -> None:
    follower = Follower(workshop)
    assert told(follower.tick()) == [(WEEK, True)]
    assert {(row.partition_id, row.score) for row in workshop.current()} == {(f"t {key}", 1.0) for key in WEEK}
    assert follower.look() == []


def test_a_late_span_changes_its_trace_after_the_next_look_and_nothing_else(workshop: Workshop) -> None:
    follower = Follower(workshop)
    follower.settle()
    before = {row.partition_id: row for row in workshop.scores()}
    late(workshop, TUESDAY)
    assert told(follower.settle()) == [((TUESDAY,), True)]
    rows = workshop.scores()
    assert [row.partition_id for row in rows if row.score_id not in {old.score_id for old in before.values()}] == [
        f"t {TUESDAY}"
    ]
    assert [row for row in rows if row.window_key != TUESDAY] == [
        row for row in before.values() if row.window_key != TUESDAY
    ]
    assert follower.look() == []


def test_an_annotation_is_followed_by_scoring_alone_in_just_the_windows_it_concerns(workshop: Workshop) -> None:
    follower = Follower(workshop)
    follower.settle()
    workshop.annotate("trace", f"t {WEDNESDAY}", ["search", "answer"])
    assert told(follower.settle()) == [((WEDNESDAY,), False)]
    workshop.annotate("task", "refund", ["answer"])
    assert told(follower.settle()) == [(WEEK, False)]
    assert {row.partition_id: row.score for row in workshop.current()} == {
        f"t {MONDAY}": 0.0,
        f"t {TUESDAY}": 0.0,
        f"t {WEDNESDAY}": 0.5,
    }
    workshop.withdraw("trace", f"t {WEDNESDAY}")
    assert told(follower.settle()) == [((WEDNESDAY,), False)]
    workshop.annotate("task", "another", ["x"])
    assert follower.look() == []


def test_whoever_writes_an_annotation_is_followed(workshop: Workshop) -> None:
    """A labelling tool that writes into the table by itself needs to know of nothing else."""
    follower = Follower(workshop)
    follower.settle()
    workshop.execute("""
        INSERT INTO stepacc.annotations (source, target_type, target_id, partition_type, key, revision, value,
                                         value_hash, author, note, origin)
        VALUES ('support', 'trace', 't 2025-11-04', 'trace', 'expected_steps', 1, '["x"]', 'h', 'a tool', '', '')
    """)
    assert told(follower.settle()) == [((TUESDAY,), False)]


def test_a_session_that_grows_is_scored_again_where_it_is_at_home(workshop: Workshop) -> None:
    follower = Follower(workshop, partition_types={"session": "fail"})
    workshop.land(agent_trace("a", MONDAY, "search", session="s"))
    workshop.annotate("session", "s", ["search", "answer"], "session")
    follower.settle()
    workshop.land(agent_trace("b", WEDNESDAY, "answer", session="s"))
    assert told(follower.settle()) == [((WEDNESDAY,), True), ((MONDAY,), False)]
    [row] = [row for row in workshop.current() if row.partition_id == "s"]
    assert (row.score, row.window_key) == (1.0, MONDAY)
    workshop.land(agent_trace("first", "2025-11-02", "greet", session="s"))
    assert told(follower.settle()) == [(("2025-11-02",), True), ((MONDAY,), False)]
    [row] = [row for row in workshop.current() if row.partition_id == "s"]
    assert row.window_key == "2025-11-02"


def test_a_trace_gone_from_its_store_keeps_its_score_and_is_not_scored_to_zero(workshop: Workshop) -> None:
    follower = Follower(workshop)
    follower.settle()
    workshop.execute("DELETE FROM stepacc.otel_spans WHERE trace_id = :id", id=f"t {TUESDAY}")
    workshop.land(agent_trace("another", TUESDAY, "search", task="refund"))
    follower.settle()
    assert {(row.partition_id, row.score) for row in workshop.current()} == {
        *((f"t {key}", 1.0) for key in WEEK),
        ("another", 1.0),
    }
    gone = workshop.rows("SELECT trace_id FROM stepacc.traces WHERE gone_upstream_at IS NOT NULL")
    assert gone == [(f"t {TUESDAY}",)]
    assert workshop.metadata("canonical_traces", TUESDAY)["traces_gone_upstream"] == 1
    bumped = Follower(workshop, version="1.0.0")
    bumped.settle()
    assert {row.partition_id for row in workshop.current() if row.metric_version == "1.0.0"} >= {f"t {TUESDAY}"}


def test_a_withdrawn_annotation_leaves_no_current_score_where_unannotated_traces_are_skipped(
    workshop: Workshop,
) -> None:
    follower = Follower(workshop, partition_types={"trace": "skip"})
    workshop.annotate("trace", f"t {MONDAY}", ["search", "answer"])
    follower.settle()
    workshop.withdraw("task", "refund")
    follower.settle()
    assert [(row.partition_id, row.score) for row in workshop.current()] == [(f"t {MONDAY}", 0.5)]
    assert len(workshop.scores()) == 3  # nothing is lost
    workshop.annotate("task", "refund", ["search"])
    follower.settle()
    assert len(workshop.current()) == 3


def test_a_bump_and_a_change_of_config_are_followed_and_going_back_too(workshop: Workshop) -> None:
    Follower(workshop, version="1.0.0").settle()
    assert Follower(workshop, version="2.0.0", follow=FollowSettings(rescore=False)).look() == []
    assert told(Follower(workshop, version="2.0.0").settle()) == [(WEEK, False)]
    strict = {"scoring_method": "strict_position"}
    assert told(Follower(workshop, version="2.0.0", config=strict).settle()) == [(WEEK, False)]
    before = workshop.scores()
    for version in ("1.0.0", "2.0.0"):
        assert Follower(workshop, version=version).look() == []  # scored already, nothing to do
    assert workshop.scores() == before
    assert len(before) == 9


def test_with_rescoring_off_what_is_new_is_still_followed(workshop: Workshop) -> None:
    Follower(workshop, version="1.0.0").settle()
    follower = Follower(workshop, version="2.0.0", follow=FollowSettings(rescore=False))
    late(workshop, TUESDAY)
    assert told(follower.settle()) == [((TUESDAY,), True)]
    assert {row.window_key for row in workshop.current() if row.metric_version == "2.0.0"} == {TUESDAY}


def test_another_reading_is_followed_by_ingesting_again(workshop: Workshop) -> None:
    Follower(workshop).settle()
    assert told(Follower(workshop, task_id_attributes=("my.task",)).settle()) == [(WEEK, True)]


def test_a_look_that_dies_before_its_runs_are_launched_costs_time_only(workshop: Workshop) -> None:
    follower = Follower(workshop)
    [lost] = follower.look()
    assert follower.look() == []  # it may still come
    workshop.execute("UPDATE stepacc.windows SET request_again_at = now() - interval '1 second'")
    [again] = follower.look()
    assert told([again]) == told([lost])
    assert again.request.run_key != lost.request.run_key  # or Dagster would take it for the first
    waits = workshop.rows("SELECT DISTINCT requests, request_again_at - now() > interval '25 min' FROM stepacc.windows")
    assert waits == [(2, True)]
    follower.run(again)
    assert follower.look() == []
    late(workshop, TUESDAY)
    assert told(follower.tick()) == [((TUESDAY,), True)]  # another change is not waited for


def test_two_looks_at_once_ask_for_each_window_once(workshop: Workshop) -> None:
    followers = [Follower(workshop), Follower(workshop)]
    asked = together(*(follower.look for follower in followers))
    assert [told(each) for each in sorted(asked, key=len)] == [[], [(WEEK, True)]]


def test_windows_that_an_unfinished_run_works_on_are_left_to_it(workshop: Workshop) -> None:
    follower = Follower(workshop)
    instance = workshop.instance
    unfinished = instance.create_run_for_job(
        follower.job, tags={"stepacc/source": SOURCE, "dagster/partition": TUESDAY}
    )
    assert told(follower.look()) == [((WEDNESDAY,), True), ((MONDAY,), True)]
    instance.report_run_canceled(unfinished)
    assert told(follower.look()) == [((TUESDAY,), True)]


def test_a_window_that_fails_for_good_is_asked_for_again_only_when_it_changed(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_METRICS", dict(registry._METRICS))

    def score(partition: CanonicalPartition) -> Result:
        if partition.partition_id == f"t {TUESDAY}" and len(partition.spans) == 2:
            msg = "a fault of the metric"
            raise ValueError(msg)
        return Result("scored", 0.5)

    register(ToyMetric("acme.picky", score))
    follower = Follower(workshop, name="acme.picky")
    assert told(follower.tick()) == [(WEEK, True)]
    assert {row.window_key for row in workshop.current()} == {MONDAY, WEDNESDAY}
    [(problem, final)] = workshop.rows("SELECT problem, final FROM stepacc.window_scores WHERE problem IS NOT NULL")
    assert "a fault of the metric" in problem
    assert final
    workshop.execute("UPDATE stepacc.windows SET request_again_at = now() - interval '1 day'")
    assert follower.look() == []
    late(workshop, TUESDAY)
    assert told(follower.settle()) == [((TUESDAY,), True)]
    assert {row.window_key for row in workshop.current()} == set(WEEK)
    assert workshop.rows("SELECT 1 FROM stepacc.window_scores WHERE problem IS NOT NULL") == []


def test_a_window_that_cannot_be_ingested_holds_no_other_back(workshop: Workshop) -> None:
    workshop.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF NEW.window_key = '{TUESDAY}' THEN RAISE EXCEPTION 'refused' USING ERRCODE = '23514'; END IF; "
        "RETURN NEW; END $$"
    )
    workshop.execute("CREATE TRIGGER refuse BEFORE INSERT ON stepacc.traces FOR EACH ROW EXECUTE FUNCTION refuse()")
    follower = Follower(workshop)
    assert told(follower.settle()) == [(WEEK, True), ((WEDNESDAY,), False), ((MONDAY,), False)]
    assert {row.window_key for row in workshop.current()} == {MONDAY, WEDNESDAY}
    assert workshop.rows("SELECT window_key, final FROM stepacc.windows WHERE problem IS NOT NULL") == [(TUESDAY, True)]


def test_a_look_is_bounded_and_the_next_ones_go_on(workshop: Workshop) -> None:
    days = [(datetime(2025, 1, 1, tzinfo=UTC) + timedelta(days=n)).date().isoformat() for n in range(300)]
    for key in days[::50]:
        workshop.land(agent_trace(f"t {key}", key, "search"))
    with workshop.engine.begin() as connection:
        connection.execute(
            sa.text(
                "INSERT INTO stepacc.windows (source, window_key, change) "
                "SELECT 'support', unnest(CAST(:days AS text[])), 1"
            ),
            {"days": days},
        )
    follow = FollowSettings(max_runs=3)
    follower = Follower(workshop, start_date="2025-01-01", max_partitions_per_run=20, follow=follow)
    seen: list[str] = []
    for _ in range(6):
        asked = follower.look()
        assert len(asked) <= 3
        seen += [key for run in asked for key in run.keys]
    assert len(seen) == len(set(seen)) == 300 + len(set(WEEK) - set(days))
    assert tuple(seen[:3]) == WEEK  # the newest first
    assert follower.look() == []


def running(trace_id: str, ago: timedelta, *, ended: bool) -> list[RawSpan]:
    """Return a trace of these last minutes."""
    begun = int((datetime.now(UTC) - ago).timestamp() * 1e9) - 2 * _SECOND
    shift = begun - (day(MONDAY).start_ns + 9 * 3_600 * _SECOND)
    spans: list[RawSpan] = []
    for span in agent_trace(trace_id, MONDAY, "search", task="refund"):
        assert span.start_time_unix_nano is not None
        begin = span.start_time_unix_nano + shift
        if ended or span.parent_span_id:  # a root is sent when it ends
            spans.append(replace(span, start_time_unix_nano=begin, end_time_unix_nano=begin + 1))
    return spans


def test_a_trace_that_still_runs_is_listed_and_scored_once_it_has_settled(workshop: Workshop) -> None:
    today = datetime.now(UTC).date().isoformat()
    workshop.land(running("now", NOW, ended=True), running("open", NOW, ended=False))
    follower = Follower(workshop)
    follower.settle()
    assert {row.partition_id for row in workshop.current()} == {f"t {key}" for key in WEEK}
    listed = workshop.rows("SELECT trace_id, window_key FROM stepacc.traces WHERE window_key >= :key", key=today)
    assert {row.trace_id for row in listed} == {"now", "open"}
    assert sum(workshop.metadata("step_accuracy_scores", row.window_key)["unsettled"] for row in listed) >= len(listed)
    [(ended, due)] = workshop.rows("""
        SELECT to_timestamp(end_time_unix_nano / 1e9), (SELECT min(due_at) FROM stepacc.window_scores)
        FROM stepacc.traces WHERE trace_id = 'now'
    """)
    assert due - ended == timedelta(minutes=10)

    # Ten minutes go by, in which nothing comes.
    workshop.execute("UPDATE stepacc.window_scores SET due_at = now() WHERE due_at IS NOT NULL")
    later = Follower(workshop, settling=SettleSettings(quiet_minutes=0))
    assert {key for run in later.settle() for key in run.keys} >= {row.window_key for row in listed}
    assert {row.partition_id for row in workshop.current()} == {"now", *(f"t {key}" for key in WEEK)}
    assert later.look() == []


def test_a_trace_that_never_gets_its_root_is_closed_with_a_gap(workshop: Workshop) -> None:
    workshop.land(running("open", timedelta(hours=2), ended=False))
    workshop.annotate("trace", "open", ["search"])
    Follower(workshop, settling=SettleSettings(close_hours=24)).settle()
    assert "open" not in {row.partition_id for row in workshop.current()}
    closing = SettleSettings(close_hours=1)
    Follower(workshop, settling=closing, version="1.0.0").settle()
    [row] = [row for row in workshop.current() if row.partition_id == "open"]
    assert (row.status, row.score) == ("scored", 1.0)
    with workshop.engine.connect() as connection:
        window = day(row.window_key)
        partitions = load_trace_partitions(connection, SOURCE, window, closing.at(datetime.now(UTC)))
        assert "closed_unsettled" in {gap.kind for partition in partitions for gap in partition.gaps}


def test_a_scored_trace_that_goes_on_keeps_its_score_until_it_has_settled(workshop: Workshop) -> None:
    workshop.land(running("now", NOW, ended=True))
    quick = SettleSettings(quiet_minutes=0)
    Follower(workshop, settling=quick).settle()
    [before] = [row for row in workshop.current() if row.partition_id == "now"]
    key = before.window_key
    workshop.land([tool_span("now", "more", "answer", int(time.time() * 1e9))])
    Follower(workshop).settle()
    assert [row.id for row in workshop.current() if row.partition_id == "now"] == [before.id]
    assert workshop.metadata("step_accuracy_scores", key)["unsettled"] == 1
    Follower(workshop, settling=quick).settle()


def test_an_annotation_whose_transaction_was_open_while_its_trace_was_scored_is_not_lost(workshop: Workshop) -> None:
    """Whichever commits last, the next look finds it."""
    follower = Follower(workshop)
    workshop.land(agent_trace("x", MONDAY, "search"), agent_trace("y", TUESDAY, "search", task="new task"))
    entries = [
        AnnotationEntry(SOURCE, "trace", "x", ["search"]),
        AnnotationEntry(SOURCE, "task", "new task", ["search"]),
    ]
    with workshop.engine.connect() as annotator:
        add_annotations(annotator, entries)
        follower.settle()
        annotator.commit()
    assert {row.status for row in workshop.current() if row.partition_id in "xy"} == {"failed"}
    assert told(follower.settle()) == [((MONDAY, TUESDAY), False)]
    assert {row.score for row in workshop.current() if row.partition_id in "xy"} == {1.0}
    assert follower.look() == []


def test_an_open_transaction_of_an_annotator_holds_no_ingest_up(workshop: Workshop) -> None:
    follower = Follower(workshop)
    follower.settle()
    with workshop.engine.connect() as annotator:
        add_annotations(annotator, [AnnotationEntry(SOURCE, "task", "refund", ["x"])])
        late(workshop, TUESDAY)
        assert told(follower.settle()) == [((TUESDAY,), True)]


def test_windows_of_another_length_and_busy_ones_keep_no_window_from_its_turn(workshop: Workshop) -> None:
    hours = [f"2025-11-{n}-{h:02}:00" for n in range(10, 29) for h in range(24)]
    workshop.execute(
        "INSERT INTO stepacc.windows (source, window_key, change) SELECT 'support', unnest(CAST(:keys AS text[])), 1",
        keys=hours,
    )
    workshop.execute(
        "INSERT INTO stepacc.windows (source, window_key, change) SELECT 'support', '2025-11-' || n, 1 "
        "FROM generate_series(10, 28) n"
    )
    follower = Follower(workshop, max_partitions_per_run=3, follow=FollowSettings(max_runs=1))
    unfinished = workshop.instance.create_run_for_job(
        follower.job,
        tags={"stepacc/source": SOURCE, RANGE_START: "2025-11-10", RANGE_END: "2025-11-28"},
    )
    assert told(follower.look()) == [(WEEK, True)]
    workshop.instance.report_run_canceled(unfinished)
    assert told(follower.look()) == [(("2025-11-26", "2025-11-27", "2025-11-28"), True)]


def test_a_run_whose_process_is_gone_keeps_its_windows_no_longer_than_it_might_have_taken(workshop: Workshop) -> None:
    follower = Follower(workshop)
    tags = {"dagster/max_runtime": "60", RANGE_START: WEEK[0], RANGE_END: WEEK[-1]}
    run = workshop.instance.create_run_for_job(follower.job, tags={"stepacc/source": SOURCE, **tags})

    def started(seconds_ago: float) -> None:
        event = dg.DagsterEvent(dg.DagsterEventType.RUN_START.value, follower.job.name)
        workshop.instance.run_storage.handle_run_event(
            run.run_id, event, datetime.now(UTC) - timedelta(seconds=seconds_ago)
        )

    started(60 + 3_500)
    assert follower.look() == []
    started(60 + 3_700)
    assert told(follower.look()) == [(WEEK, True)]


def test_a_scoring_that_failed_for_good_is_not_asked_for_again_when_a_trace_has_settled_since(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_METRICS", dict(registry._METRICS))

    def score(_: CanonicalPartition) -> Result:
        msg = "never"
        raise ValueError(msg)

    register(ToyMetric("acme.never", score))
    follower = Follower(workshop, name="acme.never")
    follower.settle()
    workshop.execute("UPDATE stepacc.window_scores SET due_at = now() WHERE final")
    follower.settle()  # something has settled: one more try
    workshop.execute("UPDATE stepacc.windows SET request_again_at = now() - interval '1 day'")
    assert follower.look() == []


def test_with_rescoring_off_what_changes_after_a_bump_is_followed(workshop: Workshop) -> None:
    Follower(workshop, version="1.0.0").settle()
    follower = Follower(workshop, version="2.0.0", follow=FollowSettings(rescore=False))
    assert follower.look() == []
    workshop.annotate("trace", f"t {MONDAY}", ["answer"])
    assert told(follower.settle()) == [((MONDAY,), False)]


def test_what_is_scored_and_when_is_followed_too(workshop: Workshop) -> None:
    Follower(workshop).settle()
    for settings in (
        {"partition_types": {"trace": "fail", "session": "fail"}},
        {"partition_types": {"trace": "skip", "session": "fail"}},
        {"settling": SettleSettings(close_hours=1)},
    ):
        changed: Any = settings
        assert told(Follower(workshop, **changed).settle()) == [(WEEK, False)]


def test_a_trace_that_moved_keeps_its_score_until_it_is_scored_where_it_is_now(workshop: Workshop) -> None:
    follower = Follower(workshop)
    follower.settle()
    workshop.land([tool_span(f"t {TUESDAY}", "older", "search", day(MONDAY).start_ns + _SECOND, None)])
    list(LocalEvaluation(follower.source, workshop.instance, workshop.engine).ingest([MONDAY]))
    list(LocalEvaluation(follower.source, workshop.instance, workshop.engine).score([TUESDAY]))
    assert f"t {TUESDAY}" in {row.partition_id for row in workshop.current()}
    follower.settle()
    [row] = [row for row in workshop.current() if row.partition_id == f"t {TUESDAY}"]
    assert row.window_key == MONDAY


def test_a_setting_changed_to_and_fro_is_asked_for_each_time(workshop: Workshop) -> None:
    there, back = Follower(workshop), Follower(workshop, task_id_attributes=("another",))
    asked = [follower.look() for follower in (there, back, there, back)]
    keys = [run.request.run_key for runs in asked for run in runs]
    assert len(keys) == len(set(keys)) == 4


def test_a_store_that_cannot_be_read_keeps_annotations_from_nothing(workshop: Workshop) -> None:
    follower = Follower(workshop)
    follower.settle()
    broken = Follower(workshop, store=PhoenixSettings(schema="nowhere"))
    as_read = reader_version(broken.source)  # of another store spans are redacted as they are read
    workshop.execute("UPDATE stepacc.windows SET reader_version = :version", version=as_read)
    workshop.annotate("trace", f"t {MONDAY}", ["answer"])
    assert told(broken.look()) == [((MONDAY,), False)]
    with pytest.raises(Exception, match="nowhere"):
        broken.look()
