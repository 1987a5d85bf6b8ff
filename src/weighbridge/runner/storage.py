"""Which storage each site has: what the study says, else what the environment has for workloads that need one."""

from typing import Any

from weighbridge import registry
from weighbridge.model.mount import SiteStorage
from weighbridge.model.plugin import Durability, Environment, Readiness
from weighbridge.model.storage import EnvironmentOptions, Storage, StorageOptions, weaker
from weighbridge.model.study import Arm, Cell, Study
from weighbridge.runner.readiness import ready


def site_storage(environment: Environment, options: Any, study: Study, role: str) -> SiteStorage | None:
    """The storage of a site with these options of its environment; None where nothing asks for one.

    Where a workload keeps data, all sites but clients have one.
    """
    named = _named(options)
    needed = any(registry.workloads()[cell.kind].needs_data(cell.options) for cell in study.cells)
    if named is None and (role == "client" or not needed or not environment.storage):
        return None
    plugin, chosen = _chosen(environment, named)
    return SiteStorage(plugin.kind, lambda request: plugin.open(chosen, request))


def durability_of(study: Study, arm: Arm, cell: Cell) -> Durability | None:
    """What a power cut leaves of a workload's data in an environment: the weaker of the program and its storage."""
    workload, options = registry.workloads()[cell.kind], study.options(arm, cell)
    own = workload.durability(options)
    inside = "server" in study.file.inside or "solo" in workload.roles(options)
    environment = registry.environments()[arm.kind if inside else "native"]
    named = _named(arm.options) if inside else None
    if own is None or (named is None and not (workload.needs_data(options) and environment.storage)):
        return own
    plugin, chosen = _chosen(environment, named)
    return weaker(own, plugin.durability(chosen))


def storage_readiness(arm: Arm) -> Readiness:
    """Whether the storage that an environment of a study names can be had here."""
    named = _named(arm.options)
    return Readiness(True) if named is None else ready(registry.storage()[named.kind], named)


def _named(options: Any) -> StorageOptions | None:
    return options.storage if isinstance(options, EnvironmentOptions) else None


def _chosen(environment: Environment, options: StorageOptions | None) -> tuple[Storage, StorageOptions]:
    """The storage that was named, else the environment's own with its defaults."""
    if options is not None:
        return registry.storage()[options.kind], options
    plugin = registry.storage()[environment.storage]
    return plugin, plugin.options.model_validate({})
