"""What holds in every kind of site: its packages, and limits that programs meet."""

import hashlib

from weighbridge.model.isolation import SiteLayers
from weighbridge.model.site import Site
from weighbridge.model.site_facts import KERNEL, OPEN_FILES

UNKNOWN = "unknown"


def about_site(site: Site) -> dict[str, str]:
    """By name: the kernel under its programs, the SHA-256 of its package database, open files, backlog of a listener.

    The kernel is what the site itself says; an unreadable one is omitted.
    """
    kernel = _line(site, "/proc/sys/kernel/osrelease")
    return {
        **({KERNEL: kernel} if kernel != UNKNOWN else {}),
        "packages": _digest(site, "/var/lib/dpkg/status"),
        OPEN_FILES: str(site.open_files),
        "backlog of a listener": f"{_line(site, '/proc/sys/net/core/somaxconn')} (net.core.somaxconn)",
    }


def layers_of_site(site: Site) -> SiteLayers:
    """In which hypervisors it is: its host's, and its own inside of them."""
    outer = site.host.layers
    return SiteLayers(site.host.name, outer, site.layers[len(outer) :])


def _digest(site: Site, path: str) -> str:
    try:
        return hashlib.sha256(site.read(path)).hexdigest()
    except OSError as error:
        return f"unreadable: {error.strerror}"


def _line(site: Site, path: str) -> str:
    try:
        return site.read(path).decode(errors="replace").strip()
    except OSError:
        return UNKNOWN
