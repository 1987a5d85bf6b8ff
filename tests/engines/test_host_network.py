"""What is changed of a host's network, and what is read back of it."""

from collections.abc import Mapping
from typing import Any

import pytest

from weighbridge.engines.host_network import HostNetworkOptions, network_facts, prepared, without_offloads
from weighbridge.errors import Unavailable
from weighbridge.model.command import Command, Completed
from weighbridge.model.facts import (
    BRIDGE_NETFILTER,
    CONNECTION_TRACKING,
    FILTER_RULES,
    OFFLOADS,
    VXLAN_OFFLOADS,
)

FEATURES = """Features for eth0:
rx-checksumming: on
tx-checksumming: off
	tx-checksum-ipv4: off [fixed]
tcp-segmentation-offload: on
generic-segmentation-offload: on
generic-receive-offload: off
tx-udp_tnl-segmentation: on
"""
VETHS = """4: veth0a@if3: <UP> mtu 1500
9: veth1b@if8: <UP> mtu 1500
"""
SAVED = """*raw
-A PREROUTING -j CT --notrack
COMMIT
*mangle
-A FORWARD -j WEIGHBRIDGE-RULES
-A WEIGHBRIDGE-RULES -s 192.0.2.0/32 -j DROP
-A WEIGHBRIDGE-RULES -s 192.0.2.1/32 -j DROP
COMMIT
"""


class Host:
    """A host of the run's, whose commands print what they are given."""

    name, interface = "a", "eth0"

    def __init__(self, outputs: Mapping[str, str]) -> None:
        self.outputs = outputs
        self.commands: list[Command] = []

    def run(self, command: Command) -> Completed:
        self.commands.append(command)
        line = " ".join(command.argv)
        output = next((text for words, text in self.outputs.items() if words in line), None)
        return Completed(command.argv, 1 if output is None else 0, (output or "").encode(), b"", 0.0)

    @property
    def lines(self) -> list[str]:
        return [" ".join(command.argv) for command in self.commands]


class Run:
    """A run that makes what is shared at once."""

    def share(self, key: str, make: Any) -> Any:
        return make().__enter__()


def prepare(host: Host, **options: Any) -> None:
    run: Any = Run()
    changed: Any = host
    prepared(run, changed, HostNetworkOptions.model_validate(options))


def test_each_option_changes_the_host():
    host = Host({"": ""})
    prepare(host, bridge_netfilter=False, conntrack=False, filter_rules=300, vxlan_offload=False)
    lines = host.lines
    assert "echo 0 > /proc/sys/net/bridge/bridge-nf-call-iptables" in lines[1]
    assert sum("-t raw" in line and line.endswith("--notrack") for line in lines) == 2
    restored = next(command for command in host.commands if command.argv[0] == "iptables-restore")
    text = (restored.stdin or b"").decode()
    assert text.count("-j DROP") == 300 and text.startswith("*mangle") and text.endswith("COMMIT\n")
    assert all(f"-I {hook} " in text for hook in ("INPUT", "FORWARD", "OUTPUT"))
    assert lines[-1] == "ethtool -K eth0 tx-udp_tnl-segmentation off"


def test_a_kernel_without_bridge_netfilter_says_so():
    with pytest.raises(Unavailable, match="this kernel has no bridge netfilter"):
        prepare(Host({}), bridge_netfilter=True)


def test_offloads_are_off_at_both_ends_of_a_bridges_cable():
    host: Any = Host({"show eth0": "8: eth0@if9: <UP> mtu 1500", "type veth": VETHS, "ethtool": ""})
    without_offloads(host, 7, ("tso", "checksum"), on_bridge=True)
    assert [line for line in host.lines if "ethtool" in line] == [
        "nsenter --target 7 --net -- ethtool -K eth0 tx off rx off tso off",
        "ethtool -K veth1b tx off rx off tso off",
    ]


def test_what_is_in_force_is_read_back():
    host: Any = Host({"cat": "1\n", "iptables-save": SAVED, "ethtool -k eth0": FEATURES})
    facts = network_facts(host, 7, own_network=True, overlay=True)
    assert facts == {
        BRIDGE_NETFILTER: "on", CONNECTION_TRACKING: "off", FILTER_RULES: "2", OFFLOADS: "tso, gso",
        VXLAN_OFFLOADS: "on",
    }  # fmt: skip
    assert network_facts(Host({}), 7, own_network=True, overlay=False) == {  # type: ignore[arg-type]
        BRIDGE_NETFILTER: "not in this kernel"
    }
