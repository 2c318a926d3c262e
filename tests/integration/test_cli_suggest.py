"""`stepacc suggest` on a source in the database, and its way into the annotations."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from stepacc_core.model import CanonicalTrace
from tests.cli_access import stepacc
from tests.integration.storage_access import write_window
from tests.integration.storage_samples import MONDAY, SOURCE, TUESDAY, trace

TASK = ("suggest", "--source", SOURCE, "--task", "refund", "--json")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, migrated_url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of stepacc beside a migrated database."""
    monkeypatch.setenv("STEPACC_DATABASE_URL", migrated_url)
    monkeypatch.setenv("STEPACC_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture(autouse=True)
def _traces(migrated_engine: sa.Engine) -> None:
    """Runs of one task on two days, of which one still goes on, and one of another task."""
    going = run("t6", "xyz")
    going = replace(going, spans=(replace(going.spans[0], end_time_unix_nano=None), *going.spans[1:]))
    write_window(migrated_engine, MONDAY, run("t1", "abc"), run("t2", "acb"), run("t3", "abc"), going)
    write_window(migrated_engine, TUESDAY, run("t4", "acb", hour=33), run("t5", "z", "other", hour=33))


def run(ident: str, tools: str, task_id: str = "refund", hour: int = 9) -> CanonicalTrace:
    """A run whose tools are letters."""
    return trace(ident, tools=tools, task_id=task_id, hour=hour)


def test_the_whole_traces_of_a_task_are_learnt_whatever_their_days() -> None:
    [row] = stepacc(*TASK).rows

    assert (row["task_id"], row["runs"]) == ("refund", 4)
    assert row["expected_steps"] == ["a", ["b", "c"]]


def test_only_the_newest_or_only_those_that_are_named() -> None:
    assert [row["runs"] for row in stepacc(*TASK, "--runs", "1").rows] == [1]
    [row] = stepacc(*TASK, "--trace", "t1", "--trace", "t3").rows
    assert (row["runs"], row["expected_steps"]) == (2, ["a", "b", "c"])


def judged(engine: sa.Engine, trace_id: str, verdict: str, *forbidden: str) -> None:
    """Store what `agent.trajectory_match` says of a run."""
    with engine.begin() as connection:
        score_id = connection.scalar(
            sa.text(
                "INSERT INTO stepacc.scores (source, partition_type, partition_id, window_key, metric, metric_version,"
                " config_hash, status, score) VALUES (:source, 'trace', :trace_id, :day, 'trajectory_match.passed',"
                " '1.0.0', 'abcd', 'scored', 0) RETURNING id"
            ),
            {"source": SOURCE, "trace_id": trace_id, "day": MONDAY.key},
        )
        connection.execute(
            sa.text("INSERT INTO stepacc.score_metadata (score_id, metadata) VALUES (:score_id, :metadata)"),
            {"score_id": score_id, "metadata": json.dumps({"verdict": verdict, "forbidden": forbidden})},
        )


def test_runs_that_failed_or_did_what_is_forbidden_are_no_good_ones(migrated_engine: sa.Engine) -> None:
    judged(migrated_engine, "t1", "pass")
    judged(migrated_engine, "t2", "fail")
    judged(migrated_engine, "t3", "review", "c")

    said = stepacc(*TASK)
    assert [row["runs"] for row in said.rows] == [2]
    assert said.err.splitlines() == [
        "1 run whose verdict is fail left out.",
        "1 run in which a forbidden step ran left out.",
    ]
    [newest] = stepacc(*TASK, "--runs", "1").rows
    assert (newest["runs"], newest["expected_steps"]) == (1, ["a", "c", "b"])
    named = stepacc(*TASK, "--trace", "t1", "--trace", "t2")
    assert named.rows[0]["runs"] == 2
    assert named.err == "1 run whose verdict is fail taken as good though, since named (t2).\n"


def test_an_erased_trace_is_not_learnt() -> None:
    assert stepacc("erase", "--trace", "t2", "--source", SOURCE, "--yes").code == 0

    assert [row["runs"] for row in stepacc(*TASK).rows] == [3]


def test_steps_are_those_that_the_source_scores(home: Path) -> None:
    (home / "defs" / SOURCE).mkdir(parents=True)
    attributes = {"source": SOURCE, "start_date": "2026-01-01", "step_policy": {"ignore": ["c"]}}
    document = {"type": "stepacc_dagster.StepAccuracyComponent", "attributes": attributes}
    (home / "defs" / SOURCE / "defs.yaml").write_text(json.dumps(document))

    assert [row["expected_steps"] for row in stepacc(*TASK).rows] == [["a", "b"]]
    assert [row["expected_steps"] for row in stepacc(*TASK, "--ignore", "a").rows] == [[["b", "c"]]]


def test_once_confirmed_it_is_an_annotation_like_any_other(tmp_path: Path) -> None:
    out = tmp_path / "suggested.yaml"
    assert stepacc("suggest", "--source", SOURCE, "--task", "refund", "--out", out).code == 0
    listing = ("annotations", "list", "--source", SOURCE, "--json")

    assert stepacc("annotations", "import", out).code == 1
    assert stepacc(*listing).rows == []
    assert stepacc("annotations", "import", out, "--confirm", "--author", "qa@example.org").code == 0
    [stored] = stepacc(*listing).rows
    assert (stored["target"], stored["expected_steps"]) == ({"type": "task", "id": "refund"}, ["a", ["b", "c"]])
    assert (stored["author"], stored["note"]) == ("qa@example.org", "suggested, runs: 4")


def test_nothing_to_learn_from_and_nothing_asked_are_said_in_words() -> None:
    nothing = stepacc("suggest", "--source", SOURCE, "--task", "unknown")
    assert (nothing.code, nothing.out, nothing.err) == (1, "", "There is no run to learn from.\n")

    unasked = stepacc("suggest", "--source", SOURCE)
    assert unasked.code == 2
    assert "Name the task to learn with --task" in unasked.err
