"""Durability, checked: each environment of a study writes to its storage, and the power is cut in the midst."""

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from weighbridge import registry
from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.model.decisions import LeftOut
from weighbridge.model.host import RunContext
from weighbridge.model.power_cut import PowerCut, Promise
from weighbridge.model.site import SiteRequest
from weighbridge.model.study import Arm, Cell, Placement, Role, Study
from weighbridge.model.userland import Userland, UserlandSpec
from weighbridge.runner import clean, run_lock
from weighbridge.runner.power_cut import Server, commits, cut_and_read_back, cut_and_recover
from weighbridge.runner.preflight import hosts_readiness, left_out_line, require_userland
from weighbridge.runner.signals import shield
from weighbridge.runner.sites import limits_of, open_hosts
from weighbridge.runner.storage import durability_of, require_in_force, site_storage, storage_durability
from weighbridge.userland.build import cache_folder, ensure

USERLAND = UserlandSpec.of(c=("powercut",))
_ROLE: Role = "server"
"""Whose site has the data, also where a workload has no counterpart."""


@dataclass(slots=True)
class Durability:
    """What a check found, and the environments of which nothing could be found out, each with why."""

    checked: list[PowerCut] = field(default_factory=list)
    unchecked: list[LeftOut] = field(default_factory=list)


def checkable(study: Study) -> Study:
    """The study on hosts whose disks lose what was not flushed, as far as their power can be cut.

    Clients are where the server is: none is opened. Raises Unavailable where no power can be cut, or no such host
    can be had.
    """
    placed = {study.server_host, *study.storage_hosts}
    volatile = {name: study.file.hosts[name].with_volatile_cache() for name in placed}
    if not any(volatile.values()):
        names = ", ".join(sorted(placed))
        raise Unavailable(
            f"the power of host {names} cannot be cut: it is this machine's, or that of others; place the server, or "
            "the storage, on a host of kind guest"
        )
    hosts = {name: volatile.get(name) or options for name, options in study.file.hosts.items()}
    placement = Placement(server=study.server_host, client=study.server_host, storage=study.file.placement.storage)
    file = study.file.model_copy(update={"hosts": hosts, "placement": placement})
    made = study.model_copy(update={"file": file})
    lacking = {name: state for name, state in hosts_readiness(made).items() if not state.ready}
    if lacking:
        raise Unavailable("; ".join(f"host {name}: {why.detail}: {why.remedy}" for name, why in lacking.items()))
    return made


def check_durability(
    study: Study,
    promises: Sequence[Promise],
    seconds: float,
    say: Callable[[str], None],
    keep: Callable[[PowerCut], None],
) -> Durability:
    """Cut the power once for each environment and promise, on hosts of its own; ``seconds`` is how long it writes.

    Each takes minutes, so ``keep`` is called with each as soon as it is known. Raises Unavailable where nothing can
    be checked.
    """
    made, run_id, cache = checkable(study), secrets.token_hex(6), cache_folder()
    found, needed = Durability(), userland_of_checks(made, promises)
    sources = {arm.name: arm.userland or study.file.userland for arm in made.arms if arm.aa_of is None}
    for source in sources.values():
        require_userland(needed, source)
    with run_lock.claim(run_id, cache) as folder:
        try:
            userlands = {name: ensure(needed, cache, say, source) for name, source in sources.items()}
            for arm in (arm for arm in made.arms if arm.aa_of is None):
                for promise, cell in checks(made, arm, promises):
                    what = f"{promise}" + (f" of {cell.workload}" if cell else "")
                    say(f"{arm.name}: {what}")
                    run = RunContext(run_id, folder, cache, ExitStack(), say)
                    try:
                        cut = _one(made, arm, promise, cell, seconds, run, userlands[arm.name])
                    except (Unavailable, EnvironmentLost) as error:
                        found.unchecked.append(LeftOut(environment=arm.name, kind=arm.kind, why=f"{what}: {error}"))
                        continue
                    found.checked.append(cut)
                    keep(cut)
        finally:
            with shield():
                clean.sweep(run_id)
                run_lock.forget(run_id)
    if not found.checked:
        raise Unavailable("nothing could be checked: " + "; ".join(map(left_out_line, found.unchecked)))
    return found


def checks(study: Study, arm: Arm, promises: Iterable[Promise]) -> Iterator[tuple[Promise, Cell | None]]:
    """What is checked of an environment: of commits, those of each workload's server at its first level."""
    for promise in promises:
        if promise is not Promise.COMMIT:
            yield promise, None
            continue
        cells = {cell.workload: cell for cell in reversed(study.cells) if arm in study.arms_of(cell)}
        for cell in reversed(cells.values()):
            if commits(cell):
                yield promise, cell


def userland_of_checks(study: Study, promises: Iterable[Promise]) -> UserlandSpec:
    """The writer of records, and the servers whose commits are counted."""
    kinds = registry.workloads()
    asked = study.cells if Promise.COMMIT in promises else ()
    servers = [kinds[cell.kind].userland(cell.options) for cell in asked if commits(cell)]
    return UserlandSpec.union([USERLAND, *servers])


def _one(
    study: Study, arm: Arm, promise: Promise, cell: Cell | None, seconds: float, run: RunContext, userland: Userland
) -> PowerCut:
    """One check; what is closed on a host that was killed is lost, and that is no failure."""
    found: PowerCut | None = None
    try:
        with run.stack:
            found = _checked(study, arm, promise, cell, seconds, run, userland)
    except (Unavailable, EnvironmentLost):
        if found is None:
            raise
    assert found is not None
    return found


def _checked(
    study: Study, arm: Arm, promise: Promise, cell: Cell | None, seconds: float, run: RunContext, userland: Userland
) -> PowerCut:
    hosts = open_hosts(study, run)
    host, environment = hosts[study.server_host], registry.environments()[arm.kind]
    storage = site_storage(environment, arm.options, study, _ROLE, hosts)
    if storage is None:
        raise Unavailable("it has no storage: say 'storage:' in it, or use a workload that keeps data")
    request = SiteRequest(
        run, host, f"0-{arm.name}", _ROLE, userland, limits_of(study, _ROLE, host), environment=arm.name,
        storage=storage,
    )  # fmt: skip
    site = run.stack.enter_context(environment.open(arm.options, request))
    require_in_force(storage.mounts, site)
    failure = ""
    if cell is None:
        cut, acknowledged, back = cut_and_read_back(site, storage.mounts, promise, seconds, run.say)
    else:
        server = Server.of(cell.kind, study.options(arm, cell), site.host)
        cut, acknowledged, back, failure = cut_and_recover(site, request, server, seconds)
    return PowerCut(
        environment=arm.name,
        promise=promise,
        storage=storage.kind,
        claimed=(durability_of(study, arm, cell) if cell else None) or storage_durability(arm),
        host=cut.name,
        acknowledged=acknowledged,
        found=back.found,
        lost=back.lost,
        first_lost=back.first_lost,
        torn=back.torn,
        displaced=back.displaced,
        workload=cell.workload if cell else "",
        failure=failure,
    )
