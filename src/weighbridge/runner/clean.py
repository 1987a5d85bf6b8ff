"""Finds and removes what runs left on the machine, even after kill -9, and never what a living run uses."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from weighbridge import registry
from weighbridge.build_once import half_built
from weighbridge.linux.deletion import OwnFolder, remove_tree
from weighbridge.model.cleanup import (
    ENDING,
    NO_RUN,
    Cleanup,
    Leftover,
    OrphanedRun,
    RunFolders,
    discard,
    noting_failure,
)
from weighbridge.model.names import RunId
from weighbridge.model.study import Study
from weighbridge.runner import known_noise, living, revisions, run_lock
from weighbridge.runner.file_ownership import Foreign
from weighbridge.runner.storage import storage_options
from weighbridge.userland.build import cache_folder

_GONE_S = 1.0
"""Processes, links and mounts can take this long to disappear after their removal."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """The resources that runs have on this machine: those ``left`` by dead runs, and those that cannot be removed.

    ``alive`` has the state folder of each living run by its id; in a cluster, the reason to assume that it lives.
    ``foreign`` lists untrusted state folders, which are ignored. ``removed`` lists the resources of dead runs that
    are gone now. ``failures`` has a sentence for each step that failed.
    """

    left: tuple[Leftover, ...]
    alive: Mapping[str, Path | str]
    foreign: tuple[Foreign, ...]
    removed: tuple[Leftover, ...] = ()
    failures: tuple[str, ...] = ()


class _OwnFolders(Cleanup):
    """The state folders of runs, which `clean` removes last, and unfinished files in the cache."""

    label = "run folders"
    owner_may_be_unknown = True

    def find(self, folders: RunFolders) -> Iterator[Leftover]:
        """Yield runs' state folders, half-built userlands, unfinished noise measurements and worktrees."""
        yield from (Leftover(run, "state folder", str(folders.states / run)) for run in run_lock.known_runs())
        yield from (Leftover(NO_RUN, "half-built root filesystem", str(path)) for path in half_built(cache_folder()))
        with known_noise.left() as unfinished:
            leftovers = [Leftover(NO_RUN, "unfinished noise measurement", str(path)) for path in unfinished]
        with _worktrees() as trees:
            leftovers += [Leftover(NO_RUN, "worktrees of two versions", str(path)) for path in trees]
        yield from leftovers

    def remove_ownerless(self, folders: RunFolders) -> None:
        """Remove half-built userlands, folders of unfinished noise measurements, and worktrees."""
        with _worktrees() as trees:
            for path in trees:
                revisions.remove(path)
        with known_noise.left() as unfinished:
            for path in (*half_built(cache_folder()), *unfinished):
                remove_tree(OwnFolder.at(path))


def _worktrees() -> AbstractContextManager[list[Path]]:
    """Return the folders of `revisions.left`; none while a run with this cache lives, which can use them."""
    mine = (run for run in run_lock.known_runs() if cache_folder() in run_lock.caches_of(run))
    alive = any(living.holder(run) is not None for run in mine)
    return nullcontext([]) if alive else revisions.left()


def _kinds() -> tuple[Cleanup, ...]:
    return (*registry.cleanups(), _OwnFolders())


def _folders(cache: Path | None = None, only: RunId | None = None) -> RunFolders:
    return RunFolders(run_lock.base(), (cache or cache_folder()) / "engines", only or "")


def _caches(run_id: RunId) -> dict[Path, None]:
    """Return the caches with data of a run: the caches in its notes, and the current one."""
    return dict.fromkeys((*run_lock.caches_of(run_id), cache_folder()))


def find(only: RunId | None = None) -> Inventory:
    """Look for everything that runs have on this machine, or that the run with the id ``only`` has."""
    leftovers, failures = _listed(only, _kinds())
    runs = {only} if only else {RunId(leftover.run) for leftover in leftovers if RunId.matches(leftover.run)}
    holders = {run: living.holder(run) for run in sorted(runs)}
    alive: dict[str, Path | str] = {run: folder for run, folder in holders.items() if folder is not None}
    left = tuple(leftover for leftover in leftovers if leftover.run not in alive)
    return Inventory(left, alive, tuple(living.foreign(runs)), failures=tuple(failures))


def find_in_cluster(context: str, namespace: str, only: RunId | None = None) -> Inventory:
    """Look for everything that runs of all machines have in a namespace of a cluster; "": kubectl's own."""
    left: list[Leftover] = []
    alive: dict[str, Path | str] = {}
    failures: list[str] = []
    for kind in registry.cleanups():
        with noting_failure(failures, f"{kind.label} cannot be checked"):
            for run in kind.find_at(context, namespace):
                if only not in (None, run.id):
                    continue
                if run.alive:
                    alive[run.id] = run.alive
                else:
                    left += run.leftovers
    return Inventory(tuple(left), alive, (), failures=tuple(failures))


def clean_cluster(context: str, namespace: str, only: RunId | None = None) -> Inventory:
    """Remove everything that dead runs of all machines have in a namespace of a cluster."""
    before, failures = find_in_cluster(context, namespace, only), list[str]()
    for run in dict.fromkeys(leftover.run for leftover in before.left):
        for kind in reversed(registry.cleanups()):  # as `discard` does
            with noting_failure(failures, f"{kind.label} of run {run} cannot be removed"):
                kind.remove_at(context, namespace, run)
    after = find_in_cluster(context, namespace, only)
    removed = tuple(leftover for leftover in before.left if leftover not in after.left)
    failures += [each for each in after.failures if each not in failures]
    return replace(after, removed=removed, failures=tuple(failures))


def _listed(only: RunId | None, kinds: Iterable[Cleanup]) -> tuple[list[Leftover], list[str]]:
    """Return everything that runs (or the run ``only``) have on this machine, and the reasons why some is unknown."""
    leftovers: list[Leftover] = []
    failures: list[str] = []
    elsewhere: dict[Path, set[str]] = {}
    for run in run_lock.known_runs():
        for cache in _caches(run).keys() - {cache_folder()}:
            elsewhere.setdefault(cache, set()).add(run)
    for kind in kinds:
        with noting_failure(failures, f"{kind.label} cannot be checked"):
            # one by one, to keep everything that was found before a failure
            for leftover in kind.find(_folders(only=only)):
                if _is_ours(kind, leftover.run):
                    leftovers.append(leftover)
            for cache, users in elsewhere.items():
                for leftover in kind.find(_folders(cache, only)):
                    if leftover.run in users:
                        leftovers.append(leftover)
    runs = {leftover.run for leftover in leftovers if RunId.matches(leftover.run)} | ({only} if only else set())
    leftovers = [replace(leftover, run=_full_id(leftover.run, runs)) for leftover in leftovers]
    return [leftover for leftover in dict.fromkeys(leftovers) if only in (None, leftover.run)], failures


def _is_ours(kind: Cleanup, run: str) -> bool:
    """Return whether a resource seems to belong to a run. Other programs can set the same variables or labels."""
    return RunId.matches(run) or (kind.owner_may_be_unknown and (run == NO_RUN or run.startswith(ENDING)))


def _full_id(run: str, runs: set[str]) -> str:
    """Return the run whose id ends like ``run``, or a made-up id if nothing else of it is left."""
    if not run.startswith(ENDING):
        return run
    end = run.removeprefix(ENDING)
    return next((each for each in sorted(runs) if each.endswith(end)), end.zfill(12))


def cleanups_of(study: Study) -> tuple[Cleanup, ...]:
    """Return the kinds of resources that a run of a study can leave.

    Without supporting services and images, those are the kinds of its hosts, environments and storage. For other
    studies, return every kind.
    """
    file, kinds = study.file, registry.environments()
    sources = [file.userland, file.client_userland, *(arm.userland for arm in study.arms)]
    packed = any(registry.userlands()[source.kind].packed for source in sources if source is not None)
    if packed or file.companions or not all(host.traits.this_machine for host in file.hosts.values()):
        return registry.cleanups()
    hosts = [registry.hosts()[host.kind] for host in file.hosts.values()]
    stored = filter(None, map(storage_options, study.arms))
    storages = [registry.storage()[options.kind] for options in stored]
    return registry.cleanups([*hosts, *(kinds[arm.kind] for arm in study.arms), *storages])


def sweep(run_id: RunId, kinds: Sequence[Cleanup] | None = None) -> list[str]:
    """Remove everything of one run, which must not be alive (or be our own); return a sentence for each failure.

    ``kinds`` are the kinds of resources that it can have; None: every kind.
    """
    kinds = registry.cleanups() if kinds is None else kinds
    failures: dict[str, None] = {}
    for cache in _caches(run_id):
        folders = _folders(cache)
        dead = OrphanedRun(run_id, folders.states / run_id, folders.data / run_id)
        failures |= dict.fromkeys(discard(dead, kinds))
    return [*failures]


def sweep_and_forget(run_id: RunId, kinds: Sequence[Cleanup] | None = None) -> list[str]:
    """Remove everything of a run, and its notes too if nothing failed: `clean` needs the notes to try again.

    ``kinds``: as in `sweep`.
    """
    kinds = registry.cleanups() if kinds is None else kinds
    failures = sweep(run_id, kinds) or _still_there(run_id, kinds)
    if not failures:
        run_lock.forget(run_id)
    return failures


def _still_there(run_id: RunId, kinds: Sequence[Cleanup]) -> list[str]:
    """Return a sentence for each thing of a run that is still found a moment after it was removed."""
    deadline = time.monotonic() + _GONE_S
    while (found := _listed(run_id, kinds)) != ([], []) and time.monotonic() < deadline:
        time.sleep(_GONE_S / 10)
    leftovers, failures = found
    return failures + [f"{leftover.kind} {leftover.name} could not be removed" for leftover in leftovers]


def clean(only: RunId | None = None) -> Inventory:
    """Remove everything of every dead run, or of the run with the id ``only``; return what could not be removed.

    A failure for one run or kind does not stop the others. The notes of a run stay until all of it is gone.
    """
    before, failures = find(only), list[str]()
    for run_id in map(RunId, sorted({leftover.run for leftover in before.left} - {NO_RUN})):
        with (
            noting_failure(failures, f"run {run_id} cannot be cleaned"),
            run_lock.lock_run(run_id, "clean") as folder,
        ):
            if folder is not None:  # else it is being continued: it lives again
                failures += sweep_and_forget(run_id)
    for kind in _kinds() if only is None else ():
        with noting_failure(failures, f"{kind.label} cannot be removed"):
            kind.remove_ownerless(_folders())
    after = find(only)
    removed = [leftover for leftover in before.left if leftover not in after.left and leftover.run not in after.alive]
    failures += [each for each in after.failures if each not in failures]
    return replace(after, removed=tuple(removed), failures=tuple(failures))
