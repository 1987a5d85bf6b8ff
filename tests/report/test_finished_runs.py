"""Numbers stay: two finished runs of real studies give the JSON report that they gave when they were kept.

``finished_runs/NAME.sqlite.xz`` is a run's file, with readings over time of its first block alone and without raw
outputs; ``NAME.json.xz`` is what `report --json` said of it. Where a key is renamed on purpose, write it anew:

    pytest tests/report/test_finished_runs.py --keep-reports
"""

import json
import lzma
import math
from pathlib import Path
from typing import NamedTuple

import pytest

from documents import fits
from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.gate import judge
from weighbridge.analysis.requirement import LIMIT, parse_requirement
from weighbridge.analysis.results import Analysis
from weighbridge.cli.schema import Document
from weighbridge.replication.comparison import replication
from weighbridge.replication.document import replication_json
from weighbridge.replication.published import published
from weighbridge.report.export.gate import limits_json
from weighbridge.report.export.json import report_json
from weighbridge.report.html import write_html
from weighbridge.store.run import DATABASE, RunStore

KEPT = Path(__file__).parent / "finished_runs"
NAMES = sorted(path.name.removesuffix(".sqlite.xz") for path in KEPT.glob("*.sqlite.xz"))


class FinishedRun(NamedTuple):
    """A finished run, open for reading, with what is made of it."""

    name: str
    store: RunStore
    analysis: Analysis
    report: dict[str, object]


@pytest.fixture(scope="module", params=NAMES)
def finished(request, tmp_path_factory):
    """Each finished run is analysed once."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / DATABASE).write_bytes(lzma.decompress((KEPT / f"{request.param}.sqlite.xz").read_bytes()))
    with RunStore(folder) as store:
        analysis = analyse(store)
        yield FinishedRun(request.param, store, analysis, report_json(store, analysis))


def differences(kept: object, now: object, where: str = "") -> list[str]:
    """Where two JSON values differ by more than the rounding of floats."""
    if isinstance(kept, dict) and isinstance(now, dict):
        keys = [f"{where}/{key}: only in one" for key in kept.keys() ^ now.keys()]
        return keys + [
            d for key in kept.keys() & now.keys() for d in differences(kept[key], now[key], f"{where}/{key}")
        ]
    if isinstance(kept, list) and isinstance(now, list) and len(kept) == len(now):
        return [d for i, pair in enumerate(zip(kept, now, strict=True)) for d in differences(*pair, f"{where}/{i}")]
    if isinstance(kept, float) and isinstance(now, float):
        return [] if math.isclose(kept, now, rel_tol=1e-9, abs_tol=1e-9) else [f"{where}: {kept} is {now}"]
    return [] if type(kept) is type(now) and kept == now else [f"{where}: {kept!r} is {now!r}"]


def test_the_numbers_of_a_finished_run_stay(finished, request):
    kept, now = KEPT / f"{finished.name}.json.xz", json.dumps(finished.report)
    if request.config.getoption("--keep-reports"):
        kept.write_bytes(lzma.compress(now.encode(), preset=9))
    assert differences(json.loads(lzma.decompress(kept.read_bytes())), json.loads(now)) == []


def test_what_a_finished_run_gives_has_its_schema(finished):
    analysis = finished.analysis
    limit = parse_requirement("*.{workload}.{metric} > 1%".format_map(finished.report["costs"][0]), LIMIT)
    limits = limits_json(analysis, judge([limit], analysis))
    assert limits
    for document in (finished.report, {**finished.report, "limits": limits}):
        fits(Document.REPORT, document)
    if finished.name == "docker-networks":
        fits(Document.REPLICATE, replication_json(replication(analysis, published(analysis.study), [])))


def test_a_finished_run_has_a_page(finished, tmp_path):
    page = write_html(finished.store, tmp_path / "page.html", finished.analysis)
    assert page.read_text().rstrip().endswith("</html>")


def test_differences_are_found():
    assert differences({"a": [1.0, "x"]}, {"a": [1.0 + 1e-12, "x"]}) == []
    assert differences({"a": [1.0, 2]}, {"a": [1.1, 3], "b": None}) == [
        "/b: only in one",
        "/a/0: 1.0 is 1.1",
        "/a/1: 2 is 3",
    ]
