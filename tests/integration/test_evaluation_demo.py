"""The demo's traces through real Dagster: what is in SQL, and what the runs tell Dagster of it."""

import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import dagster as dg
import pytest

from stepacc_core import get_metric
from stepacc_core.model import PartitionType
from stepacc_dagster.demo import data
from stepacc_dagster.local.evaluation import LocalEvaluation
from stepacc_dagster.local.instance import local_instance
from stepacc_dagster.local.outcome import RunOutcome
from stepacc_dagster.sources import Source, Unannotated
from stepacc_dagster.storage.annotations import AnnotationEntry, add_annotations
from stepacc_dagster.storage.raw_spans import land_spans
from tests.integration.conftest import Server, opened
from tests.integration.evaluation_access import Workshop, values

FIRST = date(2025, 11, 3)
VERSION = get_metric("agent.step_accuracy").manifest.version
LINK = re.compile(r"((?:trace|session) [^|]*\[[^|]*\])\(<([^|]*)>\)")
"""What is linked in a table, and where the link leads."""


@dataclass(frozen=True)
class Demo(Workshop):
    """The evaluated demo; read only."""

    runs: list[RunOutcome]
    keys: list[str]


@pytest.fixture(scope="module")
def demo(server: Server, _migrated_template: str) -> Iterator[Demo]:
    """Land and annotate as `stepacc demo` does, on fixed days, and evaluate all of them in one run."""
    recorded = data.recorded_spans()
    spans = data.moved(recorded, FIRST - data.days_of(recorded)[0])
    days = [day.isoformat() for day in data.days_of(spans)]
    types: Mapping[PartitionType, Unannotated] = {"trace": "fail", "session": "skip"}
    source = Source(data.SOURCE, days[0], partition_types=types, trace_url="https://traces.example.org/{trace_id}")
    with (
        server.database(_migrated_template) as url,
        opened(url) as engine,
        tempfile.TemporaryDirectory() as home,
        local_instance(Path(home), url) as instance,
    ):
        with engine.begin() as connection:
            land_spans(connection, data.SOURCE, spans)
            entries = [AnnotationEntry.of(a, source=data.SOURCE, origin="demo.yaml") for a in data.annotations()]
            add_annotations(connection, entries)
        evaluation = LocalEvaluation(source, instance, engine)
        keys = evaluation.partition_keys(days[0], days[-1])
        yield Demo(instance, engine, list(evaluation.materialize(keys)), keys)


def test_all_partitions_are_materialised_by_one_run_that_dagster_stored_on_postgres(demo: Demo) -> None:
    [outcome] = demo.runs
    assert (outcome.success, outcome.partitions) == (True, len(demo.keys))
    assert len(demo.keys) >= 5
    run = demo.instance.get_run_by_id(outcome.run_id)
    assert run is not None
    assert run.status is dg.DagsterRunStatus.SUCCESS
    [(stored,)] = demo.rows("SELECT status FROM dagster.runs")
    assert stored == "SUCCESS"
    for asset in ("canonical_traces", "step_accuracy_scores", "step_accuracy_metadata"):
        partitions = demo.instance.get_materialized_partitions(dg.AssetKey([data.SOURCE, asset]))
        assert partitions == set(demo.keys)


def test_every_trace_landed_is_scored_or_says_why_not(demo: Demo) -> None:
    landed = {trace_id for (trace_id,) in demo.rows("SELECT DISTINCT trace_id FROM stepacc.otel_spans")}
    rows = demo.rows("SELECT * FROM stepacc.scores WHERE partition_type = 'trace'")
    assert {row.partition_id for row in rows} == landed
    assert len(rows) == len(landed)
    assert not [row for row in rows if row.status == "failed"]
    assert {row.window_key for row in rows} == set(demo.keys)
    assert {(row.metric, row.metric_version) for row in rows} == {("agent.step_accuracy", VERSION)}


def test_a_score_in_sql_leads_to_the_annotation_revision_run_and_trace_behind_it(demo: Demo) -> None:
    rows = demo.rows("SELECT * FROM stepacc.score_lineage WHERE status = 'scored'")
    assert rows
    expected = {annotation.target.id: annotation.value for annotation in data.annotations()}
    for row in rows:
        assert row.annotation_target_id in {row.task_id, row.partition_id}
        assert row.annotation_value == expected[row.annotation_target_id]
        assert (row.annotation_revision, row.annotation_author) == (1, "qa@example.org")
        assert (row.annotation_origin, row.expected_from) == ("demo.yaml", "column")
        assert row.dagster_run_id == demo.runs[0].run_id
    targets = {row.annotation_target_type for row in rows}
    assert targets == {"task", "trace", "session"}


def test_the_reasons_of_each_score_stand_beside_it(demo: Demo) -> None:
    rows = demo.rows(
        "SELECT s.score, s.edit_distance, s.total_steps, s.annotation_id, m.metadata FROM stepacc.scores s "
        "JOIN stepacc.score_metadata m ON m.score_id = s.id WHERE s.status = 'scored'"
    )
    assert len(rows) == len(demo.rows("SELECT 1 FROM stepacc.scores WHERE status = 'scored'"))
    assert any(row.score < 1 for row in rows)
    for row in rows:
        edits = sum(entry["op"] != "match" for entry in row.metadata["steps"])
        longest = max(row.total_steps, len(row.metadata["actual_steps"]))
        assert (edits, row.score) == (row.edit_distance, 1 - row.edit_distance / longest)
        assert row.metadata["annotation"]["id"] == row.annotation_id


def test_row_counts_of_each_partition_are_those_in_sql(demo: Demo) -> None:
    counted = {
        "canonical_traces": "SELECT count(*) FROM stepacc.spans JOIN stepacc.traces USING (source, trace_id) "
        "WHERE window_key = :key",
        "step_accuracy_scores": "SELECT count(*) FROM stepacc.scores WHERE window_key = :key",
        "step_accuracy_metadata": "SELECT count(*) FROM stepacc.score_metadata JOIN stepacc.scores "
        "ON id = score_id WHERE window_key = :key",
    }
    for asset, query in counted.items():
        for key in demo.keys:
            [(rows,)] = demo.rows(query, key=key)
            assert rows > 0
            assert demo.metadata(asset, key, data.SOURCE)["dagster/partition_row_count"] == rows


def test_each_partition_shows_its_means_its_counts_and_its_worst_traces(demo: Demo) -> None:
    kinds: set[str] = set()
    for key in demo.keys:
        shown = demo.metadata("step_accuracy_scores", key, data.SOURCE)
        [summary] = demo.rows(
            "SELECT count(*) AS scored, min(score) AS worst FROM stepacc.scores "
            "WHERE window_key = :key AND status = 'scored'",
            key=key,
        )
        of_kinds = demo.rows(
            "SELECT partition_type AS kind, avg(score) AS mean, min(score) AS worst FROM stepacc.scores "
            "WHERE window_key = :key AND status = 'scored' GROUP BY partition_type",
            key=key,
        )
        assert shown["scored"] == summary.scored
        assert {name for name in shown if name.endswith("mean_score")} == {f"{row.kind}_mean_score" for row in of_kinds}
        for row in of_kinds:
            assert shown[f"{row.kind}_mean_score"] == pytest.approx(row.mean, abs=1e-4)
            assert shown[f"{row.kind}_min_score"] == pytest.approx(row.worst, abs=1e-4)
            kinds.add(row.kind)
        assert shown["metric_version"] == VERSION
        head, rule, *lines = shown["worst"].splitlines()
        assert (head, rule) == ("| score | expected | observed | occurrence |", "|---|---|---|---|")
        assert len(lines) == min(summary.scored, 10)
        assert lines[0].startswith(f"| {summary.worst:.3f} | ")
    assert kinds == {"trace", "session"}
    without = demo.metadata("step_accuracy_scores", demo.keys[-1], data.SOURCE)["without_score"].replace("\\_", "_")
    assert " | not applicable | content_not_recorded |" in without


def test_each_trace_shown_links_to_its_store_and_a_session_to_its_first_trace(demo: Demo) -> None:
    linked: dict[str, str] = {}
    for key in demo.keys:
        shown = demo.metadata("step_accuracy_scores", key, data.SOURCE)
        for table in (shown["worst"], shown.get("without_score", "")):
            linked |= dict(LINK.findall(table))
            assert len(LINK.findall(table)) == max(0, len(table.splitlines()) - 2)
    expected = {f"trace [`{row.trace_id[:8]}…`]": row.trace_id for row in demo.rows("SELECT * FROM stepacc.traces")}
    sessions = demo.rows(
        "SELECT session_id, first_trace_id FROM stepacc.sessions JOIN stepacc.scores USING (source, session_id) "
        "WHERE partition_type = 'session'"
    )
    assert sessions
    expected |= {f"session `{row.session_id}`, [first trace]": row.first_trace_id for row in sessions}
    assert linked == {name: f"https://traces.example.org/{trace_id}" for name, trace_id in expected.items()}


def test_each_partition_shows_the_annotation_revisions_behind_its_scores(demo: Demo) -> None:
    for key in demo.keys:
        shown = demo.metadata("step_accuracy_scores", key, data.SOURCE)
        used = demo.rows(
            "SELECT DISTINCT annotation_id, annotated_at FROM stepacc.score_lineage "
            "WHERE window_key = :key AND annotation_id IS NOT NULL ORDER BY annotation_id",
            key=key,
        )
        assert shown["annotation_revisions"] == len(used) > 0
        assert shown["newest_annotation"] == f"stepacc lineage annotation {used[-1].annotation_id}"
        assert shown["newest_annotation_at"] == used[-1].annotated_at.timestamp()
        said = demo.metadata("annotations", key, data.SOURCE)
        assert said["annotation_revisions"] == len(used)


def test_code_version_is_manifest_and_config_and_data_version_begins_with_it(demo: Demo) -> None:
    [(config_hash,)] = demo.rows("SELECT DISTINCT config_hash FROM stepacc.scores")
    code_version = f"{VERSION}-{config_hash[:12]}"
    for asset in ("step_accuracy_scores", "step_accuracy_metadata"):
        for key in demo.keys:
            tags = demo.materialization(asset, key, data.SOURCE).tags or {}
            assert tags["dagster/code_version"] == code_version
            assert tags["dagster/data_version"].startswith(f"{code_version}:")


def test_checks_come_with_the_materialisation_and_pass(demo: Demo) -> None:
    checks = demo.checks(demo.runs[0])
    assert {name: check.passed for name, check in checks.items()} == {
        "every_occurrence_has_expected_steps": True,
        "scores_between_0_and_1": True,
        "coverage": True,
    }
    [(scored, rows)] = demo.rows("SELECT count(*) FILTER (WHERE status = 'scored'), count(*) FROM stepacc.scores")
    [(sessions,)] = demo.rows("SELECT count(*) FROM stepacc.sessions")
    [(annotated,)] = demo.rows("SELECT count(*) FROM stepacc.scores WHERE partition_type = 'session'")
    days = f"6 partitions from {demo.keys[0]} to {demo.keys[-1]}"
    for name, check in checks.items():
        assert check.description.endswith(f", in {days}."), name
        assert values(check)["partitions"] == days
        assert [] not in values(check).values()
        assert {} not in values(check).values()
    coverage = values(checks["coverage"])
    assert (coverage["scored"], coverage["skipped_unannotated"]) == (scored, sessions - annotated)
    assert coverage["occurrences"] == rows + sessions - annotated
    assert coverage["skipped_unannotated"] > 0


def test_the_run_is_found_by_its_tags_and_has_a_longest_time(demo: Demo) -> None:
    run = demo.instance.get_run_by_id(demo.runs[0].run_id)
    assert run is not None
    limit = get_metric("agent.step_accuracy").manifest.execution.timeout_seconds
    assert (
        run.tags.items()
        >= {
            "stepacc/source": data.SOURCE,
            "stepacc/metric": "agent.step_accuracy",
            "stepacc/metric_version": VERSION,
            "stepacc/trigger": "command",
            "dagster/max_runtime": str(limit * len(demo.keys)),
        }.items()
    )


def test_the_pool_has_the_limit_of_the_manifest(demo: Demo) -> None:
    limits = {limit.name: limit.limit for limit in demo.instance.event_log_storage.get_pool_limits()}
    assert limits == {"stepacc_step_accuracy": get_metric("agent.step_accuracy").manifest.execution.max_concurrency}


def test_moving_the_demo_by_whole_days_keeps_the_distances_between_its_traces() -> None:
    recorded = data.recorded_spans()
    moved = data.moved(recorded, timedelta(days=-400))
    shifts = {
        before.start_time_unix_nano - after.start_time_unix_nano
        for before, after in zip(recorded, moved, strict=True)
        if before.start_time_unix_nano and after.start_time_unix_nano
    }
    assert shifts == {400 * 86_400_000_000_000}
