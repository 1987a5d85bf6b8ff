import math

import pytest

from weighbridge.analysis.results import Comparison
from weighbridge.report.text.formatting import (
    difference_interval,
    noise_text,
    percent_interval,
    percent_range,
    percent_short,
    percent_text,
    plain,
    quantities,
    quantity,
    share,
    shared_unit,
    unit_as,
)
from weighbridge.report.text.metric_names import difference_unit_of
from weighbridge.report.text.verdicts import cost_text
from weighbridge.statistics import Interval, compare


def spaced(text: str) -> str:
    return text.replace("\u00a0", " ")


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (8.662e9, "bit/s", "8,662 Mbit/s"),
        (8662.0, "Mbit/s", "8,662 Mbit/s"),
        (40e9, "bit/s", "40.0 Gbit/s"),
        (12e-6, "s", "12.0 µs"),
        (0.5, "ms", "500 µs"),
        (250.0, "us", "250 µs"),
        (123456.0, "requests/s", "123,500 requests/s"),
        (0.0, "%", "0%"),
        (0.0123, "%", "0.0123%"),
        (None, "s", "–"),
    ],
)
def test_quantities_are_readable(value, unit, expected):
    assert spaced(quantity(value, unit)) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.0, "0"), (1.0, "1.00"), (999.6, "1,000"), (12345678.0, "12,350,000"), (1e-9, "1.00e-09"), (math.inf, "∞")],
)
def test_three_to_four_significant_digits(value, expected):
    assert spaced(plain(value)) == expected


def test_costs_in_percent():
    assert spaced(percent_interval(Interval(27.43, 25.91, 28.78))) == "27.4% [25.9, 28.8]"
    assert spaced(percent_interval(Interval(-0.02, -0.41, 0.3))) == "0.0% [-0.4, 0.3]"
    assert spaced(percent_interval(Interval(12.0, -math.inf, 100.0))) == "12.0% [-∞, 100.0]"


@pytest.mark.parametrize(
    ("percent", "expected"),
    [
        ((9999.0, 9000.0, 11000.0), "9,999% [9,000, >9,999]"),
        ((25027.2, 24280.3, 26806.9), "251 times [244, 269]"),
        ((25027.2, -50.0, 1e9), "251 times [0.500, >9,999]"),
        ((25027.2, -math.inf, math.inf), "251 times [0, ∞]"),
        ((-25027.2, -26806.9, -24280.3), "-251 times [-269, -244]"),
    ],
)
def test_very_large_costs_are_multiples(percent, expected):
    assert spaced(percent_interval(Interval(*percent))) == expected


@pytest.mark.parametrize(("percent", "text"), [(98.96, "99%"), (99.46, "99.4%"), (99.99, "99.9%"), (100.0, "100%")])
def test_what_is_short_of_all_is_not_rounded_to_all(percent: float, text: str):
    assert spaced(percent_short(percent)) == spaced(percent_short(-percent)) == text


def test_a_range_up_to_a_multiple():
    assert spaced(percent_range([12.3, 25027.0])) == "12% to 251 times"
    assert [spaced(percent_short(each)) for each in (98.96, 99.46, 99.99, 100.0)] == [
        "99%",
        "99.4%",
        "99.9%",
        "100%",
    ]
    assert spaced(percent_range([25027.0, 25027.0])) == "251 times" == spaced(percent_short(25027.0))
    assert spaced(percent_range([3.1, 12.4])) == "3.1 to 12.4%"


def test_differences_of_percentages_are_points():
    assert spaced(difference_interval(Interval(0.12, 0.10, 0.15), "%")) == "0.120 points [0.100, 0.150]"
    assert spaced(difference_interval(Interval(0.0, 0.0, 0.0), "s")) == "0.000 s [0.000, 0.000]"
    assert spaced(difference_interval(Interval(2.0, -math.inf, math.inf), "segments")) == "2.000 segments"
    assert spaced(difference_interval(Interval(12.0, 8.0, 15.0), "count")) == "12.0 [8.0, 15.0]"


def shown(baseline, other, unit="s"):
    cost = compare(baseline, other, better="lower")
    return spaced(cost_text(Comparison("bridge", False, cost, None, None, None, None, "inconclusive", ()), unit))


def test_below_six_blocks_there_is_no_cost():
    assert shown([100.0], [127.0]) == shown([100.0] * 5, [126.0, 127.0, 128.0, 129.0, 127.0]) == "too few rounds"
    assert shown([100.0] * 6, [126.0, 127.0, 127.0, 127.0, 127.0, 128.0]).startswith("27.0% [")
    assert shown([0.0] * 5, [1.0] * 5, "ms") == "too few rounds"
    assert shown([0.0] * 6, [1.0, 2.0, 1.5, 1.5, 1.4, 1.6], "ms").startswith("1.50 ms [")


def test_several_values_have_one_unit():
    assert spaced(quantities((5.05e-6, 2.23e-5), "s")) == "5.05, 22.3 µs" and quantities((), "s") == "–"
    assert spaced(quantities((0.0, 12.0), "count")) == "0, 12.0" and spaced(quantity(2140.0, "1/s")) == "2,140 /s"


@pytest.mark.parametrize(("high", "end"), [(1026.0, "1,026]"), (1e9, ">9,999]"), (math.inf, "∞]")])
def test_limits_that_are_far_out_are_said_to_be(high, end):
    assert spaced(percent_text(Interval(27.0, 20.0, high), 6)).endswith(end)


def test_noise_floors():
    assert noise_text((0.0, 0.0)) == noise_text((-0.004, 0.004)) == "below the metric's resolution"
    assert spaced(noise_text((-0.006, 0.006))) == "±0.01%" and noise_text(None) == "unknown"
    assert spaced(noise_text((-1.12, 1.11))) == "±1.1%" and spaced(noise_text((-50.0, 33.3))) == "-50.0 to 33.3%"
    assert spaced(noise_text((-1e6, 99.99))) == "<-9,999 to 100%"
    assert spaced(noise_text((-0.002, 0.002), "s")) == "±2.00 ms"
    assert noise_text((0.0, 0.0), "count") == "below the metric's resolution"


def test_a_column_has_one_unit():
    rates = [139e6, 12.8e9, None, 0.0]
    shown = shared_unit(rates, "bit/s")
    assert [spaced(quantity(each, "bit/s", shown)) for each in rates] == [
        "139 Mbit/s",
        "12,800 Mbit/s",
        "–",
        "0 Mbit/s",
    ]
    assert shared_unit([0.000055, 3.1], "s")[0] == "ms" and shared_unit([0.0021, 0.3], "s")[0] == "ms"
    assert shared_unit([1e-9, 5000.0], "s")[0] == "s" and shared_unit([], "s") == ("s", 1.0)
    assert shared_unit([1.0, math.inf], "count") == ("count", 1.0)
    assert spaced(quantities([2.0, 0.005], "s", shown_in=("ms", 1e3))) == "2,000, 5.00 ms"


def test_a_named_unit_is_taken_where_it_fits():
    assert unit_as("Gbit/s", "bit/s") == ("Gbit/s", 1e-9) and unit_as("Mbit/s", "Mbit/s") == ("Mbit/s", 1.0)
    assert unit_as("s", "bit/s") is None and unit_as("requests/s", "requests/s") is None


def test_differences_of_a_column_have_one_unit():
    one, other = (compare([0.0] * 10, [size + each for each in range(10)], better="lower") for size in (2e3, 3e6))
    rows = [Comparison("x", False, cost, 0.0, 0.0, None, None, "different", ()) for cost in (one, other)]
    shown = difference_unit_of(rows, "B")
    assert shown[0] == "kB" and [cost_text(row, "B", shown).split("[")[0].strip()[-2:] for row in rows] == [
        "kB",
        "kB",
    ]


def test_shares():
    assert spaced(share(0.0112)) == "±1.1%"
    assert share(None) == "unknown"
    assert spaced(share(99.99)) == "±9,999%" and spaced(share(1215840.59)) == ">9,999%"
    assert spaced(share(math.inf)) == "±∞%"
