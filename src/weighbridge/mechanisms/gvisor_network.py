"""gVisor's network stack."""

from typing import ClassVar

from weighbridge.model.explained import Proof
from weighbridge.model.facts import GVISOR_NETWORK
from weighbridge.model.measurement import ALL_CPU, PACKET_SIZE, SOFTIRQ_SHARE
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class GvisorNetwork(Mechanism):
    """A TCP/IP stack in user space makes and reads each packet of the container's interface."""

    kind = "gvisor-network"
    summary = "gVisor's own network stack instead of the kernel's"
    title = "gVisor's network stack"
    switched = "own stack → the kernel's, in the container's network"
    remedy = "runsc --network=host, if the container is allowed to use the kernel's network stack"
    source = "Young et al., The True Cost of Containing: A gVisor Case Study, HotCloud 2019"
    counters: ClassVar = (ALL_CPU, SOFTIRQ_SHARE, PACKET_SIZE)
    proof = Proof(fact=GVISOR_NETWORK, off="host")

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment whose sockets are the kernel's; on the host's network they are so already."""
        if not subject.networked or subject.option("runtime") != "runsc" or subject.option("network") == "host":
            return None
        return subject.with_options(runsc_network="host") if subject.option("runsc_network") == "own" else None


PLUGIN = GvisorNetwork()
