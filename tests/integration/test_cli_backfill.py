"""`stepacc backfill`: what it would do and why, what it does, and how it ends."""

import json
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import sqlalchemy as sa

from stepacc_core import CanonicalPartition, Result, register
from stepacc_core.metrics import registry
from tests.cli_access import stepacc
from tests.integration.evaluation_access import Workshop
from tests.integration.evaluation_samples import MONDAY, SOURCE, TUESDAY, WEDNESDAY, ToyMetric, agent_trace, tool_span
from tests.integration.evaluation_samples import day as window_of_day

WEEK = (MONDAY, TUESDAY, WEDNESDAY)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of stepacc."""
    monkeypatch.setattr(registry, "_METRICS", dict(registry._METRICS))
    monkeypatch.setenv("STEPACC_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def workshop(dagster_instance: dg.DagsterInstance, migrated_engine: sa.Engine, home: Path) -> Workshop:
    """An annotated trace on each of three days, of a source that is configured."""
    configure(home)
    workshop = Workshop(dagster_instance, migrated_engine)
    workshop.land(*(agent_trace(f"t {key}", key, "hello", "search", task="refund") for key in WEEK))
    workshop.annotate("task", "refund", ["search"])
    return workshop


def configure(home: Path, name: str = SOURCE, **more: Any) -> None:
    """Write the settings of a source."""
    attributes = {"source": name, "start_date": "2025-11-01", "retry": {"delay_seconds": 0.05}, **more}
    document = {"type": "stepacc_dagster.StepAccuracyComponent", "attributes": attributes}
    (home / "defs" / name).mkdir(parents=True, exist_ok=True)
    (home / "defs" / name / "defs.yaml").write_text(json.dumps(document))


def planned(*options: str) -> list[tuple[str, bool, str]]:
    """Return what a dry run would do: window, whether it is ingested, and why."""
    said = stepacc("backfill", "--dry-run", "--json", *options)
    assert said.code == 0, said.err
    return [(row["key"], row["ingest"], row["why"]) for row in said.rows]


def test_a_bad_file_is_told_and_the_other_sources_are_brought_up_to_date(workshop: Workshop, home: Path) -> None:
    configure(home, "bad", end_offset=3)
    told = f"{home}/defs/bad/defs.yaml:1, attribute `end_offset`: end_offset of source `bad` is 3; use 0 or 1."
    every = stepacc("backfill", "--how", "here")
    assert (every.code, every.err.splitlines()[0]) == (1, f"Left out: {told}")
    assert len(workshop.current()) == len(WEEK)
    assert stepacc("backfill", "--source", SOURCE, "--how", "here").code == 0
    assert stepacc("materialize", "--source", SOURCE, "--from", MONDAY, "--to", MONDAY).code == 0
    for command in ("backfill", "ingest"):
        refused = stepacc(command, "--source", "bad")
        assert (refused.code, refused.complaint) == (1, told)
    assert told in stepacc("ingest").complaint


def test_a_dry_run_says_what_and_why_and_does_nothing(workshop: Workshop, home: Path) -> None:
    assert planned() == [(key, True, "never ingested") for key in WEEK]
    said = stepacc("backfill", "--dry-run")
    assert "support, agent.step_accuracy 2.0.0: 3 partitions of" in said.out
    assert "3 to ingest and score, 0 to score." in said.out
    assert "3  never ingested" in said.out
    assert workshop.instance.get_runs() == []
    assert workshop.scores() == []

    assert stepacc("backfill").code == 0
    assert planned() == []
    assert "nothing to do in 2025-11-01 to" in stepacc("backfill").err
    late = tool_span(f"t {TUESDAY}", "late", "late", window_of_day(TUESDAY).start_ns + 36_000_000_000_000)
    workshop.land([late])
    workshop.annotate("trace", f"t {MONDAY}", ["hello", "search"])
    assert planned() == [
        (MONDAY, False, "annotations, sessions or traces changed"),
        (TUESDAY, True, "spans are new or changed"),
    ]
    assert planned("--from", TUESDAY) == [(TUESDAY, True, "spans are new or changed")]
    assert planned("--to", MONDAY) == [(MONDAY, False, "annotations, sessions or traces changed")]
    configure(home, task_id_attributes=["another"])
    assert planned("--from", WEDNESDAY, "--to", WEDNESDAY) == [
        (WEDNESDAY, True, "read by other settings or an older reading")
    ]
    assert [key for key, _, _ in planned("--only", "all", "--from", "2025-11-01", "--to", TUESDAY)] == [
        "2025-11-01",
        "2025-11-02",
        MONDAY,
        TUESDAY,
    ]


def test_a_bump_scores_history_anew_compares_the_versions_and_going_back_is_the_same_command(
    workshop: Workshop, home: Path
) -> None:
    configure(home, metric_version="1.0.0")
    assert stepacc("backfill").code == 0
    old = workshop.rows("SELECT * FROM stepacc.scores")
    configure(home)
    assert planned() == [(key, False, "scored by another version or config only") for key in WEEK]
    said = stepacc("backfill", "--json")
    assert said.code == 0
    compared = [row["comparison"] for row in said.rows if "comparison" in row]
    assert [(each["metric_version"], each["scored"], each["mean"]) for each in compared] == [
        ("1.0.0", 3, 0.0),
        ("2.0.0", 3, 0.5),
    ]
    assert (compared[0]["pairs"], compared[0]["higher"], compared[0]["lower"], compared[0]["change"]) == (3, 3, 0, 0.5)
    assert workshop.rows("SELECT * FROM stepacc.scores WHERE metric_version = '1.0.0'") == old
    configure(home, metric_version="1.0.0")
    assert planned() == []  # they are there still
    workshop.land(agent_trace("new", TUESDAY, "search", task="refund"))
    assert stepacc("backfill").code == 0
    assert len(workshop.rows("SELECT 1 FROM stepacc.scores WHERE metric_version = '1.0.0'")) == 4


def test_what_was_done_before_an_interruption_is_not_done_again(workshop: Workshop, home: Path) -> None:
    configure(home, metric_version="1.0.0")
    assert stepacc("backfill").code == 0
    configure(home)
    assert stepacc("backfill", "--to", MONDAY).code == 0
    assert [key for key, _, _ in planned()] == [TUESDAY, WEDNESDAY]
    before = workshop.rows("SELECT confirmed_at FROM stepacc.scores WHERE window_key = :key", key=MONDAY)
    assert stepacc("backfill").code == 0
    assert workshop.rows("SELECT confirmed_at FROM stepacc.scores WHERE window_key = :key", key=MONDAY) == before


def test_what_failed_is_listed_with_its_reason_and_can_be_taken_by_itself(workshop: Workshop, home: Path) -> None:
    broken = {f"t {TUESDAY}"}

    def score(partition: CanonicalPartition) -> Result:
        if partition.partition_id in broken:
            msg = "no mood for this one"
            raise ValueError(msg)
        return Result("scored", 0.5)

    register(ToyMetric("acme.moody", score))
    configure(home, metric="acme.moody")
    said = stepacc("backfill")
    assert said.code == 1
    assert f"{TUESDAY} failed: " in said.err
    assert "no mood for this one" in said.err
    assert {row.window_key for row in workshop.current()} == {MONDAY, WEDNESDAY}
    [row] = stepacc("backfill", "--only", "failed", "--dry-run", "--json").rows
    assert (row["key"], row["ingest"]) == (TUESDAY, False)
    assert "no mood" in row["problem"]
    runs = len(workshop.instance.get_runs())
    broken.clear()
    assert stepacc("backfill", "--only", "failed").code == 0
    assert len(workshop.instance.get_runs()) == runs + 1
    assert {row.window_key for row in workshop.current()} == set(WEEK)
    assert stepacc("backfill", "--only", "failed", "--dry-run", "--json").rows == []


def test_a_window_that_cannot_be_ingested_keeps_no_other_from_being_scored(workshop: Workshop) -> None:
    workshop.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF NEW.window_key = '{TUESDAY}' THEN RAISE EXCEPTION 'refused' USING ERRCODE = '23514'; END IF; "
        "RETURN NEW; END $$"
    )
    workshop.execute("CREATE TRIGGER refuse BEFORE INSERT ON stepacc.traces FOR EACH ROW EXECUTE FUNCTION refuse()")
    for command in ("materialize", "backfill"):
        said = stepacc(command, "--from", MONDAY, "--to", WEDNESDAY)
        assert said.code == 1
        assert "The database says: refused." in said.err
        assert {row.window_key for row in workshop.current()} == {MONDAY, WEDNESDAY}


def test_sessions_at_home_outside_of_the_range_are_scored_again(workshop: Workshop, home: Path) -> None:
    configure(home, partition_types=["session"])
    workshop.land(agent_trace("a", MONDAY, "search", session="s"))
    workshop.annotate("session", "s", ["search", "answer"], "session")
    assert stepacc("backfill").code == 0
    workshop.land(agent_trace("b", WEDNESDAY, "answer", session="s"))
    assert stepacc("backfill", "--from", WEDNESDAY).code == 0
    assert [(row.partition_id, row.score, row.window_key) for row in workshop.current()] == [("s", 1.0, MONDAY)]


def test_the_comparison_keeps_traces_and_sessions_apart(workshop: Workshop, home: Path) -> None:
    both: dict[str, Any] = {"partition_types": ["trace", "session"], "unannotated": {"session": "skip"}}
    workshop.land(agent_trace("a", MONDAY, "search", "answer", session="s"))
    workshop.annotate("trace", "a", ["answer"])
    workshop.annotate("session", "s", ["search", "answer"], "session")
    day = ("--from", MONDAY, "--to", MONDAY)
    for version in ("1.0.0", "2.0.0"):
        configure(home, metric_version=version, **both)
        said = stepacc("backfill", *day)
        assert said.code == 0

    lines = [line.split() for line in said.out.splitlines()]
    shown = [(line[0], line[1], line[3], line[6]) for line in lines if line[:1] in (["traces"], ["sessions"])]
    assert shown == [
        ("traces", "1.0.0", "2", "0.000"),
        ("traces", "2.0.0", "2", "0.500"),
        ("sessions", "1.0.0", "1", "1.000"),
        ("sessions", "2.0.0", "1", "1.000"),
    ]
    assert "not applicable" in said.out
    assert f"1 partition of 1, {MONDAY};" in said.err


def test_the_window_that_a_trace_has_left_is_scored_again(workshop: Workshop) -> None:
    assert stepacc("backfill").code == 0
    workshop.land([tool_span(f"t {WEDNESDAY}", "early", "search", window_of_day(TUESDAY).start_ns + 1)])
    assert stepacc("backfill", "--from", TUESDAY, "--to", TUESDAY).code == 0

    assert stepacc("backfill", "--dry-run", "--json").rows == []
    assert {row.partition_id: row.window_key for row in workshop.current()} == {
        f"t {MONDAY}": MONDAY,
        f"t {TUESDAY}": TUESDAY,
        f"t {WEDNESDAY}": TUESDAY,
    }


@pytest.mark.usefixtures("workshop")
def test_every_source_is_taken_unless_one_or_a_metric_is_named(home: Path) -> None:
    register(ToyMetric("acme.half", lambda _: Result("scored", 0.5)))
    configure(home, "another", metric="acme.half")
    said = stepacc("backfill", "--dry-run")
    assert "another, acme.half 0.1.0: nothing to do" in said.out
    assert "support, agent.step_accuracy 2.0.0: 3 partitions" in said.out
    assert "support" not in stepacc("backfill", "--dry-run", "--metric", "acme.half").out
    assert "another" not in stepacc("backfill", "--dry-run", "--source", SOURCE).out
    for options in (["--source", "nobody"], ["--metric", "acme.none"], ["--source", SOURCE, "--metric", "acme.half"]):
        refused = stepacc("backfill", *options)
        assert refused.code != 0
        assert "there are: `another` (by acme.half), `support` (by agent.step_accuracy)" in refused.complaint


def test_a_source_that_cannot_be_read_costs_the_others_nothing(workshop: Workshop, home: Path) -> None:
    configure(home, "astray", store={"kind": "phoenix", "projects": ["none"]}, store_url_env="NOBODY_SET_THIS")

    said = stepacc("backfill")

    assert said.code == 1
    assert "astray: " in said.err
    assert "NOBODY_SET_THIS" in said.err
    assert {row.window_key for row in workshop.current()} == set(WEEK)
    assert stepacc("backfill", "--source", "astray").code == 1
