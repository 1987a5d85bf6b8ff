"""Numbers stay: two finished runs of real studies give the JSON report that they gave when they were kept.

``finished_runs/NAME.sqlite.xz`` is a run's file, with readings over time of its first block alone and without raw
outputs; ``NAME.json.xz`` is what `report --json` said of it. Where a key is renamed on purpose, write it anew:

    pytest tests/report/test_finished_runs.py --keep-reports
"""

import json
import lzma
import math
from pathlib import Path

import pytest

from documents import fits
from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.gate import judge
from weighbridge.analysis.requirement import LIMIT, parse_requirement
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


@pytest.fixture(params=NAMES)
def finished_run(request, tmp_path):
    """A finished run, open for reading."""
    (tmp_path / DATABASE).write_bytes(lzma.decompress((KEPT / f"{request.param}.sqlite.xz").read_bytes()))
    with RunStore(tmp_path) as store:
        yield request.param, store


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


def test_the_numbers_of_a_finished_run_stay(finished_run, request):
    name, store = finished_run
    kept, now = KEPT / f"{name}.json.xz", json.dumps(report_json(store))
    if request.config.getoption("--keep-reports"):
        kept.write_bytes(lzma.compress(now.encode(), preset=9))
    assert differences(json.loads(lzma.decompress(kept.read_bytes())), json.loads(now)) == []


def test_what_a_finished_run_gives_has_its_schema(finished_run):
    name, store = finished_run
    analysis = analyse(store)
    document = report_json(store, analysis)
    fits(Document.REPORT, document)
    limit = parse_requirement("*.{workload}.{metric} > 1%".format_map(document["costs"][0]), LIMIT)
    limits = limits_json(analysis, judge([limit], analysis))
    assert limits
    fits(Document.REPORT, {**document, "limits": limits})
    if name == "docker-networks":
        fits(Document.REPLICATE, replication_json(replication(analysis, published(analysis.study), [])))


def test_a_finished_run_has_a_page(finished_run, tmp_path):
    _, store = finished_run
    assert write_html(store, tmp_path / "page.html").read_text().rstrip().endswith("</html>")


def test_differences_are_found():
    assert differences({"a": [1.0, "x"]}, {"a": [1.0 + 1e-12, "x"]}) == []
    assert differences({"a": [1.0, 2]}, {"a": [1.1, 3], "b": None}) == [
        "/b: only in one",
        "/a/0: 1.0 is 1.1",
        "/a/1: 2 is 3",
    ]
