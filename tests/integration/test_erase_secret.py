"""After an erasure nothing of it is left, in any table of stepacc or of Dagster's, nor in a file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import sqlalchemy as sa

from stepacc_core import CanonicalPartition, Result, register
from stepacc_core.metrics import registry
from stepacc_core.model import Failure
from tests.cli_access import stepacc
from tests.integration.conftest import opened
from tests.integration.erase_access import places, telling_trace
from tests.integration.evaluation_access import Workshop
from tests.integration.evaluation_samples import MONDAY, SOURCE, TUESDAY, ToyMetric, agent_trace
from tests.integration.following_access import Follower

TOLD = "Zz9 Plural Z Alpha"
SCORED = {"trace": "fail", "session": "fail"}
PLANTED = {
    *(
        f"stepacc.otel_spans.{column}"
        for column in (
            "attributes", "events", "name", "resource", "scope_name", "scope_version", "status_message",
        )
    ),
    *(
        f"stepacc.spans.{column}"
        for column in ("agent_name", "name", "output", "tool_arguments", "tool_calls", "tool_name")
    ),
    "stepacc.traces.gaps",
    "stepacc.score_metadata.metadata",
    "stepacc.scores.message",
    "stepacc.scores.reason",
    "stepacc.annotations.note",
    "stepacc.annotations.value",
    "stepacc.window_scores.problem",
    "dagster.event_logs.event",
    "dagster.asset_keys.last_materialization",
}  # fmt: skip
"""Where it is before."""


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget at the end what a test registered."""
    monkeypatch.setattr(registry, "_METRICS", dict(registry._METRICS))


@pytest.fixture
def workshop(
    dagster_instance: dg.DagsterInstance, migrated_engine: sa.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Workshop:
    """A telling trace and another one of the same session and day, evaluated by metrics that say what they see."""
    monkeypatch.setenv("STEPACC_HOME", str(tmp_path / "home"))
    workshop = Workshop(dagster_instance, migrated_engine)
    workshop.land(
        telling_trace("told", MONDAY, TOLD, task="refund", session="s"),
        agent_trace("other", MONDAY, "search", task="refund", session="s", hour=11),
        agent_trace("later", TUESDAY, "search", task="refund"),
    )
    workshop.annotate("task", "refund", ["search"])
    workshop.annotate("session", "s", [f"tool {TOLD}"], "session")
    assert workshop.run(MONDAY, TUESDAY, partition_types=SCORED).success
    workshop.annotate("trace", "told", [f"tool {TOLD}"])
    workshop.execute("UPDATE stepacc.annotations SET note = :note WHERE target_type = 'trace'", note=f"of {TOLD}")
    assert workshop.run(MONDAY, partition_types=SCORED).success
    for metric in (ToyMetric("toy.failing", failing), ToyMetric("toy.inapplicable", inapplicable)):
        register(metric)
        assert workshop.run(MONDAY, TUESDAY, name=metric.manifest.name).success
    register(ToyMetric("toy.raising", raising))
    assert not workshop.run(MONDAY, name="toy.raising").success
    return workshop


def tools(partition: CanonicalPartition) -> str:
    return ", ".join(span.tool_name or "" for span in partition.spans)


def failing(partition: CanonicalPartition) -> Result:
    return Result("failed", error=Failure("too_many", f"There are {tools(partition)}."))


def inapplicable(partition: CanonicalPartition) -> Result:
    return Result("not_applicable", reason=f"it has {tools(partition)}")


def raising(partition: CanonicalPartition) -> Result:
    if partition.partition_id == "told":
        raise ValueError(tools(partition))
    return inapplicable(partition)


def raising_run(workshop: Workshop) -> str:
    """The run that failed."""
    [failed] = workshop.instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE]))
    return failed.run_id


@pytest.fixture
def dagster_engine(workshop: Workshop) -> Iterator[sa.Engine]:
    """An engine over the database of Dagster's own tables."""
    with workshop.instance.event_log_storage.index_connection() as connection:  # type: ignore[attr-defined]
        url = connection.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    with opened(url) as engine:
        yield engine


def test_nothing_is_left_of_a_trace_that_had_a_secret_in_every_place(
    workshop: Workshop, dagster_engine: sa.Engine, tmp_path: Path
) -> None:
    before = {**places(workshop.engine, TOLD), **places(dagster_engine, TOLD)}
    assert before.keys() >= PLANTED
    [printed] = (tmp_path / "home").rglob(raising_run(workshop))
    (printed / "compute_logs" / "by_the_metric.out").write_text(TOLD)

    said = stepacc("erase", "--trace", "told", "--yes")

    assert (said.code, said.err.startswith("Erased: 1 trace, 6 raw spans, ")) == (0, True)
    assert places(workshop.engine, TOLD) == {}
    assert places(dagster_engine, TOLD) == {}
    assert list((tmp_path / "home").rglob(raising_run(workshop))) == []
    files = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if TOLD.encode() in path.read_bytes()] == []


def test_dagster_shows_the_same_partitions_and_errors_as_before_without_what_they_quoted(workshop: Workshop) -> None:
    evaluation = workshop.evaluation(partition_types=SCORED)
    before = workshop.statuses("step_accuracy_scores", evaluation)
    told = workshop.metadata("step_accuracy_scores", MONDAY)
    untouched = workshop.metadata("step_accuracy_scores", TUESDAY)

    assert stepacc("erase", "--trace", "told", "--yes").code == 0

    assert workshop.statuses("step_accuracy_scores", evaluation) == before
    assert before == {MONDAY: "MATERIALIZED", TUESDAY: "MATERIALIZED"}
    gone = {"worst", "worst_alignments"}
    assert workshop.metadata("step_accuracy_scores", MONDAY) == {k: v for k, v in told.items() if k not in gone}
    assert gone <= told.keys()
    assert workshop.metadata("step_accuracy_scores", TUESDAY) == untouched
    [entry] = workshop.instance.all_logs(raising_run(workshop), of_type=dg.DagsterEventType.STEP_FAILURE)
    assert entry.get_dagster_event().step_failure_data.error_display_string == "Erased.\n"
    assert stepacc("erase", "--trace", "told", "--yes").err.startswith("Nothing was left to erase.")


def test_a_run_that_goes_on_is_named_since_it_may_tell_what_it_read_before(workshop: Workshop) -> None:
    tags = {"stepacc/source": SOURCE}
    own, other = (
        workshop.instance.create_run_for_job(
            a_job, status=dg.DagsterRunStatus.STARTED, tags=tags | {"dagster/partition": key}
        )
        for key in (MONDAY, TUESDAY)
    )
    said = stepacc("erase", "--trace", "told", "--yes", "--json")
    assert said.code == 1
    assert said.rows[0]["event_log"]["unfinished_runs"] == [own.run_id]
    assert other.run_id not in said.out
    assert "run the same command again" in said.rows[0]["left"][0]
    for run in (own, other):
        workshop.instance.report_run_canceled(run)
    assert stepacc("erase", "--trace", "told", "--yes").code == 0


def test_an_erasure_leaves_the_sensor_nothing_to_do(
    dagster_instance: dg.DagsterInstance, migrated_engine: sa.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPACC_HOME", str(tmp_path / "home"))
    workshop = Workshop(dagster_instance, migrated_engine)
    spans = agent_trace("t", MONDAY, "search", "open", task="refund")
    workshop.land(spans[:2], agent_trace("other", MONDAY, "search", task="refund"))
    workshop.annotate("task", "refund", ["search"])
    follower = Follower(workshop)
    follower.settle()
    before = workshop.current()
    assert stepacc("erase", "--trace", "t", "--yes").code == 0
    assert follower.look() == []
    workshop.land(spans)
    assert follower.look() == []
    workshop.annotate("task", "refund", ["open"])
    follower.settle()
    assert kept(workshop.current()) == kept(before)
    assert len(kept(before)) == 1


def kept(rows: list[Any]) -> list[tuple[Any, ...]]:
    """What stays of the scores of the erased trace."""
    return [(row.id, row.score, row.annotation_id, row.confirmed_at) for row in rows if row.partition_id == "t"]


@dg.job
def a_job() -> None:
    """Do nothing."""
