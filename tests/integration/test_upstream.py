"""What Dagster is told of the tables that others write: filled partitions, a latest event, and nothing without news."""

import dagster as dg
import pytest
import sqlalchemy as sa
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest

from stepacc_dagster import build_evaluation_definitions
from tests.integration.evaluation_access import Workshop, support_source, values
from tests.integration.evaluation_samples import MONDAY, SOURCE, TUESDAY, WEDNESDAY, agent_trace

WEEK = [MONDAY, TUESDAY, WEDNESDAY]
READ = ("agent_traces", "annotations")


@pytest.fixture
def workshop(dagster_instance: dg.DagsterInstance, migrated_engine: sa.Engine) -> Workshop:
    """A trace a day, of a task that is annotated."""
    made = Workshop(dagster_instance, migrated_engine)
    made.land(*(agent_trace(f"t {key}", key, "search", task="find") for key in WEEK))
    made.annotate("task", "find", ["search"])
    return made


def observations(workshop: Workshop, asset: str) -> list[dg.AssetObservation]:
    """The observations of an asset, newest first."""
    records = workshop.instance.fetch_observations(dg.AssetKey([SOURCE, asset]), limit=100).records
    return [record.asset_observation for record in records if record.asset_observation]


def counted(workshop: Workshop) -> list[tuple[int, int]]:
    """Materialisations and observations of each asset that others write."""
    keys = [dg.AssetKey([SOURCE, asset]) for asset in READ]
    made = [len(workshop.instance.fetch_materializations(key, limit=100).records) for key in keys]
    return list(zip(made, [len(observations(workshop, asset)) for asset in READ], strict=True))


def stale(workshop: Workshop, asset: str) -> dict[str, list[str]]:
    """Why partitions of an asset are out of date, as their pages in the UI say it; those that are not are left out."""
    graph = build_evaluation_definitions(support_source()).resolve_asset_graph()
    resolver = CachingStaleStatusResolver(workshop.instance, graph, LoadingContextForTest(workshop.instance))
    key = dg.AssetKey([SOURCE, asset])
    return {
        day: [cause.reason for cause in resolver.get_stale_causes(key, day)]
        for day in WEEK
        if resolver.get_status(key, day) is not StaleStatus.FRESH
    }


def test_partitions_with_news_are_filled_and_one_observation_is_the_latest_event_of_the_asset(
    workshop: Workshop,
) -> None:
    assert workshop.run(*WEEK).success

    for asset in READ:
        assert workshop.instance.get_materialized_partitions(dg.AssetKey([SOURCE, asset])) == set(WEEK)
    assert counted(workshop) == [(3, 1), (3, 1)]
    [[traces], [annotations]] = (observations(workshop, asset) for asset in READ)
    assert (traces.partition, annotations.partition) == (None, None)
    days = f"3 partitions from {MONDAY} to {WEDNESDAY}"
    assert traces.description == f"New or changed traces in {days}."
    assert values(traces) == {"partitions_with_news": 3, "spans": 6, "traces": 3}
    assert annotations.description == f"Annotations behind new scores in {days}."
    assert values(annotations) == {"partitions_with_news": 3, "annotated_occurrences": 3}


def test_without_news_nothing_is_told_and_with_news_of_one_partition_only_of_that(workshop: Workshop) -> None:
    workshop.run(*WEEK)
    workshop.run(*WEEK)
    assert counted(workshop) == [(3, 1), (3, 1)]
    before = observations(workshop, "agent_traces")[0].tags

    workshop.land(agent_trace("late", TUESDAY, "search", "pay", task="find"))
    workshop.run(*WEEK)

    assert counted(workshop) == [(4, 2), (4, 2)]
    assert observations(workshop, "agent_traces")[0].description == f"New or changed traces in partition {TUESDAY}."
    assert observations(workshop, "agent_traces")[0].tags != before


def test_what_was_just_made_of_news_is_not_shown_as_out_of_date(workshop: Workshop) -> None:
    workshop.run(*WEEK)
    workshop.land(agent_trace("late", TUESDAY, "search", task="find"))
    workshop.annotate("task", "find", ["search", "pay"])

    workshop.run(*WEEK)

    assert {asset: stale(workshop, asset) for asset in ("canonical_traces", "step_accuracy_scores")} == {
        "canonical_traces": {},
        "step_accuracy_scores": {},
    }


def test_where_a_partition_fails_the_others_are_told_of(workshop: Workshop) -> None:
    workshop.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$"
    )
    workshop.execute(
        "CREATE TRIGGER refuse BEFORE INSERT ON stepacc.traces FOR EACH ROW "
        f"WHEN (NEW.window_key = '{TUESDAY}') EXECUTE FUNCTION refuse()"
    )

    [run] = workshop.evaluation().ingest(WEEK)

    assert not run.success
    [seen] = observations(workshop, "agent_traces")
    assert seen.description == f"New or changed traces in 2 partitions from {MONDAY} to {WEDNESDAY}."
