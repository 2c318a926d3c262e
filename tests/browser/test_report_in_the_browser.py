"""The report in a real browser without a network: what people see, and that no text in it is more than text."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from stepacc_dagster.report.page import render
from stepacc_dagster.trace_links import TraceUrl
from tests.report_samples import HOSTILE, SEARCHED, report

pytestmark = [pytest.mark.browser, pytest.mark.slow]

Opener = Callable[..., Page]

_CONTRAST = """() => {
    const light = (colour) => {
        const parts = colour.match(/[\\d.]+/g).slice(0, 3).map((part) => {
            const share = part / 255;
            return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
    };
    const ground = light(getComputedStyle(document.body).backgroundColor);
    return [...document.querySelectorAll("h1, h2, p, td, th, summary, a, svg text, .sa-op")].map((element) => {
        const style = getComputedStyle(element);
        const own = light(element instanceof SVGElement ? style.fill : style.color);
        return (Math.max(own, ground) + 0.05) / (Math.min(own, ground) + 0.05);
    });
}"""


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Opener]:
    """Opens the report offline; at the end nothing was asked of the network and nothing complained of."""
    path = tmp_path / "report.html"
    path.write_text(
        render(
            report(), trace_links=TraceUrl("https://traces.example.org/{trace_id}"), dagster_url="http://dagster:3000/"
        )
    )
    faults: list[str] = []
    contexts = []

    def open_(**settings: Any) -> Page:
        context = browser.new_context(offline=True, **settings)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda request: None if request.url == path.as_uri() else faults.append(request.url[:200]))
        page.goto(path.as_uri())
        return page

    yield open_
    for context in contexts:
        context.close()
    assert [fault for fault in faults if not fault.startswith("data:")] == []


def test_names_that_are_scripts_are_shown_and_do_nothing(opened: Opener) -> None:
    page = opened()

    assert page.title() == f"{HOSTILE}: scores"
    expect(page.get_by_role("heading", level=1)).to_contain_text(HOSTILE)
    expect(page.locator("article.worst h4").nth(1)).to_contain_text(HOSTILE)


def test_it_is_narrowed_to_one_metric_and_to_what_is_sought(opened: Opener) -> None:
    page = opened()

    expect(page.locator("article.worst:visible")).to_have_count(4)
    page.get_by_label("Shown").select_option(label="Trajectory Match 2.0.0, sessions")
    expect(page.locator("section:visible")).to_have_count(1)
    page.get_by_label("Tasks and worst scores with").fill(SEARCHED)
    expect(page.locator("article.worst:visible")).to_have_count(1)
    expect(page.get_by_role("status")).to_have_text("2 tasks and worst scores match.")
    page.get_by_label("Tasks and worst scores with").fill("nothing like it")
    expect(page.locator("article.worst:visible")).to_have_count(0)


def test_links_lead_to_the_trace_and_to_the_run(opened: Opener) -> None:
    page = opened()

    worst = page.locator("article.worst").first
    expect(worst.locator("h4 a")).to_have_attribute("href", f"https://traces.example.org/{'a' * 32}")
    expect(worst.locator("p a").first).to_have_attribute("href", "http://dagster:3000/runs/1b2c3d4e-run")


def test_everything_to_act_on_is_reached_by_the_keyboard(opened: Opener) -> None:
    page = opened()
    reached = []
    for _ in range(200):
        page.keyboard.press("Tab")
        name = page.evaluate("document.activeElement === document.body ? null : document.activeElement.outerHTML")
        if name is None:
            break
        reached.append(name[:40])
    found = page.evaluate(
        "[...document.querySelectorAll('a, select, input, summary, [tabindex]')].filter((one) => one.checkVisibility())"
        ".map((one) => one.outerHTML.slice(0, 40))"
    )

    assert sorted(reached) == sorted(found)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_readable_on_a_telephone_in_light_and_dark(opened: Opener, scheme: str) -> None:
    page = opened(viewport={"width": 400, "height": 800}, color_scheme=scheme)

    assert page.evaluate("document.documentElement.scrollWidth") == 400
    assert min(page.evaluate(_CONTRAST)) >= 4.5
    assert (
        page.locator("figure svg").first.evaluate(
            "(svg) => svg.getBoundingClientRect().width / svg.viewBox.baseVal.width"
        )
        > 0.9
    )
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != (
        "rgb(255, 255, 255)" if scheme == "dark" else "rgb(21, 24, 29)"
    )
