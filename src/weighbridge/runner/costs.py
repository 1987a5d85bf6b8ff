"""Computes further measurements of a trial from the meters, such as CPU time per unit of work. Pure.

CPU seconds are those that a role's site used while the measured process ran. The work is the trial's rate times the
same duration, so both include start and end. A trial with several rates of one unit (such as two directions) has no
CPU cost, because the share of each rate in the CPU time is unknown.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from weighbridge.meters.machines import FIRST_S, RESOLUTION_S, Idle, Use
from weighbridge.model.host import HERE
from weighbridge.model.measurement import (
    CPU_USAGE,
    DISK_TIME,
    EVENT_COUNTERS,
    MEMORY_USAGE,
    PACKET_SIZE,
    SOFTIRQ_SHARE,
    THROTTLED_PERIODS,
    THROTTLED_TIME,
    Measurement,
    Metric,
    is_plausible,
)
from weighbridge.model.study import Role
from weighbridge.model.trial import Series, Work
from weighbridge.runner.window import MachineUse

GBIT = {"Gbit/s": 1.0, "Mbit/s": 1e-3, "kbit/s": 1e-6, "MB/s": 8e-3, "MiB/s": 8 * 2**20 / 1e9}
"""The number of gigabits in one of each unit of throughput."""
THOUSANDS = {"1/s": 1e-3}
_UNITS: tuple[tuple[dict[str, float], Literal["gbit", "1000_transactions"]], ...] = (
    (GBIT, "gbit"), (THOUSANDS, "1000_transactions"),
)  # fmt: skip
ROLES: tuple[Role, ...] = ("client", "server")
_MIB = 2**20
PER = {"gbit": "Gbit", "1000_transactions": "1000", "1000_objects": "1000"}
"""The denominator of a metric's unit, by unit of work."""
STOLEN = 0.01
"""If a hypervisor takes more than this share of the CPU time, the CPU time of whole machines is unknown."""
CLOCKS_DIFFER = 0.06
"""The CPU time of the sites can exceed the CPU time of all machines by this share.

The scheduler charges a task from the moment when it is woken, but the idle clock runs until the CPU has left its idle
state. Both clocks count this time: 4% if a server is woken 14,000 times a second.
"""
_RESOLVED_SHARE = 0.05
"""A share is only given if the resolution of the counters changes it by less than this."""


def derived(
    used: Mapping[str, Mapping[str, float]], series: Sequence[Series], work: Work | None
) -> tuple[Measurement, ...]:
    """Return the CPU seconds per unit of work and the memory beyond the baseline, for client and server.

    ``used`` has the resource use of each role's site while the measured process ran (`weighbridge.meters.host.used`).
    ``work`` is all work during that time. Unknown figures are absent.
    """
    return (*(_cpu(work, used) if work else ()), *_memory(series))


def throttling(used: Mapping[str, Mapping[str, float]], measured_s: float) -> tuple[Measurement, ...]:
    """Return how long CPU limits throttled a site while the measured process ran, for the site with the longest time.

    The time is a share of the measured time, summed over the site's CPUs; the number of throttled periods follows.
    Both are absent if no control group reports them.
    """
    held = [each for each in used.values() if "throttled_s" in each]
    if not held:
        return ()
    most = max(held, key=lambda each: each["throttled_s"])
    time = Measurement(Metric(THROTTLED_TIME, "%", "lower"), 100 * most["throttled_s"] / measured_s)
    if (periods := most.get("throttled_periods")) is None:
        return (time,)
    return time, Measurement(Metric(THROTTLED_PERIODS, "count", "lower"), periods)


def events_cost(events: Mapping[str, float], work: Work | None, measured_s: float) -> Iterator[Measurement]:
    """Return metrics of the kernel's counters, per unit of work or else per trial (`EventCounter.per_trial`)."""
    if (passed := events.get("received_packets", 0.0)) > 0 and events["received_octets"] >= 0:
        yield Measurement(Metric(PACKET_SIZE, "B", "higher"), events["received_octets"] / passed)
    if "disk_busy_s" in events:
        share = min(1.0, max(0.0, events["disk_busy_s"]) / measured_s)
        yield Measurement(Metric(DISK_TIME, "%", "lower"), 100 * share)
    for counter in EVENT_COUNTERS:
        count = events.get(counter.name, -1.0)
        if count < 0:
            continue
        if work is not None and work.divides:
            if is_plausible(each := count / work.amount):
                yield Measurement(Metric(f"{counter.name}_per_{work.unit}", f"1/{PER[work.unit]}", "lower"), each)
        elif counter.per_trial:
            yield Measurement(Metric(counter.name, "count", "lower"), count)


def work_of(measurements: Sequence[Measurement], measured_s: float) -> Work | None:
    """Return the work of a program that kept one rate while it ran; None if it is unknown."""
    for units, unit in _UNITS:
        rates = [each for each in measurements if each.metric.unit in units]
        if len(rates) == 1:
            return Work(rates[0].value * units[rates[0].metric.unit] * measured_s, unit)
    return None


def _cpu(work: Work, used: Mapping[str, Mapping[str, float]]) -> Iterator[Measurement]:
    if not work.divides:
        return
    for role in ROLES:
        cost = used.get(role, {}).get("cpu_s", -1.0) / work.amount
        if is_plausible(cost) and cost >= 0:
            unit = "s/Gbit" if work.unit == "gbit" else "s/1000"
            yield Measurement(Metric(f"cpu_{role}_per_{work.unit}", unit, "lower"), cost)


def usage(
    series: Sequence[Series], host: str, measured: tuple[float, float] | None = None
) -> tuple[Measurement, ...]:
    """Return the resource use of a whole host from sar: of the server's host, or of the only one.

    ``cpu_usage`` is 100 - %idle over all CPUs in the ``measured`` time (start and end in seconds of the trial).
    ``memory_usage`` is the largest committed memory (kbcommit) beyond the first reading, in MiB. A testbed host
    shares CPUs and memory with its machine, so its figures are the whole machine's.
    """
    mine = {each.name: each for each in series if each.place == host}
    measurements: list[Measurement] = []
    kinds = {name: each for name, each in mine.items() if name.startswith("cpu_") and name.endswith("_share")}
    if "cpu_idle_share" in kinds:
        total = _sum_over_time(kinds.values())
        idle = dict(zip(kinds["cpu_idle_share"].at_s, kinds["cpu_idle_share"].values, strict=True))
        start_s, end_s = measured or (0.0, math.inf)
        busy = lasted = 0.0
        for earlier, at in zip([start_s, *idle], idle, strict=False):  # weighted by duration
            overlap = min(at, end_s) - max(earlier, start_s)
            if overlap > 0 and total.get(at, 0) > 0:
                busy += overlap * (1 - idle[at] / total[at])
                lasted += overlap
        if lasted:
            measurements.append(Measurement(Metric(CPU_USAGE, "%", "lower"), 100 * max(0.0, busy / lasted)))
    if (committed := mine.get("memory_committed_bytes")) is not None and len(committed.values) > 1:
        beyond = (max(committed.values) - committed.values[0]) / _MIB
        measurements.append(Measurement(Metric(MEMORY_USAGE, "MiB", "lower"), beyond))
    return tuple(measurements)


def _sum_over_time(series: Iterable[Series]) -> dict[float, float]:
    total: dict[float, float] = {}
    for each in series:
        for at, value in zip(each.at_s, each.values, strict=True):
            total[at] = total.get(at, 0.0) + value
    return total


def _memory(series: Sequence[Series]) -> Iterator[Measurement]:
    """Return the peak of anonymous and shared memory beyond idle: cached files are charged to the first reader."""
    for role in ROLES:
        mine = {each.name: each for each in series if each.place == role}
        if "memory_anonymous_bytes" not in mine:
            continue
        total = _sum_over_time(
            mine[name] for name in ("memory_anonymous_bytes", "memory_shared_bytes") if name in mine
        )
        if len(total) < 2:
            continue
        beyond = max(total.values()) - total[min(total)]
        yield Measurement(Metric(f"memory_{role}_beyond_baseline", "MiB", "lower"), beyond / _MIB)


# -- whole machines ----------------------------------------------------------------------------------


def all_who_worked(
    use: MachineUse | None, idle: Mapping[str, Idle], not_work_s: float, work: Work | None, sites_s: float = 0.0
) -> tuple[Measurement, ...]:
    """Return CPU seconds, context switches and TCP segments per unit of work beyond idle, and the softirq share.

    ``not_work_s`` is the CPU time of meters. A figure is absent, never 0, if a machine has no reading or no idle
    level, or if the CPU time is below the resolution of the counters. The CPU time is also absent if a hypervisor
    took more than `STOLEN`, because stolen and idle time overlap then.

    It is absent, too, if it is less than the ``sites_s`` that the sites used, by more than `CLOCKS_DIFFER` and the
    uncertainty of the idle level: background load must have given way to the trial.
    """
    if use is None:
        return ()
    return (*_per_work(use, idle, not_work_s, work, sites_s), *(_softirq(use.uses) if use.complete else ()))


def _per_work(
    use: MachineUse, idle: Mapping[str, Idle], not_work_s: float, work: Work | None, sites_s: float
) -> Iterator[Measurement]:
    if work is None or not work.divides:
        return
    amounts: dict[str, tuple[str, float]] = {}
    is_known = use.complete and use.uses.keys() <= idle.keys()
    beyond_s = switches = 0.0
    if is_known:
        busy = (used.busy_s - idle[name].busy_cpus * used.seconds for name, used in use.uses.items())
        beyond_s = sum(busy) - (use.tool_s if HERE in use.uses else 0.0) - not_work_s
        switches = sum(
            used.context_switches - idle[name].switches_per_s * used.seconds for name, used in use.uses.items()
        )
    idle_unsure_s = sum(RESOLUTION_S / FIRST_S * each.seconds for each in use.uses.values())
    least_s = max(RESOLUTION_S * len(use.uses), sites_s * (1 - CLOCKS_DIFFER) - RESOLUTION_S - idle_unsure_s)
    if is_known and beyond_s > least_s and use.stolen <= STOLEN:
        amounts["cpu_all"] = "s", beyond_s
    if switches > 0:
        amounts["context_switches"] = "1", switches
    if use.segments.get("sent_segments", 0.0) > 0 and use.segments["resent_segments"] >= 0:
        amounts["tcp_retransmits"] = "1", use.segments["resent_segments"]
        amounts["tcp_segments"] = "1", use.segments["sent_segments"]
    for name, (unit, amount) in amounts.items():
        if math.isfinite(each := amount / work.amount):
            yield Measurement(Metric(f"{name}_per_{work.unit}", f"{unit}/{PER[work.unit]}", "lower"), each)


def _softirq(uses: Mapping[str, Use]) -> Iterator[Measurement]:
    """Return the share of CPU time in software interrupts; absent if it is not known to within `_RESOLVED_SHARE`."""
    busy_s = sum(each.ticks_s for each in uses.values())
    resolved = busy_s * _RESOLVED_SHARE >= RESOLUTION_S * len(uses)
    share = sum(each.softirq_s for each in uses.values()) / busy_s if resolved else -1.0
    if 0 <= share <= 1:
        yield Measurement(Metric(SOFTIRQ_SHARE, "%", "lower"), 100 * share)
