"""Network settings of a host that was created for the run, and the values in force there.

Bridge netfilter, connection tracking and packet filter rules belong to a host. Offloads belong to a container's
interface and, for VXLAN, to the host's own interface. The values in force are read back even if the study did not set
them.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Literal

from pydantic import Field

from weighbridge.errors import Unavailable
from weighbridge.linux.links import must_output
from weighbridge.linux.network import in_network_of
from weighbridge.model.command import Command
from weighbridge.model.environment import EnvironmentOptions, Needs
from weighbridge.model.facts import BRIDGE_NETFILTER, CONNECTION_TRACKING, FILTER_RULES, OFFLOADS, VXLAN_OFFLOADS
from weighbridge.model.host import DisposableHost, RunContext

BRIDGE_CALLS = "/proc/sys/net/bridge/bridge-nf-call-iptables"
MOST_RULES = 10_000
_CHAIN = "WEIGHBRIDGE-RULES"
_HOOKS = ("INPUT", "FORWARD", "OUTPUT")
_NOWHERE = "192.0.2.{}"
"""Documentation's addresses (RFC 5737): no packet is from there."""

Offload = Literal["tso", "gso", "gro", "checksum"]
_FEATURES: Mapping[Offload, Sequence[str]] = {
    "checksum": ("tx", "rx"), "tso": ("tso",), "gso": ("gso",), "gro": ("gro",)
}  # fmt: skip
"""The names of each for ``ethtool -K``; TSO needs checksums, so these come first."""
_SHOWN: Mapping[Offload, str] = {
    "tso": "tcp-segmentation-offload",
    "gso": "generic-segmentation-offload",
    "gro": "generic-receive-offload",
    "checksum": "tx-checksumming",
}
"""Their names in the output of ``ethtool -k``."""
_VXLAN = "tx-udp_tnl-segmentation"


class HostNetworkOptions(EnvironmentOptions):
    """``mtu``, and other settings of a network that can have a cost."""

    mtu: Annotated[
        int | None, Field(ge=576, le=65535, description="MTU of the bridge or overlay network, in bytes")
    ] = None
    no_offloads: Annotated[
        tuple[Offload, ...], Field(description="Offloads of the container's interface to switch off (testbed hosts)")
    ] = ()
    vxlan_offload: Annotated[
        bool | None, Field(description="Whether the host's interface splits large VXLAN packets (testbed hosts)")
    ] = None
    bridge_netfilter: Annotated[
        bool | None, Field(description="Whether bridged frames pass through the packet filter (testbed hosts)")
    ] = None
    conntrack: Annotated[bool | None, Field(description="Whether the host tracks connections (testbed hosts)")] = None
    filter_rules: Annotated[
        int,
        Field(
            ge=0,
            le=MOST_RULES,
            description="Number of extra packet-filter rules that each packet is compared with (testbed hosts)",
        ),
    ] = 0

    @property
    def host_network(self) -> str:
        """Return a name for a host with these changes, or "" without changes."""
        parts = {
            "brnf": self.bridge_netfilter is True,
            "nobrnf": self.bridge_netfilter is False,
            "track": self.conntrack is True,
            "notrack": self.conntrack is False,
            "vxlan": self.vxlan_offload is True,
            "novxlan": self.vxlan_offload is False,
            f"rules{self.filter_rules}": self.filter_rules > 0,
        }
        return "-".join(name for name, applies in parts.items() if applies)


def tuning_problems(options: Any, needs: Needs) -> Iterator[str]:
    """Yield why options have no effect on a network, or why a host must not be changed."""
    network = options.network
    changed = {
        "no_offloads": options.no_offloads, "vxlan_offload": options.vxlan_offload is not None,
        "bridge_netfilter": options.bridge_netfilter is not None, "conntrack": options.conntrack is not None,
        "filter_rules": options.filter_rules,
    }  # fmt: skip
    if options.mtu and (network not in ("bridge", "overlay") or options.attach):
        yield (
            "'mtu' needs network: bridge or overlay, without attach. Other networks use the MTU of the host's "
            "interface"
        )
    if options.vxlan_offload is not None and network != "overlay":
        yield f"'vxlan_offload' needs network: overlay, not {network}"
    if options.bridge_netfilter is not None and network != "bridge":
        yield f"'bridge_netfilter' needs network: bridge, not {network}"
    if options.no_offloads and network in ("none", "host"):
        yield f"'no_offloads' needs a network with its own interface, not network: {network}"
    if options.conntrack is False and options.publish:
        yield (
            "published ports do not work with 'conntrack: false', because their address translation needs "
            "connection tracking. Remove 'publish'"
        )
    names = [name for name, given in changed.items() if given]
    others = [kind for kind, host in needs.holding.items() if not host.disposable]
    if names and others:
        yield f"'{names[0]}' changes a host's network: use hosts of kind testbed, not {others[0]}"


def prepared(run: RunContext, host: DisposableHost, options: HostNetworkOptions) -> None:
    """Change a host's network as the options say, once its engine is up. Raises Unavailable."""
    run.share(f"network of host {host.name}", lambda: _changed(host, options))


@contextmanager
def _changed(host: DisposableHost, options: HostNetworkOptions) -> Iterator[None]:
    """Change it for good: it is a host that nothing else uses."""
    if options.bridge_netfilter is not None:
        _set_bridge_netfilter(host, on=options.bridge_netfilter)
    if options.conntrack is False:
        for hook in ("PREROUTING", "OUTPUT"):
            must_output(host, "iptables", "--wait", "-t", "raw", "-I", hook, "-j", "CT", "--notrack")
    if options.filter_rules:
        _add_rules(host, options.filter_rules)
    if options.vxlan_offload is not None:
        must_output(host, "ethtool", "-K", host.interface, _VXLAN, "on" if options.vxlan_offload else "off")
    yield


def _set_bridge_netfilter(host: DisposableHost, *, on: bool) -> None:
    if _bridge_calls(host) is None:
        raise Unavailable(
            f"host {host.name}: this kernel has no bridge netfilter (/proc/sys/net/bridge is missing). Load the "
            "module br_netfilter, or remove 'bridge_netfilter'"
        )
    must_output(host, "sh", "-c", f"echo {int(on)} > {BRIDGE_CALLS}")


def _bridge_calls(host: DisposableHost) -> str | None:
    """Return the setting, by a process of the host: the kernel shows each its own. None: the kernel has none."""
    completed = host.run(Command(("cat", BRIDGE_CALLS), 10))
    return completed.text.strip() if completed.returncode == 0 else None


def _add_rules(host: DisposableHost, rules: int) -> None:
    """Add rules that match nothing, in a table that is crossed before an engine accepts packets."""
    each = (f"-A {_CHAIN} -s {_NOWHERE.format(number % 256)} -j DROP" for number in range(rules))
    jumps = (f"-I {hook} -j {_CHAIN}" for hook in _HOOKS)
    text = "\n".join(("*mangle", f":{_CHAIN} - [0:0]", *each, *jumps, "COMMIT", ""))
    completed = host.run(Command(("iptables-restore", "--noflush"), 60, stdin=text.encode()))
    if completed.returncode != 0:
        raise Unavailable(f"host {host.name}: rules cannot be added: {completed.last_words}")


def without_offloads(host: DisposableHost, pid: int, offloads: Sequence[Offload], *, on_bridge: bool) -> None:
    """Switch offloads off at the interface of the container of ``pid``; of a bridge at the host's end, too.

    Raises Unavailable.
    """
    if not offloads:
        return
    words = [word for name, features in _FEATURES.items() if name in offloads for word in _off(features)]
    must_output(host, *in_network_of(pid), "ethtool", "-K", "eth0", *words)
    if on_bridge:
        link = must_output(host, *in_network_of(pid), "ip", "-o", "link", "show", "eth0")
        other_end = link.partition("@if")[2].partition(":")[0]  # its number on the host
        for line in must_output(host, "ip", "-o", "link", "show", "type", "veth").splitlines():
            number, name, *_ = line.split()
            if number == f"{other_end}:":
                must_output(host, "ethtool", "-K", name.partition("@")[0], *words)


def _off(features: Sequence[str]) -> Iterator[str]:
    for feature in features:
        yield from (feature, "off")


def network_facts(host: DisposableHost, pid: int, *, own_network: bool, overlay: bool) -> dict[str, str]:
    """Return the values in force on the host and at the container's interface. Unreadable ones are omitted."""
    facts: dict[str, str] = {}
    calls = _bridge_calls(host)
    facts[BRIDGE_NETFILTER] = "not in this kernel" if calls is None else "on" if calls == "1" else "off"
    saved = host.run(Command(("iptables-save",), 20))
    if saved.returncode == 0:
        lines = saved.text.splitlines()
        facts[CONNECTION_TRACKING] = "off" if any("--notrack" in line for line in lines) else "on"
        facts[FILTER_RULES] = str(sum(line.startswith(f"-A {_CHAIN} ") for line in lines))
    if own_network:
        shown = host.run(Command((*in_network_of(pid), "ethtool", "-k", "eth0"), 20))
        if shown.returncode == 0:
            facts[OFFLOADS] = ", ".join(_on(shown.text)) or "none"
    if overlay:
        shown = host.run(Command(("ethtool", "-k", host.interface), 20))
        if shown.returncode == 0:
            facts[VXLAN_OFFLOADS] = "on" if f"{_VXLAN}: on" in shown.text else "off"
    return facts


def _on(text: str) -> Iterator[str]:
    """Return which offloads are on by the output of ``ethtool -k``."""
    return (name for name, shown in _SHOWN.items() if f"{shown}: on" in text)
