"""Two environments that are no baseline: judged by the rules of the report, and beside a published paired t-test."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from report.made_up_runs import Workload
from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.comparisons import judged_together
from weighbridge.analysis.paths import Paths
from weighbridge.analysis.results import Analysis, Comparison
from weighbridge.features.replication.comparison import agreement, compare_environments, compare_pair, replication
from weighbridge.features.replication.document import replication_json
from weighbridge.features.replication.proof import PublishedPair, pair_rows
from weighbridge.features.replication.published import PAIRED, Figure, Measured, PairTable, Published
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.measurement import Metric
from weighbridge.report.text.environments import names_of
from weighbridge.statistics import verdicts
from weighbridge.statistics.parametric import TTest, t_test

from .rendered import page, printed

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


@pytest.mark.parametrize(("bridge", "overlay"), [("synchronous", "asynchronous"), ("unknown", "unknown")])
def test_two_that_do_not_keep_alike_or_may_not_are_never_equivalent(compared, bridge: str, overlay: str):
    kinds = {"native": "synchronous", "bridge": bridge, "overlay": overlay}
    found = compared(facts={"durability": {f"{name}/tcp": kind for name, kind in kinds.items()}})
    assert found.cost.equivalent and found.verdict == "inconclusive"
    told = [remark for remark in found.remarks if remark.code == "durability"]
    assert [(each.durability, each.baseline) for each in told] == [(overlay, "bridge")]


def test_what_broke_is_a_selection(compared):
    found = compared(breaking={(1, "bridge", ()): "too many connections"})
    assert found.verdict == "inconclusive" and found.blocks == 9
    assert found.broke is None and found.baseline_broke is not None


def test_without_a_path_there_is_no_verdict(run):
    analysis = analyse(run(costs={"bridge": 1.1, "overlay": 1.5}))
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
    assert names_of(analysis) == {"native-again": "native (control)"}


def test_exactly_those_that_are_asked_for_are_corrected_together(run):
    """Whatever else a run has compared: alone their p-values are what they are."""
    analysis = analyse(run(costs={"bridge": 1.1, "overlay": 1.02}))
    report = analysis.metrics[0]
    family = [compare_environments(analysis, report, name, "native") for name in ("bridge", "overlay")]
    both = [*family, compare_environments(analysis, report, "overlay", "bridge")]
    raw = [each.p_values for each in both]
    assert [each.adjusted_p for each in judged_together(both, analysis.context)] == verdicts.adjusted(raw)
    (alone,) = judged_together(family[:1], analysis.context)
    assert alone.adjusted_p == raw[0].among(1, verdicts.ALPHA)
    assert alone.cost == report.comparisons[0].cost and alone.environment == report.comparisons[0].environment


# -- beside a published t-test ------------------------------------------------------------------

READS = Workload("rndrw", [(Metric("reads", "1/s", "higher"), 500.0, 0.02)])
TABLE = PairTable(
    title="Table 1", workload="fileio", metric="reads", unit="1/s", labels=("Table 1",), level={"disk": "hdd"},
    measured=Measured(workload="rndrw", metric="reads"), pairs={"volume - nfs": ("native", "docker")},
)  # fmt: skip


def figure(statistic: str, value: float, level: str = "hdd") -> Figure:
    return Figure.model_validate({
        "study": "s", "table": "Table 1", "environment": "volume - nfs", "workload": "fileio", "metric": "reads",
        "unit": "1/s", "level_name": "disk", "level": level, "statistic": statistic, "value": value,
        "better": "higher",
    })  # fmt: skip


PRINTED = tuple(map(figure, PAIRED, (3.03, 9.6252, 1.724, 0.095)))


def study(*figures: Figure) -> Published:
    return Published.model_validate({
        "study": "s", "source": "x", "baseline": "native", "runs": 30, "pairs": (TABLE,), "figures": figures,
        "environments": {"volume": "native", "nfs": "docker"},
    })  # fmt: skip


@given(st.lists(st.tuples(st.integers(-(10**6), 10**6), st.integers(-(10**6), 10**6)), min_size=3, max_size=30))
def test_as_scipy_tests_it(pairs: list[tuple[int, int]]):
    first, second = zip(*pairs, strict=True)
    found = t_test([one - other for one, other in pairs])
    wanted = stats.ttest_rel(first, second)
    assert found is not None
    if found.t is not None and found.p is not None and found.deviation > 1e-6:
        assert found.t == pytest.approx(wanted.statistic, rel=1e-6, abs=1e-9)
        assert found.p == pytest.approx(wanted.pvalue, rel=1e-6, abs=1e-12)


def test_the_published_rows_are_of_thirty_pairs():
    mean, deviation, t, p = (each.value for each in PRINTED)
    assert mean / (deviation / 30**0.5) == pytest.approx(t, abs=0.001)
    assert 2 * stats.t.sf(t, 29) == pytest.approx(p, abs=0.001)


def test_what_cannot_be_tested():
    assert t_test([-1.0]) is None
    assert t_test([2.0, 2.0]) == TTest(2.0, 0.0, 2, None, None)


@pytest.mark.parametrize(
    ("published", "measured", "agrees"),
    [
        ((5.0, 0.01), (2.0, 0.01), "sign and significance"),
        ((5.0, 0.3), (2.0, 0.2), "sign and significance"),
        ((5.0, 0.01), (2.0, 0.2), "sign"),
        ((5.0, 0.01), (-2.0, 0.01), "significance"),
        ((5.0, 0.01), (-2.0, 0.5), "neither"),
        ((5.0, 0.01), None, "not measured"),
    ],
)
def test_what_agrees(published: tuple[float, float], measured: tuple[float, float] | None, agrees: str):
    test = TTest(measured[0], 1.0, 10, 1.0, measured[1]) if measured else None
    assert agreement(PublishedPair("a", "b", published[0], 1.0, 1.0, published[1]), test) == agrees


@pytest.mark.parametrize(
    ("mean", "agrees"), [(2.0, "sign, in too few blocks"), (-2.0, "other sign, in too few blocks")]
)
def test_few_blocks_agree_in_no_significance(mean: float, agrees: str):
    own, test = PublishedPair("a", "b", 5.0, 1.0, 1.0, 0.3), TTest(mean, 1.0, 4, 1.0, 0.2)
    assert agreement(own, test) == agrees


def test_a_run_beside_them(run, tmp_path):
    store = run(costs={"docker": 1.25}, workloads=[READS])
    found = replication(analyse(store), study(*PRINTED))
    ((row,),) = [each.rows for each in found.pairs]
    native, docker = (found.analysis.by_block(found.analysis.metrics[0], name) for name in ("native", "docker"))
    wanted = stats.ttest_rel([*native.values()], [*docker.values()])
    assert row.measured is not None
    assert (row.measured.pairs, row.measured.t) == (len(native), pytest.approx(wanted.statistic))
    assert row.judged is not None
    assert row.judged.verdict == "different"
    (document,) = json.loads(json.dumps(replication_json(found)))["pairs"]
    assert document["published"] == {"mean": 3.03, "deviation": 9.6252, "t": 1.724, "p": 0.095}
    assert (document["agreement"], document["measured"]["pairs"]) == ("sign", len(native))
    assert "native − docker" in page(found, store, tmp_path / "page.html")
    text = printed(found, store)
    assert "native − docker" in text


def test_a_figure_that_is_not_printed_is_no_zero():
    with pytest.raises(KeyError):
        list(pair_rows(study(*PRINTED[:2]), TABLE))
