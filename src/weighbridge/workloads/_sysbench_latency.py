"""sysbench's latency histogram (``--histogram=on``), from which any percentile can be taken as sysbench takes it.

Source: sysbench 1.0.20, sb_histogram.c: 1024 buckets between 0.001 and 100 000 ms whose values are 1.8 % apart; a
latency is counted in the nearest, so that it is known to 0.9 %, and printed to 0.001 ms, so that short ones share a
value. Latencies beyond either end are in the last bucket.
"""

import math
import re
from dataclasses import dataclass

from weighbridge.model.measurement import Unparseable
from weighbridge.workloads import _sysbench

ASKED = ("--percentile=99", "--histogram=on")
"""What sysbench is told to have it report them."""
_PRINTED_MS = 0.0051
"""How far a percentile of the histogram (three decimals) may be from the printed one (two)."""
_HEADER = (
    "\nLatency histogram (values are in milliseconds)\n       value  ------------- distribution ------------- count\n"
)
_ROW = re.compile(r" *([0-9]{1,9}\.[0-9]{3}) \|\**  *([0-9]{1,15})")
_LONGEST_NS = 10**11
"""The last bucket: 100 s."""


@dataclass(frozen=True, slots=True)
class Latencies:
    """The buckets that are not empty: (milliseconds, count), never falling."""

    buckets: tuple[tuple[float, int], ...]

    @property
    def count(self) -> int:
        """How many latencies were counted."""
        return sum(count for _, count in self.buckets)

    def percentile(self, percent: float) -> float:
        """Milliseconds: the first bucket with which the rank is reached, as sysbench's own percentiles are."""
        rank, cumulative = math.floor(self.count * percent / 100 + 0.5), 0
        for value, count in self.buckets:
            cumulative += count
            if cumulative >= rank:
                return value
        return self.buckets[-1][0]

    def encoded(self) -> str:
        """The latencies as an HDR histogram in nanoseconds, as `weighbridge.statistics` merges them."""
        from weighbridge.statistics.histogram import Histogram

        histogram = Histogram(1, 2 * _LONGEST_NS, 3)
        for value, count in self.buckets:
            histogram.record(round(value * 1e6), count)
        return histogram.encode()


def latencies(text: str) -> Latencies:
    """The histogram in a report. Raises Unparseable where there is none, or one whose values fall."""
    _, header, rest = text.partition(_HEADER)
    if not header:
        raise Unparseable("sysbench's report has no latency histogram")
    buckets = []
    for line in rest.splitlines():
        match = _ROW.fullmatch(line)
        if match is None:
            break
        buckets.append((float(match[1]), int(match[2])))
    values = [value for value, _ in buckets]
    if not buckets or values != sorted(values) or values[-1] * 1e6 > _LONGEST_NS * 1.01:
        raise Unparseable("sysbench's latency histogram has no rows, or rows out of order")
    return Latencies(tuple(buckets))


def checked_latencies(text: str, events: float) -> Latencies:
    """The histogram, which must agree with the rest of the report: the events, and the percentile sysbench took."""
    histogram = latencies(text)
    printed = _sysbench.figure(text, rf"\n +99th percentile: +{_sysbench.NUMBER}\n", "99th percentile")
    if histogram.count != events or abs(histogram.percentile(99) - printed) > _PRINTED_MS:
        raise Unparseable(
            f"sysbench's histogram has {histogram.count} latencies and a 99th percentile of "
            f"{histogram.percentile(99)} ms, its report {events:.0f} and {printed} ms"
        )
    return histogram
