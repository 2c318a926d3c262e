"""Take the pictures of the Dagster UI and of the report in docs/ (`make screenshots`).

The demo runs in a home of its own, and a Chromium without a window looks at it; nothing else is needed or touched.
Dates and ages in the pictures are those of the day.
"""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, FloatRect, Locator, Page, expect

from tests.browser.demo_ui import (
    BACKFILL_PATIENCE,
    LINEAGE,
    PROGRAMS,
    SCORES,
    Demo,
    chromium_path,
    launch_backfill,
    open_day,
    running_browser,
    running_demo,
    watched_page,
)

DOCS = Path(__file__).parents[1] / "docs"
WIDTH = 1280
_REPORT_CLIP = FloatRect(x=0, y=0, width=900, height=1500)


def take(browser: Browser, demo: Demo) -> None:
    """Take every picture; those of the demo's own state come before the backfill."""
    first, _, last, _, day, _ = demo.days()
    take_report(browser, demo)
    demo.wait_until_quiet()
    with watched_page(browser, demo, width=WIDTH) as page:
        page.goto("/")
        page.get_by_role("button", name="Hide navigation").click()
        page.set_viewport_size({"width": WIDTH, "height": 720})  # before the page, which fits the graph into it once
        page.goto(LINEAGE)
        _shoot(page, "lineage", 720, page.get_by_role("link", name="3 / 3 Passed"))
        page.goto(SCORES)
        _shoot(page, "scores", 800, page.get_by_role("cell", name="partition_type"))
        open_day(page, day)
        page.get_by_role("textbox", name="Filter by name").fill("")
        page.get_by_role("textbox", name="Filter by name").blur()
        _shoot(page, "partition", 1080, page.get_by_role("cell", name="rows_confirmed"))
        page.get_by_role("tab", name="Checks").click()
        _shoot(page, "checks", 720, page.get_by_text("occurrences have a score"))
        backfill = launch_backfill(page, first, last)
        page.goto("/runs?view=backfills")
        expect(page.get_by_role("link", name=backfill)).to_be_visible()
        expect(page.get_by_text("Success", exact=True)).to_be_visible(timeout=BACKFILL_PATIENCE)
        _shoot(page, "backfills", 320, page.get_by_text("3 partitions"))


def take_report(browser: Browser, demo: Demo) -> None:
    """Take the picture of the report, as wide as a page of text."""
    with tempfile.TemporaryDirectory() as folder, watched_page(browser, demo, width=900, height=1100) as page:
        path = Path(folder) / "report.html"
        demo.report(path)
        page.goto(path.as_uri())
        page.screenshot(path=DOCS / "report.png", animations="disabled", full_page=True, clip=_REPORT_CLIP)


def _shoot(page: Page, name: str, height: int, there: Locator) -> None:
    """Take one picture, once that which it is about is there and nothing is loaded any more."""
    page.set_viewport_size({"width": WIDTH, "height": height})
    expect(there.first).to_be_visible()
    expect(page.get_by_text("Refreshing data")).to_be_hidden()
    page.wait_for_load_state("networkidle")
    path = DOCS / f"{name}.png"
    page.screenshot(path=path, animations="disabled")
    print(f"{path.relative_to(DOCS.parent)}: {path.stat().st_size / 1000:.0f} kB")


def main() -> None:
    """Take the pictures with an installed Chromium."""
    path = chromium_path()
    if path is None:
        sys.exit(f"No Chromium is installed: none of {', '.join(PROGRAMS)} is on PATH.")
    with running_browser(path) as browser, running_demo() as demo:
        take(browser, demo)


if __name__ == "__main__":
    main()
