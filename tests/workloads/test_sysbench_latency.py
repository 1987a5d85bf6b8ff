"""sysbench's histogram: printed as sysbench prints it, read back, and its percentiles as sysbench takes them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentences import raises_sentence
from weighbridge.model.measurement import Unparseable
from weighbridge.workloads._sysbench_latency import Latencies, latencies

SIZE, LEAST_MS, MOST_MS = 1024, 0.001, 100_000.0
STEP = math.log(MOST_MS / LEAST_MS) / (SIZE - 1)
COUNTS = st.dictionaries(st.integers(0, SIZE - 1), st.integers(1, 10**6), min_size=1, max_size=60)


def value(bucket: int) -> float:
    """Milliseconds, as in sb_histogram.c."""
    return math.exp(bucket * STEP + math.log(LEAST_MS))


def printed(counts: dict[int, int]) -> str:
    """What ``sb_histogram_print`` prints, below and above other lines."""
    most = max(counts.values())
    rows = [f"{value(b):12.3f} |{'*' * math.floor(n * 40 / most + 0.5):<40} {n}" for b, n in sorted(counts.items())]
    header = "       value  ------------- distribution ------------- count"
    return "\n".join(
        ["Threads started!", "", "Latency histogram (values are in milliseconds)", header, *rows, " ", "SQL"]
    )


def taken(counts: dict[int, int], percent: float) -> float:
    """The percentile of ``sb_histogram_get_pct_cumulative``."""
    most, seen = math.floor(sum(counts.values()) * percent / 100 + 0.5), 0
    for bucket in range(SIZE):
        seen += counts.get(bucket, 0)
        if seen >= most:
            return value(bucket)
    raise AssertionError


@given(counts=COUNTS, percent=st.sampled_from([50, 95, 99, 99.9]))
def test_what_is_read_is_what_was_printed(counts: dict[int, int], percent: float):
    found = latencies(printed(counts), sum(counts.values()))
    assert [count for _, count in found.buckets] == [count for _, count in sorted(counts.items())]
    assert found.count == sum(counts.values())
    assert found.percentile(percent) == pytest.approx(taken(counts, percent), abs=0.0005001)


@given(counts=COUNTS)
def test_the_histogram_that_is_kept_has_every_latency_at_its_place(counts: dict[int, int]):
    from weighbridge.statistics.histogram import Histogram

    found = Latencies(tuple((round(value(bucket), 3), count) for bucket, count in sorted(counts.items())))
    kept = Histogram.decode(found.encoded())
    assert kept.count == found.count
    assert kept.maximum == pytest.approx(found.buckets[-1][0] * 1e6, rel=2e-3)
    assert kept.percentile(0) == pytest.approx(found.buckets[0][0] * 1e6, rel=2e-3)


@pytest.mark.parametrize(
    "rows",
    [
        [],
        ["       1.000 |* 0x5"],
        ["       2.000 |**** 5", "       1.000 |**** 5"],
        ["  900000.000 |**** 5"],
    ],
)
def test_a_histogram_that_is_none(rows: list[str]):
    head = printed({500: 1}).splitlines()[:4]
    with raises_sentence(Unparseable):
        latencies("\n".join([*head, *rows, ""]), 5)


def test_a_report_without_one():
    with raises_sentence(Unparseable):
        latencies("Threads started!\n", 5)


@given(counts=COUNTS)
def test_a_histogram_that_lacks_a_row(counts: dict[int, int]):
    *rows, _ = sorted(counts)
    text = printed({bucket: counts[bucket] for bucket in rows} or {1: 1})
    with pytest.raises(Unparseable):
        latencies(text, sum(counts.values()) + (not rows))
