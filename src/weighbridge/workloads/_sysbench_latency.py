"""Reads sysbench's latency histogram (``--histogram=on``), which gives every percentile as sysbench computes it.

Source: sysbench 1.0.20, sb_histogram.c. Its 1,024 buckets lie between 0.001 and 100,000 ms, and their values are 1.8%
apart. A latency is counted in the nearest bucket, so it is known to 0.9%. Values are printed to 0.001 ms, so short
latencies share one. The last bucket also counts longer latencies.
"""

import math
import re
from dataclasses import dataclass

from weighbridge.model.measurement import Unparseable

ARGUMENTS = ("--percentile=99", "--histogram=on")
"""The arguments that make sysbench print its histogram."""
_HEADER = (
    "\nLatency histogram (values are in milliseconds)\n       value  ------------- distribution ------------- count\n"
)
_ROW = re.compile(r" *([0-9]{1,9}\.[0-9]{3}) \|\**  *([0-9]{1,15})")
_LONGEST_NS = 10**11
"""The value of the last bucket: 100 s."""


@dataclass(frozen=True, slots=True)
class Latencies:
    """The buckets that are not empty, as (milliseconds, count) in rising order."""

    buckets: tuple[tuple[float, int], ...]

    @property
    def count(self) -> int:
        """Return the number of latencies."""
        return sum(count for _, count in self.buckets)

    def percentile(self, percent: float) -> float:
        """Return the value in milliseconds of the first bucket that reaches the rank, as sysbench does."""
        rank, cumulative = math.floor(self.count * percent / 100 + 0.5), 0
        for value, count in self.buckets:
            cumulative += count
            if cumulative >= rank:
                return value
        return self.buckets[-1][0]

    def encoded(self) -> str:
        """Return the latencies as an HDR histogram in nanoseconds, which `weighbridge.statistics` merges."""
        from weighbridge.statistics.histogram import Histogram

        histogram = Histogram(1, 2 * _LONGEST_NS, 3)
        for value, count in self.buckets:
            histogram.record(round(value * 1e6), count)
        return histogram.encode()


def latencies(text: str, events: float) -> Latencies:
    """Return the histogram in a report. It must count ``events`` latencies.

    Raises Unparseable if the histogram is missing, falls, or counts another number of events.
    """
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
    histogram = Latencies(tuple(buckets))
    if histogram.count != events:
        raise Unparseable(f"sysbench's latency histogram has {histogram.count} of {events:.0f} events")
    return histogram
