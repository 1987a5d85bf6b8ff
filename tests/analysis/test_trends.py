"""Drift and autocorrelation are said of a run only where they survive the correction for all of its series."""

import sqlite3

import numpy as np
import pytest

from report.made_up_runs import LATENCY, THROUGHPUT, Workload
from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.trends import surviving
from weighbridge.model.measurement import Metric
from weighbridge.statistics import flags
from weighbridge.store.run import DATABASE, RunStore

SERIES = 24
"""Three environments with eight metrics each."""


def remarked(rng: np.random.Generator, blocks: int, drift: float = 0.0) -> tuple[bool, bool]:
    """Whether any series of a run has a remark, and whether the first has, which drifts by so many SDs in all."""
    values = rng.normal(0.0, 1.0, (SERIES, blocks))
    values[0] += np.linspace(0.0, drift, blocks)
    survives = list(surviving(flags(each.tolist()) for each in values))
    return any(survives), survives[0]


def test_a_clean_run_rarely_has_a_remark():
    """Held at 5% by Holm; at 1% for each series it were 38% of such runs. 150 runs: at most 13 by chance."""
    rng = np.random.default_rng(1)
    assert sum(remarked(rng, 12)[0] for _ in range(150)) <= 13


def test_a_real_drift_is_still_found():
    rng = np.random.default_rng(2)
    assert sum(remarked(rng, 40, drift=5.0)[1] for _ in range(20)) >= 16


def test_a_report_says_what_survives_and_no_more(run):
    """Alone, a tau of this size is remarkable; among ninety series it is chance."""
    many = [Metric(f"metric {number}", "ms", "lower") for number in range(30)]
    workload = Workload("tcp", [(THROUGHPUT, 1e9, 0.01), (LATENCY, 0.4, 0.01), *((each, 1.0, 0.01) for each in many)])
    clean = analyse(run(costs={"bridge": 1.0}, workloads=[workload], blocks=12))
    assert codes(clean) == set()
    worse = {(block, "bridge"): 1.03**block for block in range(1, 13)}
    assert "drift" in codes(analyse(run(costs={"bridge": 1.0}, workloads=[workload], blocks=12, slowed=worse)))


def test_an_effect_of_the_place_in_a_block_is_said_beside_trust(run):
    """The A/A arm and the environments follow one another in random order: whoever is later is slower."""
    store = run(costs={"bridge": 1.3}, blocks=20)
    store.close()
    with sqlite3.connect(store.directory / DATABASE) as file:
        file.execute(
            "UPDATE measurement SET value = value * (1 + 0.02 * ((trial - 1) % 3)) WHERE metric = 'p99 latency'"
        )
    with RunStore(store.directory) as later:
        analysis = analyse(later)
        (effect,) = analysis.trust.places
        assert (effect.metric, effect.blocks, effect.logs) == ("p99 latency", 20, True)
        assert effect.per_place == pytest.approx(0.02, abs=0.008) and effect.adjusted_p <= 0.05
        assert analysis.trust.trusted, "the order is random: no cost is biased"


def test_a_clean_run_has_no_effect_of_the_place(run):
    analysis = analyse(run(costs={"bridge": 1.3}, blocks=20))
    assert analysis.trust.places == ()


def codes(analysis) -> set[str]:
    found = {remark.code for report in analysis.metrics for row in report.comparisons for remark in row.remarks}
    return found & {"drift", "autocorrelation"}
