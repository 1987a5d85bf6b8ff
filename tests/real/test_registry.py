"""A registry of runs with real git and in a real browser: commits, filters, and what is wider than a phone."""

import shutil
import subprocess
from pathlib import Path

import pytest

from weighbridge.features.archive.registry_folder import add_run, read_run, rebuild
from weighbridge.store.run import DATABASE
from weighbridge.store.unpacking import ENDING, unpacked

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
KEPT = sorted((Path(__file__).parents[2] / "docs/runs").glob(f"*{ENDING}"))
SMALLEST = min(KEPT, key=lambda path: path.stat().st_size)
WIDER = """Array.from(document.querySelectorAll('body *')).filter(function (each) {
    return each.getBoundingClientRect().right > innerWidth + 1 && !each.closest('.scroll'); })
    .map(function (each) { return each.outerHTML.slice(0, 120); })"""


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A registry with the runs of the documentation."""
    folder = tmp_path_factory.mktemp("registry") / "registry"
    for path in KEPT:
        data = path.read_bytes()
        add_run(folder, read_run(data, path.name).entry, data)
    assert len(rebuild(folder).runs) == len(KEPT)
    return folder


def git(folder: Path, *words: str) -> str:
    argv = ("git", "-C", folder, "-c", "user.name=me", "-c", "user.email=me@example.org", *words)
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def test_a_run_is_committed_once_and_nothing_else_is(tmp_path: Path, weighbridge_command, monkeypatch):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / DATABASE).write_bytes(unpacked(SMALLEST.read_bytes(), SMALLEST.name))
    folder = tmp_path / "registry"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "draft").write_text("not to be committed")
    git(folder, "add", "draft")
    git(tmp_path, "init", "-q", "other")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other/.git"))  # as a hook of another repository has it
    for name, value in (("GIT_AUTHOR", "me"), ("GIT_COMMITTER", "me")):
        monkeypatch.setenv(f"{name}_NAME", value)
        monkeypatch.setenv(f"{name}_EMAIL", "me@example.org")
    for _ in range(2):
        weighbridge_command("registry", "add", tmp_path / "run", folder, "--commit")
    monkeypatch.delenv("GIT_DIR")
    assert len(git(folder, "log", "--format=%s").splitlines()) == 1
    committed = git(folder, "ls-files", "--with-tree=HEAD").splitlines()
    assert git(folder, "status", "--porcelain").splitlines() == ["A  draft"] and len(committed) == 4


@pytest.fixture
def weighbridge_command():
    """Runs the command line in a process of its own."""
    import sys

    def call(*words: object) -> str:
        argv = (sys.executable, "-m", "weighbridge", *map(str, words))
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout

    return call


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
@pytest.mark.parametrize("width", [1200, 400])
def test_the_index_finds_costs_and_is_not_wider_than_the_window(registry: Path, width: int):
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright (scripts/setup.sh dev)")
    wrong: list[str] = []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.on("console", lambda said: wrong.append(said.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda asked: wrong.append(asked.url) if not asked.url.startswith("file:") else None)
        page.goto((registry / "index.html").as_uri())
        rows = page.locator("tr.cost:visible")
        everything = rows.count()
        assert everything > 50 and page.evaluate(WIDER) == []
        page.select_option("select[name=verdict]", "different")
        page.fill("input[type=search]", "redis")
        shown = rows.count()
        assert 0 < shown < everything and "verdict=different" in page.url
        assert page.locator("output").text_content() == f"{shown} of {everything} costs"
        assert {each.get_attribute("data-verdict") for each in rows.all()} == {"different"}
        other = browser.new_page()
        other.goto(page.url)
        assert other.locator("tr.cost:visible").count() == shown
        page.click("button[type=reset]")
        page.wait_for_function("document.querySelectorAll('.off').length === 0")
        with page.expect_navigation():
            page.locator("tr.run a").first.click()
        assert page.locator("h2#costs").is_visible() and page.evaluate(WIDER) == []
        browser.close()
    assert not wrong
