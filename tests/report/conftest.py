"""The fixtures that make runs, and those of finished ones."""

import json
import lzma
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.results import Analysis
from weighbridge.report.export.json import report_json
from weighbridge.report.html import write_html
from weighbridge.store.run import DATABASE, RunStore

from .made_up_runs import CREATED, Recipe, make_run
from .rich_runs import RICH

KEPT = Path(__file__).parent / "finished_runs"
"""Runs of real studies: ``NAME.sqlite.xz``, with readings over time of the first block alone, without raw outputs."""
FINISHED = sorted(path.name.removesuffix(".sqlite.xz") for path in KEPT.glob("*.sqlite.xz"))


class FinishedRun(NamedTuple):
    """A run, open for reading, and what ``report --json`` says of it."""

    store: RunStore
    analysis: Analysis
    document: dict[str, Any]


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory) -> Iterator[Callable[[str], FinishedRun]]:
    """Give the finished run of a name; each is analysed once."""
    with ExitStack() as stores:

        @cache
        def of_name(name: str) -> FinishedRun:
            directory = tmp_path_factory.mktemp(name)
            (directory / DATABASE).write_bytes(lzma.decompress((KEPT / f"{name}.sqlite.xz").read_bytes()))
            store = stores.enter_context(RunStore(directory))
            analysis = analyse(store)
            document = json.loads(json.dumps(report_json(store, analysis), allow_nan=False))
            return FinishedRun(store, analysis, document)

        yield of_name


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
