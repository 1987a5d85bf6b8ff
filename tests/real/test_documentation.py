"""The documentation as a site: built without a network, its links followed, its search asked in a browser."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytest.importorskip("sphinx", reason="needs sphinx (scripts/setup.sh dev)")
ROOT = Path(__file__).parents[2]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

BUILD = """
import sys
sys.path.insert(0, sys.argv.pop(1))
import kept_runs
whole = kept_runs.write_page
kept_runs.write_page = lambda run, page: whole(run, page) if page.stem == kept_runs.WEIGHED else page.touch()
from sphinx.cmd.build import main
sys.exit(main(sys.argv[1:]))
"""


class Links(HTMLParser):
    """Where a page leads, what it loads, and the places that it has."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.places: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.places |= {str(given[name]) for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(str(given["href"]))
        self.loads += [str(given["src"])] if given.get("src") else []
        if tag == "link" and given.get("rel") != "canonical" and given.get("href"):
            self.loads.append(str(given["href"]))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All pages of the site. Of the example reports only one is a whole page: other tests write the others."""
    folder = tmp_path_factory.mktemp("docs")
    words = ["-W", "-n", "-q", "-d", str(folder / "doctrees"), str(ROOT / "docs"), str(folder / "site")]
    argv = [sys.executable, "-c", BUILD, str(ROOT / "docs"), *words]
    built = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder / "site"


def test_every_link_of_the_site_leads_somewhere_and_nothing_is_loaded_from_a_network(site: Path):
    pages = {path: Links(path.read_text()) for path in site.rglob("*.html") if "examples" not in path.parts}
    examples = {path.name for path in (site / "examples").iterdir()}
    assert len(pages) > 30 and {"first-look.html", "docker-networks.html", "weigh.html", "compare.html"} <= examples
    for path, page in pages.items():
        assert [each for each in page.loads if urlsplit(each).netloc] == [], path
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.exists(), (path, link)
            if parts.fragment and target in pages:
                assert unquote(parts.fragment) in pages[target].places, (path, link)


@pytest.fixture
def browser() -> Iterator:
    if CHROMIUM is None:
        pytest.skip("needs chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright (scripts/setup.sh dev)")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM)
        yield opened
        opened.close()


def test_the_search_works_without_a_network(site: Path, browser):
    page = browser.new_context(offline=True).new_page()
    page.goto(f"{(site / 'search.html').as_uri()}?q=signed-rank")
    page.wait_for_selector("ul.search li a")
    found = page.eval_on_selector_all("ul.search li a", "links => links.map(link => link.getAttribute('href'))")
    assert any("methods/" in link for link in found)
