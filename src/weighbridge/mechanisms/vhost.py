"""A guest's packets, carried by the host's kernel in place of its hypervisor."""

from typing import ClassVar

from weighbridge.model.explained import Proof
from weighbridge.model.measurement import ALL_CPU, SWITCHES, VM_EXITS
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class Vhost(Mechanism):
    """A thread of the kernel moves packets between the guest's memory and the tap; it is to save time."""

    kind = "vhost"
    summary = "vhost: the host's kernel carries a guest's packets instead of QEMU, which is meant to save time"
    title = "vhost"
    switched = "the kernel (vhost) → QEMU itself"
    remedy = "nic: virtio, if vhost costs more than it saves"
    source = "Linux kernel, drivers/vhost/net.c"
    counters: ClassVar = (ALL_CPU, SWITCHES, VM_EXITS)
    proof = Proof(fact="network")

    def off(self, subject: Subject) -> Arm | None:
        """Return the guest whose packets QEMU itself carries."""
        if not subject.networked or subject.option("nic") != "vhost":
            return None
        return subject.with_options(nic="virtio")


PLUGIN = Vhost()
