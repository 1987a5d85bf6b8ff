"""Finds and removes what runs left on the machine: also after kill -9, and never what a living run uses."""

import contextlib
import os
import re
import shutil
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from weighbridge.build_once import half_built
from weighbridge.engines import alone, podman, swarm, virtualbox
from weighbridge.engines import client as docker
from weighbridge.engines.firewall import Adds
from weighbridge.engines.private import discard_private
from weighbridge.linux import cgroups, links, lxc_locks, xen_domains
from weighbridge.linux.mounts import mounted_below, unmount_below
from weighbridge.linux.process import link_prefix, run_of
from weighbridge.runner import known_noise, living
from weighbridge.runner import run_lock as state
from weighbridge.runner.trust import Foreign
from weighbridge.userland.build import cache_folder

_RUN_ID = re.compile(r"[0-9a-f]{12}")
"""Ids of runs become paths and names here, and anybody may set a variable or a label: nothing else is believed."""
_LINK = re.compile(r"wb-([0-9a-f]{6})-(?:[bnpv]?\d+|c)")
NO_RUN = ""
"""The run of what belongs to none."""
_OF_ENGINES = "packet filter of an engine"


@dataclass(frozen=True, slots=True)
class Leftover:
    """One thing that a run left: which run (``NO_RUN``: a build of a userland), what kind of thing, its name."""

    run: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Found:
    """What runs have on this machine: what is ``left`` of dead ones, and what keeps the rest from being removed.

    ``alive``: the state folder of each living run, by its id. ``foreign``: what is ignored in the place of one.
    ``removed``: what was left of dead ones and is gone.
    """

    left: tuple[Leftover, ...]
    alive: Mapping[str, Path]
    foreign: tuple[Foreign, ...]
    removed: tuple[Leftover, ...] = ()


def is_run_id(text: str) -> bool:
    """Whether a text may be the id of a run."""
    return _RUN_ID.fullmatch(text) is not None


def find(only: str | None = None) -> Found:
    """Look for everything that runs have on this machine, or that the run with the id ``only`` has."""
    groups = [(top, run) for top in cgroups.TOPS for run in cgroups.runs(top=top)]
    found = [Leftover(run, "control group", f"{top}/{run}") for top, run in groups]
    found += [Leftover(run, "process", f"{pid} {name}") for pid, run, name in _processes()]
    found += [Leftover(run, "state folder", str(state.base() / run)) for run in state.known_runs()]
    found += [Leftover(run, "domain", name) for run, name in xen_domains.domains()]
    engines = cache_folder() / "engines"
    found += [Leftover(run, "engine data", str(path)) for run, path in _of_runs(engines)]
    found += [Leftover(run, "mount", str(at)) for run, path in _of_runs(engines) for at in mounted_below(path)]
    found += [Leftover(run, "folder of VirtualBox", str(path)) for run, path in virtualbox.left()]
    found += [Leftover(run, "folder of podman", str(path)) for run, path in podman.left()]
    found += [Leftover(run, "lock", str(path)) for run, path in _of_runs(lxc_locks.lock_folder(engines))]
    client = docker.client_from_environment()
    if client is not None:
        found += [Leftover(*item) for item in docker.labelled(client)]
        found += [Leftover(run, "swarm", "formed by that run") for run in swarm.leave_ours(client)]
        client.close()
    found += [Leftover(run, "packet filter rule", rule) for run, rule in links.rules()]
    found = [leftover for leftover in found if _RUN_ID.fullmatch(leftover.run)]
    known = {leftover.run for leftover in found} | ({only} if only else set())
    found += [Leftover(_run_of_link(name, known), "network link", name) for name in _links()]
    found += [Leftover(NO_RUN, "half-built userland", str(path)) for path in half_built(cache_folder())]
    found += [Leftover(NO_RUN, "measured noise", str(path)) for path in known_noise.left()]
    found += [Leftover(NO_RUN, _OF_ENGINES, table) for table in alone.left(state.base())]
    if only:
        known, found = {only}, [leftover for leftover in found if leftover.run == only]
    holders = {run: living.holder(run) for run in sorted(known)}
    alive = {run: folder for run, folder in holders.items() if folder is not None}
    left = tuple(leftover for leftover in found if leftover.run not in alive)
    return Found(left, alive, tuple(living.foreign(known)))


def sweep(run_id: str) -> None:
    """Remove everything of one run, which must not be alive (or be our own)."""
    client = docker.client_from_environment()
    if client is not None:
        docker.remove_labelled(client, f"{docker.LABEL}={run_id}")
        swarm.leave_ours(client, run_id)
        client.close()
    _end_processes(run_id)
    xen_domains.destroy(run_id)
    podman.discard(run_id, state.base() / run_id, state.cache_of(run_id, cache_folder()))
    virtualbox.discard(run_id, state.base() / run_id)
    lxc_locks.remove(state.cache_of(run_id, cache_folder()) / "engines" / run_id)
    unmount_below(state.cache_of(run_id, cache_folder()) / "engines" / run_id)
    discard_private(run_id, state.base() / run_id, state.cache_of(run_id, cache_folder()))
    cgroups.remove_top()


def clean(only: str | None = None) -> Found:
    """Remove everything of every dead run, or of the run with the id ``only``; gives what could not be removed.

    Unavailable where none may be locked.
    """
    before = find(only)
    for run_id in {leftover.run for leftover in before.left} - {NO_RUN}:
        with state.held(run_id, "clean") as folder:
            if folder is not None:  # else it is being continued: it lives again
                sweep(run_id)
                state.forget(run_id)
    for path in (*half_built(cache_folder()), *known_noise.left()) if only is None else ():
        shutil.rmtree(path, ignore_errors=True)
    if any(leftover.kind == _OF_ENGINES for leftover in before.left):
        alone.restore(state.base(), Adds.DOCKER)
    cgroups.remove_top()
    after = find(only)
    gone = [leftover for leftover in before.left if leftover not in after.left and leftover.run not in after.alive]
    return replace(after, removed=tuple(gone))


def _processes() -> list[tuple[int, str, str]]:
    """This user's processes that a run has started: (pid, run id, name)."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        pid = int(folder.name)
        with contextlib.suppress(OSError, ValueError):
            if pid == os.getpid() or (folder / "environ").stat().st_uid != os.geteuid():
                continue  # whoever started it cleans it up: only they know whether their run is alive
            if (run := run_of(folder)) is not None:
                found.append((pid, run, (folder / "comm").read_text().strip()))
    return found


def _end_processes(run_id: str) -> None:
    for group in cgroups.groups_of(run_id):
        with contextlib.suppress(OSError, KeyError):  # what is frozen cannot die
            group.thaw_below()
    deadline = time.monotonic() + 5
    while (pids := [pid for pid, run, _ in _processes() if run == run_id]) and time.monotonic() < deadline:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def _of_runs(folder: Path) -> list[tuple[str, Path]]:
    """What is in a folder that has one for each run."""
    with contextlib.suppress(OSError):
        return [(path.name, path) for path in folder.iterdir()]
    return []


def _links() -> list[str]:
    return [path.name for path in Path("/sys/class/net").glob("wb-*") if _LINK.fullmatch(path.name)]


def _run_of_link(link: str, known: set[str]) -> str:
    """The run whose id ends as the link says; where nothing else of it is left, an id that ends so."""
    for run in known:
        if link.startswith(link_prefix(run)):
            return run
    return link.split("-")[1].zfill(12)
