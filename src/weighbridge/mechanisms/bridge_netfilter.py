"""The packet filter that frames of a bridge pass, although nothing routes them."""

from typing import ClassVar

from weighbridge.model.explained import Proof
from weighbridge.model.facts import BRIDGE_NETFILTER
from weighbridge.model.measurement import ALL_CPU, SOFTIRQ_SHARE, SOFTNET_DROPS, SOFTNET_SQUEEZES
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class BridgeNetfilter(Mechanism):
    """With br_netfilter a frame from port to port crosses the host's rules and connection tracking for IP."""

    kind = "bridge-netfilter"
    summary = "the packet filter for frames on a bridge (br_netfilter)"
    title = "bridge netfilter (br_netfilter)"
    switched = "bridge-nf-call-iptables 1 → 0"
    remedy = "bridge-nf-call-iptables=0, if no rule has to filter traffic between containers on a bridge"
    source = "Linux kernel documentation, networking/bridge; moby/moby#48492"
    counters: ClassVar = (ALL_CPU, SOFTIRQ_SHARE, SOFTNET_DROPS, SOFTNET_SQUEEZES)
    proof = Proof(fact=BRIDGE_NETFILTER, off="off")

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment whose bridge passes frames on as they are."""
        if not (subject.networked and subject.option("bridge_netfilter")):
            return None
        return subject.with_options(bridge_netfilter=False)


PLUGIN = BridgeNetfilter()
