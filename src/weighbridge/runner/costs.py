"""What a trial's work cost in CPU time and memory: further measurements, from the meters. Pure.

CPU seconds are those that a role's site used while the measured process ran; the work is the trial's rate times
the same time, so that starting and ending count on both sides. A trial with several rates of one unit (tests one
after another, two directions) has no such cost: what they share of the CPU time is not known.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
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
"""Gigabits in one of each unit of throughput."""
THOUSANDS = {"1/s": 1e-3}
_UNITS: tuple[tuple[dict[str, float], Literal["gbit", "1000_transactions"]], ...] = (
    (GBIT, "gbit"), (THOUSANDS, "1000_transactions"),
)  # fmt: skip
ROLES: tuple[Role, ...] = ("client", "server")
_MIB = 2**20
PER = {"gbit": "Gbit", "1000_transactions": "1000", "1000_objects": "1000"}
"""What stands below the line of a unit."""
STOLEN = 0.01
"""Share of the CPU time that a hypervisor may take before that of all who worked cannot be told."""
CLOCKS_DIFFER = 0.06
"""Share of its own CPU time by which the sites' can exceed that of all.

The scheduler charges a task from the moment at which it is woken, while the idle clock runs until the CPU has left
its idle state: both count the way out of it. Seen to be 4 % where a server is woken 14 000 times a second.
"""
_SHARE_TOLD = 0.05
"""How far the counters' steps may put a share off, at most, for it to be told."""


def derived(
    used: Mapping[str, Mapping[str, float]], series: Sequence[Series], work: Work | None
) -> tuple[Measurement, ...]:
    """Give the CPU seconds per unit of work and the memory beyond the baseline, for client and server.

    ``used``: what each role's site used while the measured process ran (`weighbridge.meters.host.used`). ``work``:
    all that was done meanwhile. Absent where it could not be read, where nothing was done, or for a workload without
    a counterpart.
    """
    return (*(_cpu(work, used) if work else ()), *_memory(series))


def throttling(used: Mapping[str, Mapping[str, float]], measured_s: float) -> tuple[Measurement, ...]:
    """Give how CPU limits held back the site that they held back longest, while the measured process ran.

    Its share of that time, of all its CPUs together, and in how many periods. Absent where no group tells it.
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
    """Return the metrics of the kernel's counters in a trial (`weighbridge.runner.window.Window.events`).

    Counts are per unit of work. If the work is not known, some are per trial (`EventCounter.per_trial`).
    """
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
    """The work of a program that kept its one rate as long as it ran; None where that is not known."""
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
    """Give what a whole host used, as sar says it: the host of the server, or the only one.

    ``cpu_usage``: 100 - %idle over all its CPUs in the ``measured`` time (seconds of the trial, from and to).
    ``memory_usage``: the largest committed memory (kbcommit) beyond the first reading's, in MiB.
    A testbed host shares CPUs and memory with its machine, and so shows the whole machine's.
    """
    mine = {each.name: each for each in series if each.place == host}
    measurements: list[Measurement] = []
    kinds = {name: each for name, each in mine.items() if name.startswith("cpu_") and name.endswith("_share")}
    if "cpu_idle_share" in kinds:
        total: dict[float, float] = {}
        for each in kinds.values():
            for at, value in zip(each.at_s, each.values, strict=True):
                total[at] = total.get(at, 0.0) + value
        idle = dict(zip(kinds["cpu_idle_share"].at_s, kinds["cpu_idle_share"].values, strict=True))
        start_s, end_s = measured or (0.0, math.inf)
        busy = lasted = 0.0
        for earlier, at in zip([start_s, *idle], idle, strict=False):  # each counts as long as it lasted
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


# -- whole machines ----------------------------------------------------------------------------------


def all_who_worked(
    use: MachineUse | None, idle: Mapping[str, Idle], not_work_s: float, work: Work | None, sites_s: float = 0.0
) -> tuple[Measurement, ...]:
    """Give CPU seconds and context switches beyond idle per unit of work, TCP's segments, softirq's share.

    ``not_work_s``: CPU seconds of meters. A figure is absent, and never zero,
    where a machine has no reading or no idle level, or where the CPU time is below what the counters can tell. So is
    the CPU time of all where a hypervisor took more than `STOLEN` (its time and idle time overlap), or where it is
    less than ``sites_s``, what the sites used alone, by more than `CLOCKS_DIFFER` and what a look at the idle machine
    cannot tell: then others gave way to the trial.
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
    beyond_s, switches = _beyond_s(use, idle), _switches(use, idle)
    idle_unsure_s = sum(RESOLUTION_S / FIRST_S * each.seconds for each in use.uses.values())
    least_s = max(RESOLUTION_S * len(use.uses), sites_s * (1 - CLOCKS_DIFFER) - RESOLUTION_S - idle_unsure_s)
    if beyond_s is not None and beyond_s - not_work_s > least_s and use.stolen <= STOLEN:
        amounts["cpu_all"] = "s", beyond_s - not_work_s
    if switches is not None and switches > 0:
        amounts["context_switches"] = "1", switches
    if use.segments.get("sent_segments", 0.0) > 0 and use.segments["resent_segments"] >= 0:
        amounts["tcp_retransmits"] = "1", use.segments["resent_segments"]
        amounts["tcp_segments"] = "1", use.segments["sent_segments"]
    for name, (unit, amount) in amounts.items():
        if math.isfinite(each := amount / work.amount):
            yield Measurement(Metric(f"{name}_per_{work.unit}", f"{unit}/{PER[work.unit]}", "lower"), each)


def _beyond_s(use: MachineUse, idle: Mapping[str, Idle]) -> float | None:
    """CPU seconds of all machines beyond idle, without this process's; None where one is not known."""
    if not use.complete or not use.uses.keys() <= idle.keys():
        return None
    own_s = use.tool_s if HERE in use.uses else 0.0
    return sum(each.busy_s - idle[name].busy_cpus * each.seconds for name, each in use.uses.items()) - own_s


def _switches(use: MachineUse, idle: Mapping[str, Idle]) -> float | None:
    """Context switches of all machines beyond idle; None where they are not known."""
    if not use.complete or not use.uses.keys() <= idle.keys():
        return None
    return sum(each.context_switches - idle[name].switches_per_s * each.seconds for name, each in use.uses.items())


def _softirq(uses: Mapping[str, Use]) -> Iterator[Measurement]:
    """Of all CPU time, the share that the kernel spent in software interrupts: most of its network stack.

    Both by the ticks of /proc/stat; absent where these are too few to tell the share to `_SHARE_TOLD`.
    """
    busy_s = sum(each.ticks_s for each in uses.values())
    resolved = busy_s * _SHARE_TOLD >= RESOLUTION_S * len(uses)
    share = sum(each.softirq_s for each in uses.values()) / busy_s if resolved else -1.0
    if 0 <= share <= 1:
        yield Measurement(Metric(SOFTIRQ_SHARE, "%", "lower"), 100 * share)
