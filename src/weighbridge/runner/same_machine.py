"""Finds the hosts of a run that are on one machine, so that each CPU and network segment counts once.

The boot id of the kernel identifies a machine, because two names in an OpenSSH configuration, or two containers, can
lead to one machine. Containers of systemd-nspawn and LXC show a boot id of their own, so they count as separate
machines.
"""

from collections.abc import Collection, Mapping

from weighbridge.linux.kernel_files import read_here
from weighbridge.model.host import HERE, Host

BOOT_ID = "/proc/sys/kernel/random/boot_id"


def name_machines(hosts: Collection[Host]) -> None:
    """Assign one machine to hosts with one kernel, and one network to hosts in one network namespace.

    Raises EnvironmentLost.
    """
    boots = {host.name: boot_of(host) for host in hosts}
    machines = same_machine({host.name: host.machine for host in hosts}, boots, boot_of(None))
    networks: dict[tuple[str, int, int], str] = {}
    for host in hosts:
        host.machine = machines[host.name]
        numbers = host.namespaces()
        if "net" in numbers and "pid" in numbers:  # paths of its counters name processes
            key = host.machine, numbers["net"], numbers["pid"]
            host.network = networks.setdefault(key, host.network[0]), host.network[1]


def boot_of(host: Host | None) -> str:
    """Return the boot id of a host's kernel (None: this machine's); empty if it cannot be read."""
    try:
        return (read_here if host is None else host.read)(BOOT_ID).decode(errors="replace").strip()
    except OSError:
        return ""


def same_machine(machines: Mapping[str, str], boots: Mapping[str, str], here: str) -> dict[str, str]:
    """Return the machine of each host: `HERE`, or the machine of the first host with its kernel.

    ``machines`` has the machine of each host by its name, as far as the host knows; `HERE` is always right. ``boots``
    has the boot ids, "" if unknown, and ``here`` is the boot id of this machine.
    """
    by_boot = {here: HERE} | {boots[name]: HERE for name, machine in machines.items() if machine == HERE}
    return {
        name: by_boot.setdefault(boots[name], machine) if boots[name] and machine != HERE else machine
        for name, machine in machines.items()
    }
