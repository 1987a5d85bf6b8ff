"""The published figures are whole, and what they prove is computed right."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy import stats

from sentences import raises_sentence
from weighbridge.errors import StudyError
from weighbridge.features.replication.proof import rows
from weighbridge.features.replication.published import (
    Compared,
    Figure,
    Measured,
    Published,
    UncomparedFigures,
    available,
    published,
    unused,
)
from weighbridge.statistics import Sample
from weighbridge.statistics.parametric import welch_interval

DOCKER = "docker-networks"


def row_of(title: str, environment: str, margin: float = 0.03):
    study = published(DOCKER)
    compared = next(each for each in study.comparisons if each.title.startswith(title))
    return next(row for row in rows(study, compared, margin) if row.environment == environment)


@pytest.mark.parametrize("name", available())
def test_every_figure_is_compared_or_left_out_with_a_reason(name):
    study = published(name)
    assert study.study == name
    assert all(figure.study == name for figure in study.figures)
    assert unused(study) == []


@pytest.mark.parametrize("name", available())
def test_every_comparison_has_rows_and_every_reason_is_needed(name):
    study = published(name)
    for compared in study.comparisons:
        assert list(rows(study, compared, 0.03)), compared.title
    for out in study.left_out:
        assert any(out.fits(figure) for figure in study.figures), out.why


@pytest.mark.parametrize("name", available())
def test_no_mean_of_a_compared_metric_is_left_out(name):
    study = published(name)
    without = study.model_copy(update={"left_out": ()})
    metrics = {(compared.workload, compared.metric) for compared in study.comparisons}
    summaries = ("Section", "Table 16")
    left = [f for f in unused(without) if f.statistic == "mean" and not f.table.startswith(summaries)]
    assert not [figure for figure in left if (figure.workload, figure.metric) in metrics]


def test_a_ratio_of_runs_with_printed_deviations():
    row = row_of("Table 8", "docker-bridge")
    assert row.effect == pytest.approx(0.577 / 0.510)
    assert row.proof == "different" and row.sign == 1
    first, second = (math.log(0.510), 0.005 / 0.510, 3), (math.log(0.577), 0.010 / 0.577, 3)
    p = stats.ttest_ind_from_stats(*second, *first, equal_var=False).pvalue
    assert p < 0.05


def test_a_jitter_that_proves_nothing():
    assert row_of("Table 7", "docker-bridge").proof == "inconclusive"


def test_runs_whose_own_means_are_printed():
    row = row_of("Table 9", "docker-host")
    logs = [[math.log(v) for v in (11.403, 11.263, 11.399)], [math.log(v) for v in (11.401, 11.380, 11.401)]]
    expected = stats.ttest_ind(logs[1], logs[0], equal_var=False).confidence_interval(0.95)
    assert row.interval is not None
    assert (row.interval.low, row.interval.high) == pytest.approx((math.exp(expected.low), math.exp(expected.high)))
    assert row.proof == "equivalent"
    assert row_of("Table 9", "docker-host", margin=0.001).proof == "inconclusive"
    assert row.baseline == 11.355


def test_a_difference_of_shares_and_its_conversion():
    row = row_of("Tables 20 to 24", "docker-overlay")
    assert row.baseline == pytest.approx(100 - 100 * (0.99956 + 0.98859 + 0.99862) / 3)
    assert row.effect == pytest.approx(42.1267, abs=1e-3)
    assert row.proof == "different"
    assert row_of("Tables 20 to 24", "docker-bridge").proof == "inconclusive"  # one run of three lost almost nothing


def test_without_a_spread_only_the_sign_is_left():
    row = row_of("Table 15", "docker-host")
    assert row.proof == "sign only" and row.interval is None and row.sign == 1
    assert row_of("Table 10", "docker-host").sign == 0


def test_fragmentation_is_compared_with_the_baseline_of_another_table():
    row = row_of("Table 17", "docker-overlay-1468")
    assert (row.value, row.baseline) == (0.761, 0.510)


def test_objects_are_shown_as_a_rate():
    row = row_of("Table 13", "docker-host")
    assert row.baseline == pytest.approx(70309 / 300)
    assert row.effect == pytest.approx(77274 / 70309)


@given(
    st.floats(-100, 100), st.floats(0, 10), st.integers(2, 9),
    st.floats(-100, 100), st.floats(1e-3, 10), st.integers(2, 9),
)  # fmt: skip
def test_welch_is_scipy_s(mean, deviation, runs, other, deviation2, runs2):
    found = welch_interval((Sample(mean, deviation, runs), Sample(other, deviation2, runs2)), (-1.0, 1.0), 0.95)
    test = stats.ttest_ind_from_stats(other, deviation2, runs2, mean, deviation, runs, equal_var=False)
    assert found is not None
    assert (found.low > 0 or found.high < 0) == (test.pvalue < 0.05) or test.pvalue == pytest.approx(0.05, abs=1e-6)


def test_welch_needs_a_spread_and_two_runs():
    assert welch_interval((Sample(1, 0, 3), Sample(2, 0, 3)), (-1.0, 1.0), 0.95) is None
    assert welch_interval((Sample(1, 0.1, 1), Sample(2, 0.1, 3)), (-1.0, 1.0), 0.95) is None


def test_a_study_without_published_figures_names_those_that_have():
    with raises_sentence(StudyError):
        published("first-look")


def figure(environment: str, level: str, value: float, **other) -> Figure:
    about = {"study": "s", "table": f"Appendix ({environment})", "workload": "redis", "metric": "rate", "unit": "1/s"}
    keys = {"environment": environment, "level_name": "clients", "level": level, "statistic": "mean", "value": value}
    return Figure.model_validate({**about, **keys, "better": "higher", **other})


def test_swept_levels_with_one_run_each():
    """As in a study that has one figure for each number of clients, each environment in a table of its own."""
    compared = Compared(
        title="Appendix", workload="redis", metric="rate", unit="1/s", levels={"clients": "clients"},
        labels=("Appendix (native)", "Appendix (docker)"), measured=Measured(workload="redis", metric="rate"),
    )  # fmt: skip
    study = Published(
        study="s", source="x", baseline="native", runs=1, environments={"native": "native", "docker": "docker-host"},
        comparisons=(compared,),
        figures=(figure("native", "10", 100), figure("native", "50", 200), figure("docker", "10", 90),
                 figure("docker", "50", 150), figure("docker", "99", 1)),
    )  # fmt: skip
    found = list(rows(study, compared, 0.03))
    assert [(row.level, row.effect, row.proof) for row in found] == [
        ({"clients": "10"}, 0.9, "sign only"), ({"clients": "50"}, 0.75, "sign only"),
    ]  # fmt: skip
    assert {row.environment for row in found} == {"docker-host"}


def test_figures_of_two_factors_and_bad_ones():
    assert figure("native", "packet_size=1468;test=1", 1, level_name="packet_size;test").levels == {
        "packet_size": "1468", "test": "1",
    }  # fmt: skip
    with pytest.raises(ValidationError):
        figure("native", "10", "many")
    with raises_sentence(ValidationError):
        Compared(title="t", workload="w", metric="m", unit="s", measured=Measured(workload="w", metric="m"))


def test_left_out_fits_what_it_names():
    out = UncomparedFigures(why="x", labels=("Table 1",), statistics=("min",))
    assert out.fits(figure("a", "1", 1, table="Table 1", statistic="min"))
    assert not out.fits(figure("a", "1", 1, table="Table 1"))
