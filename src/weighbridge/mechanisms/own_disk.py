"""A file system of an environment's own."""

from typing import ClassVar

from weighbridge.model.explained import Proof
from weighbridge.model.measurement import DISK_FLUSHES, DISK_TIME
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class OwnDisk(Mechanism):
    """Another file system, with another journal, than the baseline's data are on."""

    kind = "own-disk"
    summary = "a file system that differs from the baseline's"
    title = "own file system"
    switched = "own file system → the baseline's"
    remedy = "the same file system for both"
    source = "Weighbridge: a disk is a file system made for the run, on a loop device"
    counters: ClassVar = (DISK_FLUSHES, DISK_TIME)
    proof = Proof(fact="storage: mounted")

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment with the baseline's disk, if any."""
        storage = subject.option("storage")
        usual = getattr(getattr(subject.baseline.options, "storage", None), "disk", None)
        if not subject.stores or storage is None or getattr(storage, "disk", usual) == usual:
            return None
        return subject.with_options(storage=storage.model_copy(update={"disk": usual}))


PLUGIN = OwnDisk()
