"""Who is told of a failed run, and what."""

import logging
import pickle
import threading
from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest
import sqlalchemy as sa

from stepacc_core import CanonicalPartition, Result, register
from stepacc_core.errors import ConfigError
from stepacc_core.metrics import registry
from stepacc_dagster import build_evaluation_definitions, notifications
from stepacc_dagster.local.evaluation import LocalEvaluation
from stepacc_dagster.notifications import FailedRun
from stepacc_dagster.sources import MetricChoice
from stepacc_dagster.storage.raw_spans import land_spans
from tests.integration.evaluation_access import Workshop, support_source
from tests.integration.evaluation_samples import MONDAY, TUESDAY, ToyMetric, agent_trace

told: list[FailedRun] = []
done = threading.Event()


def tell(failed: FailedRun) -> None:
    """The target that the tests' sources name."""
    told.append(failed)


@pytest.fixture
def workshop(
    dagster_instance: dg.DagsterInstance, migrated_engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Workshop]:
    """Two days, on the second of which the metric fails."""
    monkeypatch.setattr(registry, "_METRICS", dict(registry._METRICS))

    def score(partition: CanonicalPartition) -> Result:
        if partition.partition_id == "bad":
            msg = "a fault\nof the metric"
            raise ValueError(msg)
        return Result("scored", 0.5)

    register(ToyMetric("acme.faulty", score))
    workshop = Workshop(dagster_instance, migrated_engine)
    workshop.land(agent_trace("good", MONDAY, "x"), agent_trace("bad", TUESDAY, "x"))
    told.clear()
    yield workshop
    told.clear()


def look(workshop: Workshop, run_id: str, **settings: Any) -> Any:
    """Evaluate the failure sensor for a run, as the daemon does."""
    source = support_source(metric=MetricChoice("acme.faulty"), **settings)
    definitions = build_evaluation_definitions(source)
    sensor: Any = definitions.get_repository_def().get_sensor_def("support_failures")
    instance = workshop.instance
    run = instance.get_run_by_id(run_id)
    assert run is not None
    [entry] = instance.all_logs(run_id, of_type=dg.DagsterEventType.RUN_FAILURE)
    event = entry.get_dagster_event()
    context = dg.build_run_status_sensor_context(
        sensor_name=sensor.name, dagster_event=event, dagster_instance=instance, dagster_run=run
    ).for_run_failure()
    return sensor(context)


def test_the_target_gets_source_metric_run_partitions_and_reasons(workshop: Workshop) -> None:
    outcome = workshop.run(MONDAY, TUESDAY, name="acme.faulty")
    look(workshop, outcome.run_id, on_failure=f"{__name__}:tell")
    [failed] = told
    assert (failed.source, failed.metric, failed.metric_version) == ("support", "acme.faulty", "0.1.0")
    assert (failed.run_id, failed.first, failed.last) == (outcome.run_id, MONDAY, TUESDAY)
    assert list(failed.partitions) == [TUESDAY]
    assert "a fault" in failed.partitions[TUESDAY]
    assert failed.error == " ".join(str(outcome.error).split())
    assert "\n" not in str(failed)
    assert str(failed).startswith(f"Run {outcome.run_id} of acme.faulty 0.1.0 for `support` over {MONDAY} to {TUESDAY}")
    assert pickle.loads(pickle.dumps(failed)) == failed  # noqa: S301 (our own)


def hang(failed: FailedRun) -> None:
    """A target that waits until the test is done with it."""
    told.append(failed)
    done.wait(60)


def fault(_failed: FailedRun) -> None:
    """A target that has a fault of its own."""
    msg = "the pager is gone"
    raise OSError(msg)


def test_a_target_that_hangs_is_left_and_one_that_fails_fails_the_look(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = workshop.run(TUESDAY, name="acme.faulty")
    monkeypatch.setattr(notifications, "TOLD_WITHIN", 0.2)
    done.clear()
    try:
        assert look(workshop, outcome.run_id, on_failure=f"{__name__}:hang") is None
    finally:
        done.set()
    assert [failed.run_id for failed in told] == [outcome.run_id]
    assert f"{__name__}:hang did not come back within 0 s, and is left: Run {outcome.run_id}" in capsys.readouterr().err
    with pytest.raises(Exception, match="the pager is gone"):
        look(workshop, outcome.run_id, on_failure=f"{__name__}:fault")


def test_without_a_target_it_is_logged(workshop: Workshop, caplog: pytest.LogCaptureFixture) -> None:
    outcome = workshop.run(TUESDAY, name="acme.faulty")
    with caplog.at_level(logging.ERROR, logger="stepacc"):
        look(workshop, outcome.run_id)
    assert outcome.run_id in caplog.text
    assert "a fault" in caplog.text


def test_runs_of_other_sources_are_not_told_of(workshop: Workshop) -> None:
    with workshop.engine.begin() as connection:
        land_spans(connection, "another", agent_trace("bad", TUESDAY, "x"))
    another = support_source(name="another", metric=MetricChoice("acme.faulty"))
    [outcome, *_] = LocalEvaluation(another, workshop.instance, workshop.engine).materialize([TUESDAY])
    assert not outcome.success
    assert look(workshop, outcome.run_id, on_failure=f"{__name__}:tell") == []
    assert told == []


def test_each_failed_run_is_told_of_once_though_others_failed_since_the_last_look(workshop: Workshop) -> None:
    source = support_source(metric=MetricChoice("acme.faulty"), on_failure=f"{__name__}:tell")
    another = support_source(name="another", metric=MetricChoice("acme.faulty"))
    with workshop.engine.begin() as connection:
        land_spans(connection, another.name, agent_trace("bad", TUESDAY, "x"))
    sensor = build_evaluation_definitions(source).get_repository_def().get_sensor_def("support_failures")
    cursor: str | None = None
    failed: list[str] = []
    for place in range(8):
        with dg.build_sensor_context(workshop.instance, cursor=cursor) as context:
            cursor = sensor.evaluate_tick(context).cursor
        if place == 0:  # the first look says from where on
            for each in (source, another, source, another):
                [run, *_] = LocalEvaluation(each, workshop.instance, workshop.engine).materialize([TUESDAY])
                failed += [run.run_id] if each is source else []
    assert [each.run_id for each in told] == failed


@pytest.mark.parametrize("given", ["nowhere.module:tell", "os:nothing", "os", "os:", "os.path:sep"])
def test_a_target_that_is_no_function_is_refused_when_the_location_loads(given: str) -> None:
    with pytest.raises(ConfigError, match=f"on_failure of source `support` is '{given}'"):
        build_evaluation_definitions(support_source(on_failure=given))


def test_scores_have_the_freshness_policy_that_the_source_names() -> None:
    for hours in (None, 50.0):
        specs = build_evaluation_definitions(support_source(freshness_hours=hours)).resolve_all_asset_specs()
        policies = {spec.key.path[-1]: spec.freshness_policy for spec in specs}
        assert (policies["step_accuracy_scores"] is None) == (hours is None)
        assert policies["canonical_traces"] is None
    with pytest.raises(ConfigError, match="use more than 0"):
        support_source(freshness_hours=0)
