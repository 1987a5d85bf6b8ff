"""The pages of runs over loads, steps and time: every link leads somewhere, and each chart has its layers.

For each chart of a page, the golden file has its marks, how many rows each of them draws, its titles and its scales.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import altair as alt
import pytest

from sentences import assert_sentence
from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.use_by_level import by_level
from weighbridge.report.page import PageCharts
from weighbridge.report.sections.overtime import overtime_sections
from weighbridge.report.terminal import print_report
from weighbridge.report.text.overtime import interval_words
from weighbridge.store.run import RunStore

from .explained_runs import recipe
from .made_up_runs import LATENCY, LOSS, REQUESTS, TCP, Recipe, Workload, make_run, rising_load
from .swept_runs import Sweep, make_sweep
from .test_edge_cases import LADDER, MANY_LEVELS, broken_at, load, over_loads
from .test_golden import printed
from .test_html import HOSTILE, check_links, page_of

LOSSY = Workload("udp", [(LOSS, 0.5, 2.0), (LATENCY, 1.0, 0.01)])
NARROW = [Workload("web", [(REQUESTS, 1e4, 0.01), (LATENCY, 1.0, 0.01)], load(each)) for each in (10, 20, 40)]
EVERYWHERE = {**broken_at(3, "native", "host", "native-again"), **broken_at(2, "host")}
RUNS: dict[str, Recipe | Sweep] = {
    "rising load": Recipe(**rising_load()),
    **{f"rising load, {blocks} rounds": Recipe(**rising_load(outputs=False, blocks=blocks)) for blocks in (1, 2)},
    "narrow loads": Recipe(**over_loads(workloads=NARROW, blocks=10)),
    "everything broke": Recipe(**over_loads(1e4, 2e4, 3e4, breaking=EVERYWHERE)),
    "hostile reasons": Recipe(**over_loads(1e4, 2e4, 3e4, breaking=dict.fromkeys(EVERYWHERE, f"{HOSTILE}\x1b[2J"))),
    "steps": Recipe(**LADDER | {"blocks": 12}),
    "steps of differences": Recipe(**LADDER | {"blocks": 12, "workloads": [LOSSY]}),
    "steps of many levels": Recipe(**LADDER | {"blocks": 12, "workloads": [*MANY_LEVELS, TCP]}),
    "steps of two rounds": Recipe(**LADDER | {"blocks": 2}),
    "over time and levels": Sweep(disks=True),
    "over time on hosts": Sweep(blocks=2, hosts=True),
    "hostile names": Sweep(
        blocks=1, workloads=((HOSTILE, HOSTILE),), environments=("native", HOSTILE), broke=("none", 0), levels=(1, 2)
    ),
    "long rounds": Sweep(levels=(1, 2, 3, 4, 5, 6), blocks=1, trial_s=60.0, hz=2.0, workloads=(("db", "n"),)),
    "over time alone": Recipe(costs={"bridge": 1.5}, series=True, blocks=2),
    "explained": Recipe(**recipe()),
    "latencies": Recipe(costs={"bridge": 1.5}, histograms={"put_latency": 3e-4}),
}  # fmt: skip


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[[str], RunStore]]:
    stores: list[RunStore] = []

    def make(name: str) -> RunStore:
        given = RUNS[name]
        made = make_run(tmp_path / "run", given) if isinstance(given, Recipe) else make_sweep(tmp_path / "run", given)
        stores.append(made)
        return made

    yield make
    for each in stores:
        each.close()


def axis_words(encoding: Mapping[str, Any]) -> Iterator[str]:
    for axis in ("x", "y"):
        described = encoding.get(axis, {})
        if described.get("title"):
            scale = described.get("scale", {})
            limits = [f"{each:.4g}" if isinstance(each, float) else str(each) for each in scale.get("domain", ())]
            yield " ".join((f"{axis}: {described['title']}", scale.get("type", ""), *limits)).strip()


def chart_words(definition: Mapping[str, Any]) -> str:
    """Return the axes of a chart, and each layer's mark with its number of rows."""
    rows, axes, marks = definition.get("datasets", {}), [], []
    for part in definition.get("vconcat", [definition]):
        for layer in part.get("layer", [part]):
            axes += axis_words(layer.get("encoding", {}))
            if mark := layer.get("mark"):
                drawn = rows.get(layer.get("data", {}).get("name", ""), ())
                marks.append(f"{mark.get('shape', mark['type'])} {len(drawn)}")
    counted = (f"{mark} ({count} times)" if count > 1 else mark for mark, count in Counter(marks).items())
    return "; ".join((*dict.fromkeys(axes), ", ".join(counted)))


@pytest.mark.parametrize("name", RUNS)
def test_every_link_of_the_page_leads_somewhere_and_every_chart_has_its_layers(opened, name: str):
    store = opened(name)
    page = page_of(store)
    check_links(page, store.directory)
    assert not page.all("img") and (store.directory / "report.html").stat().st_size < 3_000_000
    texts = [text for attrs, text in page.scripts if attrs.get("type") == "application/json"]
    assert not any("<" in text for text in texts)
    definitions = [json.loads(text) for text in texts]
    ids = {attrs.get("id") for _, attrs in page.elements}
    for each in definitions:
        linked = [
            row[key]
            for rows in each.get("datasets", {}).values()
            for row in rows
            for key in ("link", "h")
            if key in row
        ]
        assert {link.removeprefix("#") for link in linked} <= ids
    for each in {chart_words(each): each for each in definitions}.values():  # the schema takes any rows
        (alt.VConcatChart if "vconcat" in each else alt.LayerChart).validate({**each, "datasets": {}})
    found = Counter(map(chart_words, definitions))
    assert_sentence("\n".join(f"{count} of: {words}" for words, count in found.items()))


@pytest.mark.parametrize("name", [name for name in RUNS if "over time" in name or name == "long rounds"])
def test_the_captions_and_columns_of_use_over_time(opened, name: str):
    store = opened(name)
    analysis, charts = analyse(store), PageCharts()
    for use, section in zip(by_level(store, analysis), overtime_sections(store, analysis, charts), strict=True):
        assert_sentence("\n".join((interval_words(use), section.time.caption, str(section.table.places))))
        assert_sentence("; ".join(title for title, _ in section.levels))
    assert sum(map(len, charts.definitions.values())) < 1_000_000


@pytest.mark.parametrize("name", ["rising load", "everything broke", "hostile reasons", "steps of many levels"])
def test_nothing_steers_the_terminal_and_no_line_is_too_wide(opened, name: str):
    text = printed(lambda console: print_report(analyse(opened(name)), console, everything=True))
    assert "\x1b" not in text and max(map(len, text.splitlines())) <= 80
