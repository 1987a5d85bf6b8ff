"""One trial: start the server, wait until it listens, warm up, measure, check, collect, tear down. The one copy."""

import time
from collections.abc import Mapping
from typing import Any

from weighbridge.errors import EnvironmentLost
from weighbridge.meters import host
from weighbridge.model.command import Completed
from weighbridge.model.flag import Flag
from weighbridge.model.measurement import Measurement, Outcome, ProgramFailed, TrialFailure, Unparseable
from weighbridge.model.trial import RoleRecord, Trial, TrialRecord, TrialResult
from weighbridge.model.workload import Workload
from weighbridge.runner import programs
from weighbridge.runner.bottleneck import Watch
from weighbridge.runner.evaluation import find_limit, flag_clocks, flag_use, measure_costs, plugin_faults, read_result
from weighbridge.runner.metering import Metering
from weighbridge.runner.openings import open_sites
from weighbridge.runner.overload import why_broke
from weighbridge.runner.several_sites import add_up, per_site, place, read_all, start_in_all
from weighbridge.runner.stage import Stage
from weighbridge.runner.trial_programs import check, prepare, serve, stop_server, watch
from weighbridge.runner.trial_state import TrialState
from weighbridge.store.rows import WARM_UP


def run_trial(trial: Trial, workload: Workload, options: Any, stage: Stage) -> TrialRecord:
    """Run one trial to its end, whatever that is. Only an interruption is raised; the sites stay open."""
    started_at, start = time.time(), time.monotonic()
    state = TrialState(Metering(stage.meters, stage.sites, stage.hosts, start))
    outcome, message, measurements = Outcome.OK, "", tuple[Measurement, ...]()
    histograms: Mapping[str, str] = {}
    told = tuple[Flag, ...]()
    before = _meters(stage)
    guests: Mapping[str, Mapping[str, float]] = {}
    try:
        guests = _guest_meters(stage)
        prepare(workload, options, stage, state)
        stage.hold_back()
        state.metering.begin()
        _measure(workload, options, stage, state)
        state.metering.end()
        check(workload, options, stage, state)
        stop_server(state)
        result = _read(workload, options, stage, state)
        state.times = result.times(options, state.measured_s)
        with plugin_faults(workload, Unparseable):
            asked = workload.asked_rate(options)
        costs = measure_costs(result, state, stage)
        clocks = flag_clocks(workload.roles(options)[-1], state)
        told = (*result.flags, find_limit(result, asked, state, stage), *clocks)
        measurements, histograms = (*result.measurements, *costs), result.histograms  # the headline stays the first
    except TrialFailure as failure:
        outcome, message = failure.outcome, str(failure)
        if state.load and (why := _why_broke(failure, state, stage, before)):
            outcome, message = Outcome.BROKE, why.format(message)
    except EnvironmentLost as lost:
        outcome, message = Outcome.ENVIRONMENT_LOST, str(lost)
    finally:
        stop_server(state, quietly=True)
    state.metering.end()  # of a trial that failed
    wall = time.monotonic() - start
    by_guests = {} if outcome is Outcome.ENVIRONMENT_LOST else _guest_meters(stage, quietly=True)
    after = dict(_meters(stage))
    used = {name: host.used(readings, after[name]) for name, readings in before}
    for role in guests.keys() & by_guests.keys():
        used[role] |= host.used(guests[role], by_guests[role])
    return TrialRecord(
        trial=trial,
        outcome=outcome,
        started_at=started_at,
        duration_s=wall,
        measured_s=state.measured_s,
        measured_from_s=state.metering.measured[0] if state.metering.measured else None,
        message=message,
        measurements=measurements,
        roles=tuple(_record(role, completed) for role, completed in state.completed.items()),
        samples=(
            *((site, name, value) for site, readings in used.items() for name, value in readings.items()),
            *state.metering.samples,
            *programs.samples(state.completed),
        ),
        flags=(*flag_use(used, wall, state, stage), *state.metering.flags, *told),
        series=tuple(state.metering.series),
        histograms=histograms,
    )


def _measure(workload: Workload, options: Any, stage: Stage, state: TrialState) -> None:
    with plugin_faults(workload, ProgramFailed):
        roles, state.load = workload.roles(options), workload.load(options)
        state.threads = workload.generator_threads(options) * len(state.endpoints)
        measured, serves = roles[-1], "server" in roles
        served = workload.command("server", options, stage.endpoints["server"]) if serves else None
        opens = workload.openings(options)
        commands = [stage.started(measured, workload.command(measured, options, its)) for its in state.endpoints]
        warming = (workload.warm_up(options, its) for its in state.endpoints)
        warm_ups = [stage.started(measured, each) for each in warming if each is not None]
    if served is not None:
        serve(stage.started("server", served), stage.sites["server"], state)
    command = commands[0]
    site, sites = stage.sites[measured], stage.sites_of(measured)
    if warm_ups:
        running = start_in_all(sites, warm_ups) if stage.further else site.start(warm_ups[0])
        if watch(running, warm_ups[0], state, WARM_UP).returncode != 0:
            raise _warm_up_failure(workload, options, state, measured)
    state.watch = Watch(stage.links, [machine.read for machine in stage.machines.values()])
    state.watch.begin()
    if opens is not None and stage.open_site is not None:
        state.opens = True
        begun = time.monotonic()
        state.completed[measured] = completed = open_sites(
            opens, command, stage.open_site, site.memory, counted=site.counted
        )
        state.watch.end()
        state.metering.window(begun, completed.duration_s)
        state.measured(completed.duration_s)
        return
    if state.server is not None and stage.counted:  # what a program without a counterpart costs, its own site tells
        state.metering.watch({name: machine.read for name, machine in stage.machines.items()}, stage.idle)
    before, begun = stage.counters(), time.monotonic()

    def ended() -> None:
        state.metering.watched()
        state.watch.end()
        state.measured_use = {role: host.used(before[role], after) for role, after in stage.counters().items()}

    if stage.further:
        together = start_in_all(sites, commands)
        completed = watch(together, command, state, measured, ended)
        state.completed |= {place(measured, number): left for number, left in enumerate(together.left, 1)}
    else:
        completed = watch(site.start(command), command, state, measured, ended)
    state.metering.window(begun, completed.duration_s)
    state.measured(completed.duration_s)


def _warm_up_failure(workload: Workload, options: Any, state: TrialState, measured: str) -> TrialFailure:
    """Why a warm-up failed: where a load may break the server, the workload reads that from its output."""
    completed = state.completed[WARM_UP]
    if state.load:
        stop_server(state)
        try:
            read_result(workload, options, {**state.completed, measured: completed})
        except Unparseable:
            pass
        except TrialFailure as failure:
            failure.args = (f"in the warm-up, {failure}",)  # it stays what it is: of a killed server, too
            return failure
    return ProgramFailed(f"the warm-up failed with exit code {completed.returncode}: {completed.last_words}")


def _read(workload: Workload, options: Any, stage: Stage, state: TrialState) -> TrialResult:
    """What the outputs say; of several sites the sum, and each one's own as samples."""
    if not stage.further:
        return read_result(workload, options, state.completed)
    results = read_all(workload, options, stage.measured, state.completed)
    state.metering.samples += per_site(results)
    timed = getattr(options, "duration", None) is not None
    lasted = [state.completed[place(stage.measured, number)].duration_s for number in range(1, len(results) + 1)]
    worked = [result.work_s or whole for result, whole in zip(results, lasted, strict=True)]
    return add_up(results, [] if timed else worked)


Readings = list[tuple[str, Mapping[str, float]]]


def _why_broke(failure: TrialFailure, state: TrialState, stage: Stage, before: Readings) -> str:
    """What is said of a failure under a load that is the load's; empty where it is not."""
    server = state.completed.get("server")
    return "" if server and server.too_much else why_broke(failure, server, _kills(stage, before))


def _kills(stage: Stage, before: Readings) -> float:
    """How often the kernel has killed for the memory limit of the server's site since then."""
    now = stage.sites["server"].meters().get("oom_kills", 0.0)
    return now - dict(before).get("server", {}).get("oom_kills", now)


def _meters(stage: Stage) -> Readings:
    """Counters of each machine, of the hypervisors on it that are ours, and of each site."""
    machines = [(name, host.read(file=machine.read)) for name, machine in stage.watched.items()]
    groups = [each for machine in stage.watched.values() for each in machine.hypervisors.items()]
    hypervisors = [(place, group.meters()) for place, group in groups]
    return [*machines, *hypervisors, *stage.counters().items()]


def _guest_meters(stage: Stage, *, quietly: bool = False) -> dict[str, Mapping[str, float]]:
    """Counters of CPU time as the kernels of guests see it. Raises EnvironmentLost, but not ``quietly``."""
    found: dict[str, Mapping[str, float]] = {}
    for role, site in stage.sites.items():
        try:
            found[role] = site.guest_meters()
        except OSError:  # they never fail a trial
            continue
        except EnvironmentLost:
            if not quietly:
                raise
    return found


def _record(role: str, completed: Completed) -> RoleRecord:
    return RoleRecord(
        role, completed.argv, completed.returncode, completed.duration_s, completed.stdout, completed.stderr
    )
