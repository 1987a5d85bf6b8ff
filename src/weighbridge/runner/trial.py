"""One trial: start the server, wait until it listens, warm up, measure, collect, tear down. The one copy of it."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from weighbridge.errors import EnvironmentLost
from weighbridge.linux.process import OUTPUT_LIMIT
from weighbridge.meters import host
from weighbridge.meters.scopes import host_place
from weighbridge.model.command import Command, Completed, Running, port_in_use
from weighbridge.model.flag import Flag
from weighbridge.model.measurement import (
    DeadlineExceeded,
    Measurement,
    Outcome,
    ProgramFailed,
    ServerDied,
    ServerNotReady,
    TrialFailure,
    Unparseable,
)
from weighbridge.model.plugin import Workload
from weighbridge.model.site import HERE, Site
from weighbridge.model.trial import RoleRecord, Trial, TrialRecord
from weighbridge.runner import programs
from weighbridge.runner.bottleneck import Seen, Setting, Watch, bottleneck
from weighbridge.runner.breaking import why_broke
from weighbridge.runner.costs import derived, usage, work_of
from weighbridge.runner.machine_use import all_who_worked
from weighbridge.runner.metering import Metering
from weighbridge.runner.missing import missing
from weighbridge.runner.result import Result, plugin_faults
from weighbridge.runner.stage import Stage

READY_S = 20.0
"""How long a server may take to listen."""
AFTER_SERVER_S = 2.0
"""How long a client may go on once its server has died."""
_TOO_MUCH = f"{{}} printed more than {OUTPUT_LIMIT >> 20} MiB, which is the limit"
_POLL_S = 0.002
_WATCH_S = 0.25


@dataclass(slots=True)
class _Course:
    """What has happened so far in a trial."""

    completed: dict[str, Completed]
    metering: Metering
    server: Running | None = None
    measured_s: float = 0.0
    busy_s: float | None = None
    watch: Watch = field(default_factory=Watch)
    measured_use: dict[str, Mapping[str, float]] = field(default_factory=dict)
    """What each site used while the measured process ran: not the warm-up, nor the start of the server."""


def run_trial(trial: Trial, workload: Workload, options: Any, stage: Stage) -> TrialRecord:
    """Run one trial to its end, whatever that is. Only an interruption is raised; the sites stay open."""
    started_at, start = time.time(), time.monotonic()
    course = _Course({}, Metering(stage.meters, stage.sites, stage.hosts, start))
    outcome, message, measurements = Outcome.OK, "", tuple[Measurement, ...]()
    histograms: Mapping[str, str] = {}
    told = tuple[Flag, ...]()
    before = _meters(stage)
    try:
        _prepare(workload, options, stage)
        course.metering.begin()
        _measure(workload, options, stage, course)
        course.metering.end()
        _stop_server(course)
        with plugin_faults(workload, Unparseable):
            found = Result.read(workload, options, course.completed)
        course.busy_s, histograms = found.busy_s, found.histograms
        measurements = (*found.parsed, *_further(workload, found, course, stage))  # the headline stays the first
        told = (*found.flags, _limit(workload, options, found, course, stage))
    except TrialFailure as failure:
        outcome, message = failure.outcome, str(failure)
        server = course.completed.get("server")
        if (
            workload.load
            and not (server and server.too_much)
            and (why := why_broke(failure, server, _kills(stage, before)))
        ):
            outcome, message = Outcome.BROKE, why.format(message)
    except EnvironmentLost as lost:
        outcome, message = Outcome.ENVIRONMENT_LOST, str(lost)
    finally:
        _stop_server(course, quietly=True)
    course.metering.end()  # of a trial that failed
    wall, threads = time.monotonic() - start, workload.generator_threads(options)
    after = dict(_meters(stage))
    used = {name: host.used(readings, after[name]) for name, readings in before}
    return TrialRecord(
        trial=trial,
        outcome=outcome,
        started_at=started_at,
        duration_s=wall,
        measured_s=course.measured_s,
        message=message,
        measurements=measurements,
        roles=tuple(_record(role, completed) for role, completed in course.completed.items()),
        samples=(
            *((site, name, value) for site, readings in used.items() for name, value in readings.items()),
            *course.metering.samples,
            *programs.samples(course.completed),
        ),
        flags=(*_flags(used, wall, course, stage, threads), *course.metering.flags, *told),
        series=tuple(course.metering.series),
        histograms=histograms,
    )


def _prepare(workload: Workload, options: Any, stage: Stage) -> None:
    """Make what the server starts from, and what it reads."""
    if len(workload.roles) < 2:
        return
    site, at = stage.sites["server"], stage.endpoint
    with plugin_faults(workload, ProgramFailed):
        command, restore = workload.prepare(options, at), workload.restore(options, at)
        files = dict(workload.files(options, at))
    if command is not None and command.argv not in stage.prepared:
        _make_data(site, command, "prepared")
        stage.prepared.add(command.argv)
    if restore is not None:
        _make_data(site, restore, "restored")
    for path, data in files.items():
        site.put(path, data)


def _make_data(site: Site, command: Command, what: str) -> None:
    completed = site.run(command)
    if completed.returncode != 0:
        why = "did not end in time" if completed.timed_out else missing(completed) or completed.last_words
        raise ServerNotReady(f"the server's data cannot be {what}: {why}")


def _kills(stage: Stage, before: list[tuple[str, Mapping[str, float]]]) -> float:
    """How often the kernel has killed for the memory limit of the server's site since then."""
    now = stage.sites["server"].meters().get("oom_kills", 0.0)
    return now - dict(before).get("server", {}).get("oom_kills", now)


def _further(workload: Workload, found: Result, course: _Course, stage: Stage) -> tuple[Measurement, ...]:
    """What the trial cost in resources."""
    series, seconds = course.metering.series, found.work_s or course.measured_s
    work = found.work or work_of(found.parsed, seconds)
    sites_s = sum(each.get("cpu_s", 0.0) for each in course.measured_use.values())
    everybody = all_who_worked(course.metering.machines, stage.idle, course.metering.own_cpu_s, work, sites_s)
    host_name = stage.hosts.get("server") or next(iter(stage.hosts.values()), "")
    whole = usage(series, host_place(host_name), course.metering.measured)
    return (*everybody, *derived(course.measured_use, series, work), *whole)


def _limit(workload: Workload, options: Any, found: Result, course: _Course, stage: Stage) -> Flag:
    """What limited the trial."""
    sending_s = found.sending_s or course.measured_s
    machines, watch = course.metering.machines, course.watch
    stolen = machines.stolen if machines and not stage.polled else 0.0
    had_s = (course.busy_s or course.measured_s) * (1 - min(0.9, stolen))
    seen = Seen(course.measured_use, had_s, watch.cables(sending_s), watch.waited_s)
    shared = min((machine.cpus for machine in stage.machines.values() if stage.shares(machine)), default=None)
    threads, apart = workload.generator_threads(options), len(stage.machines) > 1
    setting = Setting(stage.inside, stage.cpus, shared, threads, apart)
    return bottleneck(seen, setting, found.asked_rate, found.parsed)


def _measure(workload: Workload, options: Any, stage: Stage, course: _Course) -> None:
    measured, at = workload.roles[-1], stage.endpoint
    with plugin_faults(workload, ProgramFailed):
        served = workload.command("server", options, at) if len(workload.roles) > 1 else None
        warm_up, command = workload.warm_up(options, at), workload.command(measured, options, at)
    if served is not None:
        course.server = _serve(served, stage.sites["server"], course)
    site = stage.sites[measured]
    if warm_up is not None:
        completed = _watched(site.start(warm_up), warm_up, course, "warm-up")
        if completed.returncode != 0:
            raise _of_the_warm_up(workload, options, course, completed)
    course.watch = Watch(stage.links, [machine.read for machine in stage.machines.values()])
    course.watch.begin()
    if course.server is not None:  # what a program without a counterpart costs, its own site tells
        course.metering.watch({name: machine.read for name, machine in stage.machines.items()}, stage.idle)
    before, begun = {role: each.meters() for role, each in stage.sites.items()}, time.monotonic()

    def ended() -> None:
        course.metering.watched()
        course.watch.end()
        course.measured_use = {role: host.used(before[role], each.meters()) for role, each in stage.sites.items()}

    completed = _watched(site.start(command), command, course, measured, ended)
    course.metering.window(begun, completed.duration_s)
    course.measured_s = completed.duration_s


def _of_the_warm_up(workload: Workload, options: Any, course: _Course, completed: Completed) -> TrialFailure:
    """Why a warm-up failed: where a load may break the server, the workload reads that from its output."""
    if workload.load:
        _stop_server(course)
        try:
            workload.parse(options, {**course.completed, workload.roles[-1]: completed})
        except Unparseable:
            pass
        except TrialFailure as failure:
            failure.args = (f"in the warm-up, {failure}",)  # it stays what it is: of a killed server, too
            return failure
    return ProgramFailed(f"the warm-up failed with exit code {completed.returncode}: {completed.last_words}")


def _serve(command: Command, site: Site, course: _Course) -> Running:
    """A server that listens; ServerNotReady says why there is none."""
    for transport, port in command.listens:
        if site.listening(((transport, port),)):
            raise ServerNotReady(port_in_use(transport, port))
    server = site.start(command)
    course.server = server
    deadline = time.monotonic() + READY_S
    while not site.listening(command.listens):
        if server.poll() is not None:
            course.completed["server"] = completed = server.stop()
            ended = f"{command.argv[0]} ended before it listened: {completed.last_words}"
            raise ServerNotReady(missing(completed) or ended)
        if time.monotonic() > deadline:
            raise ServerNotReady(f"{command.argv[0]} did not listen on {command.listens} within {READY_S:.0f} s")
        time.sleep(_POLL_S)
    return server


def _watched(
    running: Running, command: Command, course: _Course, role: str, ended: Callable[[], None] = lambda: None
) -> Completed:
    """Wait for a client, watching its deadline and the server; ``ended`` is called before its output comes."""
    deadline, server_died = time.monotonic() + command.deadline_s, False
    late = False
    try:
        while not running.wait(min(_WATCH_S, max(0.0, deadline - time.monotonic()))):
            if time.monotonic() >= deadline:
                late = True
                break
            if course.server is not None and not server_died and course.server.poll() is not None:
                server_died = True
                deadline = min(deadline, time.monotonic() + AFTER_SERVER_S)
        ended()
    finally:
        completed = course.completed[role] = running.stop(timed_out=late)
    if course.server is not None and (code := course.server.poll()) is not None:
        said = course.completed["server"] = course.server.stop()
        why = _TOO_MUCH.format(said.argv[0]) if said.too_much else said.last_words
        raise ServerDied(f"the server ended with code {code} while the {role} was at work: {why}")
    if late:
        raise DeadlineExceeded(f"{command.argv[0]} was still running at its deadline of {command.deadline_s:.0f} s")
    if completed.too_much:
        raise ProgramFailed(_TOO_MUCH.format(command.argv[0]))
    if sentence := missing(completed):
        raise ProgramFailed(sentence)
    return completed


def _stop_server(course: _Course, *, quietly: bool = False) -> None:
    if course.server is None:
        return
    server, course.server = course.server, None
    try:
        completed = course.completed["server"] = server.stop()
    except EnvironmentLost:
        if not quietly:
            raise
        return
    if completed.too_much and not quietly:
        raise ProgramFailed(_TOO_MUCH.format(completed.argv[0]))


def _meters(stage: Stage) -> list[tuple[str, Mapping[str, float]]]:
    """Counters of each machine and of each site."""
    machines = [(name, host.read(file=machine.read)) for name, machine in stage.machines.items()]
    return [*machines, *((role, site.meters()) for role, site in stage.sites.items())]


def _flags(
    used: Mapping[str, Mapping[str, float]], wall_s: float, course: _Course, stage: Stage, threads: int
) -> tuple[Flag, ...]:
    found: list[Flag] = []
    for name, machine in stage.machines.items():
        flags = host.host_flags(used[name], [used[role] for role in machine.roles], wall_s, machine.cpus)
        if stage.shares(machine):
            flags += host.shared_flags(course.measured_use, course.busy_s or course.measured_s, machine.cpus)
        found += flags if name == HERE else [replace(flag, where=name) for flag in flags]
    for role, use in course.measured_use.items():
        busy_s = course.busy_s if role == "client" and course.busy_s else course.measured_s
        found += host.site_flags(role, use, busy_s, min(threads, stage.cpus.get(role, threads)))
    return tuple(found)


def _record(role: str, completed: Completed) -> RoleRecord:
    return RoleRecord(
        role, completed.argv, completed.returncode, completed.duration_s, completed.stdout, completed.stderr
    )
