"""A report in a real browser: charts are drawn and saved, clicks lead to raw outputs, filters find and are kept."""

import csv
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from downloads import npm_packages
from report.made_up_runs import Recipe, make_run
from report.rich_runs import RICH
from report.swept_runs import Sweep, make_sweep
from weighbridge.features.gate.history_document import history_document
from weighbridge.features.gate.past_runs import history
from weighbridge.report.html import write_html
from weighbridge.report.render_page import write_document
from weighbridge.store.run import RunStore

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
AXE = "axe-core@4.14.1"
"""Deque's checks of what the keyboard and a screen reader need."""
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
        chromium = playwright.chromium.launch(executable_path=CHROMIUM)
        yield chromium
        chromium.close()


@pytest.fixture
def wrong() -> list[str]:
    """What the browser says that it should not."""
    return []


@pytest.fixture
def page(browser: sync_api.Browser, report: Path, wrong: list[str], request: pytest.FixtureRequest):
    """The report, shown in a window as wide as the test's parameter says."""
    width = getattr(request, "param", 1200)
    shown = browser.new_page(viewport={"width": width, "height": 900})
    shown.on("console", lambda said: wrong.append(f"{said.type}: {said.text}"))
    shown.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    shown.on("requestfailed", lambda asked: wrong.append(f"failed: {asked.url[:100]}"))
    shown.on("request", lambda asked: wrong.append(asked.url) if not asked.url.startswith(("file:", "data:")) else 0)
    shown.goto(report.as_uri())
    yield shown
    shown.close()


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
    page = opened(browser, report, java_script_enabled=False)
    drawn = page.locator(".chart > svg:visible")
    assert drawn.count() > 0 and page.locator(".chart:visible").count() == drawn.count()
    boxes = [each.bounding_box() for each in drawn.all()]
    assert all(box and box["width"] > 250 and box["height"] > 40 for box in boxes)
    assert page.locator("#matrix td:visible").count() > 1 and not page.locator("#find").is_visible()
    page.close()


def test_the_page_of_a_history_draws_each_cost(browser: sync_api.Browser, wrong: list[str], tmp_path: Path):
    for number, factor in enumerate((1.2, 1.5)):
        make_run(tmp_path / "runs" / f"run{number}", Recipe(costs={"bridge": factor}, blocks=15, seed=number)).close()
    report = write_document(history_document(history(tmp_path / "runs")), tmp_path / "history.html")
    page = browser.new_page(viewport={"width": 400, "height": 800})
    page.on("console", lambda said: wrong.append(f"{said.type}: {said.text}"))
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.goto(report.as_uri())
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.wait_for_function(f"{CHARTS}.every(function (each) {{ return each.width > 0 || each.said; }})")
    (chart,) = page.evaluate(CHARTS)
    assert not chart["said"] and chart["marks"] >= 8, (
        "intervals, points, noise floors, lines and a significant change"
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= 400 and not page.evaluate(WIDER)
    assert not wrong
    page.close()


def test_a_click_on_a_number_leads_to_its_raw_output(page, wrong: list[str], report: Path):
    number = page.locator('main td a[href^="#g"]', has_text="/s").first
    group = page.locator(number.get_attribute("href"))
    assert not group.locator("details.trial").first.is_visible()
    number.click()
    trial = group.locator("details.trial").first
    trial.locator("summary").first.click()
    trial.locator("details > summary").last.click()
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


# -- find, and save --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rich_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run that has something in every part of a report."""
    folder = tmp_path_factory.mktemp("rich")
    make_run(folder / "run", RICH).close()
    with RunStore(folder / "run") as store:
        return write_html(store, folder / "report.html")


def opened(browser: sync_api.Browser, report: Path, place: str = "", **options) -> sync_api.Page:
    """The page in a window of its own, at a place."""
    page = browser.new_page(viewport={"width": 1280, "height": 800}, **options)
    page.goto(f"{report.as_uri()}{place}")
    return page


SHOWN = """Array.from(document.querySelectorAll('tr[data-verdict]')).filter(row => row.dataset.verdict !== 'aa' &&
    !row.closest('.off')).map(row => [row.dataset.environment, row.dataset.verdict, row.id, row.dataset.cost])"""


def test_the_first_screen_holds_question_answer_trust_and_matrix(browser: sync_api.Browser, rich_report: Path):
    page = opened(browser, rich_report)
    places = [page.locator(each).bounding_box() for each in ("h1", "#answer", "#trust", "#matrix")]
    assert places == sorted(places, key=lambda box: box["y"]) and places[-1]["y"] < 400
    for section in page.locator("#workloads > section:visible").all():
        chart, table = (section.locator(each).first.bounding_box() for each in (".chart", "table"))
        assert table["y"] < chart["y"] and table["width"] > 1000
    page.set_viewport_size({"width": 400, "height": 800})
    cell, name = page.locator("#matrix td.different").first, page.locator("#matrix thead th").first.text_content()
    assert cell.bounding_box()["width"] > 300
    assert name in cell.evaluate("cell => getComputedStyle(cell, '::before').content")
    page.close()


def test_a_filter_is_in_the_address_and_a_colleague_sees_the_same(browser: sync_api.Browser, rich_report: Path):
    page = opened(browser, rich_report)
    everything = page.evaluate(SHOWN)
    assert {verdict for _, verdict, *_ in everything} > {"different", "equivalent"}
    for facet, value in (("environment", "bridge"), ("verdict", "different")):
        page.locator("#find summary", has_text=facet).click()
        page.locator(f'#find input[name="{facet}"][value="{value}"]').check()
    left = page.evaluate(SHOWN)
    assert left == [row for row in everything if row[:2] == ["bridge", "different"]] != []
    assert page.locator("#find output").text_content() == f"{len(left)} of {len(everything)} comparisons"
    page.locator('#find [name="order"]').select_option("cost")
    assert page.locator("#matrix thead th:visible").all_text_contents() == ["bridge"]
    forest = page.locator('.chart[aria-label^="Costs: "]:visible').first
    forest.scroll_into_view_if_needed()
    page.wait_for_function("document.querySelectorAll('article .vega-embed g.mark-symbol path').length > 0")
    assert forest.locator("g.mark-symbol.role-mark path").count() == 1
    other = opened(browser, rich_report, f"#{page.url.partition('#')[2]}")
    assert other.evaluate(SHOWN) == page.evaluate(SHOWN)
    other.locator("#find button").click()
    other.wait_for_function("!location.hash.includes('?')")
    assert other.evaluate(SHOWN) == everything
    page.close(), other.close()


def test_search_order_and_what_shows_nothing(browser: sync_api.Browser, rich_report: Path):
    page = opened(browser, rich_report)
    everything = page.evaluate(SHOWN)
    page.locator('#find [name="proven"]').check()
    proven = page.evaluate(SHOWN)
    assert 0 < len(proven) < len(everything)
    assert {verdict for _, verdict, *_ in proven} <= {"different", "equivalent", "broke"}
    assert all(
        article.locator("tr[data-verdict]:not(.off)").count()
        for article in page.locator("article:has(tr[data-verdict]):visible").all()
    )
    page.locator("#find button").click()
    page.locator('#find [name="order"]').select_option("cost")
    table = page.locator("#workloads article table").first.locator("tr[data-cost]")
    costs = [
        float(each.get_attribute("data-cost")) for each in table.all() if each.get_attribute("data-verdict") != "aa"
    ]
    assert costs == sorted(costs, reverse=True) and len(costs) > 2
    page.locator('#find [name="order"]').select_option("")
    assert page.evaluate(SHOWN) == everything
    page.locator('#find [name="search"]').fill("P99 bridge")
    found = page.evaluate(SHOWN)
    assert found and {name for name, *_ in found} == {"bridge"}
    assert page.url.endswith("#?search=P99+bridge")
    page.evaluate("location.hash = '#w0m0'")  # a link to what is filtered out shows it
    page.wait_for_function("location.hash === '#w0m0'")
    assert page.locator("#w0m0").is_visible() and page.evaluate(SHOWN) == everything
    page.wait_for_timeout(200)
    assert -1 < page.locator("#w0m0").bounding_box()["y"] < 800  # still in the window
    unfolded = page.locator("details[open]").count()
    page.locator('#find [name="search"]').fill("no such word")
    assert page.locator("#find output").text_content() == "Nothing matches 'no such word'."
    assert not page.locator("main :is(h2, h3):visible, #matrix:visible, main .save:visible").count()
    page.locator('#find [name="search"]').fill("p99")
    assert page.locator("details[open]").count() > unfolded
    page.locator('#find [name="search"]').fill("")
    assert page.locator("details[open]").count() == unfolded
    page.close()


def test_every_comparison_has_a_link_that_leads_to_it(browser: sync_api.Browser, rich_report: Path):
    page = opened(browser, rich_report)
    rows = page.locator("tr[data-verdict]")
    assert rows.count() == page.locator("tr[data-verdict] a.permalink").count() > 20
    link = page.locator("details.more tr[data-verdict] a.permalink").first.get_attribute("href")
    page.close()
    page = opened(browser, rich_report, link)
    assert page.locator(link).is_visible() and "target" in page.locator(link).get_attribute("class")
    page.close()


def saved(page: sync_api.Page, beside: sync_api.Locator, kind: str) -> Path:
    """What a click on the button of this kind beside a chart or a table saves."""
    buttons = beside.locator("xpath=following-sibling::p[1]")
    with page.expect_download() as download:
        buttons.get_by_role("button", name=f"save as {kind}").click()
    return Path(download.value.path())


def test_charts_and_tables_are_saved_by_a_click(browser: sync_api.Browser, tmp_path: Path):
    make_run(tmp_path / "run", Recipe(costs={"bridge": 1.25, "=1+1": 1.0}, question="a|b *c* @d")).close()
    with RunStore(tmp_path / "run") as store:
        report = write_html(store, tmp_path / "report.html")
    page = opened(browser, report, color_scheme="dark")
    chart = page.locator('.chart[aria-label^="Every trial"]').first
    svg = ElementTree.fromstring(saved(page, chart, "SVG").read_text())
    words = {each.text for each in svg.iter() if each.tag.endswith("}text")}
    assert {"native", "bridge", chart.get_attribute("aria-label")} <= words  # its legend, its title
    assert "currentColor" not in ElementTree.tostring(svg, "unicode")
    png = saved(page, chart, "PNG").read_bytes()
    assert png[1:4] == b"PNG" and int.from_bytes(png[16:20], "big") > 1400
    table = page.locator("#w0m0 .scroll").first
    rows = list(csv.reader(saved(page, table, "CSV").read_text().splitlines()))
    assert rows[0] == ["environment", "typical cost [95%]", "median", "rounds", "verdict"]
    assert [row[0] for row in rows[1:]] == ["bridge", "'=1+1", "native (control)"]
    assert rows[1][4] == "significant" and rows[1][3] == "10"
    lines = saved(page, page.locator(".scroll:has(#matrix)"), "Markdown").read_text().splitlines()
    assert lines[0] == "|  | bridge | =1\\+1 |" and lines[1] == "| --- | --- | --- |" and len(lines) == 4
    assert page.locator("table").count() == page.get_by_role("button", name="CSV", include_hidden=True).count()
    charts = page.locator(".chart").count()
    assert charts == page.get_by_role("button", name="SVG", include_hidden=True).count() > 5
    page.close()


def test_on_paper_a_dark_page_is_light_and_has_no_controls(browser: sync_api.Browser, rich_report: Path):
    page = opened(browser, rich_report, color_scheme="dark")
    axis = page.locator("#costs .vega-embed text").first
    axis.wait_for()
    colour = "each => getComputedStyle(each).fill"
    assert axis.evaluate(colour) == "rgb(230, 233, 239)"
    page.emulate_media(media="print")
    assert axis.evaluate(colour) == "rgb(0, 0, 0)"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator("#find, nav, .save, .permalink").locator("visible=true").count()
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.close()


# -- keyboard and screen reader --------------------------------------------------------------------


@pytest.fixture(scope="module")
def axe() -> str:
    """axe-core's script, from the npm registry into the user's cache."""
    folder = Path.home() / ".cache/weighbridge" / AXE
    if shutil.which("npm") is None:
        pytest.skip("needs npm, for axe-core")
    return (npm_packages(folder, AXE) / "axe-core/axe.min.js").read_text()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 400)])
def test_axe_finds_nothing_serious(browser: sync_api.Browser, rich_report: Path, axe: str, scheme: str, width: int):
    page = opened(browser, rich_report, color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 800})
    page.evaluate(UNFOLD)
    page.wait_for_function("document.querySelectorAll('.vega-embed svg').length > 5")
    page.evaluate(axe)
    result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    bad = [
        f"{each['id']} ({len(each['nodes'])}): {each['nodes'][0]['html'][:200]}"
        for each in result["violations"]
        if each["impact"] in ("serious", "critical")
    ]
    assert len(result["passes"]) > 20 and not bad
    page.close()


def test_the_filter_works_by_keyboard_alone(browser: sync_api.Browser, rich_report: Path):
    page = opened(browser, rich_report)
    everything = len(page.evaluate(SHOWN))
    page.locator('#find [name="search"]').focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # opens the first list, and the next key reaches its first box
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert 0 < len(page.evaluate(SHOWN)) < everything
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    assert not page.locator("#find fieldset").first.is_visible()
    page.close()
