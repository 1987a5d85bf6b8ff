"""The names and labels of Prometheus metrics, which a live run and a finished run share."""

from collections.abc import Iterable

from weighbridge.model.isolation import SiteLayers

PREFIX = "weighbridge_"
LAYERS = ("environment", "layers", "emulated")
CELL = ("workload", "level", *LAYERS)


def environment_labels(environment: str, sites: Iterable[SiteLayers]) -> tuple[str, str, str]:
    """Return the values of `LAYERS`. The layers are like ``Xen PVH inside QEMU, TCG``, or ""."""
    sites = tuple(sites)
    layers = "; ".join(dict.fromkeys(site.names for site in sites))
    return environment, layers, "true" if any(site.emulated for site in sites) else "false"
