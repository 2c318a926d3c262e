"""What somebody sees, and can do by clicking, who opens the Dagster UI over the demo.

A backfill takes Dagster's daemon about a minute, so it is launched early and waited for last. Only the checks are
looked at before it, since they speak of the days that were scored last.
"""

import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.demo_ui import BACKFILL_PATIENCE, LINEAGE, SCORES, Demo, launch_backfill, open_day, watched_page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

EDGES = {
    ("agent_traces", "canonical_traces"),
    ("annotations", "step_accuracy_metadata"),
    ("annotations", "step_accuracy_scores"),
    ("canonical_traces", "step_accuracy_metadata"),
    ("canonical_traces", "step_accuracy_scores"),
    ("step_accuracy_metadata", "task_summaries"),
    ("step_accuracy_scores", "task_summaries"),
}
ASSETS = {asset for edge in EDGES for asset in edge}
CHECKS = {
    "coverage": "17 of 22 occurrences have a score",
    "every_occurrence_has_expected_steps": "No occurrence failed",
    "scores_between_0_and_1": "Every score lies within 0 and 1",
}
DRAWN_EDGES = """
graph => [...graph.querySelectorAll('path[marker-end]')].map(path => {
    const [start, end] = [path.getPointAtLength(0), path.getPointAtLength(path.getTotalLength())];
    return [start.x, start.y, end.x, end.y];
})
"""
DRAWN_NODES = """
graph => [...graph.querySelectorAll('foreignObject')].map(node =>
    [node.textContent, ...['x', 'y', 'width', 'height'].map(side => node[side].baseVal.value)])
"""
ARROW = 12
"""The most by which an edge ends before its node, in the units of the drawing."""


def drawn_edges(graph: Locator) -> set[tuple[str, str]]:
    """Which assets the lines of a lineage graph join, by where they start and end."""
    nodes = {
        next(asset for asset in ASSETS if text.startswith(asset)): place for text, *place in graph.evaluate(DRAWN_NODES)
    }

    def beside(x: float, y: float, side: int) -> str:
        """The node whose left (0) or right (1) side a point lies at."""
        [name] = [
            name
            for name, (left, top, width, height) in nodes.items()
            if abs(left + side * width - x) <= ARROW and top <= y <= top + height
        ]
        return name

    return {(beside(x, y, 1), beside(to_x, to_y, 0)) for x, y, to_x, to_y in graph.evaluate(DRAWN_EDGES)}


def row(page: Page, name: str) -> Locator:
    """The row of a page's metadata table that has this name."""
    return page.get_by_role("row").filter(has=page.get_by_role("cell", name=name, exact=True))


def confirmed(demo: Demo) -> dict[int, dict[str, Any]]:
    """Every score's day, and when and by which run it was last confirmed."""
    rows = demo.rows("SELECT id, window_key, confirmed_at, dagster_run_id FROM stepacc.scores")
    return {row["id"]: row for row in rows}


def scores_of(scores: dict[int, dict[str, Any]], days: set[str]) -> set[int]:
    """The scores of some days."""
    return {ident for ident, score in scores.items() if score["window_key"] in days}


def moved(before: dict[int, dict[str, Any]], after: dict[int, dict[str, Any]]) -> set[int]:
    """The scores that were confirmed since."""
    assert before.keys() == after.keys(), "scoring the same again adds no row"
    return {ident for ident, score in after.items() if score["confirmed_at"] > before[ident]["confirmed_at"]}


@pytest.fixture(scope="module")
def scores_before(demo: Demo) -> dict[int, dict[str, Any]]:
    """The scores as the demo left them, once the sensor has nothing to do."""
    demo.wait_until_quiet()
    return confirmed(demo)


@pytest.fixture(scope="module")
def backfill(browser: Browser, demo: Demo, scores_before: dict[int, dict[str, Any]]) -> str:
    """The id of a backfill over the first three days, launched by clicking."""
    assert scores_before
    first, _, last, *_ = demo.days()
    with watched_page(browser, demo) as page:
        return launch_backfill(page, first, last)


def test_the_checks_of_the_scores_tell_what_they_found_and_where(page: Page, demo: Demo) -> None:
    days = demo.days()
    page.goto(SCORES)
    page.get_by_role("tab", name="Checks").click()
    for name, said in CHECKS.items():
        page.get_by_title(name).first.click()
        expect(page.get_by_text(f"{said}, in {len(days)} partitions from {days[0]} to {days[-1]}.")).to_be_visible()
        expect(page.get_by_text("Passed", exact=True)).to_be_visible()


def test_a_backfill_that_was_launched_by_clicking_is_listed(page: Page, backfill: str) -> None:
    page.goto("/runs")
    page.get_by_role("tab", name="Backfills").click()
    expect(page.get_by_role("link", name=backfill)).to_be_visible()
    expect(page.get_by_text("3 partitions")).to_be_visible()


def test_the_lineage_shows_the_assets_with_their_edges(page: Page) -> None:
    page.goto(LINEAGE)
    graph = page.locator("svg").filter(has=page.locator("foreignObject"))
    for asset in ASSETS:
        expect(graph.get_by_text(asset, exact=True)).to_be_visible()
    expect(graph.locator("path[marker-end]")).to_have_count(len(EDGES))
    assert drawn_edges(graph) == EDGES
    expect(graph.get_by_role("link", name="3 / 3 Passed")).to_be_visible()
    for asset in ASSETS:
        node = graph.locator("foreignObject").filter(has=page.get_by_text(asset, exact=True))
        expect(node).to_contain_text(re.compile(r"Latest event\s*.* (second|minute)s? ago"))


def test_the_page_of_the_scores_shows_what_they_are(page: Page) -> None:
    page.goto(SCORES)
    expect(page.get_by_text("Compares the steps an agent took")).to_be_visible()
    expect(page.get_by_text("stepacc lineage trace ID")).to_be_visible()
    expect(row(page, "confirmed_at")).to_contain_text("when the same evaluation was last made")
    expect(row(page, "score_semantics")).to_contain_text("every expected step and no other")
    expect(row(page, "worked_example")).to_contain_text("1 - 1/3 = 0.667")
    expect(page.get_by_role("link", name="demo_evaluation")).to_be_visible()


def test_a_partition_shows_its_rows_its_scores_and_its_worst_traces(page: Page, demo: Demo) -> None:
    """The last day of the demo: three scores, one trace without its contents, one session nobody annotated."""
    open_day(page, demo.days()[-1])
    expect(row(page, "dagster/partition_row_count")).to_have_text(re.compile(r"count\s*4$"))
    expect(row(page, "trace_mean_score")).to_contain_text("0.66")
    expect(row(page, "trace_min_score")).to_have_text(re.compile(r"score\s*0\.5$"))
    expect(row(page, "coverage")).to_contain_text("0.6")
    worst = row(page, "worst").get_by_role("row").nth(1)
    expect(worst).to_contain_text("0.500")
    expect(worst).to_contain_text("flaky_search → flaky_search")
    expect(row(page, "without_score").first).to_contain_text("content_not_recorded")
    expect(row(page, "annotation_revisions")).to_have_text(re.compile(r"revisions\s*2$"))
    expect(row(page, "newest_annotation")).to_contain_text("stepacc lineage annotation 4")


def test_the_automation_page_lists_the_schedule_and_the_sensor(page: Page) -> None:
    page.goto("/automation")
    expect(page.get_by_role("link", name="demo_changes")).to_be_visible()
    expect(page.get_by_role("link", name="demo_daily")).to_be_visible()
    expect(page.get_by_text("At 01:00 AM UTC")).to_be_visible()


def test_the_code_location_is_loaded(page: Page) -> None:
    page.goto("/locations/stepacc")
    expect(page.get_by_text("Loaded", exact=True)).to_be_visible()


def test_a_partition_is_materialised_by_clicking(
    page: Page, demo: Demo, scores_before: dict[int, dict[str, Any]]
) -> None:
    """Its scores are confirmed by the run, and no score of a day beside it."""
    *_, day, after_it = demo.days()
    open_day(page, day)
    page.get_by_role("button", name="Materialize").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Confirm").click()  # scores and metadata are made by one step
    dialog.get_by_role("button", name="Launch 1 run").click()
    page.get_by_role("region", name="Notifications").get_by_role("link", name="View").click()
    ended = page.get_by_text(re.compile("^(Success|Failure|Canceled)$"))
    expect(ended.first).to_have_text("Success")
    run_id = page.url.partition("/runs/")[2]
    after = confirmed(demo)
    since = moved(scores_before, after)
    of_the_day = scores_of(after, {day})
    assert of_the_day
    assert of_the_day <= since
    assert {after[ident]["dagster_run_id"] for ident in of_the_day} == {run_id}
    assert since.isdisjoint(scores_of(after, {after_it}))


def test_the_backfill_completes(
    page: Page, demo: Demo, backfill: str, scores_before: dict[int, dict[str, Any]]
) -> None:
    """Its runs confirmed the scores of its three days."""
    page.goto("/runs?view=backfills")
    expect(page.get_by_text("Success", exact=True)).to_be_visible(timeout=BACKFILL_PATIENCE)
    page.get_by_role("link", name=backfill).click()
    expect(page.get_by_text("100% completed")).to_have_count(4)
    tags = demo.rows("SELECT run_id, value FROM dagster.run_tags WHERE key = 'dagster/backfill'")
    runs = {tag["run_id"] for tag in tags if tag["value"] == backfill}
    after = confirmed(demo)
    scores = scores_of(after, set(demo.days()[:3]))
    assert scores
    assert scores <= moved(scores_before, after)
    assert {after[ident]["dagster_run_id"] for ident in scores} <= runs
