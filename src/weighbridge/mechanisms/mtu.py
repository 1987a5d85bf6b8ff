"""A size of packets that is not that of the network below."""

from typing import ClassVar

from weighbridge.model.explained import PATH, Proof
from weighbridge.model.measurement import (
    ALL_CPU,
    PACKET_SIZE,
    RETRANSMITS,
    SEGMENTS,
    SOFTIRQ_SHARE,
    SOFTNET_DROPS,
    SOFTNET_SQUEEZES,
)
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class OwnMtu(Mechanism):
    """Smaller packets are more packets; those that are too large below (VXLAN adds 50 bytes) are cut into two."""

    kind = "mtu"
    summary = "an MTU of the network that differs from the MTU of the host's interface"
    title = "MTU of the network"
    switched = "own MTU → MTU of the host's interface (overlay: 50 bytes less)"
    remedy = "the MTU of the network below, minus 50 bytes for VXLAN"
    source = "Docker documentation, Overlay and bridge network drivers: com.docker.network.driver.mtu"
    counters: ClassVar = (ALL_CPU, SOFTIRQ_SHARE, SEGMENTS, RETRANSMITS, PACKET_SIZE, SOFTNET_DROPS, SOFTNET_SQUEEZES)
    proof = Proof(of=PATH, fact="mss")

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment with the engine's own choice."""
        if not (subject.networked and subject.option("mtu")):
            return None
        return subject.with_options(mtu=None)


PLUGIN = OwnMtu()
