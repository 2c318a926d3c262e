"""The report of scores that were made: what it counts, where it is written, and that it stays small."""

import re
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
import sqlalchemy as sa

from stepacc_dagster.evaluators import evaluators_of
from stepacc_dagster.report.files import report_path, write_report
from stepacc_dagster.report.model import Report, StepCount
from stepacc_dagster.report.page import render
from stepacc_dagster.report.queries import read_report
from stepacc_dagster.sources import MetricChoice
from tests.integration.conftest import Server
from tests.integration.evaluation_access import Workshop, open_workshop, support_source
from tests.integration.evaluation_samples import MONDAY, SOURCE, TUESDAY, agent_trace

TRACES = [
    agent_trace("right", MONDAY, "search", "answer", task="ask"),
    agent_trace("short", MONDAY, "search", task="ask"),
    agent_trace("other", TUESDAY, "browse", "answer", task="ask"),
    agent_trace("stray", TUESDAY, "search", "answer", "answer", task="<b>ask</b>"),
    agent_trace("alone", TUESDAY, "search"),
]
OLDER, NEWER = MetricChoice(version="1.0.0"), MetricChoice(version="2.0.0")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the asset's report, which nobody made yet."""
    return tmp_path_factory.mktemp("reports") / "made" / "here"


@pytest.fixture(scope="module")
def workshop(server: Server, _migrated_template: str, _dagster_template: str, folder: Path) -> Iterator[Workshop]:
    """Two days of five traces, scored by two versions of the metric; the runs keep a report too."""
    with open_workshop(server, _migrated_template, _dagster_template) as opened:
        opened.land(*TRACES)
        opened.annotate("task", "ask", ["search", "answer"])
        opened.annotate("task", "<b>ask</b>", ["search", "answer"])
        for version in ("1.0.0", "2.0.0"):
            assert opened.run(MONDAY, TUESDAY, version=version, report_folder=str(folder)).success
        yield opened


def read(workshop: Workshop, choice: MetricChoice = NEWER, first: str = "", last: str = "~") -> Report:
    """Read the report."""
    source = support_source(metric=choice)
    with workshop.engine.connect() as connection:
        return read_report(connection, source, evaluators_of(source), first, last)


def test_it_counts_what_the_scores_say(workshop: Workshop) -> None:
    report = read(workshop)
    [view] = report.views

    assert (report.first, report.last) == (MONDAY, TUESDAY)
    assert (view.metric, view.version, view.partition_type) == ("agent.step_accuracy", "2.0.0", "trace")
    assert view.mean == pytest.approx((1 + 1 / 2 + 1 / 2 + 2 / 3) / 4)
    assert {each.label: each.count for each in view.bins if each.count} == {"0.5": 2, "0.6": 1, "1.0": 1}
    assert (view.coverage.scored, view.coverage.failed, view.coverage.share) == (4, 1, 0.8)
    assert [(reason.code, reason.count) for reason in view.coverage.reasons] == [("missing_expected_steps", 1)]
    assert view.faults.missing == (StepCount("answer", None, 1, 1),)
    assert view.faults.extra == (StepCount(None, "answer", 1, 1),)
    assert view.faults.substituted == (StepCount("search", None, 1, 1),)
    assert view.faults.confusions == (StepCount("search", "browse", 1, 1),)
    assert [(task.task_id, task.scored, task.unscored) for task in view.tasks.worst] == [
        (None, 0, 1), ("ask", 3, 0), ("<b>ask</b>", 1, 0),
    ]  # fmt: skip
    assert [task.mean for task in view.tasks.worst] == [None, pytest.approx(2 / 3), pytest.approx(2 / 3)]
    assert [task.lowest for task in view.tasks.worst] == [None, 0.5, pytest.approx(2 / 3)]
    assert [worst.partition_id for worst in view.worst] == ["other", "short", "stray"]
    assert view.worst[0].measured_against == "annotation 1 of task ask, revision 1 by qa@example.org"
    assert [reason.example_id for reason in view.coverage.reasons] == ["alone"]


def test_versions_are_told_apart_over_time_and_never_added(workshop: Workshop) -> None:
    [newer] = read(workshop).views
    [older] = read(workshop, OLDER).views
    points = [(point.period, point.version, point.scored) for point in newer.trend]

    assert points == [
        (MONDAY, "1.0.0", 2), (MONDAY, "2.0.0", 2), (TUESDAY, "1.0.0", 2), (TUESDAY, "2.0.0", 2),
    ]  # fmt: skip
    assert newer.trend == older.trend
    assert (newer.coverage.scored, older.coverage.scored) == (4, 4)
    assert newer.mean != older.mean
    assert older.faults.extra == (StepCount(None, "answer", 1, 1),)  # strict position lists them apart


def test_it_is_about_the_windows_that_are_asked_for(workshop: Workshop) -> None:
    [view] = read(workshop, first=TUESDAY, last=TUESDAY).views
    nothing = read(workshop, first="2025-11-20", last="2025-11-21")

    assert view.coverage.scored == 2
    assert [point.period for point in view.trend] == [TUESDAY, TUESDAY]
    assert (nothing.first, nothing.views[0].mean) == (None, None)
    assert "Nothing was scored in these windows." in render(nothing)


def test_the_page_needs_nothing_but_itself(workshop: Workshop) -> None:
    page = render(read(workshop))

    assert "<b>ask" not in page
    assert "&lt;b&gt;ask" in page
    loads = re.findall(r"""(?:src|href)=["']?(?!#|data:)[^"'> ]+|url\(|@import""", page)
    assert loads == []


def test_an_asset_keeps_it_where_the_source_says(workshop: Workshop, folder: Path) -> None:
    event = workshop.instance.get_latest_materialization_event(dg.AssetKey([SOURCE, "report"]))

    assert [path.name for path in folder.iterdir()] == [f"{SOURCE}.html"]
    assert event is not None
    assert event.asset_materialization is not None
    metadata = event.asset_materialization.metadata
    assert metadata["file"].value == str(report_path(str(folder), SOURCE))
    assert (metadata["scored"].value, metadata["without_score"].value) == (4, 1)


def test_a_file_that_cannot_be_written_leaves_the_one_before(workshop: Workshop, tmp_path: Path) -> None:
    source = support_source(metric=NEWER)
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "kept").touch()
    with workshop.engine.connect() as connection, pytest.raises(OSError, match="taken"):
        write_report(connection, source, evaluators_of(source), taken)

    assert [path.name for path in tmp_path.rglob("*")] == ["taken", "kept"]


_MANY_SCORES = """
    INSERT INTO stepacc.scores (source, partition_type, partition_id, task_id, window_key, metric, metric_version,
                                config_hash, status, score, evaluated_at, confirmed_at)
    SELECT :source, 'trace', 'trace ' || n, 'task ' || n % 5000,
           '2025-' || to_char(1 + n % 12, 'FM00') || '-' || to_char(1 + n % 28, 'FM00'),
           'agent.step_accuracy', '2.0.0', :config_hash, 'scored', (n % 100) / 100.0, now(), now()
    FROM generate_series(1, 100000) n
"""
_MANY_STEPS = """
    INSERT INTO stepacc.score_metadata
    SELECT id, jsonb_build_object('steps', (
        SELECT jsonb_agg(jsonb_build_object('op', 'insert', 'expected', NULL, 'actual', 'tool ' || (id % 997) || k))
        FROM generate_series(1, 20) k
    )) FROM stepacc.scores
"""


@pytest.mark.slow
def test_a_hundred_thousand_traces_make_a_page_below_five_megabytes(migrated_engine: sa.Engine) -> None:
    source = support_source()
    [evaluator] = evaluators_of(source)
    with migrated_engine.begin() as connection:
        connection.execute(sa.text(_MANY_SCORES), {"source": SOURCE, "config_hash": evaluator.config_hash})
        connection.execute(sa.text(_MANY_STEPS))
        connection.execute(sa.text("ANALYZE stepacc.scores, stepacc.score_metadata"))  # as the server does in a minute
        page = render(read_report(connection, source, [evaluator]))

    assert "100,000" in page
    assert len(page.encode()) < 5_000_000
