"""The confinement of a process as /proc shows it: capabilities and the system call filter (proc(5))."""

import re

_CAPABILITIES = """
chown dac_override dac_read_search fowner fsetid kill setgid setuid setpcap linux_immutable net_bind_service
net_broadcast net_admin net_raw ipc_lock ipc_owner sys_module sys_rawio sys_chroot sys_ptrace sys_pacct sys_admin
sys_boot sys_nice sys_resource sys_time sys_tty_config mknod lease audit_write audit_control setfcap mac_override
mac_admin syslog wake_alarm block_suspend audit_read perfmon bpf checkpoint_restore
"""
"""Capabilities, ordered by number (capability(7))."""
SECCOMP_MODES = {"0": "off", "1": "strict", "2": "filter"}
"""The modes by the number in /proc/PID/status."""


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
