"""What the kernel counted of a trial's work beside CPU time: drops, packets, flushes, exits of guests.

It is read once before the measured process and once after it, by what stands farthest from it: reading costs nothing
that is measured. What a machine does not tell is absent, and never zero.
"""

import contextlib
from collections.abc import Mapping
from pathlib import Path

from weighbridge.linux import counters
from weighbridge.meters.machines import Networks, Read
from weighbridge.model.measurement import EVENT_COUNTERS

_FLUSHES, _BUSY = "_disk_flushes", "_disk_busy_s"
"""How the names of a disk's counters end, after its own name."""
_EXITS = "/sys/kernel/debug/kvm/exits"
"""How often all guests of a machine were left, since they were started: root's, where debugfs is mounted."""


def machine_events(read: Read, *, disks: bool) -> dict[str, float]:
    """Return a machine's counters: of its network's software interrupts, of guests, where asked of each disk."""
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
    """Return the IPv4 packets that all network namespaces received, and what their tables of connections dropped."""
    total: dict[str, float] = {}
    for (_, dev), (read, snmp) in networks.items():
        with contextlib.suppress(OSError, ValueError):
            _add(total, counters.received(read(str(Path(dev).with_name("netstat"))).decode(), read(snmp).decode()))
        with contextlib.suppress(OSError, ValueError):
            _add(total, counters.conntrack(read(str(Path(dev).with_name("stat") / "nf_conntrack")).decode()))
    return total


def events_of_machines(used: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return what all machines counted together, by how much each one's counters grew.

    Of its disks the busiest counts (the same bytes pass several: a loop device and the disk below it), and the one
    that flushed most. What some machine does not tell is left out.
    """
    machines = [_of_busiest_disk(grown) for grown in used.values()]
    told = set.intersection(*(set(events) for events in machines)) if machines else set()
    return {
        name: (max if name == "disk_busy_s" else sum)(events[name] for events in machines) for name in sorted(told)
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
