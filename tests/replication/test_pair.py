"""Two environments that are no baseline are judged by the rules of the report."""

from dataclasses import replace

import pytest

from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.paths import Paths
from weighbridge.analysis.results import Analysis, Comparison
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.replication.pair import asked, compare_pair, judged_together
from weighbridge.report.text.environments import displayed
from weighbridge.statistics import verdicts

CABLE = Flag(FlagCode.CABLE, "host a", {"share": 0.99, "rate": 100e6})
ARMS = ("native", "bridge", "overlay")


def pair(analysis: Analysis) -> Comparison:
    found = compare_pair(analysis, analysis.metrics[0], "overlay", "bridge")
    assert found is not None and (found.environment, found.aa) == ("overlay", False)
    return found


@pytest.fixture
def compared(run):
    """The pair in a run whose environments cost alike, unless others are given."""

    def made(overlay: float = 1.1, **recipe) -> Comparison:
        return pair(analyse(run(costs={"bridge": 1.1, "overlay": overlay}, **recipe)))

    return made


def test_two_that_cost_alike_are_equivalent_and_others_different(compared):
    assert compared().verdict == "equivalent"
    other = compared(overlay=1.5)
    assert other.verdict == "different" and other.cost.typical == pytest.approx(1.1 / 1.5, rel=0.02)


def test_a_limit_that_both_met_hides(compared):
    met = {(block, arm): (CABLE,) for block in range(1, 11) for arm in ARMS}
    found = compared(flags=met)
    assert found.verdict == "hidden" and found.hidden is not None and found.hidden.kind == "cable"
    of_the_baseline_alone = {where: flags for where, flags in met.items() if where[1] != "bridge"}
    assert compared(flags=of_the_baseline_alone).verdict == "equivalent"
    assert compared(overlay=1.5, flags=met).verdict == "different"


def test_two_that_do_not_keep_alike_are_never_equivalent(compared):
    kinds = {"native": "synchronous", "bridge": "synchronous", "overlay": "asynchronous"}
    found = compared(facts={"durability": {f"{name}/tcp": kind for name, kind in kinds.items()}})
    assert found.cost.equivalent and found.verdict == "inconclusive"
    told = [remark for remark in found.remarks if remark.code == "durability"]
    assert [(each.durability, each.baseline) for each in told] == [("asynchronous", "bridge")]


def test_what_broke_is_a_selection(compared):
    found = compared(breaking={(1, "bridge", ()): "too many connections"})
    assert found.verdict == "inconclusive" and found.blocks == 9
    assert found.broke is None and found.baseline_broke is not None


def test_without_a_path_there_is_no_verdict(run):
    analysis = analyse(run(costs={"bridge": 1.1, "overlay": 1.5}))
    assert analysis.context is not None
    context = replace(analysis.context, paths=Paths({}, frozenset({"tcp"})))
    assert pair(replace(analysis, context=context)).verdict == "inconclusive"


def test_confounders_are_those_between_the_two(compared):
    kernels = {"native": "6.18.5", "bridge": "6.18.5", "overlay": "6.1.0-44-amd64"}
    found = compared(facts={f"{name}/server": {"version: kernel": release} for name, release in kernels.items()})
    told = [remark for remark in found.remarks if remark.code == "confounder"]
    assert [(each.environment, each.fact, each.baseline) for each in told] == [("overlay", "kernel", "bridge")]


def test_what_the_run_lacks_is_no_pair(run):
    analysis = analyse(run(costs={"bridge": 1.1}))
    assert compare_pair(analysis, analysis.metrics[0], "overlay", "bridge") is None
    assert displayed(analysis) == analysis


def test_exactly_those_that_are_asked_for_are_corrected_together(run):
    """Whatever else a run has compared: alone their p-values are what they are."""
    analysis = analyse(run(costs={"bridge": 1.1, "overlay": 1.02}))
    report = analysis.metrics[0]
    family = [asked(analysis, report, name, "native") for name in ("bridge", "overlay")]
    found = judged_together([*family, None, asked(analysis, report, "overlay", "bridge")])
    raw = [each.p_value if each else None for each in (*family, asked(analysis, report, "overlay", "bridge"))]
    assert found[2] is None
    assert [each.adjusted_p for each in found if each] == verdicts.adjusted(raw)
    (alone,) = judged_together(family[:1])
    assert alone is not None and alone.adjusted_p == raw[0]
    assert alone.cost == report.comparisons[0].cost and alone.environment == report.comparisons[0].environment
