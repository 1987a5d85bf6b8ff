"""A host's interface that takes no VXLAN packets larger than its MTU."""

from typing import ClassVar

from weighbridge.model.explained import Proof
from weighbridge.model.facts import VXLAN_OFFLOADS
from weighbridge.model.measurement import (
    ALL_CPU,
    PACKET_SIZE,
    SEGMENTS,
    SOFTIRQ_SHARE,
    SOFTNET_DROPS,
    SOFTNET_SQUEEZES,
)
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class MissingVxlanOffload(Mechanism):
    """Without it large packets are split before they leave, each part with headers of its own."""

    kind = "vxlan-offload"
    summary = "segmentation of VXLAN packets in software, because the host's interface does not do it"
    title = "missing VXLAN offload (tx-udp_tnl-segmentation)"
    switched = "off → on"
    remedy = "ethtool -K INTERFACE tx-udp_tnl-segmentation on, or a card that has it"
    source = "Linux kernel documentation, networking/segmentation-offloads: UDP tunnels"
    counters: ClassVar = (ALL_CPU, SOFTIRQ_SHARE, SEGMENTS, PACKET_SIZE, SOFTNET_DROPS, SOFTNET_SQUEEZES)
    proof = Proof(fact=VXLAN_OFFLOADS, off="on")

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment on hosts whose interfaces have it."""
        if not subject.networked or subject.option("vxlan_offload") is not False:
            return None
        return subject.with_options(vxlan_offload=True)


PLUGIN = MissingVxlanOffload()
