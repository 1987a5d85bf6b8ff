"""Evaluates a trial that was measured: its costs, its limit and its flags."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from weighbridge.meters import host
from weighbridge.meters.scopes import host_place
from weighbridge.model.command import Completed
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.host import HERE
from weighbridge.model.measurement import Measurement
from weighbridge.model.trial import Times, TrialResult
from weighbridge.runner.bottleneck import RoleCpus, TrialUsage, bottleneck
from weighbridge.runner.costs import all_who_worked, derived, events_cost, throttling, usage, work_of
from weighbridge.runner.programs import Programs
from weighbridge.runner.stage import Stage
from weighbridge.runner.window import Window

CLOCK_TOLERANCE = 0.01
"""The clocks of a site and of this machine can differ by this share of a program's time."""
ROUND_TRIP_S = 0.05
"""Starting a program and hearing of its end can take this long; a round trip into a guest takes 20 ms."""
PERIOD_S = 0.1
"""The CPU limit can throttle the launcher in its site for this long while it starts the program."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The results of a trial: its measurements, the headline first, with histograms and flags."""

    measurements: tuple[Measurement, ...] = ()
    histograms: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[Flag, ...] = ()


def evaluate(result: TrialResult, programs: Programs, window: Window) -> Evaluation:
    """Return the measurements, histograms and flags of a trial that gave a result."""
    measured, times = programs.stage.measured, times_of(programs, window)
    costs = () if times is None else measure_costs(result, times, programs.stage, window)
    limit = Flag(FlagCode.NO_BOTTLENECK) if times is None else find_limit(result, times, programs, window)
    throttled_s = window.used_by_roles.get(measured, {}).get("throttled_s", 0.0)
    round_trip_s = programs.stage.sites[measured].round_trip_s
    clocks = flag_clocks(measured, programs.completed[measured], throttled_s, round_trip_s)
    broken = (
        Flag(FlagCode.CONNECTION_BROKE, role, {"seconds": program.disconnected_s})
        for role in programs.stage.sites
        if (program := programs.completed.get(role)) is not None and program.disconnected_s
    )
    flags = (*result.flags, limit, *clocks, *broken)
    return Evaluation((*result.measurements, *costs), result.histograms, flags)


def times_of(programs: Programs, window: Window) -> Times | None:
    """Return how long each activity took, by default as long as the measured process; None if it was not measured."""
    ran_s, result = window.measured_s, programs.result
    if ran_s is None:
        return None
    return Times(ran_s, ran_s, ran_s, ran_s) if result is None else result.times(programs.options, ran_s)


def measure_costs(result: TrialResult, times: Times, stage: Stage, window: Window) -> tuple[Measurement, ...]:
    """Return a trial's resource use, without CPU costs of sites that their host's kernel does not count."""
    used = window.used_by_roles
    work = result.work or work_of(result.measurements, times.work_s)
    sites_s = sum(each.get("cpu_s", 0.0) for each in used.values())
    everybody = all_who_worked(window.machine_use, stage.idle, window.meters_s, work, sites_s)
    host_name = stage.hosts.get("server") or next(iter(stage.hosts.values()), "")
    host_usage = usage(window.series, host_place(host_name), window.ran) if stage.counted else ()
    uncounted = {role for role, site in stage.sites.items() if not site.counted}
    counted = {role: each for role, each in used.items() if role not in uncounted}
    held_back = throttling(used, times.ran_s) if stage.own_cpu_limits else ()
    events = events_cost(window.events, work, times.ran_s)
    return (*everybody, *derived(counted, window.series, work), *held_back, *events, *host_usage)


def find_limit(result: TrialResult, times: Times, programs: Programs, window: Window) -> Flag:
    """Return what limited the trial."""
    stage, machines = programs.stage, window.machine_use
    stolen = machines.stolen if machines and not stage.polled else 0.0
    had_s = times.active_s * (1 - min(0.9, stolen))
    trial_usage = TrialUsage(window.used_by_roles, had_s, window.cables(times.sending_s), window.waited_s)
    shared = min((machine.cpus for machine in stage.machines.values() if stage.shares(machine)), default=None)
    inside = frozenset(role for role in stage.sites if stage.part(role).inside)
    cpus: dict[str, int] = {role: part.cpus for role, part in stage.parts.items() if part.cpus is not None}
    role_cpus = RoleCpus(inside, cpus, shared, programs.threads, separate_machines=len(stage.working) > 1)
    return bottleneck(trial_usage, role_cpus, programs.asked_rate, result.measurements)


def flag_use(programs: Programs, window: Window) -> tuple[Flag, ...]:
    """Return flags about the use of machines and sites; those about the measured time only if it was measured."""
    flags: list[Flag] = []
    stage, times, threads = programs.stage, times_of(programs, window), programs.threads
    used, used_by_roles = window.used, window.used_by_roles
    for name, machine in stage.machines.items():
        ours = [used.get(place, {}) for place in (*machine.roles, *machine.hypervisors)]
        left_out = {FlagCode.OTHER_WORK} if programs.opens else set()
        if not all(stage.sites[role].counted for role in machine.roles):  # this can be the time that they used
            left_out = {FlagCode.OTHER_WORK, FlagCode.STEAL}
        disturbances = host.host_flags(used.get(name, {}), ours, window.lasted_s, machine.cpus)
        of_machine = [flag for flag in disturbances if flag.code not in left_out]
        if stage.shares(machine) and times is not None:
            of_machine += host.shared_flags(used_by_roles, times.active_s, machine.cpus)
        flags += of_machine if name == HERE else [replace(flag, where=name) for flag in of_machine]
    if times is not None:
        for role in stage.sites:
            busy_s = times.active_s if role == "client" else times.ran_s
            most = min(threads, stage.part(role).cpus or threads)
            flags += host.site_flags(role, used_by_roles[role], busy_s, most) if role in used_by_roles else ()
    return tuple(flags)


def flag_clocks(
    role: str, completed: Completed | None, throttled_s: float, round_trip_s: float = 0.0
) -> tuple[Flag, ...]:
    """Return a flag if a program's time differs between its site's clock and this machine's clock.

    A guest's clock can stop or run slow while its hypervisor has no CPU. A container has this machine's clock, so a
    difference means that the program's end was reported late: in none of 360 trials on a quiet machine, and by 0.8 ms
    at most.

    ``throttled_s`` is how long the CPU limit throttled the site, ``round_trip_s`` the measured `Site.round_trip_s`. A
    program whose site was disconnected has no such flag.
    """
    if completed is None or completed.outside_s is None or completed.disconnected_s:
        return ()
    site_s, here_s = completed.duration_s, completed.outside_s
    difference_s = abs(here_s - site_s)
    if difference_s - ROUND_TRIP_S - round_trip_s - min(PERIOD_S, throttled_s) <= CLOCK_TOLERANCE * here_s:
        return ()
    return (Flag(FlagCode.CLOCKS, role, {"share": difference_s / here_s, "site_s": site_s, "here_s": here_s}),)
