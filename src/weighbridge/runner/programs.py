"""Runs the programs of one trial: prepares data, starts the server, and waits for the client."""

import errno
import hashlib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal

from weighbridge.errors import EnvironmentLost
from weighbridge.facts.surroundings import room_of
from weighbridge.linux.probing import LAUNCHER
from weighbridge.linux.process import OUTPUT_LIMIT
from weighbridge.linux.process import run as run_here
from weighbridge.model.command import Command, Completed, Running, SiteProcess, port_in_use
from weighbridge.model.facts import SHARED
from weighbridge.model.host import Host
from weighbridge.model.measurement import (
    DeadlineExceeded,
    Measurement,
    ProgramFailed,
    ServerDied,
    ServerNotReady,
    TrialFailure,
    Unparseable,
)
from weighbridge.model.openings import Openings
from weighbridge.model.site import DATA, Site, SiteEntry
from weighbridge.model.study import Role
from weighbridge.model.trial import CHECK, PREPARATION, WARM_UP, RoleRecord, TrialResult
from weighbridge.model.workload import Endpoint, Workload
from weighbridge.runner.openings import open_sites
from weighbridge.runner.outputs import (
    add_up,
    ended_with,
    found_memory_full,
    missing,
    per_site,
    plugin_faults,
    read_result,
    why_unmeasured_failed,
)
from weighbridge.runner.stage import Finish, Stage
from weighbridge.runner.window import Window, WindowSample

READY_S = 20.0
"""How long a server can take to listen."""
AFTER_SERVER_S = 2.0
"""How long a client can continue after its server has died."""
_TOO_MUCH = (
    f"{{}} printed more than the limit of {OUTPUT_LIMIT >> 20} MiB: print less, or redirect the output to a file "
    "(in a shell: > /dev/null)"
)
_WATCH_S = 0.25
_SAID_S = 0.05
_LINE = 4096
_CHECKED = 2**20
"""The number of bytes of the output that a check gets: the launcher keeps them in memory during the check."""
_FOLDER_S = 10.0
_WRITE = "sync"
_DROP = "sync && echo 3 > /proc/sys/vm/drop_caches"
"""Dirty pages are not dropped (Documentation/admin-guide/sysctl/vm.rst), so they are written first."""
_DROP_S = 300.0


class Programs:
    """The programs of one trial, in the order in which `weighbridge.runner.trial.run_trial` starts them."""

    def __init__(self, workload: Workload, options: Any, stage: Stage) -> None:
        """Start nothing yet."""
        self.workload, self.options, self.stage = workload, options, stage
        self.completed: dict[str, Completed] = {}
        """The output of each role's program; a warm-up, a preparation and a check have names of their own."""
        self.server: Running | None = None
        self.load = ""
        """The option that is the workload's load, once its server is started; "" if it has none."""
        self.threads = 1
        """The number of threads of the measured process that can be busy at once."""
        self.result: TrialResult | None = None
        """The result that the outputs show, once they are read; the sum of several sites."""
        self.results: Sequence[TrialResult] = ()
        self.asked_rate: Measurement | None = None
        """The requested rate of the measured program, once its output is read."""
        self._endpoints: Sequence[Endpoint] = ()
        self._openings: Openings | None = None
        self._entry: SiteEntry | None = None
        """How the measured program starts others in its site, if it does that."""
        self._commands: Sequence[Command] = ()
        self._warm_ups: Sequence[Command] = ()

    @property
    def opens(self) -> bool:
        """Whether the trial's work happens outside of the stage's sites: it opens others, or an engine enters one."""
        return self._opens_sites or (self._on_host and self._entry is not None and self._entry.group is None)

    @property
    def _opens_sites(self) -> bool:
        return self._openings is not None and self.stage.open_site is not None

    def prepare(self) -> None:
        """Write each role's files, and prepare the data of the server, or of the only role. Raises TrialFailure."""
        workload, options, stage = self.workload, self.options, self.stage
        with plugin_faults(workload, ProgramFailed):
            writes, enters = workload.needs_data(options), workload.enters(options)
        self._endpoints = endpoints(stage.endpoints[stage.measured], stage.sites_of(stage.measured), keeps=writes)
        if enters:
            self._entry = entry = _entry_of(stage.sites[stage.measured])
            self._endpoints = [replace(its, entry=entry.words) for its in self._endpoints]
        with plugin_faults(workload, ProgramFailed):
            files = {role: dict(workload.files(role, options, at)) for role, at in stage.endpoints.items()}
            modes = {path: workload.file_mode(options, path) for each in files.values() for path in each}
            role: Role = "server" if "server" in stage.sites else "solo"
            keeps, cold = role in stage.sites, workload.cold(options)
        for each in stage.sites:
            for site in stage.sites_of(each):
                put_files(site, files[each], modes)
        files_digest = hashlib.sha256(
            repr(sorted(files.get(role, {}).items())).encode()
        ).hexdigest()  # for example its scripts
        keeping = zip(stage.sites_of(role), self._endpoints_of(role), strict=True) if keeps else ()
        for number, (site, its) in enumerate(keeping, 1):
            with plugin_faults(workload, ProgramFailed):
                command, restore = workload.prepare(options, its), workload.restore(options, its)
                finish = workload.finish(options, its)
            if finish is not None:  # even if the preparation is interrupted
                at_end = stage.started(role, finish)
                stage.at_end(Finish(place(role, number), site, at_end, files[role], modes, files_digest))
            if command is not None and (once := (site.name, files_digest, *command.argv)) not in stage.prepared:
                self.completed[place(PREPARATION, number)] = _run_before(
                    site, stage.started(role, command), "site", writes=writes
                )
                stage.prepared.add(once)
            if restore is not None:
                _run_before(site, stage.started(role, restore), "trial", writes=writes)
        if cold or writes or stage.data.written:
            self._settle_page_caches(empty=cold)

    def _endpoints_of(self, role: Role) -> Sequence[Endpoint]:
        return self._endpoints if role == self.stage.measured else [self.stage.endpoints[role]]

    def start_server(self) -> None:
        """Make every command, start the server, if there is one, and wait until it listens. Raises TrialFailure."""
        workload, options, stage, measured = self.workload, self.options, self.stage, self.stage.measured
        with plugin_faults(workload, ProgramFailed):
            roles, self.load = workload.roles(options), workload.load(options)
            self.threads = workload.generator_threads(options) * len(self._endpoints)
            served = workload.command("server", options, stage.endpoints["server"]) if "server" in roles else None
            self._openings = workload.openings(options)
            self._commands = [workload.command(measured, options, its) for its in self._endpoints]
            if self._entry is not None and not self._on_host:
                self._commands = [replace(each, argv=(LAUNCHER, *each.argv)) for each in self._commands]
            if not self._on_host:  # it would have the settings of an image there
                self._commands = [stage.started(measured, command) for command in self._commands]
            warming = (workload.warm_up(options, its) for its in self._endpoints)
            self._warm_ups = [stage.started(measured, each) for each in warming if each is not None]
        if served is not None:
            self.serve(stage.started("server", served), stage.sites["server"])

    def serve(self, command: Command, site: Site, ready_s: float | None = None) -> None:
        """Start the server and wait until it listens. Raises ServerNotReady with the reason if it does not."""
        for transport, port in command.listens:
            if site.listening(((transport, port),)):
                raise ServerNotReady(port_in_use(transport, port))
        self.server = server = site.start(command)
        ready_s = READY_S if ready_s is None else ready_s
        deadline = time.monotonic() + ready_s
        while not (site.listening(command.listens, _WATCH_S) and _has_said(command, server)):
            if server.poll() is not None:
                self.completed["server"] = completed = server.stop()
                ended = f"{command.argv[0]} exited before it {'was ready' if command.says else 'listened'}: "
                ended += completed.last_words
                if completed.returncode == 0:
                    ended += " (exit code 0: keep the server in the foreground)"
                raise ServerNotReady(missing(completed) or ended)
            if time.monotonic() > deadline:
                ports = " and ".join(f"{transport} port {port}" for transport, port in command.listens)
                condition = f" and print a line with /{command.says:.60}/" if command.says else ""
                raise ServerNotReady(f"{command.argv[0]} did not listen on {ports}{condition} within {ready_s:.0f} s")
            if command.says:
                time.sleep(_SAID_S)

    def warm_up(self) -> None:
        """Warm up the server and the client, if the workload does that. Raises TrialFailure."""
        if self._warm_ups and self._watch(self._start(self._warm_ups), self._warm_ups[0], WARM_UP).returncode != 0:
            raise self._warm_up_failure()

    def _warm_up_failure(self) -> TrialFailure:
        """Return why a warm-up failed. If a load can break the server, the workload reads why from the output."""
        completed = self.completed[WARM_UP]
        if self.load:
            self.stop_server()
            try:
                read_result(self.workload, self.options, {**self.completed, self.stage.measured: completed})
            except Unparseable:
                pass
            except TrialFailure as failure:
                failure.args = (f"during the warm-up, {failure}",)  # it keeps its type, for example ServerDied
                return failure
        return ProgramFailed(f"the warm-up failed with exit code {completed.returncode}: {completed.last_words}")

    def measure(self, window: Window) -> None:
        """Run the measured process in its sites, while the window reads the resource use. Raises TrialFailure."""
        measured, command = self.stage.measured, self._commands[0]
        window.begin_measured(served=self.server is not None, opens=self.opens)
        stage = self.stage
        if self._openings is not None and stage.open_site is not None:
            site = stage.sites[measured]
            completed = open_sites(
                self._openings,
                command,
                partial(stage.open_site, self._openings),
                site.memory,
                stage.start_s,
                counted=site.counted,
                empty_caches=partial(self._settle_page_caches, empty=True),
            )
            self.completed[measured] = completed
            window.end_measured()
        else:
            running = self._start(self._commands)
            completed = self._watch(running, command, measured, window.end_measured)
            if isinstance(running, Together):
                self.completed |= {place(measured, number): left for number, left in enumerate(running.left, 1)}
        window.note_measured(completed.duration_s)

    def _settle_page_caches(self, *, empty: bool) -> None:
        stage = self.stage
        sites = [*stage.sites.values(), *stage.further]
        settle_page_caches(sites, stage.data.servers, stage.data.written, empty=empty)

    @property
    def _on_host(self) -> bool:
        """Whether the measured program runs on the host of its site, and enters the site."""
        return self._entry is not None and bool(self._entry.words)

    def _start(self, commands: Sequence[Command]) -> Running:
        if self._entry is not None and self._on_host and self.stage.start_on_host is not None:
            return self.stage.start_on_host(commands[0], self._entry)
        sites = self.stage.sites_of(self.stage.measured)
        return start_in_all(sites, commands) if self.stage.further else sites[0].start(commands[0])

    def _watch(
        self, running: Running, command: Command, role: str, ended: Callable[[], None] = lambda: None
    ) -> Completed:
        """Wait for a client, watching its deadline and the server; ``ended`` is called before its output is read."""
        deadline, server_died = time.monotonic() + command.deadline_s, False
        late = False
        try:
            while not running.wait(min(_WATCH_S, max(0.0, deadline - time.monotonic()))):
                if time.monotonic() >= deadline:
                    late = True
                    break
                if self.server is not None and not server_died and self.server.poll() is not None:
                    server_died = True
                    deadline = min(deadline, time.monotonic() + AFTER_SERVER_S)
            ended()
        finally:
            completed = self.completed[role] = running.stop(timed_out=late)
        if self.server is not None and (code := self.server.poll()) is not None:
            server = self.completed["server"] = self.server.stop()
            why = _TOO_MUCH.format(server.argv[0]) if server.too_much else server.last_words
            raise ServerDied(f"the server exited with code {code} while the {role} was running: {why}")
        if late:
            raise DeadlineExceeded(f"{command.argv[0]} was still running at its deadline of {command.deadline_s:g} s")
        if completed.too_much:
            raise ProgramFailed(_TOO_MUCH.format(command.argv[0]))
        if sentence := missing(completed):
            raise ProgramFailed(sentence)
        return completed

    def check(self) -> None:
        """Run the workload's check in each measured site whose process ended with code 0. Raises ProgramFailed."""
        stage = self.stage
        for number, (site, its) in enumerate(zip(stage.sites_of(stage.measured), self._endpoints, strict=True), 1):
            measured = self.completed[place(stage.measured, number)]
            with plugin_faults(self.workload, ProgramFailed):
                command = self.workload.check(self.options, its)
            if command is None or measured.returncode != 0:
                continue
            completed = site.run(replace(stage.started(stage.measured, command), stdin=measured.stdout[:_CHECKED]))
            self.completed[place(CHECK, number)] = completed
            if completed.returncode != 0:
                raise ProgramFailed(f"the check failed: {why_unmeasured_failed(completed)}")

    def stop_server(self, *, quietly: bool = False) -> EnvironmentLost | None:
        """End the server, and keep its output. Raises ProgramFailed; EnvironmentLost is returned if ``quietly``."""
        if self.server is None:
            return None
        server, self.server = self.server, None
        try:
            completed = self.completed["server"] = server.stop()
        except EnvironmentLost as lost:
            if not quietly:
                raise
            return lost
        if completed.too_much and not quietly:
            raise ProgramFailed(_TOO_MUCH.format(completed.argv[0]))
        return None

    def read(self) -> TrialResult:
        """Return the result that the outputs show; the sum of several sites. Raises TrialFailure."""
        workload, options, measured = self.workload, self.options, self.stage.measured
        if self.stage.further:
            left = [self.completed[place(measured, number)] for number in range(1, len(self._endpoints) + 1)]
            self.results = [read_result(workload, options, {measured: each}) for each in left]
            timed = getattr(options, "duration", None) is not None
            worked = [result.work_s or each.duration_s for result, each in zip(self.results, left, strict=True)]
            self.result = add_up(self.results, [] if timed else worked)
        else:
            self.result = read_result(workload, options, self.completed)
            self.results = [self.result]
        with plugin_faults(workload, Unparseable):
            self.asked_rate = workload.asked_rate(options)
        return self.result

    def why_short_of_memory(self) -> str:
        """Return the size of /dev/shm as part of a message if it can be the cause; otherwise ""."""
        sites: Mapping[str, Site] = dict(self.stage.sites.items())
        for role, left in self.completed.items():
            if found_memory_full(left):
                with suppress(EnvironmentLost):
                    size = room_of(sites.get(role, sites[self.stage.measured]), SHARED) or "an unknown amount"
                    return f"; {SHARED} may be full: it holds {size} (shm_size)"
        return ""

    def records(self) -> Iterator[RoleRecord]:
        """Yield the output of each program, for the record of the trial."""
        for role, left in self.completed.items():
            yield RoleRecord(role, left.argv, left.returncode, left.duration_s, left.stdout, left.stderr)

    def samples(self) -> Iterator[WindowSample]:
        """Yield the resource use of each program, from its launcher, and the results of several sites."""
        if self.stage.further:
            yield from per_site(self.results)
        for role, left in self.completed.items():
            yield from _used_by(role, left)


def _entry_of(site: Site) -> SiteEntry:
    """Return how the host enters a site. Raises ProgramFailed if it cannot."""
    if (entry := site.entering()) is None:
        raise ProgramFailed(f"{site.title}: its host cannot start programs in it")
    return entry


def place(role: str, number: int) -> str:
    """Return the name under which the program of a site is stored; the first is the role itself."""
    return role if number == 1 else f"{role} {number}"


def endpoints(at: Endpoint, sites: Sequence[Site], *, keeps: bool) -> list[Endpoint]:
    """Return each site's endpoint; sites that ``keeps`` data get their own folders. Raises ProgramFailed."""
    if len(sites) == 1 or not keeps:
        return [at] * len(sites)
    each_one = [replace(at, data=f"{at.data}/site-{number}") for number, _ in enumerate(sites, 1)]
    for site, its in zip(sites, each_one, strict=True):
        completed = site.run(Command(("mkdir", "-p", its.data), _FOLDER_S))
        if completed.returncode != 0:
            raise ProgramFailed(f"{site.title}: {its.data} cannot be created: {completed.last_words}")
    return each_one


def put_files(site: Site, files: Mapping[str, bytes], modes: Mapping[str, int]) -> None:
    """Write files into a site. Raises ProgramFailed if one cannot be written: wrong path, or too large."""
    for path, data in files.items():
        try:
            site.put(path, data, modes[path])
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.ENOMEM)
            remedy = "make it smaller, or raise resources: memory" if full else f"name a path in /tmp, /run or {DATA}"
            what = f"its file {path} ({len(data):,} bytes) cannot be written in {site.title}"
            raise ProgramFailed(f"{what}: {error.strerror}: {remedy}") from error


def _run_before(site: Site, command: Command, once_per: Literal["site", "trial"], *, writes: bool) -> Completed:
    """Prepare a site, or a trial, before the measured program runs. ``writes``: the command writes to `DATA`."""
    killed = site.meters().get("oom_kills", 0.0)
    completed = site.run(command)
    if completed.returncode != 0:
        why = "timed out" if completed.timed_out else missing(completed) or completed.last_words
        if site.meters().get("oom_kills", killed) > killed:
            why = f"it exceeded its memory limit (resources: memory): {why}"
        if writes:
            step = "prepared" if once_per == "site" else "restored"
            raise ServerNotReady(f"the data at {DATA} cannot be {step}: {why}")
        raise ProgramFailed(f"the preparation of the {once_per} failed: {ended_with(completed)}{why}")
    return completed


def _has_said(command: Command, server: SiteProcess) -> bool:
    """Return whether a server has printed the line that says it is ready, if it prints one."""
    if not command.says:
        return True
    complete_streams = (stream[: stream.rfind(b"\n") + 1] for stream in server.printed())
    lines = (line for stream in complete_streams for line in stream.decode(errors="replace").splitlines())
    return any(re.search(command.says, line[:_LINE]) for line in lines)


def _used_by(role: str, program: Completed) -> Iterator[WindowSample]:
    """Yield the resource use that a site's launcher reports for a program, and its wall time outside of the site."""
    if program.outside_s is not None and not program.disconnected_s:
        yield role, "program_outside_s", program.outside_s
    for name, value in asdict(program.usage).items() if program.usage is not None else ():
        yield role, f"program_{'peak_bytes' if name == 'peak_memory' else name}", float(value)


@dataclass(slots=True)
class Together:
    """Programs in several sites that count as one, which ends when all have ended. Implements ``Running``."""

    running: Sequence[Running]
    left: tuple[Completed, ...] = ()
    """The output of each program, once they are stopped."""

    def poll(self) -> int | None:
        """Return the first code that is not 0, once all have ended."""
        codes = [each.poll() for each in self.running]
        return None if None in codes else next((code for code in codes if code), 0)

    def wait(self, timeout_s: float) -> bool:
        """Wait for all of them."""
        until = time.monotonic() + timeout_s
        return all(each.wait(max(0.0, until - time.monotonic())) for each in self.running)

    def stop(self, *, timed_out: bool = False) -> Completed:
        """End all programs; return the output of the one that ran longest."""
        if not self.left:
            self.left = tuple(each.stop(timed_out=timed_out) for each in self.running)
        return max(self.left, key=lambda each: each.duration_s)


def start_in_all(sites: Sequence[Site], commands: Sequence[Command]) -> Together:
    """Start a command in each site, one directly after the other. If one cannot start, end the others."""
    running: list[Running] = []
    try:
        for site, command in zip(sites, commands, strict=True):
            running.append(site.start(command))
    except BaseException:
        Together(running).stop()
        raise
    return Together(running)


# -- page caches: no trial pays for another trial's writes, and cold workloads start with empty caches ------------


def settle_page_caches(
    sites: Iterable[Site], servers: Iterable[Host] = (), others: Iterable[Host] = (), *, empty: bool
) -> None:
    """Write dirty pages, and if ``empty`` also empty the caches, wherever the sites' data can be cached.

    ``others`` are hosts of other environments, whose earlier trials can have left dirty pages. Caches are in sites
    with their own kernel, hosts, storage servers, and in this machine if one of these is its guest, because the
    guest's disks are files here. Inner caches come first, because they are written to the outer ones. A testbed host
    uses this machine's. Raises ServerNotReady if it is not allowed.
    """
    command = Command(("sh", "-c", _DROP if empty else _WRITE), _DROP_S)
    hosts: dict[str, Host] = {}
    for site in sites:
        hosts.setdefault(site.host.machine, site.host)
        if site.layers != site.host.layers:
            _require(f"in {site.title}", site.run(command).returncode, "", empty=empty)
    outer = [*hosts.values(), *servers]
    for host in outer:
        own = host.capabilities.writes_out
        completed = host.run(command if own is None or empty else own)
        _require(f"of host {host.name}", completed.returncode, completed.last_words, empty=empty)
    elsewhere = {host.machine: host for host in others if host.machine not in {each.machine for each in outer}}
    for host in elsewhere.values():
        with suppress(EnvironmentLost):  # not a failure of this trial
            host.run(host.capabilities.writes_out or Command(("sh", "-c", _WRITE), _DROP_S))
    if any(host.capabilities.hypervisor is not None for host in (*outer, *elsewhere.values())):
        completed = run_here(command)
        _require("of this machine", completed.returncode, completed.last_words, empty=empty)


def _require(where: str, code: int, last_words: str, *, empty: bool) -> None:
    if code != 0:
        what, remedy = ("emptied", ": run as root, or use 'cold: false'") if empty else ("written", "")
        raise ServerNotReady(f"the page cache {where} cannot be {what} ({last_words or f'exit code {code}'}){remedy}")
