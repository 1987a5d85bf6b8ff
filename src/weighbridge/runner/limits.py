"""The limits of a site, from the study's resources and its host's CPUs."""

from weighbridge.errors import Unavailable
from weighbridge.model.host import Host, Limits
from weighbridge.model.quantity import cpus_in
from weighbridge.model.site import Site
from weighbridge.model.study import Role, Study


def limits_of(study: Study, role: Role, host: Host) -> Limits:
    """The limits of a role's sites on a host. Unavailable where the study pins to a CPU that is not there."""
    resources, online = study.file.resources, host.cpus_online()
    cpuset = host.cpuset
    if resources.pin == "spread":
        cpuset = str(online[(0 if role != "client" else 1) % len(online)])
    elif resources.pin is not None:
        cpuset = resources.pin.get("client" if role == "client" else "server", cpuset)
    for cpu in cpus_in(cpuset) if cpuset else ():
        if cpu not in online:
            raise Unavailable(f"the study pins {role} to CPU {cpu}, but host {host.name} has only {online}")
    period_us = round(resources.cpu_period * 1e6)
    return Limits(resources.cpus, resources.memory, cpuset, period_us)


def cpus_of(study: Study, role: Role, site: Site) -> int:
    """Return on how many CPUs the processes of a role's site may run."""
    cpuset = limits_of(study, role, site.host).cpuset
    return len(cpus_in(cpuset) if cpuset else site.host.cpus_online())
