"""How a hypervisor caches the disk of a guest."""

from typing import ClassVar

from weighbridge.model.explained import Proof
from weighbridge.model.facts import DISK_CACHE
from weighbridge.model.measurement import DISK_FLUSHES, DISK_TIME
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class DiskCacheMode(Mechanism):
    """Whether the host's page cache is passed by, and what a flush waits for: with ``unsafe`` for nothing."""

    kind = "disk-cache"
    summary = "the cache mode of a guest's disk, which can ignore flushes or flush after each write"
    title = "cache mode of the guest's disk"
    switched = "own mode → writeback, which flushes when the guest does"
    remedy = "cache: writeback or none; after a crash, unsafe loses synced data"
    source = "QEMU documentation, qemu-system(1): -drive cache"
    counters: ClassVar = (DISK_FLUSHES, DISK_TIME)
    proof = Proof(fact=DISK_CACHE, off="writeback")

    def off(self, subject: Subject) -> Arm | None:
        """Return the guest with QEMU's own mode."""
        if not subject.stores or subject.option("cache") in (None, "writeback"):
            return None
        return subject.with_options(cache="writeback")


PLUGIN = DiskCacheMode()
