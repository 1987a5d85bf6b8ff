"""Facts that apply to every kind of site: its packages, and limits of its programs."""

import hashlib
import itertools
import re
from collections.abc import Sequence

from weighbridge.facts.surroundings import about_surroundings
from weighbridge.linux.confinement import SECCOMP_MODES, id_map, named, status_field
from weighbridge.linux.folders import Mounted, mounted_at
from weighbridge.linux.namespaces import namespaces_in
from weighbridge.model.facts import (
    APPARMOR,
    BOUNDING_SET,
    CAPABILITIES,
    FIRST_PROCESS,
    GROUP_MAP,
    KERNEL,
    MOUNTS,
    NAMESPACES,
    NEW_PRIVILEGES,
    OPEN_FILES,
    ROOT_MOUNT,
    SECCOMP,
    SECCOMP_FILTERS,
    USER_MAP,
)
from weighbridge.model.isolation import SiteLayers
from weighbridge.model.site import Site

UNKNOWN = "unknown"
_APPARMOR = re.compile(r"unconfined|.+ \((?:enforce|complain|kill|prompt|mixed|unconfined)\)")
"""A label of AppArmor; SELinux has different ones in the same file."""


def about_site(site: Site) -> dict[str, str]:
    """Return facts that the site itself reports, without unreadable ones.

    They are its kernel, first process, digest of the package database, limit of open files, backlog of a listener,
    the surroundings of its programs and their confinement.
    """
    read = {KERNEL: _line(site, "/proc/sys/kernel/osrelease"), FIRST_PROCESS: _line(site, "/proc/1/comm")}
    return {
        **{fact: value for fact, value in read.items() if value != UNKNOWN},
        "packages": _digest(site, "/var/lib/dpkg/status"),
        OPEN_FILES: str(site.open_files),
        "backlog of a listener": f"{_line(site, '/proc/sys/net/core/somaxconn')} (net.core.somaxconn)",
        **about_surroundings(site),
        **confinement_of(site),
    }


def confinement_of(site: Site) -> dict[str, str]:
    """Return how the kernel confines a site's programs, from the launcher's files in the site's /proc.

    These are `weighbridge.model.facts.CONFINEMENT` with details. Unreadable facts are omitted.
    """
    status = _line(site, "/proc/self/status")
    mounts = mounted_at(_line(site, "/proc/self/mountinfo"))
    facts = {
        SECCOMP: SECCOMP_MODES.get(status_field(status, "Seccomp"), ""),
        SECCOMP_FILTERS: status_field(status, "Seccomp_filters"),
        CAPABILITIES: named(status_field(status, "CapEff")),
        BOUNDING_SET: named(status_field(status, "CapBnd")),
        USER_MAP: id_map(_line(site, "/proc/self/uid_map")),
        GROUP_MAP: id_map(_line(site, "/proc/self/gid_map")),
        ROOT_MOUNT: _root_in(mounts),
        MOUNTS: str(len(mounts) or ""),
        NEW_PRIVILEGES: {"0": "allowed", "1": "never"}.get(status_field(status, "NoNewPrivs"), ""),
        APPARMOR: _apparmor(site),
        NAMESPACES: _own_namespaces(site),
    }
    return {key: value for key, value in facts.items() if value}


def _root_in(mounts: Sequence[Mounted]) -> str:
    root = [f"{each.filesystem}{', read-only' if each.read_only else ''}" for each in mounts if each.at == "/"]
    return root[-1] if root else ""


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
