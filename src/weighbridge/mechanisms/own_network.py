"""A network of the environment's own: a namespace, and what joins it to the host."""

from typing import ClassVar

from weighbridge.model.explained import Proof
from weighbridge.model.facts import NAMESPACES
from weighbridge.model.measurement import ALL_CPU, PACKET_SIZE, SOFTIRQ_SHARE, SOFTNET_DROPS, SOFTNET_SQUEEZES
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm

_OF_A_NETWORK = (
    "publish", "publish_on", "publish_by", "userland_proxy", "attach", "parent", "subnet", "gateway", "addresses",
    "ipvlan_mode", "encrypted", "reach", "policy", "mtu", "no_offloads", "vxlan_offload", "bridge_netfilter",
    "conntrack", "filter_rules",
)  # fmt: skip


class OwnNetwork(Mechanism):
    """Packets leave the loopback interface: a veth pair, a bridge, a tunnel or a user's program carries them.

    Of a client on a bridge whose server is on another host, the translation of its address belongs to it.
    """

    kind = "own-network"
    summary = "a network namespace and its connection to the host (veth, bridge, VXLAN, pasta)"
    title = "own network (namespace, veth, bridge)"
    switched = "own network → the host's"
    remedy = "network: host, if ports cannot clash"
    source = "Felter et al., An Updated Performance Comparison of Virtual Machines and Linux Containers, ISPASS 2015"
    off_with = frozenset({
        "address-translation", "docker-proxy", "encryption", "service", "network-policy", "user-mode-network", "mtu",
        "offloads", "vxlan-offload", "bridge-netfilter", "connection-tracking", "filter-rules", "gvisor-network",
    })  # fmt: skip
    counters: ClassVar = (ALL_CPU, SOFTIRQ_SHARE, PACKET_SIZE, SOFTNET_DROPS, SOFTNET_SQUEEZES)
    proof = Proof(fact=NAMESPACES, off=r"(?!.*\bnet).*")

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment on its host's network; a guest has always one of its own."""
        network = subject.option("joined") or subject.option("network")
        if not subject.networked or network in (None, "host", "none") or not subject.can_be("network", "host"):
            return None
        return subject.with_options(without=_OF_A_NETWORK, network="host")


PLUGIN = OwnNetwork()
