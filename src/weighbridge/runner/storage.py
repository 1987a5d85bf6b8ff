"""Chooses the storage of each site: the study's choice, or the environment's default for workloads that need one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.model.environment import Environment, EnvironmentOptions
from weighbridge.model.facts import DATA_FILE_SYSTEM
from weighbridge.model.host import SPEEDS, Host, Limits
from weighbridge.model.plugin import Durability, Readiness
from weighbridge.model.site import DATA, Mount, MountRequest, Site, SiteStorage
from weighbridge.model.storage import Storage, StorageOptions, weaker
from weighbridge.model.study import Arm, Cell, Study
from weighbridge.runner.preflight import ready


def site_storage(
    environment: Environment, options: Any, study: Study, role: str, hosts: Mapping[str, Host]
) -> SiteStorage | None:
    """Return the storage of a site with these options of its environment; None if nothing asks for one.

    If a workload keeps data, all sites except clients have one. ``hosts`` has the open hosts by name.
    """
    named = _named(options)
    if named is None and (role == "client" or not writes(study) or not environment.storage):
        return None
    plugin, chosen = _chosen(environment, named)
    server = next((hosts[name] for name in study.storage_hosts), None)
    mounts: list[Mount] = []

    @contextmanager
    def opened(request: MountRequest) -> Iterator[Mount]:
        with plugin.open(chosen, replace(request, server=server)) as mount:
            mounts.append(mount)
            yield mount

    return SiteStorage(plugin.kind, opened, mounts, chosen.capacity)


def writes(study: Study) -> bool:
    """Return whether a workload of the study keeps data."""
    return any(registry.workloads()[cell.kind].needs_data(cell.options) for cell in study.cells)


def storage_options(arm: Arm) -> StorageOptions | None:
    """Return the storage that a study chooses for an environment, or the environment's own; None if it has none."""
    environment, named = registry.environments()[arm.kind], _named(arm.options)
    return _chosen(environment, named)[1] if named is not None or environment.storage else None


def durability_of(study: Study, arm: Arm, cell: Cell) -> Durability | None:
    """Return what a power cut leaves of a workload's data: the weaker of the program and its storage."""
    workload, options = registry.workloads()[cell.kind], study.options(arm, cell)
    own = workload.durability(options)
    inside = "server" in study.file.inside or "solo" in workload.roles(options)
    environment, of_site = registry.environments()[arm.kind], arm.options
    if not inside:
        environment, of_site = registry.bare_host(study.file.hosts[study.server_host].own_traits)
    named = _named(of_site)
    if own is None or (named is None and not (workload.needs_data(options) and environment.storage)):
        return own
    return weaker(own, _durability(environment, of_site, named))


def storage_durability(arm: Arm) -> Durability:
    """Return what a power cut leaves of synced data on an environment's storage, according to the storage."""
    return _durability(registry.environments()[arm.kind], arm.options, _named(arm.options))


def _durability(environment: Environment, options: Any, named: StorageOptions | None) -> Durability:
    plugin, chosen = _chosen(environment, named)
    durability = weaker(plugin.durability(chosen), environment.disk_durability(options))
    return weaker(durability, environment.layer_durability(options)) if "layer" in plugin.ways else durability


def set_disk_speed(hosts: Iterable[Host], name: str | None) -> None:
    """Limit the disks of hosts to one of `SPEEDS`, or lift that with None. Raises Unavailable, EnvironmentLost."""
    for host in hosts:
        if (limit_disk := host.capabilities.limit_disk) is not None:
            limit_disk(SPEEDS[name] if name else None)
        elif name:
            raise Unavailable(f"the disk of host {host.name} cannot be limited: use hosts of kind guest")


def storage_facts(mounts: Sequence[Mount], site: Site, limits: Limits) -> dict[str, str]:
    """Return the facts about a site's storage, from its servers and disks, and from the site's mount table."""
    facts = {f"storage: {name}": value for mount in mounts for name, value in mount.facts.items()}
    caches = [mount.cached_by for mount in mounts if mount.cached_by]
    if caches and limits.memory is not None:
        facts["not honoured: memory limit of the page cache"] = f"{caches[0]} keeps files in memory without a limit"
    with suppress(OSError, IndexError):
        if words := mounted(site):
            facts["storage: mounted"] = " ".join(words)
        facts[DATA_FILE_SYSTEM] = (words or mounted(site, "/"))[0]  # a layer is the site's own root
    return facts


def require_in_force(mounts: Iterable[Mount], site: Site) -> None:
    """Raise Unavailable if a site, whose kernel has the mount, does not have its storage at DATA.

    If an engine in another mount namespace does not see a mount, the site gets the folder below it instead.
    """
    for mount in mounts:
        if not mount.filesystem or site.layers != site.host.layers:
            continue
        kind, *options = mounted(site) or ("nothing",)
        if kind != mount.filesystem:
            raise Unavailable(f"{site.title} has {kind} at {DATA}, not the {mount.filesystem} of its storage")
        if lacking := sorted(mount.options - {word for each in options for word in each.split(",")}):
            raise Unavailable(f"{site.title} has {kind} at {DATA}, but not '{lacking[0]}': {','.join(options)}")


def mounted(site: Site, at: str = DATA) -> tuple[str, ...]:
    """Return the file system and options of a mount in a site; () if nothing is mounted there. Raises OSError."""
    table = site.read("/proc/self/mountinfo").decode(errors="replace").splitlines()
    lines = [line for line in table if line.split(" ")[4:5] == [at]]
    return tuple(_without_numbers(lines[-1])) if lines else ()


def _without_numbers(line: str) -> Iterator[str]:
    """Yield file system, mount options and super block options from a line of mountinfo (proc_pid_mountinfo(5))."""
    before, _, after = line.partition(" - ")
    kind, _, own, *_ = *after.split(" "), "", "", ""
    yield from (kind, before.split(" ")[5], own)


def storage_readiness(arm: Arm) -> Readiness:
    """Return whether the storage that an environment of a study names is available here."""
    named = _named(arm.options)
    return Readiness(True) if named is None else ready(registry.storage()[named.kind], named)


def storage_server_readiness(study: Study, arm: Arm) -> Readiness:
    """Return whether the storage server is available, if the study places it on a host with this machine's kernel."""
    named, hosts = _named(arm.options), [study.file.hosts[name] for name in study.storage_hosts]
    served = named is not None and registry.storage()[named.kind].served
    shares_kernel = any(not host.traits.own_kernel for host in hosts)
    return storage_readiness(arm) if served and shares_kernel else Readiness(True)


def _named(options: Any) -> StorageOptions | None:
    return options.storage if isinstance(options, EnvironmentOptions) else None


def _chosen(environment: Environment, options: StorageOptions | None) -> tuple[Storage, StorageOptions]:
    """Return the storage that was named, else the environment's own with its defaults."""
    if options is not None:
        return registry.storage()[options.kind], options
    plugin = registry.storage()[environment.storage]
    return plugin, plugin.options.model_validate({})
