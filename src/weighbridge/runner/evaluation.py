"""What a trial that was measured tells: its output, what its work cost, what limited it, what flags it has."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from weighbridge.meters import host
from weighbridge.meters.scopes import host_place
from weighbridge.model.command import Completed
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.host import HERE
from weighbridge.model.measurement import Measurement, TrialFailure, Unparseable
from weighbridge.model.trial import TrialResult
from weighbridge.model.workload import Workload
from weighbridge.runner.bottleneck import Seen, Setting, bottleneck
from weighbridge.runner.costs import derived, usage, work_of
from weighbridge.runner.machine_use import all_who_worked
from weighbridge.runner.stage import Stage
from weighbridge.runner.trial_state import TrialState

CLOCKS_APART = 0.01
"""Share of a program's time by which the clocks of its site and of this machine may differ."""
WAY_S = 0.05
"""What asking for a program and hearing of its end may take: the way into a guest and back takes 20 ms."""
PERIOD_S = 0.1
"""For how long the CPU limit may hold back the launcher, which starts the program, in its site."""


@contextmanager
def plugin_faults(workload: Workload, outcome: type[TrialFailure]) -> Iterator[None]:
    """Turn a fault of a plug-in into a failed trial, whose output is kept. One of the runner's own is not caught."""
    try:
        yield
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as fault:
        raise outcome(f"{workload.kind} failed with {type(fault).__name__}: {fault}") from fault


def read_result(workload: Workload, options: Any, completed: Mapping[str, Completed]) -> TrialResult:
    """What the outputs say, as the plug-in reads them. Raises TrialFailure."""
    with plugin_faults(workload, Unparseable):
        result = workload.parse(options, completed)
        if not isinstance(result, TrialResult):
            raise TypeError(f"parse gave a {type(result).__name__}, not a TrialResult")
    return result


def measure_costs(result: TrialResult, state: TrialState, stage: Stage) -> tuple[Measurement, ...]:
    """What the trial cost in resources.

    Of a site that its host's kernel does not count, CPU time is its own programs' alone, without what works for it
    there: no cost is made of it. Nor is one made of whole machines then.
    """
    metering = state.metering
    work = result.work or work_of(result.measurements, state.times.work_s)
    sites_s = sum(each.get("cpu_s", 0.0) for each in state.measured_use.values())
    everybody = all_who_worked(metering.machines, stage.idle, metering.own_cpu_s, work, sites_s)
    host_name = stage.hosts.get("server") or next(iter(stage.hosts.values()), "")
    whole = usage(metering.series, host_place(host_name), metering.measured) if stage.counted else ()
    apart = {role for role, site in stage.sites.items() if not site.counted}
    counted = {role: use for role, use in state.measured_use.items() if role not in apart}
    return (*everybody, *derived(counted, metering.series, work), *whole)


def find_limit(result: TrialResult, asked: Measurement | None, state: TrialState, stage: Stage) -> Flag:
    """What limited the trial; ``asked``: the rate that the program was told to keep."""
    machines, watch = state.metering.machines, state.watch
    stolen = machines.stolen if machines and not stage.polled else 0.0
    had_s = state.times.active_s * (1 - min(0.9, stolen))
    seen = Seen(state.measured_use, had_s, watch.cables(state.times.sending_s), watch.waited_s)
    shared = min((machine.cpus for machine in stage.machines.values() if stage.shares(machine)), default=None)
    setting = Setting(stage.inside, stage.cpus, shared, state.threads, apart=len(stage.machines) > 1)
    return bottleneck(seen, setting, asked, result.measurements)


def flag_use(
    used: Mapping[str, Mapping[str, float]], wall_s: float, state: TrialState, stage: Stage
) -> tuple[Flag, ...]:
    """What a reader has to know of how machines and sites were used; ``used``: in the whole trial, by place."""
    found: list[Flag] = []
    for name, machine in stage.watched.items():
        ours = [used[place] for place in (*machine.roles, *machine.hypervisors)]
        flags = host.host_flags(used[name], ours, wall_s, machine.cpus)
        left_out = {FlagCode.OTHER_WORK} if state.opens else set()
        if not all(stage.sites[role].counted for role in machine.roles):  # what was taken may be what they used
            left_out = {FlagCode.OTHER_WORK, FlagCode.STEAL}
        flags = [flag for flag in flags if flag.code not in left_out]
        if stage.shares(machine):
            flags += host.shared_flags(state.measured_use, state.times.active_s, machine.cpus)
        found += flags if name == HERE else [replace(flag, where=name) for flag in flags]
    for role, use in state.measured_use.items():
        active_s = state.times.active_s if role == "client" else state.measured_s
        found += host.site_flags(role, use, active_s, min(state.threads, stage.cpus.get(role, state.threads)))
    return tuple(found)


def flag_clocks(role: str, state: TrialState) -> tuple[Flag, ...]:
    """Tell of a program that took another time by its site's clock than by this machine's.

    A guest's clock may stand still or run slow while its hypervisor has no CPU. A container has this machine's clock:
    there it tells that we heard late of the program's end (of 360 trials on a quiet machine none, the latest 0.8 ms).
    """
    completed = state.completed.get(role)
    if completed is None or completed.outside_s is None:
        return ()
    site_s, here_s = completed.duration_s, completed.outside_s
    held_s = min(PERIOD_S, state.measured_use.get(role, {}).get("throttled_s", 0.0))
    apart_s = abs(here_s - site_s)
    if apart_s - WAY_S - held_s <= CLOCKS_APART * here_s:
        return ()
    return (Flag(FlagCode.CLOCKS, role, {"share": apart_s / here_s, "site_s": site_s, "here_s": here_s}),)
