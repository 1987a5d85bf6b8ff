"""The quick form of `benchmarks/honesty.py`: a few cells, about a hundred repetitions, fixed seeds.

`make test-long` takes three times as many, with narrower bounds.
"""

import importlib.util
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).parents[2] / "benchmarks" / "honesty.py"


@pytest.fixture(scope="module")
def honesty():
    spec = importlib.util.spec_from_file_location("honesty", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules["honesty"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["honesty"]


@pytest.fixture(scope="module")
def fewer(request):
    return 1 if "long" in request.config.option.markexpr else 3


@pytest.fixture(scope="module")
def share(honesty, fewer):
    """Means of the outcomes of a simulation."""
    return lambda simulate, repetitions=300: np.array(
        honesty.outcomes(simulate, 1, range(repetitions // fewer)), float
    ).mean(axis=0)


@pytest.fixture(scope="module")
def lacking(fewer):
    """The simulation error that fewer than 1,000 repetitions add."""
    return 2.6 * ((300 / fewer) ** -0.5 - 1000**-0.5)


SAMPLED = pytest.mark.promise("intervals cover the true cost, and a gate errs no more often than it says")


@SAMPLED
@pytest.mark.parametrize(
    ("kind", "cost", "blocks"),
    [
        ("lognormal CV 2 %", 0.0, 16),
        ("AR(1) 0.95, SD 8 %", 0.03, 24),
        ("bimodal", 0.0, 36),
        ("episodes", 0.10, 20),
        ("position 2 %", 0.0, 60),
    ],
)
def test_the_adaptive_rule_covers_the_truth(honesty, share, lacking, kind, cost, blocks):
    covered, different, reached, mean_blocks, _ = share(partial(honesty.one_cell, kind, cost))
    assert covered >= 0.935 - lacking * 0.25
    assert cost > 0 or different <= 0.065 + lacking * 0.25
    assert mean_blocks <= blocks
    assert reached > 0.9


@SAMPLED
def test_wide_noise_never_reaches_the_target(honesty, share):
    assert share(partial(honesty.one_cell, "lognormal CV 8 %", 0.0), 100)[2] == 0


@SAMPLED
def test_a_shared_time_covers_the_truth(honesty, share, lacking):
    covered, different, width = share(partial(honesty.one_shared, "lognormal CV 8 %"), 100)
    assert covered >= 0.935 - lacking * 0.25 and different <= 0.065 + lacking * 0.25
    assert width < 0.95, "blocks of the fast one cost a quarter"


@SAMPLED
def test_equivalence_at_the_margin(honesty, share, lacking):
    at_margin, at_zero = share(partial(honesty.one_margin, "lognormal CV 2 %"))
    assert at_margin <= 0.06 + lacking * 0.24
    assert at_zero > 0.8


@SAMPLED
def test_holm_keeps_the_family(honesty, share, lacking):
    with_holm, without, judged = share(partial(honesty.one_family, "lognormal CV 2 %"), 100)
    assert with_holm <= 0.06 + lacking
    assert judged <= 0.055 + lacking, "by a report's own rule"
    assert without > 0.15


@SAMPLED
def test_the_negative_controls_fail(honesty, share):
    assert share(honesty.one_unblocked)[0] >= 0.40
    assert share(honesty.one_significance, 150)[1] >= 0.12
    dropped, kept = share(honesty.one_outliers, 150)
    assert dropped < 0.5
    assert kept > 0.85


def test_a_missed_bound_is_missed(honesty):
    assert not honesty.Check("coverage", 93.4, 93.5, at_least=True).met
    assert honesty.Check("coverage", 93.5, 93.5, at_least=True).met
    assert not honesty.Check("blocks", 16.1, 16).met
    assert str(honesty.Check("blocks", 16.1, 16)).startswith("MISSED")


@SAMPLED
def test_the_change_between_two_runs_covers_the_truth(honesty, share, lacking):
    covered, different, of_ten = share(partial(honesty.one_between, "lognormal CV 2 %"), 150)
    assert covered >= 0.935 - lacking * 0.25 and different <= 0.055 + lacking * 0.23 and of_ten > 0.95
    covered, different = share(honesty.one_between_unlike, 150)
    assert covered >= 0.935 - lacking * 0.25 and different <= 0.055 + lacking * 0.23
    allowed, without = share(honesty.one_between_sessions, 150)
    assert allowed <= 0.055 + lacking * 0.23
    assert without > 0.3, "what no block holds is not seen by the blocks"


@SAMPLED
def test_a_gate_errs_no_more_often_for_looking_again(honesty, share):
    for extend in (False, True):
        passed, failed, blocks, covered = share(partial(honesty.one_gate, "lognormal CV 2 %", 1.0, extend))
        assert passed <= 0.05 and failed <= 0.05 and covered >= 0.92
        assert blocks > honesty.GATE_BLOCKS or not extend
    failed, passed = share(partial(honesty.one_eager_gate, "lognormal CV 2 %"))
    assert failed + passed > 0.1, "without the rule it errs"


@SAMPLED
def test_a_gate_decides_what_is_apart_from_its_budget(honesty, share):
    passed, failed, *_ = share(partial(honesty.one_gate, "lognormal CV 2 %", 0.0, True), 100)
    assert passed > 0.95 and failed == 0
    passed, failed, *_ = share(partial(honesty.one_gate, "lognormal CV 2 %", 2.0, True), 100)
    assert failed > 0.95 and passed == 0


@SAMPLED
def test_a_gate_with_many_budgets_errs_no_more_often(honesty, share, lacking):
    fails, without, passes = share(partial(honesty.one_gate_of_many, "lognormal CV 2 %"), 200)
    assert max(fails, passes) <= 0.05 + lacking * 0.22 < without


@SAMPLED
def test_a_gate_that_is_interrupted_errs_no_more_than_one_that_is_not(honesty, share, lacking):
    """Each side of a cost of one margin in 2.5 %; what forgets its looks errs more often in both together."""
    kept, forgetful = (
        share(partial(honesty.one_interrupted_gate, "lognormal CV 8 %", 1.0, each)) for each in (True, False)
    )
    assert max(kept[:2]) <= (honesty.GATE_ERRS + 100 * lacking * 0.16) / 100
    assert sum(forgetful[:2]) > 2 * sum(kept[:2])


def test_the_fast_copy_of_the_rule_gives_the_verdicts_of_the_report(honesty):
    """`benchmarks/rule.py` simulates many sessions at a time: session by session the report's functions agree."""
    spec = importlib.util.spec_from_file_location("rule", PATH.with_name("rule.py"))
    rule = importlib.util.module_from_spec(spec)
    sys.modules["rule"] = rule
    try:
        spec.loader.exec_module(rule)
        assert rule.check(1) == 0
    finally:
        del sys.modules["rule"]
