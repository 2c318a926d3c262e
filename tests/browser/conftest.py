"""One demo, its UI and one Chromium for all tests of the browser.

Playwright keeps an event loop running in the thread for as long as it is open, in which Dagster can not run its own:
both are closed with the last test of this folder.
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.demo_ui import PROGRAMS, Demo, chromium_path, running_browser, running_demo, watched_page


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """The browser of these tests."""
    path = chromium_path()
    if path is None:
        pytest.skip(
            f"no Chromium is installed: none of {', '.join(PROGRAMS)} is on PATH (Debian: apt install chromium)"
        )
    with running_browser(path) as started:
        yield started


@pytest.fixture(scope="package")
def demo(browser: Browser) -> Iterator[Demo]:
    """The demo in the UI; it needs the browser first, so that without one nothing is started."""
    assert browser.is_connected()
    with running_demo() as started:
        yield started


@pytest.fixture
def page(browser: Browser, demo: Demo) -> Iterator[Page]:
    """A page on the UI, whose console must stay without errors."""
    with watched_page(browser, demo) as opened:
        yield opened
