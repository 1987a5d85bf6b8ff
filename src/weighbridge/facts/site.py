"""What holds in every kind of site: its packages, and limits that programs meet."""

import hashlib
import itertools

from weighbridge.model.facts import KERNEL, OPEN_FILES
from weighbridge.model.isolation import SiteLayers
from weighbridge.model.site import Site

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
    """Return the hypervisors that a site is in: those that its host is in too, and its own inside of them."""
    pairs = zip(site.host.layers, site.layers, strict=False)
    common = tuple(itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    return SiteLayers(site.host.name, site.layers[: len(common)], site.layers[len(common) :])


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
