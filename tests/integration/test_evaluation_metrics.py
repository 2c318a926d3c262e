"""Metrics of somebody's own: registered, given assets, limited in time, and contained when they misbehave."""

import math
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import dagster as dg
import pytest
import sqlalchemy as sa

from stepacc_core import CanonicalPartition, Result, register
from stepacc_core.metrics import registry
from stepacc_dagster.evaluators import evaluator_of
from stepacc_dagster.scoring import score_window
from stepacc_dagster.sources import MetricChoice
from stepacc_dagster.storage.locks import lock
from tests.integration.evaluation_access import Workshop, support_source, values
from tests.integration.evaluation_samples import MONDAY, TUESDAY, WEDNESDAY, ToyMetric, agent_trace, day

WEEK = [MONDAY, TUESDAY, WEDNESDAY]


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget at the end what a test registered."""
    monkeypatch.setattr(registry, "_METRICS", dict(registry._METRICS))


@pytest.fixture
def workshop(dagster_instance: dg.DagsterInstance, migrated_engine: sa.Engine) -> Workshop:
    """A trace a day, and a second one on Tuesday."""
    workshop = Workshop(dagster_instance, migrated_engine)
    workshop.land(*(agent_trace(f"t {key}", key, "search") for key in WEEK), agent_trace("second", TUESDAY, "open"))
    return workshop


def toy(name: str, scorer: Callable[[CanonicalPartition], Result], **execution: Any) -> str:
    """Register a metric and return its name."""
    register(ToyMetric(name, scorer, **execution))
    return name


def by_id(scores: dict[str, float]) -> Callable[[CanonicalPartition], Result]:
    return lambda partition: Result("scored", scores.get(partition.partition_id, 0.5), {"why": "so"})


def test_a_metric_of_a_users_own_gets_its_assets_pool_checks_and_rows(workshop: Workshop) -> None:
    name = toy("acme.politeness", by_id({"second": 0.25}), max_concurrency=7)
    run = workshop.run(*WEEK, name=name)
    assert run.success
    evaluation = workshop.evaluation(name=name)
    for asset in ("canonical_traces", "politeness_scores", "politeness_metadata"):
        assert workshop.statuses(asset, evaluation) == dict.fromkeys(WEEK, "MATERIALIZED")
    rows = workshop.rows("SELECT * FROM stepacc.scores JOIN stepacc.score_metadata ON id = score_id")
    assert {row.partition_id: row.score for row in rows} == {
        **{f"t {key}": 0.5 for key in WEEK},
        "second": 0.25,
    }
    assert {(row.metric, row.metric_version) for row in rows} == {("acme.politeness", "0.1.0")}
    assert {row.metadata["why"] for row in rows} == {"so"}
    limits = {limit.name: limit.limit for limit in workshop.instance.event_log_storage.get_pool_limits()}
    assert limits == {"stepacc_politeness": 7}
    assert all(check.passed for check in workshop.checks(run).values())
    assert workshop.metadata("politeness_scores", TUESDAY)["mean_score"] == 0.375


def test_scores_out_of_range_are_stored_and_shown_by_the_check_and_cost_no_other(workshop: Workshop) -> None:
    odd = {"above": 1.5, "below": -0.25, "nan": math.nan, "inf": math.inf}
    workshop.land(*(agent_trace(ident, TUESDAY, "search") for ident in odd))
    run = workshop.run(*WEEK, name=toy("acme.wild", by_id(odd)))
    assert run.success
    scores = {row.partition_id: row.score for row in workshop.scores()}
    assert {ident: scores.pop(ident) for ident in odd} == pytest.approx(odd, nan_ok=True)
    assert scores == dict.fromkeys(["second", *(f"t {key}" for key in WEEK)], 0.5)
    check = workshop.checks(run)["scores_between_0_and_1"]
    assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert check.description == f"4 of 8 scores lie outside 0 to 1, in 3 partitions from {MONDAY} to {WEDNESDAY}."
    assert values(check) == {
        "partitions": f"3 partitions from {MONDAY} to {WEDNESDAY}",
        "outside": 4,
        "which": [f"{TUESDAY}: {ident}" for ident in sorted(odd)],
    }
    shown = workshop.metadata("wild_scores", TUESDAY)
    assert shown["scored"] == 6
    assert all(math.isfinite(value) for value in shown.values() if isinstance(value, float))


def test_a_partition_over_its_time_limit_fails_alone_stores_nothing_and_is_not_retried(workshop: Workshop) -> None:
    calls: list[str] = []

    def slow_on_tuesday(partition: CanonicalPartition) -> Result:
        calls.append(partition.partition_id)
        if partition.partition_id == "second":
            time.sleep(1.1)
        return Result("scored", 0.5)

    name = toy("acme.slow", slow_on_tuesday, timeout_seconds=1)
    run = workshop.run(*WEEK, name=name)
    assert not run.success
    assert run.error == (
        f"1 of 3 partitions failed, the others are stored. {TUESDAY}: Scoring partition {TUESDAY} by `acme.slow` took "
        "longer than the 1 s its manifest allows; nothing of it was stored. Use shorter partitions, or raise "
        "timeout_seconds in the manifest."
    )
    assert calls.count("second") == 1
    assert workshop.events(run, dg.DagsterEventType.STEP_UP_FOR_RETRY) == 0
    assert {row.window_key for row in workshop.scores()} == {MONDAY, WEDNESDAY}
    expected = {MONDAY: "MATERIALIZED", TUESDAY: "FAILED", WEDNESDAY: "MATERIALIZED"}
    evaluation = workshop.evaluation(name=name)
    for asset in ("slow_scores", "slow_metadata"):
        assert workshop.statuses(asset, evaluation) == expected
        shown = workshop.materialization(asset, MONDAY)
        assert shown.metadata["dagster/partition_row_count"].value == 1
        assert (shown.tags or {})["dagster/data_version"].startswith((shown.tags or {})["dagster/code_version"] + ":")
    assert workshop.statuses("canonical_traces", evaluation) == dict.fromkeys(WEEK, "MATERIALIZED")


def test_the_last_occurrence_of_a_partition_counts_against_its_time_limit_too(workshop: Workshop) -> None:
    def slow(partition: CanonicalPartition) -> Result:
        time.sleep(1.1)
        return Result("scored", 0.5, {"of": partition.partition_id})

    run = workshop.run(MONDAY, name=toy("acme.late", slow, timeout_seconds=1))
    assert not run.success
    assert workshop.scores() == []


def test_a_metric_that_never_comes_back_fails_its_partition_when_the_time_is_up(workshop: Workshop) -> None:
    """Whatever it catches, and without a daemon that would end the run."""
    calls: list[str] = []

    def never_on_tuesday(partition: CanonicalPartition) -> Result:
        while partition.partition_id == "second":
            calls.append(partition.partition_id)
            with suppress(Exception):
                time.sleep(60)
        return Result("scored", 0.5)

    before = signal.getsignal(signal.SIGALRM)
    run = workshop.run(*WEEK, name=toy("acme.stuck", never_on_tuesday, timeout_seconds=1))
    assert run.error is not None
    assert "1 of 3 partitions failed, the others are stored." in run.error
    assert f"Scoring partition {TUESDAY} by `acme.stuck` took longer than the 1 s its manifest allows" in run.error
    assert calls == ["second"]
    assert {row.window_key for row in workshop.scores()} == {MONDAY, WEDNESDAY}
    assert signal.getsignal(signal.SIGALRM) is before


def test_waiting_for_another_run_of_the_same_partition_is_no_part_of_the_time_limit(workshop: Workshop) -> None:
    source = support_source(metric=MetricChoice(toy("acme.patient", by_id({}), timeout_seconds=1)))
    evaluator = evaluator_of(source)
    list(workshop.evaluation(name="acme.patient").ingest([MONDAY]))
    with ThreadPoolExecutor(1) as pool, workshop.engine.connect() as other:
        lock(other, "scores", source.name, MONDAY, "acme.patient", "0.1.0", evaluator.config_hash)
        scoring = pool.submit(score_window, workshop.engine, source, evaluator, day(MONDAY), "a run")
        waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'advisory' AND now() - query_start > '1.1 s'"
        while not workshop.rows(waits):
            assert not scoring.done()
        other.rollback()
        assert scoring.result().tally.scored == 1


def test_a_metric_that_raises_fails_its_partition_with_a_sentence_and_no_other(workshop: Workshop) -> None:
    def broken(partition: CanonicalPartition) -> Result:
        return Result("scored", 1 / (partition.partition_id != "second"))

    name = toy("acme.broken", broken)
    run = workshop.run(*WEEK, name=name)
    assert not run.success
    assert run.error is not None
    assert (
        f"{TUESDAY}: Metric `acme.broken` raised ZeroDivisionError on trace `second` (division by zero); nothing of "
        "the partition was stored." in run.error
    )
    assert workshop.events(run, dg.DagsterEventType.STEP_UP_FOR_RETRY) == 0
    statuses = workshop.statuses("broken_scores", workshop.evaluation(name=name))
    assert statuses == {MONDAY: "MATERIALIZED", TUESDAY: "FAILED", WEDNESDAY: "MATERIALIZED"}
