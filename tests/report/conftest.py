"""The fixtures that make runs."""

import pytest

from weighbridge.analysis.analyse import analyse
from weighbridge.report.html import write_html
from weighbridge.store.run import RunStore

from .made_up_runs import CREATED, Recipe, make_run
from .rich_runs import RICH


@pytest.fixture
def run(tmp_path):
    """Make a run in a fresh directory; every store is closed at the end."""
    opened: list[RunStore] = []

    def make(**recipe) -> RunStore:
        opened.append(make_run(tmp_path / f"run{len(opened)}", Recipe(**recipe)))
        return opened[-1]

    yield make
    for store in opened:
        store.close()


@pytest.fixture(scope="session")
def rich_run(tmp_path_factory):
    """One that has something in every part of a report."""
    directory = tmp_path_factory.mktemp("rich") / "run"
    make_run(directory, RICH).close()
    with RunStore(directory, writable=True) as store:
        store.set_info("created", CREATED)
        yield store


@pytest.fixture(scope="session")
def rich_analysis(rich_run):
    return analyse(rich_run)


@pytest.fixture(scope="session")
def rich_page(rich_run, rich_analysis, tmp_path_factory):
    """The source of its page."""
    return write_html(rich_run, tmp_path_factory.mktemp("page") / "report.html", rich_analysis).read_text()
