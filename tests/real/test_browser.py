"""A report in a real browser: Chromium draws every chart, and clicks lead from a number to its raw output."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from report.swept_runs import Sweep, make_sweep
from weighbridge.report.html import write_html

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright (scripts/setup.sh dev)")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")

SMALL = Sweep(
    levels=(50, 400),
    blocks=2,
    workloads=(("nginx", "connections"),),
    environments=("native", "bridge", "native-again"),
)
UNFOLD = "document.querySelectorAll('details').forEach(function (each) { each.open = true; })"
CHARTS = """Array.from(document.querySelectorAll('.chart')).map(function (place) {
    const drawing = place.querySelector('.vega-embed svg');
    const box = drawing ? drawing.getBoundingClientRect() : {width: 0, height: 0, right: 0};
    const marks = Array.from(place.querySelectorAll('g[class*="mark-"][class*="role-mark"] > *'));
    const seen = marks.filter(function (mark) {
        const size = mark.getBoundingClientRect(); return size.width > 0 || size.height > 0; });
    return {name: place.getAttribute('aria-label'), width: box.width, height: box.height, marks: seen.length,
            right: box.right, said: drawing ? '' : place.textContent}; })"""
WIDER = """Array.from(document.querySelectorAll('body *')).filter(function (each) {
    return each.getBoundingClientRect().right > innerWidth + 1 && !each.closest('.scroll, pre, svg'); })
    .map(function (each) { return each.outerHTML.slice(0, 120); })"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run over a rising load, with readings over time, a break, raw outputs."""
    folder = tmp_path_factory.mktemp("run")
    with make_sweep(folder, SMALL) as store:
        return write_html(store, folder / "report.html")


@pytest.fixture(scope="module")
def browser() -> Iterator[sync_api.Browser]:
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM)
        yield opened
        opened.close()


@pytest.fixture
def wrong() -> list[str]:
    """What the browser says that it should not."""
    return []


@pytest.fixture
def page(browser: sync_api.Browser, report: Path, wrong: list[str], request: pytest.FixtureRequest):
    """The report, opened in a window as wide as the test's parameter says."""
    width = getattr(request, "param", 1200)
    opened = browser.new_page(viewport={"width": width, "height": 900})
    opened.on("console", lambda said: wrong.append(f"{said.type}: {said.text}"))
    opened.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    opened.on("requestfailed", lambda asked: wrong.append(f"failed: {asked.url[:100]}"))
    opened.on("request", lambda asked: wrong.append(asked.url) if not asked.url.startswith(("file:", "data:")) else 0)
    opened.goto(report.as_uri())
    yield opened
    opened.close()


@pytest.mark.parametrize("page", [1200, 400], indirect=True)
def test_every_chart_is_drawn_and_nothing_is_wider_than_the_window(page, wrong: list[str], tmp_path: Path):
    page.evaluate(UNFOLD)
    page.wait_for_function(f"{CHARTS}.length > 20")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")  # draws what is not in sight too
    page.wait_for_function(f"{CHARTS}.every(function (each) {{ return each.width > 0 || each.said; }})")
    charts = page.evaluate(CHARTS)
    bad = [each for each in charts if each["said"] or each["width"] < 100 or each["height"] < 20 or not each["marks"]]
    assert not bad
    width = page.viewport_size["width"]
    assert not [each for each in charts if each["right"] > width]
    assert page.evaluate("document.documentElement.scrollWidth") <= width and not page.evaluate(WIDER)
    names = [each["name"] for each in charts]
    assert "nginx over time" in names and "nginx from Prometheus" in names
    shot = tmp_path / f"{width}.png"
    page.screenshot(path=shot, full_page=True)
    assert shot.stat().st_size > 50_000
    assert not wrong


def test_without_its_script_the_page_has_its_costs(browser: sync_api.Browser, tmp_path: Path):
    with make_sweep(tmp_path / "run", replace(SMALL, blocks=6)) as store:  # of fewer there is no cost to draw
        report = write_html(store, tmp_path / "report.html")
    opened = browser.new_page(java_script_enabled=False, viewport={"width": 1200, "height": 900})
    opened.goto(report.as_uri())
    drawn = opened.locator(".chart > svg:visible")
    assert drawn.count() > 0 and opened.locator(".chart:visible").count() == drawn.count()
    boxes = [each.bounding_box() for each in drawn.all()]
    assert all(box and box["width"] > 250 and box["height"] > 40 for box in boxes)
    opened.close()


def test_a_click_on_a_number_leads_to_its_raw_output(page, wrong: list[str], report: Path):
    number = page.locator('main td a[href^="#g"]', has_text="/s").first
    group = page.locator(number.get_attribute("href"))
    assert not group.locator("details.trial").first.is_visible()
    number.click()
    trial = group.locator("details.trial").first
    trial.locator("summary").first.click()
    link = trial.locator('a[href^="raw/"]').last
    raw = report.parent / link.get_attribute("href")
    assert trial.locator("pre").last.text_content() == raw.read_text()  # it is in the page too
    link.click()
    page.wait_for_url(raw.as_uri())
    assert page.locator("body").inner_text().strip() == raw.read_text().strip() != ""
    assert not wrong


def test_a_click_on_a_trial_in_a_picture_leads_to_it(page, wrong: list[str]):
    picture = page.locator("#overtime .chart.panels").first
    picture.scroll_into_view_if_needed()
    span = picture.locator("svg g.mark-rect path").first
    span.wait_for()
    assert "#t" not in page.url
    span.click()
    page.wait_for_function("location.hash.startsWith('#t')")
    trial = page.locator(page.evaluate("location.hash"))
    assert trial.is_visible() and trial.get_attribute("open") is not None
    assert not wrong
