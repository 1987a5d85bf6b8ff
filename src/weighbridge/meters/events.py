"""Reads the kernel's counters of events in a trial: drops, packets, flushes, exits of guests.

They are read once before and once after the measured process, as the first and the last readings, so that reading
does not count as its work. Missing counters are absent, and never zero.
"""

import contextlib
from collections.abc import Mapping

from weighbridge.linux import counters
from weighbridge.meters.machines import Networks, Read
from weighbridge.model.measurement import EVENT_COUNTERS

_FLUSHES, _BUSY = "_disk_flushes", "_disk_busy_s"
"""The ends of the names of a disk's counters, after the disk's name."""
_EXITS = "/sys/kernel/debug/kvm/exits"
"""The exits of all guests of a machine since their start. Readable by root if debugfs is mounted."""


def machine_events(read: Read, *, disks: bool) -> dict[str, float]:
    """Return a machine's counters of network software interrupts and guests and, with ``disks``, of each disk."""
    events: dict[str, float] = {}
    with contextlib.suppress(OSError, ValueError):
        events |= counters.softnet(read("/proc/net/softnet_stat").decode())
    with contextlib.suppress(OSError, ValueError):
        events["vm_exits"] = float(int(read(_EXITS)))
    if disks:
        with contextlib.suppress(OSError, ValueError):
            for name, (flushes, busy_s) in counters.disk_flushes(read("/proc/diskstats").decode()).items():
                events |= {f"{name}{_FLUSHES}": flushes, f"{name}{_BUSY}": busy_s}
    return events


def network_events(networks: Networks) -> dict[str, float]:
    """Return the IPv4 packets that all network namespaces received, and the packets that conntrack rejected."""
    total: dict[str, float] = {}
    for (_, dev), (read, snmp) in networks.items():
        folder = dev.rpartition("/")[0]
        with contextlib.suppress(OSError, ValueError):
            _add(total, counters.received(read(f"{folder}/netstat").decode(), read(snmp).decode()))
        with contextlib.suppress(OSError, ValueError):
            _add(total, counters.conntrack(read(f"{folder}/stat/nf_conntrack").decode()))
    return total


def events_of_machines(used: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return the sums over all machines of the growth of their counters.

    The busiest disk of each machine counts, and the disk that flushed most, because the same bytes pass through
    several disks: a loop device and the disk below it. Counters that a machine does not have are left out.
    """
    machines = [_of_busiest_disk(grown) for grown in used.values()]
    common = set.intersection(*(set(events) for events in machines)) if machines else set()
    return {
        name: (max if name == "disk_busy_s" else sum)(events[name] for events in machines) for name in sorted(common)
    }


def _of_busiest_disk(grown: Mapping[str, float]) -> dict[str, float]:
    events = {each.name: grown[each.name] for each in EVENT_COUNTERS if each.name in grown}
    for name, end in (("disk_flushes", _FLUSHES), ("disk_busy_s", _BUSY)):
        if of_disks := [value for counter, value in grown.items() if counter.endswith(end)]:
            events[name] = max(of_disks)
    return events


def _add(total: dict[str, float], further: Mapping[str, float]) -> None:
    for name, value in further.items():
        total[name] = total.get(name, 0.0) + value
