"""Which hosts of a run are on one machine: then each of its CPUs, and each segment of its network, counts once.

A machine is told by its kernel's boot: two names in an OpenSSH configuration, or two containers, may lead to one.
The containers of systemd-nspawn and LXC show a boot of their own, and count as machines of their own.
"""

from collections.abc import Collection, Mapping

from weighbridge.meters.machines import read_here
from weighbridge.model.host import HERE, Host

BOOT_ID = "/proc/sys/kernel/random/boot_id"


def name_machines(hosts: Collection[Host]) -> None:
    """Have hosts of one kernel name the same machine, and those in one network namespace of it the same network.

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
    """What tells the kernel of a host (None: this machine's), since its boot; empty where it cannot be read."""
    try:
        return (read_here if host is None else host.read)(BOOT_ID).decode(errors="replace").strip()
    except OSError:
        return ""


def same_machine(machines: Mapping[str, str], boots: Mapping[str, str], here: str) -> dict[str, str]:
    """Return the machine of each host: `HERE`, or that of the first host of its kernel.

    ``machines``: by the hosts' names, what each is on as far as it knows; one that says `HERE` is right. ``boots``:
    what tells their kernels, "" where that is not known. ``here``: what tells this machine's.
    """
    by_boot = {here: HERE} | {boots[name]: HERE for name, machine in machines.items() if machine == HERE}
    return {
        name: by_boot.setdefault(boots[name], machine) if boots[name] and machine != HERE else machine
        for name, machine in machines.items()
    }
