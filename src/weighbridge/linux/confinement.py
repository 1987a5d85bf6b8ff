"""The confinement of a process as /proc shows it: capabilities, filters, namespaces, users and mounts (proc(5))."""

import re
from collections.abc import Sequence

from weighbridge.linux.folders import Mounted, mounted_at
from weighbridge.linux.namespaces import namespaces_in
from weighbridge.model.facts import (
    APPARMOR,
    BOUNDING_SET,
    CAPABILITIES,
    GROUP_MAP,
    MOUNTS,
    NAMESPACES,
    NEW_PRIVILEGES,
    ROOT_MOUNT,
    SECCOMP,
    SECCOMP_FILTERS,
    USER_MAP,
)
from weighbridge.model.site import Site

UNKNOWN = "unknown"
_APPARMOR = re.compile(r"unconfined|.+ \((?:enforce|complain|kill|prompt|mixed|unconfined)\)")
"""A label of AppArmor; SELinux has different ones in the same file."""

_CAPABILITIES = """
chown dac_override dac_read_search fowner fsetid kill setgid setuid setpcap linux_immutable net_bind_service
net_broadcast net_admin net_raw ipc_lock ipc_owner sys_module sys_rawio sys_chroot sys_ptrace sys_pacct sys_admin
sys_boot sys_nice sys_resource sys_time sys_tty_config mknod lease audit_write audit_control setfcap mac_override
mac_admin syslog wake_alarm block_suspend audit_read perfmon bpf checkpoint_restore
"""
"""Capabilities, ordered by number (capability(7))."""
SECCOMP_MODES = {"0": "off", "1": "strict", "2": "filter"}
"""The modes by the number in /proc/PID/status."""
_EVERY_ID = 2**32 - 1
_NUMBER = re.compile("[0-9]{1,10}")


def status_field(status: str, name: str) -> str:
    """Return the value of a field in the text of a /proc/PID/status; empty if it is missing."""
    match = re.search(rf"^{name}:\s*(\S+)", status, re.MULTILINE)
    return match[1] if match else ""


def named(capabilities: str) -> str:
    """Return the names of a capability set as in proc(5), "all" or "none"; empty for invalid text."""
    try:
        mask = int(capabilities, 16)
    except ValueError:
        return ""
    every = _CAPABILITIES.split()
    names = [name for number, name in enumerate(every) if mask >> number & 1]
    return "all" if names == every else " ".join(names) or "none"


def lacking(capabilities: str) -> list[str]:
    """Return the names of the capabilities that are not in a set as in proc(5); empty for invalid text."""
    has = named(capabilities)
    return [] if has in ("", "all") else [name for name in _CAPABILITIES.split() if name not in has.split()]


def id_map(text: str) -> str:
    """Return the users or groups in a uid_map or gid_map (user_namespaces(7)), in words; "" for invalid text.

    "as on the host" if all have their own numbers, else "0 is 1000", "0-9 are 100000-100009".
    """
    lines = [line.split() for line in text.splitlines() if line.strip()]
    if not lines or any(len(line) != 3 or not all(map(_NUMBER.fullmatch, line)) for line in lines):
        return ""
    ranges = [(int(inside), int(outside), int(count)) for inside, outside, count in lines]
    if ranges == [(0, 0, _EVERY_ID)]:
        return "as on the host"
    return ", ".join(
        f"{first} is {host}" if count == 1 else f"{first}-{first + count - 1} are {host}-{host + count - 1}"
        for first, host, count in ranges
    )


def confinement_of(site: Site) -> dict[str, str]:
    """Return how the kernel confines a site's programs, from the launcher's files in the site's /proc.

    These are `weighbridge.model.facts.CONFINEMENT` with details. Unreadable facts are omitted.
    """
    status = line_of(site, "/proc/self/status")
    mounts = mounted_at(line_of(site, "/proc/self/mountinfo"))
    facts = {
        SECCOMP: SECCOMP_MODES.get(status_field(status, "Seccomp"), ""),
        SECCOMP_FILTERS: status_field(status, "Seccomp_filters"),
        CAPABILITIES: named(status_field(status, "CapEff")),
        BOUNDING_SET: named(status_field(status, "CapBnd")),
        USER_MAP: id_map(line_of(site, "/proc/self/uid_map")),
        GROUP_MAP: id_map(line_of(site, "/proc/self/gid_map")),
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
    labels = (line_of(site, f"/proc/self/attr/{path}").rstrip("\0") for path in ("apparmor/current", "current"))
    return next((label for label in labels if _APPARMOR.fullmatch(label)), "")


def _own_namespaces(site: Site) -> str:
    """Return the kinds of namespaces that differ from its host's; empty if it has its own kernel, or if unknown."""
    inside = namespaces_in(lambda kind: line_of(site, f"/proc/self/ns/{kind}"))
    if not inside or site.layers != site.host.layers or not (outside := site.host.namespaces()):
        return ""
    return " ".join(kind for kind, number in inside.items() if outside.get(kind, number) != number) or "none"


def line_of(site: Site, path: str) -> str:
    """Return a short file of a site without spaces around it, or `UNKNOWN`."""
    try:
        return site.read(path).decode(errors="replace").strip()
    except OSError:
        return UNKNOWN
