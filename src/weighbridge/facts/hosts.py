"""What is particular about each host of a run, and in what they differ."""

from collections.abc import Mapping

from weighbridge.model.site import Host

COMPARED = ("kernel", "architecture", "CPU", "operating system", "version of dockerd", "clock source", "mitigations")
"""Facts that two hosts should have in common."""
CLOCK = "clock offset"
"""Seconds by which a host's clock is ahead of this machine's, as text; only another machine has one."""
LARGE_OFFSET_S = 0.001


def about_hosts(hosts: Mapping[str, Host]) -> dict[str, dict[str, str]]:
    """By scope: "host NAME" with its facts, and "host differences" with a sentence for each."""
    facts = {name: dict(host.facts()) for name, host in hosts.items()}
    scopes = {f"host {name}": found for name, found in facts.items() if found}
    differences = found_differences(facts)
    return scopes | ({"host differences": differences} if differences else {})


def found_differences(facts: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """A sentence for each fact in which hosts differ, and for clocks that are far apart."""
    found = {}
    for key in COMPARED:
        values = {name: each[key] for name, each in facts.items() if key in each}
        if len(set(values.values())) > 1:
            found[key] = f"{key} differs: " + ", ".join(f"{name} {value}" for name, value in values.items())
    for name, each in facts.items():
        try:
            offset = float(each.get(CLOCK, "0").partition(" ")[0])
        except ValueError:
            continue
        if abs(offset) > LARGE_OFFSET_S:
            found[f"clock of {name}"] = f"the clock of host {name} is {offset:+.3f} s off this machine's"
    return found
