"""On which host a container is opened, and with what engine."""

from typing import Any

from weighbridge.engines.settings import Settings
from weighbridge.environments._docker_problems import ON_PARENT
from weighbridge.model.host import Host
from weighbridge.model.site import SiteRequest

_PURPOSES = {"none": "docker", "host": "docker", "bridge": "nat", "overlay": "swarm"}


def _purpose(options: Any) -> str:
    """What a secluded host is for. An encrypted overlay has rules that a plain one's packets would walk."""
    return _PURPOSES[options.network] + ("-encrypted" if options.encrypted else "")


def host_for(options: Any, request: SiteRequest) -> tuple[Host, Settings]:
    """The host to open on: one of its own where the network or the engine's settings change it.

    On a secluded host that is always so: translation of addresses for one environment costs each connection of its
    host.
    """
    server = request.role == "server"
    disk = options.storage.engine_disk if options.storage else None
    settings = Settings(options.userland_proxy, not (options.publish_by == "proxy" and server), disk, options.dockerd)
    changes = [options.network] if options.network in ON_PARENT else ["bridged"] if options.attach else []
    if not changes and request.host.secluded is not None:
        changes = [_purpose(options)]
    purpose = "-".join(part for part in (*changes, settings.purpose) if part)
    return (request.host.variant(purpose) if purpose else request.host), settings
