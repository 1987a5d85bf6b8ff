"""A network card that a hypervisor emulates, register by register."""

from typing import ClassVar

from weighbridge.model.explained import Proof
from weighbridge.model.facts import NETWORK_DRIVER
from weighbridge.model.measurement import ALL_CPU, VM_EXITS
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class EmulatedNic(Mechanism):
    """Each access to it leaves the guest; virtio passes many packets at once through memory that both share."""

    kind = "emulated-nic"
    summary = "an emulated network card of a guest instead of virtio"
    title = "emulated network card"
    switched = "emulated → virtio"
    remedy = "nic: virtio"
    source = "Russell, virtio: Towards a De-Facto Standard for Virtual I/O Devices, OSR 2008"
    counters: ClassVar = (ALL_CPU, VM_EXITS)
    proof = Proof(fact=NETWORK_DRIVER, off="virtio_net")

    def off(self, subject: Subject) -> Arm | None:
        """Return the guest with a network card of virtio."""
        if not subject.networked or subject.option("nic") in (None, "virtio", "vhost"):
            return None
        return subject.with_options(nic="virtio")


PLUGIN = EmulatedNic()
