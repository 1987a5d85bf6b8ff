"""Percentiles of few values: how many they need, and how wrong they are on known distributions.

Simulated with 20,000 trials for each row. "Lognormal" has sigma 0.3. "Tail" is the same, but 3% of the values are
five times as long, as with disturbed starts. "Correlated" is lognormal, and the logarithms of neighbours have
a correlation of 0.6. "Nearest" is the nearest rank, and "numpy" its default (type 7). The figures are how far the
median of the estimates is from the true percentile.

| distribution | percentile | values | nearest | numpy | ours |
|---|---|---|---|---|---|
| lognormal | 95 | 20 | -7.5% | -6.8% | +1.3% |
| lognormal | 95 | 100 | -1.8% | -1.7% | +0.1% |
| lognormal | 99 | 100 | -5.8% | -5.7% | +1.2% |
| lognormal | 99 | 200 | -3.1% | -3.1% | +0.6% |
| tail | 95 | 20 | -12.3% | -8.3% | +10.7% |
| tail | 95 | 100 | -3.7% | -3.3% | +0.3% |
| tail | 99 | 100 | -16.1% | -15.9% | +0.7% |
| correlated | 95 | 20 | -10.5% | -9.9% | -3.7% |
| correlated | 99 | 100 | -7.4% | -7.3% | -1.3% |

The bias depends on the number of values, and on the shape of the tail. So percentiles of environments with different
numbers of starts are not compared: with a tail, 20 and 100 starts differ by 10% without any true difference. With the
same number and the same shape, the bias cancels out in a ratio.
"""

import math
import random
from statistics import NormalDist, median

import pytest

from sentences import raises_sentence
from weighbridge.statistics import fewest_values, sample_percentile

SIGMA = 0.3
TAIL = 0.03


def test_a_percentile_needs_so_many_values_that_one_is_beyond_it():
    assert [fewest_values(percent) for percent in (50, 90, 95, 99, 99.9)] == [2, 10, 20, 100, 1000]


@pytest.mark.parametrize("percent", [50, 95, 99])
def test_fewer_values_have_no_percentile(percent: float):
    enough = [1.0] * fewest_values(percent)
    assert sample_percentile(enough, percent) == 1
    with raises_sentence(ValueError):
        sample_percentile(enough[1:], percent)


@pytest.mark.parametrize("percent", [49.9, 100, math.nan])
def test_what_is_no_percentile_is_refused(percent: float):
    with raises_sentence(ValueError):
        fewest_values(percent)


def test_it_lies_between_the_two_values_that_its_rank_is_between():
    assert sample_percentile([3, 1], 50) == 2
    assert sample_percentile(range(1, 21), 95) == pytest.approx((20 + 1 / 3) * 0.95 + 1 / 3)
    assert sample_percentile([*range(1, 100), 1e6], 99) == pytest.approx(99 + (1e6 - 99) * 2 / 3, rel=0.01)


def _true(percent: float, tail: float) -> float:
    """The percentile of the mixture, by bisection."""
    low, high = 0.01, 100.0
    share = percent / 100
    normal = NormalDist(0, SIGMA)
    for _ in range(60):
        middle = (low + high) / 2
        below = (1 - tail) * normal.cdf(math.log(middle)) + tail * normal.cdf(math.log(middle / 5))
        low, high = (middle, high) if below < share else (low, middle)
    return low


@pytest.mark.parametrize(
    ("percent", "values", "tail", "bias"),
    [
        (50, 2, 0, 0.024), (95, 20, 0, 0.013), (95, 100, 0, 0.001), (99, 100, 0, 0.012), (99, 200, 0, 0.006),
        (95, 20, TAIL, 0.107), (95, 100, TAIL, 0.003), (99, 100, TAIL, 0.007),
    ],
)  # fmt: skip
def test_its_median_is_near_the_true_percentile(percent: float, values: int, tail: float, bias: float):
    """Fewer trials than in the table, so the median of the estimates has an error of its own of up to 2%."""
    chance, trials = random.Random(f"{percent} {values} {tail}"), 2000

    def start() -> float:
        return math.exp(chance.gauss(0, SIGMA)) * (5 if chance.random() < tail else 1)

    estimates = [sample_percentile([start() for _ in range(values)], percent) for _ in range(trials)]
    assert median(estimates) / _true(percent, tail) - 1 == pytest.approx(bias, abs=0.025)
