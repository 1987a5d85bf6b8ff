"""Makes a host's kernel a usable first domain of Xen: starts the services that ``xl`` needs."""

from collections.abc import Mapping

from weighbridge.errors import Unavailable
from weighbridge.features.guests.accelerator import LAYERS
from weighbridge.features.guests.machine import QemuMachine
from weighbridge.features.guests.xen_domains import WITHIN_FIRST
from weighbridge.model.command import Command
from weighbridge.model.host import Host
from weighbridge.model.isolation import Layers

_SET_UP = """set -e
mkdir -p /var/log/xen /var/lib/xen
modprobe --all xen-gntalloc xen-blkback xen-netback loop
XENCONSOLED_ARGS=--overflow-data=keep /etc/init.d/xen start
xl info > /dev/null
"""
"""With this setting, a console waits for its reader; by default, output that is not read in time is lost."""
_SET_UP_S = 180.0


def set_up_xen(host: Host) -> None:
    """Start Xen's services on a temporary host. Raises Unavailable."""
    completed = host.run(Command(("sh", "-c", _SET_UP), _SET_UP_S))
    if completed.returncode != 0:
        raise Unavailable(f"host {host.name}: Xen cannot be set up: {completed.last_words}")


def hypervisor_facts(machine: QemuMachine) -> Mapping[str, str]:
    """Return the facts of the hypervisor below a guest's kernel; empty without one."""
    if machine.hypervisor is None:
        return {}
    return {"hypervisor": f"xen, with {machine.first_domain_memory >> 20} MiB for this domain"}


def layers_of(machine: QemuMachine) -> Layers:
    """Return the layers around a guest host's programs: its accelerator's guest, and Xen below its kernel."""
    return (LAYERS[machine.accelerator], *(() if machine.hypervisor is None else (WITHIN_FIRST,)))
