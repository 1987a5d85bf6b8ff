"""Several queues of a guest's network card."""

from typing import ClassVar

from weighbridge.model.explained import Proof
from weighbridge.model.facts import NETWORK_QUEUES
from weighbridge.model.measurement import ALL_CPU, SWITCHES
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class GuestQueues(Mechanism):
    """Each virtual CPU has a queue of its own for packets, with an interrupt of its own; it is to save time."""

    kind = "guest-queues"
    summary = "several queues of a guest's virtio card (multiqueue), which are meant to save time"
    title = "several queues of the guest's card"
    switched = "several → one"
    remedy = "queues: 1, if few connections are busy at the same time"
    source = "Linux kernel, drivers/net/virtio_net.c; QEMU documentation, multiqueue virtio-net"
    counters: ClassVar = (ALL_CPU, SWITCHES)
    proof = Proof(fact=NETWORK_QUEUES, off="1")

    def off(self, subject: Subject) -> Arm | None:
        """Return the guest whose card has one queue."""
        if not subject.networked or subject.option("queues") in (None, 1):
            return None
        return subject.with_options(queues=1)


PLUGIN = GuestQueues()
