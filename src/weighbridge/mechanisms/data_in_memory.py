"""Data on a file system in memory."""

from typing import ClassVar

from weighbridge.model.explained import Proof
from weighbridge.model.facts import DATA_FILE_SYSTEM
from weighbridge.model.measurement import DISK_FLUSHES, DISK_TIME
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class DataInMemory(Mechanism):
    """A sync has nothing to wait for: it is faster than a disk, and keeps nothing."""

    kind = "data-in-memory"
    summary = "data in memory (tmpfs), where a sync does not wait for a disk"
    title = "data in memory (tmpfs), never synced"
    switched = "tmpfs → the usual storage"
    remedy = "a volume for data that must be kept"
    source = "Linux kernel documentation, filesystems/tmpfs"
    counters: ClassVar = (DISK_FLUSHES, DISK_TIME)
    proof = Proof(fact=DATA_FILE_SYSTEM, off="(?!tmpfs$).*")

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment with its usual storage: a volume, or a folder of the host."""
        storage = subject.option("storage")
        if not subject.stores or storage is None or storage.kind != "tmpfs":
            return None
        return subject.with_usual_storage()


PLUGIN = DataInMemory()
