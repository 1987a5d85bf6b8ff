"""A run as Python sees it: the same figures as its report, from each place that holds it, shown without harm."""

import json
import lzma
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import altair
import pytest

import weighbridge
from csv_rows import csv_rows
from sentences import raises_sentence
from weighbridge.analysis.analyse import analyse
from weighbridge.report.export.csv import COST_COLUMNS, MEASUREMENT_COLUMNS, write_csv
from weighbridge.report.export.json import report_json
from weighbridge.store.run import DATABASE, RunStore

from .conftest import KEPT


@pytest.fixture(scope="module")
def weighed(runs: Path) -> weighbridge.Run:
    """A kept run of one program, from its directory."""
    return weighbridge.load(runs / "weigh")


@pytest.fixture(scope="module")
def report(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The JSON of its report."""
    path = tmp_path_factory.mktemp("report") / "report.json"
    with RunStore(runs / "weigh") as store:
        path.write_text(json.dumps(report_json(store), allow_nan=False))
    return path


def test_a_run_is_the_same_from_each_place(weighed: weighbridge.Run, runs: Path, report: Path):
    for place in (runs / "weigh" / DATABASE, KEPT / "weigh.sqlite.xz", report):
        other = weighbridge.load(str(place))
        assert [*other.costs] == [*weighed.costs]
        assert replace(other.result, directory="") == replace(weighed.result, directory="")
        assert other._repr_html_() == weighed._repr_html_()
    assert [*weighbridge.load(KEPT / "weigh.sqlite.xz").trials] == [*weighed.trials]


@pytest.mark.parametrize("name", ["first-look", "docker-networks"])
def test_costs_are_those_of_the_report(finished_run: Callable, name: str):
    store, analysis, document = finished_run(name)
    loaded = weighbridge.load(store.directory)
    assert loaded.environments == (analysis.baseline, *analysis.others)
    assert loaded.control_passed is analysis.trust.trusted
    shared = ("environment", "workload", "level", "metric", "cost", "cost_low", "cost_high", "verdict", "rounds")
    for cost, row in zip(loaded.costs, document["costs"], strict=True):
        assert [getattr(cost, key) for key in shared] == [row[key] for key in shared]
        assert cost.control or cost.confidence == analysis.confidence
        assert cost.remarks == tuple(document["remarks"][number]["text"] for number in row["remarks"])


def test_the_confidence_of_an_extended_or_unfinished_run_is_that_of_its_report(run: Callable):
    directory = run(costs={"bridge": 1.1}, blocks=12).directory
    with RunStore(directory, writable=True) as store:
        store.set_info("finished", "no")
    loaded = weighbridge.load(directory)
    with RunStore(directory) as again:
        assert loaded.costs[0].confidence == pytest.approx(analyse(again).confidence)
    assert loaded.costs[0].confidence > 0.99


def test_trials_are_those_of_the_csv(weighed: weighbridge.Run, runs: Path, tmp_path: Path):
    with RunStore(runs / "weigh") as store:
        rows = csv_rows(write_csv(store, tmp_path)[0])
        samples, facts = store.samples(), store.facts()
    same = [each for each in MEASUREMENT_COLUMNS if each not in ("level", "flags", "message", "layers", "emulated")]
    assert len(weighed.trials) == len(rows) > 1000
    for value, row in zip(weighed.trials, rows, strict=True):
        assert {name: getattr(value, name) for name in same} == {name: row[name] for name in same}
    assert [(each.trial, each.site, each.name, each.value) for each in weighed.samples] == [*map(tuple, samples)]
    assert [(each.scope, each.key, each.value, each.at) for each in weighed.facts] == facts


def test_pairs_are_what_a_cost_is_computed_from(weighed: weighbridge.Run):
    pairs = weighed.pairs("docker", "command", "time")
    (row,) = [each for each in weighed.result.costs if each.environment == "docker" and each.metric == "time"]
    assert len(pairs) == row.rounds
    assert tuple(each.environment for each in pairs) == row.pairs.environment
    with raises_sentence(weighbridge.WeighbridgeError):
        weighed.pairs("docker", "command", "speed")


def test_pairs_of_a_workload_with_levels_need_the_level(finished_run: Callable):
    loaded = weighbridge.load(finished_run("first-look").store.directory)
    cost = loaded.costs.where(workload="tcp", environment="docker-host", metric="throughput")[0]
    with raises_sentence(weighbridge.WeighbridgeError):
        loaded.pairs(cost.environment, cost.workload, cost.metric)
    assert len(loaded.pairs(cost.environment, cost.workload, cost.metric, cost.level)) == cost.rounds


def test_a_report_has_costs_but_no_trials(report: Path):
    loaded = weighbridge.load(report)
    assert len(loaded.pairs("docker", "command", "time")) > 100
    with raises_sentence(weighbridge.WeighbridgeError):
        loaded.trials  # noqa: B018
    with raises_sentence(weighbridge.WeighbridgeError):
        loaded.samples  # noqa: B018


def test_rows_are_selected_by_their_fields(weighed: weighbridge.Run):
    costs = weighed.costs.where(primary=True, control=False)
    assert [each.environment for each in costs] == ["docker"]
    assert len(weighed.costs[1:]) == len(weighed.costs) - 1
    with pytest.raises(AttributeError, match="no field 'verdit': its fields are environment, "):
        weighed.costs.where(verdit="significant")


def test_printed_rows_are_the_first_ones(weighed: weighbridge.Run):
    first, *lines = str(weighed.costs).splitlines()
    assert first == repr(weighed.costs) and lines == [str(each) for each in weighed.costs]
    lines = str(weighed.trials).splitlines()
    assert len(lines) == 22 and lines[-1] == f"{len(weighed.trials) - 20} more rows"


# -- data frames -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("library", "method"), [("pandas", "to_pandas"), ("polars", "to_polars"), ("pyarrow", "to_arrow")]
)
def test_a_missing_library_is_one_sentence(
    weighed: weighbridge.Run, monkeypatch: pytest.MonkeyPatch, library: str, method: str
):
    monkeypatch.setitem(sys.modules, library, None)
    with raises_sentence(weighbridge.WeighbridgeError):
        getattr(weighed.costs, method)()


def test_pandas_has_the_rows(weighed: weighbridge.Run):
    pytest.importorskip("pandas")
    frame = weighed.trials.to_pandas()
    assert len(frame) == len(weighed.trials) and str(frame.dtypes["value"]) == "float64"
    median = frame[frame.metric == "time"].groupby("environment").value.median()
    assert median["docker"] > median["native"]
    assert weighed.costs.where(rounds=-1).to_pandas().shape == (0, frame_width(weighed))


def test_polars_and_arrow_have_the_rows(weighed: weighbridge.Run):
    pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    polars, arrow = weighed.costs.to_polars(), weighed.costs.to_arrow()
    assert polars.shape == arrow.shape == (len(weighed.costs), frame_width(weighed))
    assert polars["verdict"].to_list() == arrow["verdict"].to_pylist() == [each.verdict for each in weighed.costs]
    assert str(arrow.schema.field("cost").type) == "double"
    assert weighed.costs.where(rounds=-1).to_polars().shape == (0, frame_width(weighed))


def frame_width(loaded: weighbridge.Run) -> int:
    return len(loaded.costs[0].__dataclass_fields__)


# -- notebooks -------------------------------------------------------------------------------------

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def hostile(report: Path, tmp_path: Path) -> weighbridge.Run:
    """A report whose names, units and question are a script."""
    text = report.read_text().replace('"docker"', f'"{HOSTILE}"').replace('"command"', f'"{HOSTILE}"')
    document = json.loads(text) | {"question": HOSTILE, "study": f"{HOSTILE}\x1b[2J"}
    for row in document["costs"]:
        row["unit"] = HOSTILE
    (tmp_path / "report.json").write_text(json.dumps(document))
    return weighbridge.load(tmp_path / "report.json")


def test_what_a_notebook_shows_is_escaped(hostile: weighbridge.Run):
    shown = [hostile._repr_html_(), hostile.costs[0]._repr_html_(), hostile.costs._repr_html_()]
    shown.append(hostile.plot(HOSTILE).svg)
    printed = str(hostile.costs)
    assert len(printed.splitlines()) == len(hostile.costs) + 1 and "\x1b" not in printed + repr(hostile)
    for text in shown:
        assert "alert(1)" in text and "<script" not in text and "\x1b" not in text


def test_a_run_shows_its_primary_costs(weighed: weighbridge.Run):
    table = ElementTree.fromstring(weighed._repr_html_().partition("<p>")[0])
    assert [each.text for each in table.iter("th")] == ["metric", "native", "docker"]
    (cell,) = [each.text for each in table.iter("td") if each.text.startswith("significant: ")]
    assert cell == f"significant: {weighed.costs.where(environment='docker', metric='time')[0].text}"
    assert "The control passed." in weighed._repr_html_()


def test_a_chart_needs_no_library_of_charts(finished_run: Callable):
    loaded = weighbridge.load(finished_run("first-look").store.directory)
    for chart in (loaded.plot("tcp"), loaded.plot("redis", "set_throughput")):
        bundle = chart._repr_mimebundle_()
        definition = bundle["application/vnd.vegalite.v5+json"]
        altair.LayerChart.validate(json.loads(json.dumps(definition, allow_nan=False)))
        names = {row["name"] for rows in definition["datasets"].values() for row in rows if "name" in row}
        assert len(names) >= 3
        assert ElementTree.fromstring(bundle["image/svg+xml"]).tag.endswith("svg")
        assert isinstance(chart.to_altair(), altair.LayerChart)


def test_without_a_cost_or_an_interval_there_is_no_chart(weighed: weighbridge.Run, report: Path, tmp_path: Path):
    with raises_sentence(weighbridge.WeighbridgeError):
        weighed.plot("nothing")
    document = json.loads(report.read_text())
    for row in document["costs"]:
        row["cost_low"] = row["cost_high"] = None
    (tmp_path / "report.json").write_text(json.dumps(document))
    with raises_sentence(weighbridge.WeighbridgeError):
        weighbridge.load(tmp_path / "report.json").plot("command")


# -- what is no run --------------------------------------------------------------------------------


def _cut(folder: Path) -> Path:
    (folder / "cut.sqlite.xz").write_bytes((KEPT / "weigh.sqlite.xz").read_bytes()[:5000])
    return folder / "cut.sqlite.xz"


def _other(folder: Path) -> Path:
    (folder / "other.xz").write_bytes(lzma.compress(b"no database" * 99))
    return folder / "other.xz"


def _text(folder: Path) -> Path:
    (folder / "text.xz").write_bytes(b"text")
    return folder / "text.xz"


def _pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe.json")
    return folder / "pipe.json"


def _old(folder: Path) -> Path:
    (folder / "old.json").write_text('{"version": 7}')
    return folder / "old.json"


def _extra(folder: Path) -> Path:
    (folder / "list.json").write_text("[" * 10_000)
    return folder / "list.json"


def _incomplete(folder: Path) -> Path:
    with RunStore(_unpacked(folder)) as store:
        document = report_json(store)
    document["costs"][0]["remarks"] = [10**6]
    (folder / "report.json").write_text(json.dumps(document))
    return folder / "report.json"


def _unpacked(folder: Path) -> Path:
    (folder / DATABASE).write_bytes(lzma.decompress((KEPT / "weigh.sqlite.xz").read_bytes()))
    return folder


@pytest.mark.parametrize(
    "make",
    [_cut, _other, _text, _pipe, _old, _extra, _incomplete, lambda folder: folder, lambda folder: folder / "none"],
    ids=["cut", "other", "text", "pipe", "old", "deep", "incomplete", "empty", "missing"],
)  # fmt: skip
def test_what_is_no_run_is_one_sentence(make: Callable[[Path], Path], tmp_path: Path):
    with raises_sentence(weighbridge.WeighbridgeError) as error:
        weighbridge.load(make(tmp_path))
    assert len(str(error.value).splitlines()) == 1
    assert error.value.exit_code == 6  # type: ignore[attr-defined]


def test_the_tables_of_costs_and_of_the_export_use_one_word_for_one_thing(weighed: weighbridge.Run):
    fields = {*weighed.costs[0].__dataclass_fields__}
    assert fields - {*COST_COLUMNS} == {"primary", "resource_use", "baseline", "confidence", "remarks"}
