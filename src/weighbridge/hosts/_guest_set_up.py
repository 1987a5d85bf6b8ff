"""What a guest host has to have before it is used: its name, its clock, modules, and Xen's services."""

import time

from weighbridge.errors import Unavailable
from weighbridge.guests import system
from weighbridge.hosts._xen import set_up_xen
from weighbridge.hosts.kinds.guest import GuestOptions
from weighbridge.model.command import Command
from weighbridge.model.host import Host

_SET_UP = """set -e
hostname "$1"
printf '127.0.0.1 localhost %s\\n' "$1" > /etc/hosts
: > /etc/resolv.conf
mkdir -p /run/lock
date --set "@$2" > /dev/null
echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6 || true
shift 2
[ $# = 0 ] || modprobe --all "$@"
"""


def set_up(host: Host, options: GuestOptions) -> None:
    """Do so. Raises Unavailable with what failed."""
    # its clock of real time tells whole seconds
    words = ("set-up", f"wb-{host.name}", f"{time.time():.3f}", *system.modules(options.system))
    done = host.run(Command(("sh", "-c", _SET_UP, *words), 120))
    if done.returncode != 0:
        raise Unavailable(f"host {host.name} cannot be set up: {done.last_words}")
    if options.hypervisor:
        set_up_xen(host)
