"""Events that the kernel counts during a trial in addition to CPU time: drops, packets, flushes, exits of guests.

They are read once before and once after the measured process, so that reading does not affect it. Missing counters
are absent, never zero.
"""

import contextlib
from collections.abc import Mapping
from pathlib import Path

from weighbridge.linux import counters
from weighbridge.meters.machines import Networks, Read

_FLUSHES, _BUSY = "_disk_flushes", "_disk_busy_s"
"""The ends of the names of a disk's counters."""
_EXITS = "/sys/kernel/debug/kvm/exits"
"""The number of exits of all guests on a machine since their start; only root can read it, if debugfs is mounted."""


def machine_events(read: Read, *, disks: bool) -> dict[str, float]:
    """Return a machine's counters for network interrupts, for guests and, with ``disks``, for each disk."""
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
    """Return the IPv4 packets received in all network namespaces, and the drops of their connection tables."""
    total: dict[str, float] = {}
    for (_, dev), (read, snmp) in networks.items():
        with contextlib.suppress(OSError, ValueError):
            _add(total, counters.received(read(str(Path(dev).with_name("netstat"))).decode(), read(snmp).decode()))
        with contextlib.suppress(OSError, ValueError):
            _add(total, counters.conntrack(read(str(Path(dev).with_name("stat") / "nf_conntrack")).decode()))
    return total


def events_of_machines(used: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return the sum of all machines' counters, given the growth of each.

    Of a machine's disks, the busiest counts (the same bytes pass several: a loop device and the disk below it), and
    the one with the most flushes. Counters that are missing on some machine are omitted.
    """
    machines = [_of_busiest_disk(grown) for grown in used.values()]
    told = set.intersection(*(set(events) for events in machines)) if machines else set()
    return {
        name: (max if name == "disk_busy_s" else sum)(events[name] for events in machines) for name in sorted(told)
    }


def _of_busiest_disk(grown: Mapping[str, float]) -> dict[str, float]:
    events = {name: grown[name] for name in ("softnet_drops", "softnet_squeezes", "vm_exits") if name in grown}
    for name, end in (("disk_flushes", _FLUSHES), ("disk_busy_s", _BUSY)):
        if of_disks := [value for counter, value in grown.items() if counter.endswith(end)]:
            events[name] = max(of_disks)
    return events


def _add(total: dict[str, float], further: Mapping[str, float]) -> None:
    for name, value in further.items():
        total[name] = total.get(name, 0.0) + value
