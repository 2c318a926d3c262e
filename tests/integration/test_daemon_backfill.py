"""A backfill of the demo through Dagster's own daemon and run queue, launched as the UI launches it."""

import json
import signal
import time
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from stepacc_core import get_metric
from stepacc_dagster.demo import data
from stepacc_dagster.local.instance import local_instance
from stepacc_dagster.local.postgres import running_postgres
from stepacc_dagster.storage.annotations import AnnotationEntry, add_annotations
from stepacc_dagster.storage.raw_spans import land_spans
from stepacc_dagster.storage.schema import upgrade
from tests.integration.conftest import opened
from tests.integration.evaluation_access import Workshop
from tests.integration.test_cli_dev import Dev, dev, needs_proc, processes_of

ASSETS = ("canonical_traces", "step_accuracy_scores", "step_accuracy_metadata")
TAGS = {"stepacc/trigger": "test", "dagster/max_runtime": "3600"}
WITHIN = 240
"""Seconds after which a backfill is given up; the daemon looks at backfills every thirty."""

LAUNCH = """mutation ($params: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $params) {
    __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message }
} }"""
FOLLOW = """query ($id: String!) { partitionBackfillOrError(backfillId: $id) {
    ... on PartitionBackfill { status numPartitions assetBackfillData { assetBackfillStatuses {
        ... on AssetPartitionsStatusCounts { assetKey { path } numPartitionsMaterialized numPartitionsFailed }
    } } }
} }"""


def ask(running: Dev, query: str, **variables: Any) -> Any:
    request = urllib.request.Request(
        f"http://127.0.0.1:{running.port}/graphql",
        json.dumps({"query": query, "variables": variables}).encode(),
        {"Content-Type": "application/json"},
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=60) as answer:
        document = json.load(answer)
    assert "errors" not in document, document["errors"]
    return document["data"]


def land_demo(home: Path) -> list[str]:
    """Do what `stepacc demo` does before it evaluates; return the partitions."""
    recorded = data.recorded_spans()
    last = datetime.now(UTC).date() - timedelta(days=data.DAYS_AGO)
    spans = data.moved(recorded, last - data.days_of(recorded)[-1])
    days = data.days_of(spans)
    folder = home / "defs" / data.SOURCE
    folder.mkdir(parents=True)
    (folder / "defs.yaml").write_text(data.defs_yaml(days[0]))
    with running_postgres(home) as server, opened(server.url()) as engine:
        upgrade(engine)
        with engine.begin() as connection:
            land_spans(connection, data.SOURCE, spans)
            entries = [AnnotationEntry.of(a, source=data.SOURCE, origin="demo.yaml") for a in data.annotations()]
            add_annotations(connection, entries)
    return [day.isoformat() for day in days]


def backfill(running: Dev, keys: list[str]) -> tuple[str, Any]:
    """Launch a backfill of all assets and wait for its end; return its id and what the webserver says of it."""
    selection = [{"path": [data.SOURCE, asset]} for asset in ASSETS]
    tags = [{"key": key, "value": value} for key, value in TAGS.items()]
    params = {"assetSelection": selection, "partitionNames": keys, "tags": tags, "title": "all of the demo"}
    launched = ask(running, LAUNCH, params=params)["launchPartitionBackfill"]
    assert launched["__typename"] == "LaunchBackfillSuccess", launched
    deadline = time.monotonic() + WITHIN
    while True:
        state = ask(running, FOLLOW, id=launched["backfillId"])["partitionBackfillOrError"]
        if state["status"] not in ("REQUESTED", "IN_PROGRESS") or time.monotonic() > deadline:
            return launched["backfillId"], state
        time.sleep(0.5)


@needs_proc
@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_backfill_of_the_demo_through_daemon_and_queue(open_home: Path) -> None:
    """Every partition is scored and shown as materialised, runs carry their tags, and nothing is left running."""
    keys = land_demo(open_home)
    assert len(keys) >= 5
    with dev(open_home) as running:
        ident, state = backfill(running, keys)
        assert state["status"] == "COMPLETED_SUCCESS", state
        counts = state["assetBackfillData"]["assetBackfillStatuses"]
        assert {each["assetKey"]["path"][-1]: each["numPartitionsMaterialized"] for each in counts} == dict.fromkeys(
            ASSETS, len(keys)
        )
        with (
            running_postgres(open_home) as server,
            opened(server.url()) as engine,
            local_instance(open_home, server.url()) as instance,
        ):
            judge(Workshop(instance, engine), keys, ident)
        code, said = running.end(signal.SIGINT)
    assert code == 0, said
    assert processes_of(open_home) == []
    assert not (open_home / "postgres" / "postmaster.pid").exists()


def judge(workshop: Workshop, keys: list[str], backfill_id: str) -> None:
    """Look at rows, runs, statuses and pool after the backfill."""
    rows = workshop.rows("SELECT * FROM stepacc.score_lineage")
    landed = {trace for (trace,) in workshop.rows("SELECT DISTINCT trace_id FROM stepacc.otel_spans")}
    assert {row.partition_id for row in rows if row.partition_type == "trace"} == landed
    assert {row.window_key for row in rows} == set(keys)
    assert not [row for row in rows if row.status == "failed"]
    assert all(row.annotation_id for row in rows if row.status == "scored")
    runs = workshop.instance.get_runs(filters=dg.RunsFilter(tags={"dagster/backfill": backfill_id}))
    assert runs
    assert {run.status for run in runs} == {dg.DagsterRunStatus.SUCCESS}
    assert all(run.tags.items() >= TAGS.items() for run in runs)
    assert {row.dagster_run_id for row in rows} <= {run.run_id for run in runs}
    definition = dg.DailyPartitionsDefinition(keys[0], end_offset=1)
    for asset in ASSETS:
        statuses = workshop.instance.get_status_by_partition(dg.AssetKey([data.SOURCE, asset]), keys, definition) or {}
        assert {key: status.value for key, status in statuses.items() if status} == dict.fromkeys(keys, "MATERIALIZED")
    manifest = get_metric("agent.step_accuracy").manifest
    limits = {limit.name: limit.limit for limit in workshop.instance.event_log_storage.get_pool_limits()}
    assert limits["stepacc_step_accuracy"] == manifest.execution.max_concurrency
    checks = [
        entry.get_dagster_event().asset_check_evaluation_data
        for run in runs
        for entry in workshop.instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION)
    ]
    assert len({check.check_name for check in checks}) == 3
    assert all(check.passed for check in checks)
