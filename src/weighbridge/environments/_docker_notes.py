"""What is particular about a container of Docker's, beside what its engine tells."""

from typing import Any

from weighbridge.engines import gvisor
from weighbridge.engines.docker import Engine
from weighbridge.model.site import DATA, SiteRequest


def way_to_companions(options: Any) -> str:
    """Return how a container gets to the companions of a study; "" where no network of its own leads there."""
    if options.network == "host":
        return "host to bridge"
    return "on the same bridge" if options.network == "bridge" and not options.attach else ""


def notes_of(options: Any, request: SiteRequest, made: Engine) -> dict[str, str]:
    """Return it by what it is about; ``options`` are those of the environment."""
    notes: dict[str, str] = {"network": options.network, "seccomp": options.seccomp}
    if request.userland.of_this_machine:
        notes["root"] = "this machine's own root folder, bound into the container"
    if made.layered:
        notes["image"] = "its lower layer is the host's own disk of the userland"
    if options.runtime == "runsc":
        notes |= gvisor.facts(made, options.network)
    proxied = options.publish_on == "loopback" and options.userland_proxy
    if options.publish and (options.publish_by == "proxy" or proxied):
        notes["not honoured: limits of docker-proxy"] = "it carries this environment's traffic outside of all limits"
    if request.storage is not None:
        notes["storage"] = f"{DATA} on {request.storage.kind}"
    return notes
