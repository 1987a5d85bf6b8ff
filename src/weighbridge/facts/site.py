"""Facts that apply to every kind of site: its packages, and limits of its programs."""

import hashlib
import itertools
from collections.abc import Callable

from weighbridge.facts.io_uring import about_io_uring
from weighbridge.facts.surroundings import about_surroundings
from weighbridge.linux.confinement import UNKNOWN, confinement_of, line_of
from weighbridge.model.facts import FIRST_PROCESS, KERNEL, OPEN_FILES
from weighbridge.model.isolation import SiteLayers
from weighbridge.model.site import Site


def about_site(site: Site, launcher_outside: Callable[[], str] = lambda: "") -> dict[str, str]:
    """Return facts that the site itself reports, without unreadable ones.

    They are its kernel, first process, digest of the package database, limit of open files, backlog of a listener,
    and the surroundings of its programs. They also are their confinement, and whether they can use io_uring.
    ``launcher_outside`` is as in `about_io_uring`.
    """
    read = {KERNEL: line_of(site, "/proc/sys/kernel/osrelease"), FIRST_PROCESS: line_of(site, "/proc/1/comm")}
    return {
        **{fact: value for fact, value in read.items() if value != UNKNOWN},
        "packages": _digest(site, "/var/lib/dpkg/status"),
        OPEN_FILES: str(site.open_files),
        "backlog of a listener": f"{line_of(site, '/proc/sys/net/core/somaxconn')} (net.core.somaxconn)",
        **about_surroundings(site),
        **confinement_of(site),
        **about_io_uring(site, launcher_outside),
    }


def layers_of_site(site: Site) -> SiteLayers:
    """Return the hypervisors around a site: those shared with its host, and its own inside of them."""
    pairs = zip(site.host.layers, site.layers, strict=False)
    common = tuple(itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    return SiteLayers(site.host.name, site.layers[: len(common)], site.layers[len(common) :])


def _digest(site: Site, path: str) -> str:
    try:
        return hashlib.sha256(site.read(path)).hexdigest()
    except OSError as error:
        return f"unreadable: {error.strerror}"
