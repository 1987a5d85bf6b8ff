"""What is particular about each host of a run, and in what they differ."""

from collections.abc import Mapping

from weighbridge.model.facts import HOST_DIFFERENCES, HostDifference
from weighbridge.model.host import HERE, ClockOffset, Host

COMPARED = (
    "kernel", "architecture", "CPU", "operating system", "version of dockerd", "clock source", "mitigations",
    "Kubernetes", "kubelet", "container runtime", "CNI", "kube-proxy mode", "CPU manager", "instance type", "zone",
    "MTU",
)  # fmt: skip
"""Facts that two hosts should have in common."""
LARGE_OFFSET_S = 0.001
"""By which two clocks may differ, beyond what is known of it, before it is told."""


def about_hosts(hosts: Mapping[str, Host]) -> dict[str, dict[str, str]]:
    """By scope: "host NAME" with its facts, and "host differences" with each of them as JSON.

    Hosts of one machine share its CPUs, and there is no second machine behind them; hosts that were made for the run
    all say so themselves.
    """
    clocks = {name: clock() for name, host in hosts.items() if (clock := host.capabilities.clock) is not None}
    facts = {name: dict(host.facts()) for name, host in hosts.items()}
    for name, offset in clocks.items():
        facts[name]["clock"] = str(offset)
    scopes = {f"host {name}": host_facts for name, host_facts in facts.items() if host_facts}
    differences = host_differences(facts, clocks)
    differences |= _shared_cpus(hosts)
    documents = {what: each.model_dump_json(exclude_defaults=True) for what, each in differences.items()}
    return scopes | ({HOST_DIFFERENCES: documents} if documents else {})


def _shared_cpus(hosts: Mapping[str, Host]) -> dict[str, HostDifference]:
    """Each machine that several hosts are on; which ones, where that is not all of them on this machine."""
    shared = {}
    for machine in dict.fromkeys(host.machine for host in hosts.values()):
        on_it = {name: host for name, host in hosts.items() if host.machine == machine}
        made = all(host.capabilities.disposable is not None for host in on_it.values())
        itself = all(host.this_machine for host in on_it.values())
        if len(on_it) == 1 or made or itself:
            continue
        if machine == HERE and len(on_it) == len(hosts):
            shared["CPUs"] = HostDifference(kind="shared-cpus")
        else:
            values = tuple((name, machine) for name in on_it)
            shared[f"CPUs of {machine}"] = HostDifference(kind="shared-cpus", values=values)
    return shared


def host_differences(
    facts: Mapping[str, Mapping[str, str]], clocks: Mapping[str, ClockOffset]
) -> dict[str, HostDifference]:
    """Each fact in which hosts differ, and each clock that is far off."""
    differences = {}
    for key in COMPARED:
        values = {name: each[key] for name, each in facts.items() if key in each}
        if len(set(values.values())) > 1:
            differences[key] = HostDifference(kind="fact", fact=key, values=tuple(values.items()))
    for name, offset in clocks.items():
        if abs(offset.ahead_s) - offset.within_s > LARGE_OFFSET_S:
            differences[f"clock of {name}"] = HostDifference(kind="clock", host=name, ahead_s=offset.ahead_s)
    return differences
