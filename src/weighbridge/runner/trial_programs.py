"""The programs of a trial: data made for the server, the server that listens, the client that is waited for."""

import hashlib
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

from weighbridge.errors import EnvironmentLost
from weighbridge.linux.process import OUTPUT_LIMIT
from weighbridge.model.command import Command, Completed, Running, SiteProcess, port_in_use
from weighbridge.model.measurement import DeadlineExceeded, ProgramFailed, ServerDied, ServerNotReady
from weighbridge.model.site import DATA, Site
from weighbridge.model.study import Role
from weighbridge.model.workload import Endpoint, Workload
from weighbridge.runner.evaluation import plugin_faults
from weighbridge.runner.finishing import Finish
from weighbridge.runner.missing_program import ended_with, failure_beside, missing
from weighbridge.runner.page_caches import settle_page_caches
from weighbridge.runner.several_sites import endpoints, place
from weighbridge.runner.stage import Stage
from weighbridge.runner.trial_state import TrialState
from weighbridge.store.rows import CHECK, PREPARATION

READY_S = 20.0
"""How long a server may take to listen."""
AFTER_SERVER_S = 2.0
"""How long a client may go on once its server has died."""
_TOO_MUCH = f"{{}} printed more than {OUTPUT_LIMIT >> 20} MiB, which is the limit"
_WATCH_S = 0.25
_SAID_S = 0.05
"""Between two looks at what a server has printed, in seconds."""
_LINE = 4096
"""Characters of a line that are looked at."""
_CHECKED = 2**20
"""Bytes of what was printed that a check gets: the launcher holds them, and a program's peak begins at its own."""


class Step(StrEnum):
    """What is run in a site before its program, by what it does to the data of one that keeps some."""

    PREPARE = "prepared"
    RESTORE = "restored"


_OF = {Step.PREPARE: "site", Step.RESTORE: "trial"}


def prepare(workload: Workload, options: Any, stage: Stage, state: TrialState) -> None:
    """Write what each role reads, and make what the server, or the one role, starts from."""
    with plugin_faults(workload, ProgramFailed):
        writes = workload.needs_data(options)
    state.endpoints = endpoints(stage.endpoints[stage.measured], stage.sites_of(stage.measured), keeps=writes)
    with plugin_faults(workload, ProgramFailed):
        files = {role: dict(workload.files(role, options, at)) for role, at in stage.endpoints.items()}
        modes = {path: workload.file_mode(options, path) for each in files.values() for path in each}
        role: Role = "server" if "server" in stage.sites else "solo"
        keeps, cold = role in stage.sites, workload.cold(options)
    for each in stage.sites:
        for site in stage.sites_of(each):
            for path, data in files[each].items():
                site.put(path, data, modes[path])
    given = hashlib.sha256(repr(sorted(files.get(role, {}).items())).encode()).hexdigest()  # its scripts, say
    keeping = zip(stage.sites_of(role), _endpoints_of(role, stage, state), strict=True) if keeps else ()
    for number, (site, its) in enumerate(keeping, 1):
        with plugin_faults(workload, ProgramFailed):
            command, restore = workload.prepare(options, its), workload.restore(options, its)
            finish = workload.finish(options, its)
        if finish is not None:  # also of what is interrupted while it is prepared
            at_end = stage.started(role, finish)
            stage.at_end(Finish(place(role, number), site, at_end, files[role], modes, given))
        if command is not None and (once := (site.name, given, *command.argv)) not in stage.prepared:
            state.completed[place(PREPARATION, number)] = _run_before(
                site, stage.started(role, command), Step.PREPARE, data=writes
            )
            stage.prepared.add(once)
        if restore is not None:
            _run_before(site, stage.started(role, restore), Step.RESTORE, data=writes)
    if cold or writes or stage.written:
        sites = [*stage.sites.values(), *stage.further]
        settle_page_caches(sites, stage.storage_servers, stage.written, empty=cold)


def _endpoints_of(role: Role, stage: Stage, state: TrialState) -> Sequence[Endpoint]:
    return state.endpoints if role == stage.measured else [stage.endpoints[role]]


def _run_before(site: Site, command: Command, step: Step, *, data: bool) -> Completed:
    """What a program left that was run before the measured one; ``data``: it makes what is at DATA."""
    killed = site.meters().get("oom_kills", 0.0)
    completed = site.run(command)
    if completed.returncode != 0:
        why = "did not end in time" if completed.timed_out else missing(completed) or completed.last_words
        if site.meters().get("oom_kills", killed) > killed:
            why = f"the site ran out of its memory limit (resources: memory): {why}"
        if data:
            raise ServerNotReady(f"the data at {DATA} cannot be {step}: {why}")
        raise ProgramFailed(f"the preparation of the {_OF[step]} failed: {ended_with(completed)}{why}")
    return completed


def check(workload: Workload, options: Any, stage: Stage, state: TrialState) -> None:
    """Run the workload's check in each measured site whose process ended with code 0. Raises ProgramFailed."""
    for number, (site, its) in enumerate(zip(stage.sites_of(stage.measured), state.endpoints, strict=True), 1):
        measured = state.completed[place(stage.measured, number)]
        with plugin_faults(workload, ProgramFailed):
            command = workload.check(options, its)
        if command is None or measured.returncode != 0:
            continue
        completed = site.run(replace(stage.started(stage.measured, command), stdin=measured.stdout[:_CHECKED]))
        state.completed[place(CHECK, number)] = completed
        if completed.returncode != 0:
            raise ProgramFailed(f"the check failed: {failure_beside(completed)}")


def serve(command: Command, site: Site, state: TrialState, ready_s: float | None = None) -> None:
    """Start the server and wait until it listens; ServerNotReady says why there is none."""
    for transport, port in command.listens:
        if site.listening(((transport, port),)):
            raise ServerNotReady(port_in_use(transport, port))
    server = site.start(command)
    state.server = server
    ready_s = READY_S if ready_s is None else ready_s
    deadline = time.monotonic() + ready_s
    while not (site.listening(command.listens, _WATCH_S) and _has_said(command, server)):
        if server.poll() is not None:
            state.completed["server"] = completed = server.stop()
            ended = f"{command.argv[0]} ended before it {'was ready' if command.says else 'listened'}: "
            ended += completed.last_words
            if completed.returncode == 0:
                ended += " (it ended with code 0: a server stays in the foreground)"
            raise ServerNotReady(missing(completed) or ended)
        if time.monotonic() > deadline:
            ports = " and ".join(f"{transport} port {port}" for transport, port in command.listens)
            told = f" and print a line with /{command.says:.60}/" if command.says else ""
            raise ServerNotReady(f"{command.argv[0]} did not listen on {ports}{told} within {ready_s:.0f} s")
        if command.says:
            time.sleep(_SAID_S)


def _has_said(command: Command, server: SiteProcess) -> bool:
    """Whether a server has printed the line by which it tells that it is ready, if it is to."""
    if not command.says:
        return True
    whole = (stream[: stream.rfind(b"\n") + 1] for stream in server.printed())
    lines = (line for stream in whole for line in stream.decode(errors="replace").splitlines())
    return any(re.search(command.says, line[:_LINE]) for line in lines)


def watch(
    running: Running, command: Command, state: TrialState, role: str, ended: Callable[[], None] = lambda: None
) -> Completed:
    """Wait for a client, watching its deadline and the server; ``ended`` is called before its output comes."""
    deadline, server_died = time.monotonic() + command.deadline_s, False
    late = False
    try:
        while not running.wait(min(_WATCH_S, max(0.0, deadline - time.monotonic()))):
            if time.monotonic() >= deadline:
                late = True
                break
            if state.server is not None and not server_died and state.server.poll() is not None:
                server_died = True
                deadline = min(deadline, time.monotonic() + AFTER_SERVER_S)
        ended()
    finally:
        completed = state.completed[role] = running.stop(timed_out=late)
    if state.server is not None and (code := state.server.poll()) is not None:
        said = state.completed["server"] = state.server.stop()
        why = _TOO_MUCH.format(said.argv[0]) if said.too_much else said.last_words
        raise ServerDied(f"the server ended with code {code} while the {role} was at work: {why}")
    if late:
        raise DeadlineExceeded(f"{command.argv[0]} was still running at its deadline of {command.deadline_s:g} s")
    if completed.too_much:
        raise ProgramFailed(_TOO_MUCH.format(command.argv[0]))
    if sentence := missing(completed):
        raise ProgramFailed(sentence)
    return completed


def stop_server(state: TrialState, *, quietly: bool = False) -> None:
    """End the server, if there still is one, and keep its output."""
    if state.server is None:
        return
    server, state.server = state.server, None
    try:
        completed = state.completed["server"] = server.stop()
    except EnvironmentLost:
        if not quietly:
            raise
        return
    if completed.too_much and not quietly:
        raise ProgramFailed(_TOO_MUCH.format(completed.argv[0]))
