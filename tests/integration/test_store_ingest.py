"""Traces of other people's stores become canonical traces, and a late span changes its own trace only."""

import pytest
import sqlalchemy as sa

from stepacc_core.errors import StepaccError
from stepacc_dagster.ingest import ingest_window
from stepacc_dagster.sources import Source
from stepacc_dagster.stores.factory import build_store
from tests.integration.store_access import DAY, SETTINGS, SOURCE, TRUE_CALLS, StoreName, load, run
from tests.integration.test_store_changes import STORES, add_late_span

SUPPORT = Source(SOURCE, "2026-11-01")
TOOLS = sa.text(
    "SELECT tool_name FROM stepacc.spans WHERE trace_id = :id AND kind = 'TOOL' ORDER BY start_time_unix_nano"
)


@pytest.mark.parametrize("store", STORES)
def test_a_late_child_changes_its_trace_and_nothing_else(migrated_engine: sa.Engine, store: StoreName) -> None:
    load(migrated_engine, store)
    their = build_store(SETTINGS[store](), migrated_engine, SOURCE)
    late = min(TRUE_CALLS[store])
    count = len(TRUE_CALLS[store])

    first = ingest_window(migrated_engine, their, SUPPORT, DAY)
    again = ingest_window(migrated_engine, their, SUPPORT, DAY)
    add_late_span(migrated_engine, store, late)
    after = ingest_window(migrated_engine, their, SUPPORT, DAY)

    assert [(found.ingested.traces, found.ingested.unchanged) for found in (first, again, after)] == [
        (count, 0),
        (count, count),
        (count, count - 1),
    ]
    assert [found.news for found in (first, again, after)] == [True, False, True]
    assert first.content == again.content != after.content
    with migrated_engine.connect() as connection:
        assert connection.scalars(TOOLS, {"id": late}).all()[-1] == "late_tool"


def test_a_store_that_cannot_be_read_leaves_the_window_as_it_was(migrated_engine: sa.Engine) -> None:
    load(migrated_engine, "phoenix")
    their = build_store(SETTINGS["phoenix"](), migrated_engine, SOURCE)
    content = ingest_window(migrated_engine, their, SUPPORT, DAY).content
    run(migrated_engine, "ALTER TABLE spans RENAME COLUMN parent_id TO parent")

    with pytest.raises(StepaccError, match=r"no column public\.spans\.parent_id"):
        ingest_window(migrated_engine, their, SUPPORT, DAY)

    run(migrated_engine, "ALTER TABLE spans RENAME COLUMN parent TO parent_id")
    assert ingest_window(migrated_engine, their, SUPPORT, DAY).content == content
