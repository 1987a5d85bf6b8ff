"""The facts about each host of a run, and the differences between hosts."""

from collections.abc import Mapping

from weighbridge.model.facts import HOST_DIFFERENCES, HostDifference
from weighbridge.model.host import HERE, ClockOffset, Host

COMPARED = (
    "kernel", "architecture", "CPU", "operating system", "version of dockerd", "clock source", "mitigations",
    "Kubernetes", "kubelet", "container runtime", "CNI", "kube-proxy mode", "CPU manager", "instance type", "zone",
    "MTU",
)  # fmt: skip
"""Facts that should be equal on two hosts."""
LARGE_OFFSET_S = 0.001
"""The smallest offset between two clocks, beyond its uncertainty, that is reported."""


def about_hosts(hosts: Mapping[str, Host]) -> dict[str, dict[str, str]]:
    """Return facts by scope: "host NAME" with its facts, and "host differences" with each difference as JSON.

    Hosts on one machine share its CPUs, and are not a second machine. Hosts that were made for the run report this
    themselves.
    """
    clocks = {name: clock() for name, host in hosts.items() if (clock := host.capabilities.clock) is not None}
    facts = {name: dict(host.facts()) for name, host in hosts.items()}
    for name, offset in clocks.items():
        facts[name]["clock"] = str(offset)
    scopes = {f"host {name}": host_facts for name, host_facts in facts.items() if host_facts}
    differences = host_differences(facts, clocks)
    differences |= _shared_cpus(hosts)
    documents = {key: each.model_dump_json(exclude_defaults=True) for key, each in differences.items()}
    return scopes | ({HOST_DIFFERENCES: documents} if documents else {})


def _shared_cpus(hosts: Mapping[str, Host]) -> dict[str, HostDifference]:
    """Return each machine with several hosts, and these hosts unless they are all hosts of this machine."""
    shared = {}
    for machine in dict.fromkeys(host.machine for host in hosts.values()):
        residents = {name: host for name, host in hosts.items() if host.machine == machine}
        made_for_run = all(host.capabilities.disposable is not None for host in residents.values())
        all_here = all(host.this_machine for host in residents.values())
        if len(residents) == 1 or made_for_run or all_here:
            continue
        if machine == HERE and len(residents) == len(hosts):
            shared["CPUs"] = HostDifference(kind="shared-cpus")
        else:
            values = tuple((name, machine) for name in residents)
            shared[f"CPUs of {machine}"] = HostDifference(kind="shared-cpus", values=values)
    return shared


def host_differences(
    facts: Mapping[str, Mapping[str, str]], clocks: Mapping[str, ClockOffset]
) -> dict[str, HostDifference]:
    """Return each fact in which hosts differ, and each clock with a large offset."""
    differences = {}
    for key in COMPARED:
        values = {name: each[key] for name, each in facts.items() if key in each}
        if len(set(values.values())) > 1:
            differences[key] = HostDifference(kind="fact", fact=key, values=tuple(values.items()))
    for name, offset in clocks.items():
        if abs(offset.ahead_s) - offset.within_s > LARGE_OFFSET_S:
            differences[f"clock of {name}"] = HostDifference(kind="clock", host=name, ahead_s=offset.ahead_s)
    return differences
