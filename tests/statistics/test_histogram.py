"""HDR histograms: what hdrh 0.10.8 (Python and C) made of the same values, and of histograms of Go and Java."""

import base64
import json
import struct
import zlib
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentences import raises_sentence
from weighbridge.statistics import Histogram, compare_percentiles, merge_histograms, percentile

CAPTURED: list[dict[str, Any]] = json.loads((Path(__file__).parent / "data/hdrh-0.10.8.json").read_text())
RECORDED = [case for case in CAPTURED if case["recorded"] is not None]
VALUES = st.lists(st.tuples(st.integers(0, 10**9), st.integers(1, 300) | st.integers(1, 2**56)), max_size=40)


def recorded(values: list[tuple[int, int]], lowest: int = 1, highest: int = 10**9, figures: int = 3) -> Histogram:
    histogram = Histogram(lowest, highest, figures)
    for value, count in values:
        histogram.record(value, count)
    return histogram


def figures(histogram: Histogram, percents: list[float]) -> dict[str, Any]:
    return {
        "count": histogram.count, "percentiles": histogram.percentiles(percents), "mean": histogram.mean,
        "maximum": histogram.maximum,
    }  # fmt: skip


@pytest.mark.parametrize("case", CAPTURED, ids=lambda case: case["encoded"][12:24])
def test_what_others_have_encoded_is_read_to_the_last_digit(case: dict[str, Any]):
    histogram = Histogram.decode(case["encoded"])
    figures_of_hdrh = {key: case[key] for key in ("count", "percentiles", "mean", "maximum")}
    assert figures(histogram, case["percents"]) == figures_of_hdrh
    assert figures(Histogram.decode(histogram.encode()), case["percents"]) == figures_of_hdrh
    ranges = ("lowest", "highest", "significant_figures")
    assert [getattr(histogram, each) for each in ranges] == [case[each] for each in ranges]


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case["encoded"][12:24])
def test_the_same_values_are_counted_and_encoded_as_hdrh_does(case: dict[str, Any]):
    histogram = recorded(case["recorded"], case["lowest"], case["highest"], case["significant_figures"])
    assert figures(histogram, case["percents"]) == {
        key: case[key] for key in ("count", "percentiles", "mean", "maximum")
    }
    ours, theirs = (zlib.decompress(base64.b64decode(each)[8:]) for each in (histogram.encode(), case["encoded"]))
    assert ours == theirs


@given(VALUES, st.floats(0, 100))
def test_a_percentile_is_the_value_of_its_rank_to_three_figures(values: list[tuple[int, int]], percent: float):
    histogram = recorded(values)
    rank = min(histogram.count, max(1, int(percent * histogram.count / 100 + 0.5)))
    reached = accumulate(count for _, count in sorted(values))
    exact = next((value for (value, _), seen in zip(sorted(values), reached, strict=True) if seen >= rank), 0)
    assert abs(histogram.percentile(percent) - exact) <= exact / 1000
    assert histogram.percentiles([percent, 100.0, 0.0]) == [histogram.percentile(each) for each in (percent, 100, 0)]


@given(VALUES, VALUES)
def test_a_merge_is_what_recording_all_would_have_been(first: list[tuple[int, int]], second: list[tuple[int, int]]):
    merged, both = recorded(first), recorded([*first, *second])
    merged.add(recorded(second))
    assert merged.encode() == both.encode() and merged.count == both.count
    wider = recorded(first, highest=10**12)
    wider.add(recorded(second))
    assert wider.percentiles([0, 50, 99.9, 100]) == both.percentiles([0, 50, 99.9, 100])
    assert wider.mean == both.mean


def test_other_precisions_are_merged_by_the_lowest_value_of_each_bucket():
    coarse = recorded([(5_000_001, 3)], figures=2)
    merged = recorded([(7, 1)])
    merged.add(coarse)
    assert merged.count == 4 and merged.percentile(100) == pytest.approx(coarse.percentile(0), rel=1e-3)
    with raises_sentence(ValueError):
        recorded([], highest=1000).add(coarse)


def test_a_wider_one_without_counts_up_there_is_merged():
    narrow = recorded([(7, 1)], highest=10**6)
    narrow.add(recorded([(7, 2)], highest=10**12))
    assert narrow.count == 3 and narrow.percentile(100) == 7


@given(VALUES)
def test_encoded_and_decoded_it_is_the_same(values: list[tuple[int, int]]):
    histogram = recorded(values)
    again = Histogram.decode(histogram.encode())
    assert (again.count, again.mean, again.encode()) == (histogram.count, histogram.mean, histogram.encode())


@pytest.mark.parametrize(("value", "count"), [(-1, 1), (2**31, 1), (10**30, 1), (5, -1), (5, 2**63)])
def test_what_cannot_be_counted_is_told(value: int, count: int):
    histogram = recorded([(1, 2**61)])
    with raises_sentence(ValueError):
        histogram.record(value, count)
    assert histogram.count == 2**61


@pytest.mark.parametrize(
    "of", [(0, 10, 3), (1, 10**9, 0), (1, 10**9, 6), (10, 9, 3), (1, 2**70, 3), (2**60, 2**61, 3)]
)
def test_a_range_that_cannot_be(of: tuple[int, int, int]):
    with raises_sentence(ValueError):
        Histogram(*of)


def packed(
    counts: bytes, cookie: int = 0x1C849313, figures: int = 3, highest: int = 10**6, whole: bool = True
) -> str:
    data = zlib.compress(struct.pack(">IIIIQQd", cookie, len(counts), 0, figures, 1, highest, 1.0) + counts)
    data = data if whole else data[:-6]
    return base64.b64encode(struct.pack(">II", 0x1C849314, len(data)) + data).decode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "!",
        "HISTFAAAACZ4",
        base64.b64encode(bytes(40)).decode(),
        CAPTURED[0]["encoded"][:-8],
        packed(b"\x02", cookie=0x1C849301),
        packed(b"\x02", figures=9),
        packed(b"\x02", highest=0),
        packed(b"\x02" * 200_000),
        packed(b"\x02" * 20_000),
        packed(b"\xff\xff\x7f"),
        packed(b"\xfe" * 8 + b"\xff" + b"\xfe" * 8 + b"\x7f"),
        packed(b"\x02\x80"),
        packed(b"\x02" * 100, whole=False),
    ],
    ids=["nothing", "no base64", "its begin", "zeros", "cut off", "another cookie", "another precision", "no range",
         "too many bytes", "too many counts", "a count cut off", "a count below zero", "a number cut off",
         "compressed and cut off"],
)  # fmt: skip
def test_what_is_no_histogram_is_one_sentence(text: str):
    with raises_sentence(ValueError):
        Histogram.decode(text)


@given(st.binary(max_size=60))
def test_no_counts_end_in_another_error(counts: bytes):
    try:
        histogram = Histogram.decode(packed(counts))
    except ValueError:
        return
    assert histogram.count >= 0 and histogram.percentile(100) >= histogram.percentile(0)


def test_counts_of_nine_bytes_are_read_and_written():
    histogram = recorded([(5, 2**56), (6, 1), (900, 2**61)])
    again = Histogram.decode(histogram.encode())
    assert again.count == 2**56 + 1 + 2**61 and again.percentiles([1, 100]) == [5, 900]
    assert np.array_equal(again._counts, histogram._counts)


# -- histograms of runs -------------------------------------------------------------------------


def histogram(values, highest=60_000_000, figures=3):
    made = Histogram(1, highest, figures)
    for value in values:
        made.record(int(value))
    return made


def latencies(seed, scale=300.0, n=1000):
    return np.ceil(scale * np.exp(np.random.default_rng(seed).normal(0, 0.8, n))).astype(int)


def test_the_merge_holds_every_count_and_the_percentiles_of_all():
    runs = [latencies(seed, 300 * (1 + seed)) for seed in range(4)]
    made = [histogram(run) for run in runs]
    merged = merge_histograms(made)
    assert merged.count == 4000
    for percent in (0, 50, 90, 99, 99.5, 100):
        exact = np.quantile(np.concatenate(runs), percent / 100, method="inverted_cdf")
        assert percentile(merged, percent) == pytest.approx(exact, rel=0.005)
    assert merged.maximum == pytest.approx(max(run.max() for run in runs), rel=0.001)
    assert [each.count for each in made] == [1000] * 4  # unchanged
    averaged = np.mean([percentile(each, 99) for each in made])
    assert abs(averaged / percentile(merged, 99) - 1) > 0.05


def test_ranges_may_differ():
    merged = merge_histograms([histogram([10, 20], highest=1000), histogram([5_000_000], figures=2)])
    assert merged.count == 3
    assert percentile(merged, 100) == pytest.approx(5_000_000, rel=0.01)
    assert percentile(merged, 50) == pytest.approx(20, rel=0.01)


def test_an_empty_run_adds_nothing():
    merged = merge_histograms([histogram([]), histogram([7])])
    assert percentile(merged, 50) == 7


def test_nothing_to_say():
    with raises_sentence(ValueError):
        merge_histograms([])
    with raises_sentence(ValueError):
        percentile(histogram([]), 99)
    for wrong in (-1, 100.1):
        with raises_sentence(ValueError):
            percentile(histogram([1]), wrong)


def test_the_interval_is_that_of_the_runs():
    baseline = [histogram(latencies(seed)) for seed in range(12)]
    other = [histogram(latencies(100 + seed, 360.0)) for seed in range(12)]
    cost = compare_percentiles(baseline, other, 50, equivalence=0.02, looks=8)
    assert (cost.blocks, cost.better, cost.verdict) == (12, "lower", "different")
    assert cost.low < 1.2 < cost.high
