"""The programs of a trial: data made for the server, the server that listens, the client that is waited for."""

import time
from collections.abc import Callable
from typing import Any

from weighbridge.errors import EnvironmentLost
from weighbridge.linux.process import OUTPUT_LIMIT
from weighbridge.model.command import Command, Completed, Running, port_in_use
from weighbridge.model.measurement import DeadlineExceeded, ProgramFailed, ServerDied, ServerNotReady
from weighbridge.model.plugin import Workload
from weighbridge.model.site import DATA, Site
from weighbridge.model.study import Role
from weighbridge.runner.evaluation import plugin_faults
from weighbridge.runner.missing_program import missing
from weighbridge.runner.page_caches import settle_page_caches
from weighbridge.runner.several_sites import endpoints, place
from weighbridge.runner.stage import Stage
from weighbridge.runner.trial_state import TrialState
from weighbridge.store.rows import PREPARATION

READY_S = 20.0
"""How long a server may take to listen."""
AFTER_SERVER_S = 2.0
"""How long a client may go on once its server has died."""
_TOO_MUCH = f"{{}} printed more than {OUTPUT_LIMIT >> 20} MiB, which is the limit"
_WATCH_S = 0.25


def prepare(workload: Workload, options: Any, stage: Stage, state: TrialState) -> None:
    """Make what the server starts from, and write what each role reads."""
    at = stage.endpoint
    with plugin_faults(workload, ProgramFailed):
        writes = workload.needs_data(options)
    state.endpoints = endpoints(at, stage.sites_of(stage.measured), keeps=writes)
    with plugin_faults(workload, ProgramFailed):
        files = {role: dict(workload.files(role, options, at)) for role in stage.sites}
        role: Role = "server" if "server" in stage.sites else "solo"
        keeps, cold = role in stage.sites, workload.cold(options)
    keeping = zip(stage.sites_of(role), state.endpoints, strict=True) if keeps else ()
    for number, (site, its) in enumerate(keeping, 1):
        with plugin_faults(workload, ProgramFailed):
            command, restore = workload.prepare(options, its), workload.restore(options, its)
        if command is not None and command.argv not in stage.prepared:
            state.completed[place(PREPARATION, number)] = _make_data(site, stage.process.of(command), "prepared")
            stage.prepared.add(command.argv)
        if restore is not None:
            _make_data(site, stage.process.of(restore), "restored")
    if cold or writes or stage.written:
        sites = [*stage.sites.values(), *stage.further]
        settle_page_caches(sites, stage.storage_servers, stage.written, empty=cold)
    for each in stage.sites:
        for site in stage.sites_of(each):
            for path, data in files[each].items():
                site.put(path, data)


def _make_data(site: Site, command: Command, what: str) -> Completed:
    killed = site.meters().get("oom_kills", 0.0)
    completed = site.run(command)
    if completed.returncode != 0:
        why = "did not end in time" if completed.timed_out else missing(completed) or completed.last_words
        if site.meters().get("oom_kills", killed) > killed:
            why = f"the site ran out of its memory limit (resources: memory): {why}"
        raise ServerNotReady(f"the data at {DATA} cannot be {what}: {why}")
    return completed


def serve(command: Command, site: Site, state: TrialState, ready_s: float | None = None) -> None:
    """Start the server and wait until it listens; ServerNotReady says why there is none."""
    for transport, port in command.listens:
        if site.listening(((transport, port),)):
            raise ServerNotReady(port_in_use(transport, port))
    server = site.start(command)
    state.server = server
    ready_s = READY_S if ready_s is None else ready_s
    deadline = time.monotonic() + ready_s
    while not site.listening(command.listens, _WATCH_S):
        if server.poll() is not None:
            state.completed["server"] = completed = server.stop()
            ended = f"{command.argv[0]} ended before it listened: {completed.last_words}"
            raise ServerNotReady(missing(completed) or ended)
        if time.monotonic() > deadline:
            raise ServerNotReady(f"{command.argv[0]} did not listen on {command.listens} within {ready_s:.0f} s")


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
        raise DeadlineExceeded(f"{command.argv[0]} was still running at its deadline of {command.deadline_s:.0f} s")
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
