"""Loads that make no sense: one sentence that names the file, the line, the key and the bound."""

import json
import re

import pytest

from sentences import raises_sentence
from usual_options import usual_options
from weighbridge import registry
from weighbridge.errors import StudyError
from weighbridge.model.workload import Workload

from .texts import NAME, loaded


def load(workload: Workload) -> str:
    """The option that is its load."""
    return workload.load(usual_options(workload))


LOADED = {kind: workload for kind, workload in registry.workloads().items() if load(workload)}
EVERY = pytest.mark.parametrize("workload", LOADED.values(), ids=LOADED)
STUDY = """\
study: s
question: What breaks?
baseline: native
environments: {native: {kind: native}}
workloads:
  app:
    kind: KIND
    LOAD: LEVELS
repetitions: {blocks: 1}
"""
LINE = 8
"""Where the load stands."""


def study(workload: Workload, levels: str) -> str:
    return STUDY.replace("KIND", workload.kind).replace("LOAD", load(workload)).replace("LEVELS", levels)


def told(workload: Workload, levels: str) -> str:
    """The one sentence about these levels."""
    with pytest.raises(StudyError) as caught:
        loaded(study(workload, levels))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def begins(workload: Workload) -> str:
    return rf"{re.escape(NAME)}:{LINE}: {load(workload)}: "


assert "redis-benchmark" in LOADED


@EVERY
def test_a_load_is_an_option_that_can_be_swept(workload: Workload):
    assert load(workload) in workload.options.model_fields
    cells = loaded(study(workload, "[10, 20, 50]")).cells
    assert [cell.level for cell in cells] == [((load(workload), level),) for level in ("10", "20", "50")]
    assert [getattr(cell.options, load(workload)) for cell in cells] == [10, 20, 50]


BOUND, NUMBER = r"must be (from|at least) [1-9]\d*.*, not ", "must be a whole number .+, not "
TWICE = r"the level 10 is listed twice\. Remove one"
WRONG = {
    "0": f"{BOUND}0", "[0]": f"{BOUND}0", "[10, 0, 1000000]": f"{BOUND}0",
    "-5": f"{BOUND}-5", "[10, -5]": f"{BOUND}-5",
    "ten": f"{NUMBER}'ten'", "10.5": rf"{NUMBER}10\.5", "[[10]]": f"{NUMBER}a list", "[10, x]": f"{NUMBER}'x'",
    "[10, 50, 10]": TWICE, "[10, '10']": TWICE, "[10, 0xa]": TWICE,
    "[10, 50, 10.0]": r"the levels 10 and 10\.0 are the same\. Remove one",
    "[10, 1e1]": r"the levels 10 and 10\.0 are the same\. Remove one",
}  # fmt: skip


@EVERY
@pytest.mark.parametrize("levels", WRONG)
def test_levels_that_make_no_sense_have_one_sentence(workload: Workload, levels: str):
    assert re.fullmatch(begins(workload) + WRONG[levels], told(workload, levels))


@EVERY
@pytest.mark.parametrize("way", ["{}", "{}.0", "{}000000"])
@pytest.mark.parametrize("levels", ["{}", "[10, {}, 50]"])
def test_a_million(workload: Workload, way: str, levels: str):
    """Or more, where a program takes a million."""
    level = way.format(max(10**6, _most(workload) + 1))
    found = re.fullmatch(
        begins(workload) + r"must be from \d+ to (\d+), not ([\d.]+)", told(workload, levels.format(level))
    )
    assert found
    assert 1000 <= int(found[1]) <= 10**6 <= float(found[2]) == float(level)


def _most(workload: Workload) -> int:
    found = re.search(
        r'"maximum": (\d+)', json.dumps(workload.options.model_json_schema()["properties"][load(workload)])
    )
    assert found, "a load has a bound, which editors know too"
    return int(found[1])


def test_a_quantity_that_is_named_twice_in_two_ways():
    text = STUDY.replace("KIND", "iperf3").replace("LOAD", "duration").replace("LEVELS", "[60s, 10s, 1min]")
    with raises_sentence(StudyError):
        loaded(text)
    more = text.replace("[60s, 10s, 1min]", "[60s, 10s]").replace(
        "    kind: iperf3\n", "    kind: iperf3\n    length: [1KiB, 1024B]\n"
    )
    with raises_sentence(StudyError):
        loaded(more)


def test_an_environment_s_level_that_is_named_twice_in_two_ways():
    text = STUDY.replace("KIND", "iperf3").replace("    LOAD: LEVELS\n", "")
    bridge = "{native: {kind: native}, bridge: {kind: native, resources: {cpus: 1}, cpu_share: [50%, 50.0%]}}"
    with raises_sentence(StudyError):
        loaded(text.replace("{native: {kind: native}}", bridge))
