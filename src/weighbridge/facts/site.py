"""Facts that apply to every kind of site: its packages, and limits of its programs."""

import hashlib
import itertools
import re

from weighbridge.facts.io_uring import about_io_uring
from weighbridge.facts.surroundings import about_surroundings
from weighbridge.linux.confinement import SECCOMP_MODES, named, status_field
from weighbridge.linux.namespaces import namespaces_in
from weighbridge.model.facts import (
    APPARMOR,
    CAPABILITIES,
    FIRST_PROCESS,
    KERNEL,
    NAMESPACES,
    NEW_PRIVILEGES,
    OPEN_FILES,
    SECCOMP,
)
from weighbridge.model.isolation import SiteLayers
from weighbridge.model.site import Site

UNKNOWN = "unknown"
_APPARMOR = re.compile(r"unconfined|.+ \((?:enforce|complain|kill|prompt|mixed|unconfined)\)")
"""A label of AppArmor; SELinux has different ones in the same file."""


def about_site(site: Site) -> dict[str, str]:
    """Return facts that the site itself reports, without unreadable ones.

    They are its kernel, first process, digest of the package database, limit of open files, backlog of a listener,
    the surroundings of its programs, their confinement, and whether they can use io_uring.
    """
    read = {KERNEL: _line(site, "/proc/sys/kernel/osrelease"), FIRST_PROCESS: _line(site, "/proc/1/comm")}
    return {
        **{fact: value for fact, value in read.items() if value != UNKNOWN},
        "packages": _digest(site, "/var/lib/dpkg/status"),
        OPEN_FILES: str(site.open_files),
        "backlog of a listener": f"{_line(site, '/proc/sys/net/core/somaxconn')} (net.core.somaxconn)",
        **about_surroundings(site),
        **_confinement(site),
        **about_io_uring(site),
    }


def _confinement(site: Site) -> dict[str, str]:
    """Return `weighbridge.model.facts.CONFINEMENT` from the launcher's files in the site's /proc."""
    status = _line(site, "/proc/self/status")
    facts = {
        SECCOMP: SECCOMP_MODES.get(status_field(status, "Seccomp"), ""),
        CAPABILITIES: named(status_field(status, "CapEff")),
        NEW_PRIVILEGES: {"0": "allowed", "1": "never"}.get(status_field(status, "NoNewPrivs"), ""),
        APPARMOR: _apparmor(site),
        NAMESPACES: _own_namespaces(site),
    }
    return {key: value for key, value in facts.items() if value}


def _apparmor(site: Site) -> str:
    labels = (_line(site, f"/proc/self/attr/{path}").rstrip("\0") for path in ("apparmor/current", "current"))
    return next((label for label in labels if _APPARMOR.fullmatch(label)), "")


def _own_namespaces(site: Site) -> str:
    """Return the kinds of namespaces that differ from its host's; empty if it has its own kernel, or if unknown."""
    inside = namespaces_in(lambda kind: _line(site, f"/proc/self/ns/{kind}"))
    if not inside or site.layers != site.host.layers or not (outside := site.host.namespaces()):
        return ""
    return " ".join(kind for kind, number in inside.items() if outside.get(kind, number) != number) or "none"


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


def _line(site: Site, path: str) -> str:
    try:
        return site.read(path).decode(errors="replace").strip()
    except OSError:
        return UNKNOWN
