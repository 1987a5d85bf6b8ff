"""A disk controller that a hypervisor emulates."""

from typing import ClassVar

from weighbridge.model.explained import Proof
from weighbridge.model.facts import DISK_DRIVER
from weighbridge.model.measurement import DISK_FLUSHES, DISK_TIME, VM_EXITS
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class EmulatedDisk(Mechanism):
    """Each access to it leaves the guest; virtio passes requests through memory that both share."""

    kind = "emulated-disk"
    summary = "an emulated disk controller of a guest instead of virtio"
    title = "emulated disk controller"
    switched = "emulated → virtio"
    remedy = "disk: virtio"
    source = "Russell, virtio: Towards a De-Facto Standard for Virtual I/O Devices, OSR 2008"
    counters: ClassVar = (DISK_FLUSHES, DISK_TIME, VM_EXITS)
    proof = Proof(fact=DISK_DRIVER, off="virtio_blk")

    def off(self, subject: Subject) -> Arm | None:
        """Return the guest with disks of virtio."""
        if not subject.stores or subject.option("disk") in (None, "virtio"):
            return None
        return subject.with_options(disk="virtio")


PLUGIN = EmulatedDisk()
