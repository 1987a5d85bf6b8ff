"""What the kernel tells in /proc of how a process is confined: capabilities, filter of system calls (proc(5))."""

import re

_CAPABILITIES = """
chown dac_override dac_read_search fowner fsetid kill setgid setuid setpcap linux_immutable net_bind_service
net_broadcast net_admin net_raw ipc_lock ipc_owner sys_module sys_rawio sys_chroot sys_ptrace sys_pacct sys_admin
sys_boot sys_nice sys_resource sys_time sys_tty_config mknod lease audit_write audit_control setfcap mac_override
mac_admin syslog wake_alarm block_suspend audit_read perfmon bpf checkpoint_restore
"""
"""By number (capability(7))."""
SECCOMP_MODES = {"0": "off", "1": "strict", "2": "filter"}
"""By the number in /proc/PID/status."""


def status_field(status: str, name: str) -> str:
    """The value of a field in the text of a /proc/PID/status; empty where it has none."""
    match = re.search(rf"^{name}:\s*(\S+)", status, re.MULTILINE)
    return match[1] if match else ""


def named(capabilities: str) -> str:
    """The names of a set of capabilities as proc(5) writes it, "all" or "none"; empty where it is no such set."""
    try:
        mask = int(capabilities, 16)
    except ValueError:
        return ""
    every = _CAPABILITIES.split()
    names = [name for number, name in enumerate(every) if mask >> number & 1]
    return "all" if names == every else " ".join(names) or "none"


def lacking(capabilities: str) -> list[str]:
    """The names of those that a set of capabilities, as proc(5) writes it, has not; none where it is no such set."""
    has = named(capabilities)
    return [] if has in ("", "all") else [name for name in _CAPABILITIES.split() if name not in has.split()]
