"""Numbers as people read them: three or four significant digits, SI prefixes, costs in percent."""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

from weighbridge.analysis.comparisons import difference_unit
from weighbridge.statistics import Cost, Interval
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT

TOO_FEW = "too few rounds"
"""Shown instead of a cost if there are fewer than `MIN_BLOCKS_VERDICT` rounds."""

SPACE = "\u00a0"
"""Between a number and its unit, and inside of an interval: no line is broken at it."""

_FAMILIES: dict[str, tuple[tuple[str, float], ...]] = {
    "bit/s": (("bit/s", 1.0), ("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9)),
    "B/s": (("B/s", 1.0), ("kB/s", 1e3), ("MB/s", 1e6), ("GB/s", 1e9)),
    "KiB/s": (("KiB/s", 1.0), ("MiB/s", 2.0**10), ("GiB/s", 2.0**20)),
    "B": (("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9)),
    "s": (("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)),
}
_FAMILY_OF = {name: (family, factor) for family in reversed(_FAMILIES.values()) for name, factor in family}
_ALIASES = {"us": "µs", "bits/s": "bit/s", "bps": "bit/s", "bytes/s": "B/s", "bytes": "B"}
_BEFORE_NEXT = {"GB/s", "Gbit/s", "GiB/s", "GB"}
"""Prefixes that are used from 10 on: 8,662 Mbit/s is easier to compare than 8.66 Gbit/s."""


def readable_unit(value: float, unit: str) -> tuple[str, float]:
    """Return the most readable unit for `value`, which is in `unit`, and the factor to multiply values by."""
    name = _ALIASES.get(unit, unit)
    if name not in _FAMILY_OF:
        return name, 1.0
    family, own = _FAMILY_OF[name]
    base = abs(value) * own
    if base == 0:
        return name, 1.0
    fitting = [(u, f) for u, f in family if base / f >= (10 if u in _BEFORE_NEXT else 1)]
    chosen, factor = fitting[-1] if fitting else family[0]
    return chosen, own / factor


Shown = tuple[str, float]
"""A unit for values, and the factor to multiply them by."""

MOST_DIGITS = 1e5
"""A value from here on is not written in the smaller unit of another one in its column."""


def shared_unit(values: Iterable[float | None], unit: str) -> Shown:
    """Return one unit for several values in `unit`: the smallest value's, unless the largest is too long in it."""
    sizes = sorted(abs(each) for each in values if each is not None and each and math.isfinite(each))
    name = _ALIASES.get(unit, unit)
    if not sizes or name not in _FAMILY_OF:
        return readable_unit(0.0, unit)
    (family, own), smallest = _FAMILY_OF[name], readable_unit(sizes[0], unit)[1]
    larger = [(each, own / factor) for each, factor in family if own / factor <= smallest]
    return next((each for each in larger if sizes[-1] * each[1] < MOST_DIGITS), larger[-1])


def unit_as(name: str, unit: str) -> Shown | None:
    """Return the unit called `name` for values in `unit`; None unless one is a multiple of the other."""
    target, own = (_FAMILY_OF.get(_ALIASES.get(each, each)) for each in (name, unit))
    if target is None or own is None or target[0] is not own[0]:
        return None
    return _ALIASES.get(name, name), own[1] / target[1]


def smallest_cost_text(cost: float) -> str:
    """Return ``A 10-minute run on this machine can detect costs of 1.8% or more``."""
    return f"A 10-minute run on this machine can detect costs of {plain(100 * cost, 2)}% or more"


def plain(value: float, digits: int = 3) -> str:
    """Return a number with `digits` significant digits (four from 1,000 on): ``8,662``, ``0.0123``."""
    if not math.isfinite(value):
        return "-∞" if value < 0 else "∞" if value > 0 else "?"
    if value == 0:
        return "0"
    digits = max(digits, 4) if abs(value) >= 1000 else digits
    if abs(value) < 1e-4:
        return f"{value:.{digits - 1}e}"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    if abs(value) >= 10**digits:
        value = float(f"{value:.{digits}g}")
    return f"{value:,.{places}f}"


def whole(number: float) -> str:
    """Return a count with all of its digits: ``2,000``."""
    return f"{number:,.12g}"


def in_percent(number: str) -> str:
    """Return a number that is written already as a percentage: ``15%``."""
    return f"{number}%"


def percentage(value: float, digits: int = 3) -> str:
    """Return a percentage with `digits` significant digits, such as ``1.25%``."""
    return in_percent(plain(value, digits))


def _after(unit: str) -> str:
    """Return a unit as it stands after a number: ``2,140 /s``, and nothing after a count."""
    return "" if unit == "count" else unit.removeprefix("1") if unit.startswith("1/") else unit


@lru_cache(maxsize=2**17)  # each trial's value is in the table, in two charts and among the trials
def quantity(value: float | None, unit: str, shown_in: Shown | None = None) -> str:
    """Return a value with its unit: ``8,662 Mbit/s`` for 8.662e9 bit/s; a dash if there is none.

    ``shown_in`` is the unit of its column (`shared_unit`), if it has one.
    """
    if value is None:
        return "–"
    shown, factor = shown_in or readable_unit(value, unit)
    return with_unit(plain(value * factor), shown)


def with_unit(number: str, unit: str) -> str:
    """Return a number with the unit behind it: ``15%``, ``154 ms``, ``12`` for a count."""
    return in_percent(number) if unit == "%" else f"{number}{SPACE}{_after(unit)}".strip()


def quantities(values: Sequence[float], unit: str, between: str = ", ", shown_in: Shown | None = None) -> str:
    """Return several values in one unit: ``8,662, 8,713 Mbit/s``; a dash if there are none."""
    if not values:
        return "–"
    shown, factor = shown_in or readable_unit(max(values, key=abs), unit)
    return with_unit(between.join(plain(value * factor) for value in values), shown)


def percent_short(percent: float) -> str:
    """Return a percentage for large letters, without its sign: ``42%``, without decimals from 10 on; ``251 times``.

    ``99.5%`` keeps its decimal: a rate that is 100% lower would be none.
    """
    if in_times(percent):
        return f"{_times(abs(percent))}{SPACE}times"
    size = abs(percent)
    if 99 <= size < 100:
        return in_percent(f"{math.floor(10 * size) / 10:.1f}")
    return in_percent(_fixed(size, 0 if size >= 9.95 else 1))


def percent_limit(percent: float) -> str:
    """Return one limit of an interval in percent, without its sign: ``28%``, ``1.9%``, ``>9,999%``."""
    return in_percent(_limit(abs(percent), 0 if abs(percent) >= 9.95 else 1))


def percents_short(percents: Sequence[float]) -> str:
    """Return the range of several costs in large figures, without signs: ``20 to 43%``, ``42%``."""
    ends = [percent_short(each) for each in (min(percents), max(percents))]
    if ends[0] != ends[1] and not any(map(in_times, (min(percents), max(percents)))):
        ends[0] = ends[0].removesuffix("%")
    return " to ".join(dict.fromkeys(ends))


def _places(spread: float, size: float) -> int:
    """How many decimals a percentage needs, from its half-width and its size in percent."""
    if not math.isfinite(spread):
        return 1
    if size >= 1000 or spread >= 100:
        return 0
    return 2 if 0 < spread < 0.1 else 1


def _fixed(value: float, places: int) -> str:
    if not math.isfinite(value):
        return plain(value)
    text = f"{value:,.{places}f}"
    return text.removeprefix("-") if float(f"{value:.{places}f}") == 0 else text


def percent_interval(percent: Interval) -> str:
    """Return a cost in percent with its limits: ``27.4% [25.9, 28.8]``; a very large one as ``251 times [244, 269]``.

    A very large cost is a multiple: a guest can start a thousand times slower than a process.
    """
    low, high = _limits(percent)
    return f"{percent_estimate(percent)} [{low},{SPACE}{high}]"


def percent_estimate(percent: Interval) -> str:
    """Return the same without the limits: ``27.4%``, ``251 times``."""
    if in_times(percent.estimate):
        way, sign = (-1, "-") if percent.estimate < 0 else (1, "")
        return f"{sign}{_times(way * percent.estimate)}{SPACE}times"
    return in_percent(_fixed(percent.estimate, _interval_places(percent)))


def percent_limits(percent: Interval) -> str:
    """Return an interval in percent without its estimate: ``8.0% to 16.2%``, ``244 to 269 times``."""
    low, high = _limits(percent)
    if in_times(percent.estimate):
        return f"{low} to {high}{SPACE}times"
    return f"{in_percent(low)} to {in_percent(high)}"


def _interval_places(percent: Interval) -> int:
    return _places((percent.high - percent.low) / 2, abs(percent.estimate))


def _limits(percent: Interval) -> tuple[str, str]:
    """Return both limits of an interval in percent as they are written in it."""
    if in_times(percent.estimate):
        way, sign = (-1, "-") if percent.estimate < 0 else (1, "")
        return f"{sign}{_times(way * percent.low)}", f"{sign}{_times(way * percent.high)}"
    places = _interval_places(percent)
    return _limit(percent.low, places), _limit(percent.high, places)


def _times(percent: float) -> str:
    """Return a cost in percent as a multiple of the baseline."""
    ratio = max(0.0, 1 + percent / 100)
    return f">{_fixed(FARTHEST, 0)}" if FARTHEST < ratio < math.inf else plain(ratio)


def in_times(percent: float) -> bool:
    """Return whether a cost is so large that it is shown as a multiple."""
    return FARTHEST < abs(percent) < math.inf


def _limit(percent: float, places: int) -> str:
    if abs(percent) <= FARTHEST or math.isinf(percent):
        return _fixed(percent, places)
    return f"{'>' if percent > 0 else '<-'}{_fixed(FARTHEST, 0)}"


def percent_range(percents: Sequence[float]) -> str:
    """Return the range of several costs in percent: ``3.1 to 12.4%``; very large ones as they are written alone."""
    if any(map(in_times, percents)):
        return percents_short(percents)
    low, high = (_fixed(each, 1 if abs(each) < 1000 else 0) for each in (min(percents), max(percents)))
    return in_percent(low if low == high else f"{low} to {high}")


def difference_interval(interval: Interval, unit: str, shown_in: Shown | None = None) -> str:
    """Return a difference in the metric's unit with its limits: ``0.12 points [0.10, 0.15]``.

    A metric that is itself in percent differs by percentage points, which cannot be mistaken for a cost in percent.
    """
    return "".join(_difference(interval, unit, shown_in))


def difference_estimate(interval: Interval, unit: str) -> str:
    """Return the same without the limits: ``0.12 points``."""
    return _difference(interval, unit, None)[0]


def _difference(interval: Interval, unit: str, shown_in: Shown | None) -> tuple[str, str]:
    """Return the estimate with its unit, and the limits."""
    finite = [abs(v) for v in (interval.estimate, interval.low, interval.high) if math.isfinite(v)]
    shown, factor = shown_in or readable_unit(max(finite), unit)
    numbers = [value * factor for value in (interval.estimate, interval.low, interval.high)]
    half = (numbers[2] - numbers[1]) / 2 or abs(numbers[0])
    places = max(0, 1 - math.floor(math.log10(half))) if 0 < half < math.inf else 3
    estimate, low, high = (_fixed(value, places) for value in numbers)
    limits = f" [{low},{SPACE}{high}]" if math.isfinite(half) else ""
    return f"{estimate}{SPACE}{_points(shown)}".strip(), limits


def _points(unit: str) -> str:
    return difference_unit(unit) if unit == "%" else _after(unit)


LEAST_NOISE = 5e-3
"""The smallest noise that is shown as a number, in percent."""
BELOW_RESOLUTION = "below the metric's resolution"
"""Shown for a noise floor that is too small for a number."""
NO_INTERVAL = "(no interval)"
"""Shown with the ratio of a single round."""
FARTHEST = 9999.0
"""Limits further out, in percent, are only written as beyond it: with few rounds they can reach 10^9%."""


def percent_text(percent: Interval, blocks: int) -> str:
    """Return a cost in percent with its interval; with too few rounds, only that they are too few."""
    return percent_interval(percent) if blocks >= MIN_BLOCKS_VERDICT else TOO_FEW


def cost_of(cost: Cost | None) -> str:
    """Return a ratio's cost with its interval, in percent; a dash if there is none."""
    percent = cost.percent if cost is not None else None
    return percent_text(percent, cost.blocks) if cost is not None and percent is not None else "–"


def share(fraction: float | None) -> str:
    """Return a fraction as ``±1.1%``, a very large one as ``>9,999%``; ``unknown`` if there is none."""
    if fraction is None:
        return "unknown"
    beyond = FARTHEST < 100 * fraction < math.inf
    return f"{'' if beyond else '±'}{share_size(fraction)}"


def share_size(fraction: float) -> str:
    """Return the same without its sign: ``1.1%``."""
    percent = 100 * fraction
    if FARTHEST < percent < math.inf:
        return in_percent(_limit(percent, 0))
    return in_percent(_fixed(percent, 2 if percent < 0.1 else 1 if percent < 100 else 0))


def share_short(fraction: float) -> str:
    """Return a fraction as ``±2.4%``, without decimals from 10% on: ``±13%``."""
    return (
        share(fraction) if 100 * fraction < 9.95 or in_times(100 * fraction) else f"±{percent_short(100 * fraction)}"
    )


def noise_text(noise: tuple[float, float] | None, unit: str = "%") -> str:
    """Return a noise floor: ``±1.1%``, or ``-50.0 to 33.3%`` if its two limits read differently.

    The noise floor of a difference is in `unit`, the metric's. One that reads ±0.00%, or is unknown, is in words.
    """
    if noise is None:
        return "unknown"
    if unit != "%":
        return f"±{quantity(noise[1], unit)}" if noise[1] else BELOW_RESOLUTION
    if max(map(abs, noise)) < LEAST_NOISE:
        return BELOW_RESOLUTION
    places = 2 if noise[1] - noise[0] < 0.2 else 1 if noise[1] - noise[0] < 200 else 0
    low, high = (_limit(each, places) for each in noise)
    return in_percent(f"±{high}" if low == f"-{high}" else f"{low} to {high}")


def noise_size(noise: tuple[float, float] | None, unit: str = "%") -> str:
    """Return the larger of the two limits of a noise floor, without a sign: ``17.7%``."""
    if noise is None:
        return noise_text(None)
    size = max(map(abs, noise))
    return noise_text((-size, size), unit).removeprefix("±").removeprefix("-")


def level(fraction: float) -> str:
    """Return a confidence level or an error rate: ``95%``, ``98.25%``."""
    return in_percent(f"{100 * fraction:.4g}")


def plural(number: int, thing: str) -> str:
    """Return a number of things: ``1 round``, ``2 rounds``."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def listed(items: Sequence[str]) -> str:
    """Return items as part of a sentence: ``a, b and c``."""
    return " and ".join(filter(None, (", ".join(items[:-1]), *items[-1:])))


def margin(fraction: float) -> str:
    """Return a margin as it was written: ``±3%``."""
    return in_percent(f"±{100 * fraction:g}")
