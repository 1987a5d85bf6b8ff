"""Collects the facts that a run stores about its study and its sites."""

from collections.abc import Callable, Mapping

from weighbridge import registry
from weighbridge.facts.differences import about_hosts
from weighbridge.model import isolation
from weighbridge.model.host import SPEEDS
from weighbridge.model.study import Arm, Cell, Study
from weighbridge.model.workload import Endpoint
from weighbridge.runner.continuity import SUPPORTING_SERVICES, require_same_layers, require_same_supporting_services
from weighbridge.runner.sites import Sites
from weighbridge.runner.storage import durability_of
from weighbridge.store.run import RunStore


def about_study(study: Study) -> dict[str, dict[str, str]]:
    """Return the facts that are true of a study on any machine, by scope."""
    return {
        "durability": durabilities(study),
        "unverified": unverified_parts(study),
        "links": unlimited_links(study),
        "disks": disks_and_caches(study),
    }


def unlimited_links(study: Study) -> dict[str, str]:
    """Return the workloads that are measured without the rate limit of the hosts' cables."""
    limited = any(options.cable_rate is not None for options in study.file.hosts.values())
    without = [cell.workload for cell in study.cells if limited and cell.link == "none"]
    return {f"link of {name}": "no rate limit during its trials" for name in without}


def durabilities(study: Study) -> dict[str, str]:
    """Return what a power cut leaves of each workload's data in each environment, by "ENVIRONMENT/WORKLOAD"."""
    pairs = [(arm, cell) for cell in study.cells for arm in study.arms_of(cell)]
    durability_by_place = {f"{arm.name}/{cell.label}": durability_of(study, arm, cell) for arm, cell in pairs}
    return {place: durability for place, durability in durability_by_place.items() if durability is not None}


def unverified_parts(study: Study) -> dict[str, str]:
    """Return the parts of a study that were never tried on real hardware, by environment and "host NAME"."""
    environments, kinds = registry.environments(), registry.hosts()
    reasons = {arm.name: environments[arm.kind].unverified(arm.options) for arm in study.arms}
    for name in (study.server_host, *study.client_hosts):
        if options := study.file.hosts.get(name):
            reasons[f"host {name}"] = kinds[options.kind].unverified(options)
    return {what: why for what, why in reasons.items() if why}


def disks_and_caches(study: Study) -> dict[str, str]:
    """Return the workloads whose disks are limited, with the limit, and those whose page caches start empty."""
    slowed = {
        f"disk of {cell.label}": str(SPEEDS[cell.disk_speed]) for cell in study.cells if cell.disk_speed is not None
    }
    kinds = registry.workloads()
    cold = {
        cell.workload: "trial" if kinds[cell.kind].openings(cell.options) is None else "start"
        for cell in study.cells
        if kinds[cell.kind].cold(cell.options)
    }
    return slowed | {f"page caches before {name}": f"emptied before each {what}" for name, what in cold.items()}


def packet_sizes(study: Study, endpoint_of: Callable[[Arm, Cell], Endpoint]) -> dict[str, str]:
    """Return the packet size of each workload in each environment, by "ENVIRONMENT/WORKLOAD", if it has one."""
    sizes = {}
    for cell in study.cells:
        for arm in study.arms_of(cell):
            workload, options = registry.workloads()[cell.kind], study.options(arm, cell)
            if not workload.transports(options):
                continue
            size = workload.packet_size(options, endpoint_of(arm, cell))
            probed = " (probed)" if workload.wants_payload(options) else ""
            if size is not None:
                sizes[f"{arm.name}/{cell.label}"] = f"{size} B{probed}"
    return sizes


def note_sites(store: RunStore, study: Study, sites: Sites) -> None:
    """Store the facts of a run's open sites. Raises RunDirectoryError if the hypervisors have changed."""
    layers = sites.layers()
    require_same_layers(store, layers)
    scopes: dict[str, Mapping[str, str]] = {isolation.SCOPE: layers, **sites.facts(), **about_hosts(sites.hosts)}
    if sites.neighbourhood is not None:
        require_same_supporting_services(store, sites.neighbourhood.images)
        scopes[SUPPORTING_SERVICES] = sites.neighbourhood.images
    scopes |= {"path": sites.routes.paths(), "packet sizes": packet_sizes(study, sites.endpoint_of)}
    for scope, facts in (scopes | about_study(study)).items():
        store.add_facts(scope, facts)
