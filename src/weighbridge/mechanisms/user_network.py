"""A network stack inside a guest's hypervisor."""

from typing import ClassVar

from weighbridge.model.explained import Proof
from weighbridge.model.measurement import ALL_CPU, PACKET_SIZE, SWITCHES
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class UserNetwork(Mechanism):
    """libslirp ends each connection and makes one of its own, a process of the host's in between."""

    kind = "user-network"
    summary = "QEMU's own network stack with forwarded ports instead of a tap on a bridge"
    title = "user network (slirp)"
    switched = "user network → tap on a bridge"
    remedy = "network: bridge, which needs root"
    source = "QEMU documentation, Using the user mode network stack"
    counters: ClassVar = (ALL_CPU, SWITCHES, PACKET_SIZE)
    proof = Proof(fact="network")

    def off(self, subject: Subject) -> Arm | None:
        """Return the guest on a bridge."""
        if not subject.networked or subject.option("network") != "user" or not subject.can_be("network", "bridge"):
            return None
        return subject.with_options(network="bridge")


PLUGIN = UserNetwork()
