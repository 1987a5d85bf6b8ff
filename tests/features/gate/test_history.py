"""The significant changes in a history: those of `compare`, with what changed besides, in every output."""

import io
import json
from dataclasses import replace
from itertools import pairwise

import pytest
from rich.console import Console

from documents import fits
from report.made_up_runs import Recipe, make_run
from weighbridge.analysis.analyse import Depth, analyse
from weighbridge.cli.commands.studies import SchemaDocument
from weighbridge.features.gate.between_runs import compare_runs
from weighbridge.features.gate.compare_text import GAIN, about_changes, significant_changes
from weighbridge.features.gate.compared_run import read_run
from weighbridge.features.gate.history_charts import SIGNIFICANT, legend, over_runs, series_of
from weighbridge.features.gate.history_document import LONG, history_document
from weighbridge.features.gate.history_json import history_json
from weighbridge.features.gate.past_runs import History, history
from weighbridge.report.document import Fold
from weighbridge.report.render_page import write_document
from weighbridge.report.render_terminal import print_document
from weighbridge.store.run import RunStore

STEP = (1.2, 1.2, 1.5, 1.5)
"""The factor of the bridge in each run: one change."""


@pytest.fixture
def made(tmp_path):
    """Make a folder of runs, a day apart, with a factor for the bridge in each."""

    def make(*factors: float, further: dict[int, dict[str, object]] | None = None) -> History:
        for number, factor in enumerate(factors):
            place = tmp_path / "runs" / f"run{number}"
            recipe = {"blocks": 15, "seed": number, **(further or {}).get(number, {})}
            make_run(place, Recipe(costs={"bridge": factor, "host": 1.0}, **recipe)).close()
            with RunStore(place, writable=True) as store:
                store.set_info("created", str(1.7e9 + 86_400 * number))
        return history(tmp_path / "runs")

    return make


def terminal(found: History, width: int = 80) -> str:
    file = io.StringIO()
    print_document(
        history_document(found), Console(file=file, width=width, highlight=False), full=True, details=False
    )
    return file.getvalue().replace("\u00a0", " ")


def test_a_step_is_found_where_it_is(made):
    found = made(*STEP)
    assert [(number, environment) for number, _, environment, *_ in significant_changes(found)] == [(3, "bridge")]
    (series,) = [each for each in series_of(found) if each.title == "TCP throughput"]
    assert [bool(point.significant) for point in series.of("bridge")] == [False, False, True, False]
    assert SIGNIFICANT in legend(series.of("bridge")) and SIGNIFICANT not in legend(series.of("host"))
    marks = [rows for rows in over_runs(series, "bridge").definition["datasets"].values() if rows]
    assert [rows[0]["at"] for rows in marks if "significant" in rows[0]] == [2.5]
    text = " ".join(terminal(found).split())
    assert "bridge: TCP throughput against native is" in text and "lower in run 3 than in run 2 - significant" in text


def test_a_gain_has_its_own_tone_and_the_noise_floor_is_on_the_axis(made):
    found = made(0.8, 0.6, further={0: {"aa_factor": 1.1}})
    series = series_of(found)[0]
    first, second = series.of("bridge")
    assert (first.tone, second.tone) == ("inconclusive", GAIN) and "significant gain" in dict(legend([second]))
    encodings = [each["encoding"] for each in over_runs(series, "host").definition["layer"]]
    (domain,) = {tuple(each["y"]["scale"]["domain"]) for each in encodings if "y" in each}
    assert domain[0] <= first.report.noise[0] and first.report.noise[1] <= domain[1]


def test_every_change_is_the_one_of_compare(made):
    found = made(1.2, 1.22, 1.5, 1.45)
    for before, after in pairwise(found.runs):
        with RunStore(found.folder / before.run.name) as one, RunStore(found.folder / after.run.name) as other:
            (pair,) = compare_runs(read_run(one), read_run(other)).pairs
        rows = [(row.change, row.adjusted_p, row.verdict) for each in after.changes for row in each.rows]
        assert rows == [(row.change, row.adjusted_p, row.verdict) for each in pair.headlines for row in each.rows]
        assert len(rows) == 3 and after.run.values == {}, "a history keeps no values"


@pytest.mark.parametrize("name", ["docker-networks", "first-look"])
def test_a_history_reads_what_a_report_reads(finished_run, name: str):
    """It leaves out most of a run, but no verdict of a primary metric depends on that."""
    whole = finished_run(name).analysis
    read = analyse(finished_run(name).store, Depth.PRIMARY)
    assert (read.trust.trusted, read.trust.noise_floor) == (whole.trust.trusted, whole.trust.noise_floor)
    for one, other in zip(read.headlines, whole.headlines, strict=True):
        assert one.comparisons == tuple(replace(each, remarks=()) for each in other.comparisons)
    assert len(read.headlines) > 2


def test_progress_names_every_run(made):
    seen: list[tuple[int, int, str]] = []
    history(made(1.2, 1.3).folder, lambda *each: seen.append(each))
    assert seen == [(1, 2, "run0"), (2, 2, "run1")]


def test_runs_without_a_change_have_none(made):
    found = made(*(8 * [1.2]))
    assert list(significant_changes(found)) == []
    assert "No cost of a primary metric changed significantly" in " ".join(terminal(found).split())
    assert "at most 0.35 of 7 pairs" in about_changes(found)


def test_a_run_whose_control_failed_hides_no_change(made):
    found = made(*STEP, further={2: {"aa_factor": 1.1}})
    assert [past.since for past in found.runs] == [0, 1, 2, 2]
    assert [number for number, *_ in significant_changes(found)] == [4]
    document = history_json(found)
    assert [each["since"] for each in document["runs"]] == [None, "run0", "run1", "run1"]


def test_settings_that_changed_are_named(made):
    found = made(1.2, 1.2, further={n: {"options": {"bridge": {"icc": icc}}} for n, icc in enumerate(("on", "off"))})
    (setting,) = found.runs[1].settings
    assert (setting.name, setting.setting, setting.before, setting.after) == ("bridge", "icc", "on", "off")
    assert "run 2 differs from the previous run of its study: settings: icc" in " ".join(terminal(found).split())
    assert history_json(found)["runs"][1]["settings"][0]["setting"] == "icc"


def test_the_document_has_the_changes(made):
    document = history_json(made(*STEP))
    fits(SchemaDocument.HISTORY, json.loads(json.dumps(document)))
    costs = [each["costs"][0] for each in document["runs"]]
    assert {each["environment"] for each in costs} == {"bridge"}
    assert [each["change_verdict"] for each in costs][::2] == [None, "different"]
    assert costs[2]["change"]["change"] == pytest.approx(100 * (1 - 1.2 / 1.5), abs=3)


def test_one_run_is_compared_with_nothing(made):
    found = made(1.2)
    assert about_changes(found) == "" and "significant change" not in terminal(found)


@pytest.mark.parametrize("width", [40, 80, 160])
def test_a_long_history_is_folded_in_the_page_and_fits_into_a_terminal(made, tmp_path, width: int):
    short = made(1.2, 1.5)
    several = short.runs * LONG
    found = History(short.folder, several, ())
    folds = [block.title for block in history_document(found).blocks if isinstance(block, Fold)]
    assert f"{len(several)} runs" in folds and f"{LONG} significant changes" not in folds
    assert max(map(len, terminal(found, width).splitlines())) <= width


def test_texts_of_strangers_are_escaped(made, tmp_path):
    kernels = "6.1", "<script>alert(1)</script><b onclick=x>\x1b[2J"
    found = made(1.2, 1.5, further={n: {"facts": {"host": {"kernel": each}}} for n, each in enumerate(kernels)})
    write_document(history_document(found), tmp_path / "history.html")
    page = (tmp_path / "history.html").read_text()
    assert "<script>alert" not in page and "<b onclick" not in page and "\x1b" not in page
    assert "&lt;script&gt;alert(1)" in page
