"""Paired differences with their t-test, as published and of a run's blocks."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from scipy import stats

from report.made_up_runs import Workload
from weighbridge.analysis.analyse import analyse
from weighbridge.model.measurement import Metric
from weighbridge.replication.comparison import replication
from weighbridge.replication.export import replication_json
from weighbridge.replication.page import print_replication, write_replication
from weighbridge.replication.paired import PairRow, PublishedPair, published_pair
from weighbridge.replication.published import PAIRED, Figure, Measured, PairTable, Published
from weighbridge.statistics.parametric import TTest, t_test

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
    own = PublishedPair(published[0], 1.0, 1.0, published[1])
    assert PairRow("a", "b", own, test, None, "1/s", "").agreement == agrees


@pytest.mark.parametrize(
    ("mean", "agrees"), [(2.0, "sign, in too few blocks"), (-2.0, "other sign, in too few blocks")]
)
def test_few_blocks_agree_in_no_significance(mean: float, agrees: str):
    row = PairRow("a", "b", PublishedPair(5.0, 1.0, 1.0, 0.3), TTest(mean, 1.0, 4, 1.0, 0.2), None, "1/s", "")
    assert row.agreement == agrees


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
    assert "native − docker" in write_replication(found, store, tmp_path / "page.html").read_text()
    text = io.StringIO()
    print_replication(found, Console(file=text, width=200))
    assert "native − docker" in text.getvalue()


def test_a_figure_that_is_not_printed_is_no_zero():
    with pytest.raises(KeyError):
        published_pair(study(*PRINTED[:2]), TABLE, "volume - nfs")
