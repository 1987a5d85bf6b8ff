"""What a trial's work cost in CPU time and memory: further measurements, from the meters. Pure.

CPU seconds are those that a role's site used while the measured process ran; the work is the trial's rate times
the same time, so that starting and ending count on both sides. A trial with several rates of one unit (tests one
after another, two directions) has no such cost: what they share of the CPU time is not known.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

from weighbridge.model.measurement import Measurement, Metric
from weighbridge.model.study import Role
from weighbridge.model.trial import Series

GBIT = {"Gbit/s": 1.0, "Mbit/s": 1e-3, "kbit/s": 1e-6, "MB/s": 8e-3, "MiB/s": 8 * 2**20 / 1e9}
"""Gigabits in one of each unit of throughput."""
THOUSANDS = {"1/s": 1e-3}
ROLES: tuple[Role, ...] = ("client", "server")
_OBJECTS = ("object", "put")
_MIB = 2**20


def derived(
    measurements: Sequence[Measurement],
    used: Mapping[str, Mapping[str, float]],
    measured_s: float,
    series: Sequence[Series],
) -> tuple[Measurement, ...]:
    """Give the CPU seconds per unit of work and the memory beyond the baseline, for client and server.

    ``used``: what each role's site used while the measured process ran (`weighbridge.meters.host.used`). Absent where
    it could not be read, where nothing was done, or for a workload without a counterpart.
    """
    found: list[Measurement] = []
    for units in (GBIT, THOUSANDS):
        rates = [each for each in measurements if each.metric.unit in units]
        if len(rates) == 1 and not found:
            found += _cpu(rates[0], used, measured_s)
    return (*found, *_memory(series))


def _cpu(rate: Measurement, used: Mapping[str, Mapping[str, float]], measured_s: float) -> Iterator[Measurement]:
    unit = rate.metric.unit
    work = rate.value * GBIT.get(unit, THOUSANDS.get(unit, 0.0)) * measured_s
    if not math.isfinite(work) or work <= 0:
        return
    objects = any(word in rate.metric.name for word in _OBJECTS)
    per = "gbit" if unit in GBIT else "1000_objects" if objects else "1000_transactions"
    for role in ROLES:
        cost = used.get(role, {}).get("cpu_s", -1.0) / work
        if math.isfinite(cost) and cost >= 0:
            yield Measurement(Metric(f"cpu_{role}_per_{per}", "s/Gbit" if per == "gbit" else "s/1000", "lower"), cost)


def _memory(series: Sequence[Series]) -> Iterator[Measurement]:
    """The peak that was seen of what the programs hold beyond the first reading, before the first of them started.

    Anonymous and shared memory alone: which site is charged for a cached file is a matter of who read it first.
    """
    for role in ROLES:
        mine = {each.name: each for each in series if each.place == role}
        if "memory_anonymous_bytes" not in mine:
            continue
        total: dict[float, float] = {}
        for name in ("memory_anonymous_bytes", "memory_shared_bytes"):
            for at, value in zip(mine[name].at_s, mine[name].values, strict=True) if name in mine else ():
                total[at] = total.get(at, 0.0) + value
        if len(total) < 2:
            continue
        beyond = max(total.values()) - total[min(total)]
        yield Measurement(Metric(f"memory_{role}_beyond_baseline", "MiB", "lower"), beyond / _MIB)
