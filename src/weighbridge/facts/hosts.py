"""What is particular about each host of a run, and in what they differ."""

from collections.abc import Mapping

from weighbridge.model.site import HERE, ClockOffset, Host

COMPARED = ("kernel", "architecture", "CPU", "operating system", "version of dockerd", "clock source", "mitigations")
"""Facts that two hosts should have in common."""
SHARED_CPUS = "those made on this machine share its CPUs: a packet's arrival is partly worked off on its sender's CPU"
"""Said where clients on another host are one of the things compared: there is no second machine behind them."""
LARGE_OFFSET_S = 0.001
"""By which two clocks may differ, beyond what is known of it, before it is told."""


def about_hosts(hosts: Mapping[str, Host]) -> dict[str, dict[str, str]]:
    """By scope: "host NAME" with its facts, and "host differences" with a sentence for each."""
    clocks = {name: offset for name, host in hosts.items() if (offset := host.clock()) is not None}
    facts = {name: dict(host.facts()) for name, host in hosts.items()}
    for name, offset in clocks.items():
        facts[name]["clock"] = str(offset)
    scopes = {f"host {name}": found for name, found in facts.items() if found}
    differences = found_differences(facts, clocks)
    if {host.this_machine for host in hosts.values() if host.machine == HERE} == {True, False}:
        differences["CPUs"] = SHARED_CPUS
    return scopes | ({"host differences": differences} if differences else {})


def found_differences(facts: Mapping[str, Mapping[str, str]], clocks: Mapping[str, ClockOffset]) -> dict[str, str]:
    """A sentence for each fact in which hosts differ, and for clocks that are far apart."""
    found = {}
    for key in COMPARED:
        values = {name: each[key] for name, each in facts.items() if key in each}
        if len(set(values.values())) > 1:
            found[key] = f"{key} differs: " + ", ".join(f"{name} {value}" for name, value in values.items())
    for name, offset in clocks.items():
        if abs(offset.ahead_s) - offset.within_s > LARGE_OFFSET_S:
            found[f"clock of {name}"] = f"the clock of host {name} is {offset.ahead_s:+.3f} s off this machine's"
    return found
