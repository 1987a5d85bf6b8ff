"""HDR histograms: counts of whole numbers in buckets whose width is a fixed fraction of their value.

Source: Tene, HdrHistogram (hdrhistogram.org): its bucket layout, its percentiles by nearest rank, and its encoding V2
(zlib and base64; counts as ZigZag LEB128, runs of empty buckets as one negative number), which its implementations in
Java, Go, C and Python read and write. This implementation uses numpy because the one in Python (hdrh) has no wheel
for arm64.

Latency is stored as one histogram per run, and merged per environment. Percentiles are never averaged.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from weighbridge.statistics.contrast import Looks, compare
from weighbridge.statistics.cost import Better, Cost

_ENVELOPE = struct.Struct(">II")
"""Cookie, and the number of compressed bytes that follow."""
_HEADER = struct.Struct(">IIIIQQd")
"""Cookie, length of the counts, offset of the first bucket, significant figures, lowest, highest, ratio of values.

The offset is ignored: the implementation in Go writes 1 for counts that begin with the first bucket."""
_ENVELOPE_COOKIE, _HEADER_COOKIE = 0x1C849304, 0x1C849303
_WORD_BITS = 0xF0
"""The bits of a cookie that specify the encoding of counts: 1 is LEB128."""
_LEB128 = 0x10
_LONGEST_COUNT = 9
"""The largest number of bytes of a count; the ninth has eight bits of it and no continuation bit."""
_MOST_FIGURES = 5
_MOST = 2**62
"""The largest value, and the largest sum of all counts: sums stay within 64 bits."""


class Histogram:
    """Counts of whole numbers from 0 to ``highest``, with ``significant_figures`` decimal digits of resolution.

    ``lowest`` is the smallest value that is distinguished from 0, rounded down to a power of two.
    """

    __slots__ = (
        "_counts",
        "_half",
        "_half_bits",
        "_mask",
        "_unit",
        "count",
        "highest",
        "lowest",
        "significant_figures",
    )

    def __init__(self, lowest: int, highest: int, significant_figures: int) -> None:
        """Raise ValueError for a range or a precision that no histogram can have."""
        if not 1 <= significant_figures <= _MOST_FIGURES:
            raise ValueError(f"A histogram has 1 to {_MOST_FIGURES} significant figures, not {significant_figures}.")
        self._half_bits = math.ceil(math.log2(2 * 10**significant_figures)) - 1
        self._half = 1 << self._half_bits
        self._unit = lowest.bit_length() - 1
        if not 1 <= lowest <= highest < 2**64 or self._unit + self._half_bits >= 62:
            raise ValueError(f"A histogram cannot span {lowest} to {highest}.")
        self.lowest, self.highest, self.significant_figures = lowest, highest, significant_figures
        self._mask = (2 * self._half - 1) << self._unit
        self._counts = np.zeros(self._index(min(highest, _MOST)) // self._half * self._half + self._half, np.int64)
        self.count = 0
        """The number of counted values."""

    def record(self, value: int, count: int = 1) -> None:
        """Count ``value``, ``count`` times. Raises ValueError below 0 and beyond the last bucket."""
        index = self._index(value) if value >= 0 else -1
        if not 0 <= index < len(self._counts) or not 0 <= count <= _MOST - self.count:
            raise ValueError(f"A histogram of 0 to {self.highest} cannot count {value} {count} times.")
        self._counts[index] += count
        self.count += count

    def add(self, other: Histogram) -> None:
        """Add the counts of ``other``, each at the lowest value of its bucket if the layouts differ.

        Raises ValueError if a bucket of the other lies beyond the last bucket.
        """
        if (self._unit, self._half_bits) == (other._unit, other._half_bits):
            used = len(other._counts)
            while used > len(self._counts) and not other._counts[used - 1]:
                used -= 1
            if used <= len(self._counts):
                self._counts[:used] += other._counts[:used]
                self.count += other.count
                return
        for index in np.flatnonzero(other._counts).tolist():
            self.record(other._lowest_value(index), int(other._counts[index]))

    def percentile(self, percent: float) -> int:
        """Return the highest value of the bucket at or below which ``percent`` (0 .. 100) of the counts are.

        The rank is the nearest, at least the first; 0 percent is the lowest value of the first bucket. Returns 0
        without counts.
        """
        return self.percentiles([percent])[0]

    def percentiles(self, percents: Sequence[float]) -> list[int]:
        """Return several percentiles, in the given order, for little more than the time of one."""
        if not self.count:
            return [0] * len(percents)
        ranks = [max(1, int(min(percent, 100.0) * self.count / 100 + 0.5)) for percent in percents]
        ranks = [min(rank, self.count) for rank in ranks]  # beyond 2**53 a product can be rounded up
        used = np.flatnonzero(self._counts)  # a few of many thousand
        places = used[np.searchsorted(np.cumsum(self._counts[used]), ranks)].tolist()
        return [
            self._lowest_value(index) + (self._width(index) - 1 if percent else 0)
            for index, percent in zip(places, percents, strict=True)
        ]

    @property
    def mean(self) -> float:
        """Return the mean of the buckets' middles; 0 without counts."""
        used = np.flatnonzero(self._counts)
        total = sum(
            count * (self._lowest_value(index) + (self._width(index) >> 1))
            for index, count in zip(used.tolist(), self._counts[used].tolist(), strict=True)
        )
        return float(total) / self.count if self.count else 0.0

    @property
    def maximum(self) -> int:
        """Return the highest value of the last bucket with counts; 0 without counts."""
        used = np.flatnonzero(self._counts)
        return self._lowest_value(int(used[-1])) + self._width(int(used[-1])) - 1 if len(used) else 0

    def encode(self) -> str:
        """Return the counts in HdrHistogram's encoding V2, compressed and in base64."""
        counts = _encoded_counts(self._counts)
        header = _HEADER.pack(
            _HEADER_COOKIE | _LEB128, len(counts), 0, self.significant_figures, self.lowest, self.highest, 1.0
        )
        packed = zlib.compress(header + counts)
        return base64.b64encode(_ENVELOPE.pack(_ENVELOPE_COOKIE | _LEB128, len(packed)) + packed).decode("ascii")

    @classmethod
    def decode(cls, text: str) -> Histogram:
        """Return the histogram that any implementation of HdrHistogram has encoded (V2, compressed, base64).

        Raises ValueError with the reason.
        """
        try:
            data = base64.b64decode(text)
            cookie, length = _ENVELOPE.unpack_from(data)
        except (TypeError, binascii.Error, struct.error) as error:
            raise ValueError(f"it is not an HDR histogram in base64 ({error})") from error
        if cookie & ~_WORD_BITS != _ENVELOPE_COOKIE or length != len(data) - _ENVELOPE.size:
            raise ValueError(
                f"it is not a compressed HDR histogram of version 2 (cookie {cookie:#x}, {length} bytes)"
            )
        return cls._unpacked(data[_ENVELOPE.size :])

    @classmethod
    def _unpacked(cls, packed: bytes) -> Histogram:
        unpacker = zlib.decompressobj()
        try:
            header = unpacker.decompress(packed, _HEADER.size)
            cookie, _, _, figures, lowest, highest, _ = _HEADER.unpack(header)
            if cookie & ~_WORD_BITS != _HEADER_COOKIE:
                raise ValueError(f"its compressed part is not an HDR histogram of version 2 (cookie {cookie:#x})")
            histogram = cls(lowest, highest, figures)
            most = len(histogram._counts) * _LONGEST_COUNT
            encoded = unpacker.decompress(unpacker.unconsumed_tail, most + 1)
        except (zlib.error, struct.error) as error:
            raise ValueError(f"its compressed part cannot be read ({error})") from error
        if len(encoded) > most:
            raise ValueError("it has more counts than its range has buckets")
        if not unpacker.eof:
            raise ValueError("its compressed part ends early")
        histogram._fill(_decoded_counts(encoded))
        return histogram

    def _fill(self, numbers: NDArray[np.int64]) -> None:
        """Set the counts from encoded numbers: a bucket's count or, if negative, the number of empty buckets."""
        counted = numbers >= 0
        counts = numbers[counted]
        if numbers.min(initial=0) < -len(self._counts) or counts.sum(dtype=np.float64) > _MOST:
            raise ValueError("its counts are not those of a histogram")
        ends = np.cumsum(np.where(counted, 1, -numbers))
        if len(ends) and ends[-1] > len(self._counts):
            raise ValueError("it has more counts than its range has buckets")
        self._counts[ends[counted] - 1] = counts
        self.count = int(counts.sum())

    def _index(self, value: int) -> int:
        bucket = (value | self._mask).bit_length() - self._unit - self._half_bits - 1
        return (bucket << self._half_bits) + (value >> (bucket + self._unit))

    def _lowest_value(self, index: int) -> int:
        bucket = max(0, (index >> self._half_bits) - 1)
        return (index - (bucket << self._half_bits)) << (bucket + self._unit)

    def _width(self, index: int) -> int:
        return 1 << (max(0, (index >> self._half_bits) - 1) + self._unit)


def _encoded_counts(counts: NDArray[np.int64]) -> bytes:
    """Return the counts up to the last that is not 0, in ZigZag LEB128."""
    used = np.flatnonzero(counts)
    gaps = np.diff(used, prepend=-1) - 1
    numbers = np.column_stack((-gaps, counts[used])).ravel()
    numbers = numbers[numbers != 0]
    rest = (numbers.astype(np.uint64) << np.uint64(1)) ^ (numbers >> 63).astype(np.uint64)
    lengths = np.ones(len(rest), np.int64)
    for size in range(1, _LONGEST_COUNT):
        lengths += rest >= np.uint64(1) << np.uint64(7 * size)
    starts = np.cumsum(lengths) - lengths
    octets = np.zeros(int(lengths.sum()), np.uint8)
    for place in range(_LONGEST_COUNT):
        longer = lengths > place
        if not longer.any():
            break
        continued = lengths[longer] > place + 1
        part = rest[longer] >> np.uint64(7 * place)
        octets[starts[longer] + place] = np.where(
            continued, part & np.uint64(0x7F) | np.uint64(0x80), part & np.uint64(0xFF)
        )
    return octets.tobytes()


def _decoded_counts(encoded: bytes) -> NDArray[np.int64]:
    """Return the numbers that are encoded one after the other. Raises ValueError if the last is cut off."""
    octets = np.frombuffer(encoded, np.uint8)
    ends = np.flatnonzero(octets < 0x80)
    lengths = np.diff(ends, prepend=-1)
    if len(octets) and (not len(ends) or ends[-1] != len(octets) - 1 or lengths.max() >= _LONGEST_COUNT):
        return _decoded_long_counts(encoded)
    starts = ends - lengths + 1
    rest = (octets[starts] & np.uint8(0x7F)).astype(np.uint64)
    for place in range(1, int(lengths.max(initial=0))):
        longer = lengths > place
        part = (octets[starts[longer] + place] & np.uint8(0x7F)).astype(np.uint64)
        rest[longer] |= part << np.uint64(7 * place)
    return (rest >> np.uint64(1)).astype(np.int64) ^ -(rest & np.uint64(1)).astype(np.int64)


def _decoded_long_counts(encoded: bytes) -> NDArray[np.int64]:
    """Decode counts beyond 2**55 one by one, because their ninth byte has no continuation bit."""
    numbers, rest, shift = [], 0, 0
    for octet in encoded:
        last = shift == 7 * (_LONGEST_COUNT - 1)
        rest |= (octet if last else octet & 0x7F) << shift
        shift += 7
        if last or octet < 0x80:
            numbers.append(rest >> 1 ^ -(rest & 1))
            rest = shift = 0
    if shift:
        raise ValueError("its last count is cut off")
    return np.array(numbers, np.int64)


# -- histograms of runs -------------------------------------------------------------------------


def merge_histograms(histograms: Sequence[Histogram]) -> Histogram:
    """Return one histogram with the counts of all, which stay unchanged.

    It spans the widest range among them with the fewest significant figures, so no count is lost or invented. Raises
    ValueError without any histogram.
    """
    if not len(histograms):
        raise ValueError("No histogram to merge.")
    merged = Histogram(
        min(each.lowest for each in histograms),
        max(each.highest for each in histograms),
        min(each.significant_figures for each in histograms),
    )
    for histogram in histograms:
        merged.add(histogram)
    return merged


def percentile(histogram: Histogram, percent: float) -> float:
    """Return the value, in the histogram's unit, at or below which `percent` (0 .. 100) of the counts are.

    It is exact to the histogram's significant figures, by the nearest rank (at least the first). Raises ValueError
    for a percentage out of range or no counts.
    """
    return percentiles(histogram, [percent])[0]


def percentiles(histogram: Histogram, percents: Sequence[float]) -> list[float]:
    """Return several percentiles, in the given order, for about the time of the highest one."""
    for percent in percents:
        if not 0 <= percent <= 100:
            raise ValueError(f"A percentile is between 0 and 100, not {percent}.")
    if histogram.count == 0:
        raise ValueError("The histogram is empty: it has no percentiles.")
    return [float(value) for value in histogram.percentiles(percents)]


def compare_percentiles(
    baseline: Sequence[Histogram],
    other: Sequence[Histogram],
    percent: float,
    *,
    better: Better = "lower",
    confidence: float = 0.95,
    equivalence: float | None = None,
    looks: int | Looks = 1,
) -> Cost:
    """Return the cost at one percentile from one histogram per run, paired by block; see `compare`.

    The interval is computed from the per-run log ratios, because requests within a run are not independent. The
    percentile to show for an environment comes from `merge_histograms`. Raises ValueError as `percentile` and
    `compare` do.
    """
    return compare(
        [percentile(each, percent) for each in baseline],
        [percentile(each, percent) for each in other],
        better=better,
        confidence=confidence,
        equivalence=equivalence,
        looks=looks,
    )
