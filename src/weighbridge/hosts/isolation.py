"""What is between a container or sandbox and its host: its first process, and what the kernel tells of that."""

import re

from weighbridge.errors import Unavailable
from weighbridge.model.command import Command
from weighbridge.model.host import Group, Host

_CAPABILITIES = """
chown dac_override dac_read_search fowner fsetid kill setgid setuid setpcap linux_immutable net_bind_service
net_broadcast net_admin net_raw ipc_lock ipc_owner sys_module sys_rawio sys_chroot sys_ptrace sys_pacct sys_admin
sys_boot sys_nice sys_resource sys_time sys_tty_config mknod lease audit_write audit_control setfcap mac_override
mac_admin syslog wake_alarm block_suspend audit_read perfmon bpf checkpoint_restore
"""
"""By number (capability(7))."""
_OWN_NAMESPACES = """for name in cgroup ipc mnt net pid time user uts; do
    [ "$(readlink "/proc/$1/ns/$name")" = "$(readlink "/proc/self/ns/$name")" ] || echo "$name"
done"""


def isolation(host: Host, pid: int) -> dict[str, str]:
    """Return the isolation between a container and its host: namespaces, dropped capabilities, system call filter."""
    own = host.run(Command(("sh", "-c", _OWN_NAMESPACES, "own", str(pid)), 20)).text.split()
    inside = host.run(Command(("cat", f"/proc/{pid}/status"), 20)).text
    outside = host.run(Command(("cat", "/proc/self/status"), 20)).text
    seccomp = {"0": "off", "1": "strict", "2": "filter"}.get(_field(inside, "Seccomp"), "unknown")
    return {
        "namespaces": " ".join(own),
        "dropped capabilities": " ".join(dropped(_field(outside, "CapBnd"), _field(inside, "CapBnd"))) or "none",
        "seccomp": seccomp,
    }


def dropped(outside: str, inside: str) -> list[str]:
    """Return the capabilities that one bounding set has and the other has not, as proc(5) writes them."""
    try:
        missing = int(outside, 16) & ~int(inside, 16)
    except ValueError:
        return []
    return [name for number, name in enumerate(_CAPABILITIES.split()) if missing >> number & 1]


def _field(status: str, name: str) -> str:
    match = re.search(rf"^{name}:\s*(\S+)", status, re.MULTILINE)
    return match[1] if match else ""


# the first process of a namespace is 1 there, whatever its number here
_FIRST_PROCESS = """if [ -d "$1" ]; then find "$1" -name cgroup.procs -exec cat {} +; else
    cat "/proc/$1/task/$1/children"
fi | tr ' ' '\\n' | while read -r pid; do
    if grep -q "^NSpid:.*[[:space:]]1$" "/proc/$pid/status" 2>/dev/null; then echo "$pid"; fi
done"""


def first_process(host: Host, of: Group | int, name: str) -> int:
    """Return the number, on its host, of the first process of the site ``name``.

    It is in a control group, or is a child of the process ``of``. Raises Unavailable where there is not one.
    """
    where = str(of) if isinstance(of, int) else str(of.procs[0].parent)
    pids = host.run(Command(("sh", "-c", _FIRST_PROCESS, "first", where), 20)).text.split()
    if len(pids) != 1:
        within = "below its program" if isinstance(of, int) else "in its control group"
        raise Unavailable(f"{name}: its first process cannot be told from {len(pids)} {within}")
    return int(pids[0])
