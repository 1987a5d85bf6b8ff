"""Packets larger than a cable's: switched off where a host's cable has none."""

from weighbridge.errors import Unavailable
from weighbridge.linux.links import NO_OFFLOADS
from weighbridge.model.command import Command
from weighbridge.model.host import Host

# the names come from the kernel's table of the namespace; /sys may still show another one's
_SWITCH_OFF = """sed -n 's/^ *\\([^:]*\\):.*/\\1/p' /proc/self/net/dev | while read -r name; do
    [ "$name" = lo ] || ethtool -K "$name" "$@"
done"""


def without_offloads(host: Host, pid: int) -> None:
    """Switch them off on the interfaces of the container of ``pid`` and on the host's ends. Raises Unavailable."""
    each = ("sh", "-c", _SWITCH_OFF, "off", *NO_OFFLOADS)
    for prefix in (("nsenter", "--target", str(pid), "--net", "--mount=/proc/1/ns/mnt", "--"), ()):
        done = host.run(Command((*prefix, *each), 30))
        if done.returncode != 0:
            raise Unavailable(f"host {host.name}: offloads cannot be switched off: {done.last_words}")
