"""Which partitions a local evaluation takes."""

from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest
import sqlalchemy as sa

from stepacc_core.errors import ConfigError
from tests.integration.evaluation_access import Workshop
from tests.integration.evaluation_samples import MONDAY, agent_trace


@pytest.fixture
def idle() -> Iterator[Workshop]:
    """A workshop whose database nobody connects to."""
    with dg.DagsterInstance.ephemeral() as instance:
        yield Workshop(instance, sa.create_engine("postgresql+psycopg://nobody@nowhere.invalid/none"))


def test_a_range_has_both_its_ends_and_an_open_end_is_that_of_the_source(idle: Workshop) -> None:
    evaluation = idle.evaluation(end_offset=0)
    assert evaluation.partition_keys("2025-11-03", "2025-11-05") == ["2025-11-03", "2025-11-04", "2025-11-05"]
    assert evaluation.partition_keys(None, "2025-11-02") == ["2025-11-01", "2025-11-02"]
    assert evaluation.partition_keys("2025-11-03", None)[0] == "2025-11-03"
    assert len(evaluation.partition_keys(None, None)) > 28


@pytest.mark.parametrize(
    ("settings", "first", "last", "sentence"),
    [
        ({}, "2025-10-31", None, r"'2025-10-31' is no partition of source `support`; its partitions are 2025-11-01 to"),
        ({}, None, "tomorrow", r"'tomorrow' is no partition of source `support`"),
        ({}, "2025-11-05", "2025-11-03", r"no partition from 2025-11-05 to 2025-11-03; write the earlier key first"),
        ({"partitions": "hourly"}, "2025-11-03", None, r"its partitions are 2025-11-01-00:00 to"),
        ({"start_date": "2999-01-01"}, None, None, r"has no partition yet; its start_date is 2999-01-01"),
        ({"start_date": "2999-01-01"}, "2999-01-01", None, r"has no partition yet; its start_date is 2999-01-01"),
    ],
)
def test_a_range_that_is_none_is_refused_in_words(
    idle: Workshop, settings: dict[str, Any], first: str | None, last: str | None, sentence: str
) -> None:
    with pytest.raises(ConfigError, match=sentence):
        idle.evaluation(**settings).partition_keys(first, last)


def test_an_hour_is_a_partition_as_a_day_is(dagster_instance: dg.DagsterInstance, migrated_engine: sa.Engine) -> None:
    workshop = Workshop(dagster_instance, migrated_engine)
    workshop.land(
        agent_trace("nine", MONDAY, "search", hour=9, session="s"),
        agent_trace("ten", MONDAY, "search", hour=10, session="s"),
    )
    evaluation = workshop.evaluation(
        partitions="hourly", config={"expected_steps": ["search"]}, partition_types={"trace": "fail", "session": "fail"}
    )
    keys = evaluation.partition_keys(f"{MONDAY}-09:00", f"{MONDAY}-10:00")
    [run] = evaluation.materialize(keys)
    assert run.success, run.error
    found = {row.partition_id: (row.window_key, row.score) for row in workshop.scores()}
    assert found == {"nine": (keys[0], 1.0), "ten": (keys[1], 1.0), "s": (keys[0], 0.5)}
