"""Data in a container's own writable layer."""

from typing import ClassVar

from weighbridge.model.explained import Proof
from weighbridge.model.facts import DATA_FILE_SYSTEM
from weighbridge.model.measurement import DISK_FLUSHES, DISK_TIME
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class WritableLayer(Mechanism):
    """Files go through overlayfs, or gVisor's own copy of it, and not to a file system of the host."""

    kind = "writable-layer"
    summary = "data in the writable layer of a container instead of a volume"
    title = "writable layer (overlayfs)"
    switched = "layer → volume"
    remedy = "a volume for written data"
    source = "Docker documentation, OverlayFS storage driver: performance"
    off_with = frozenset({"own-disk", "gvisor-layer"})
    counters: ClassVar = (DISK_FLUSHES, DISK_TIME)
    proof = Proof(fact=DATA_FILE_SYSTEM, off="(?!overlay$).*")

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment with its usual storage: a volume, or a folder of the host."""
        storage = subject.option("storage")
        if not subject.stores or storage is None or storage.kind != "layer":
            return None
        return subject.with_usual_storage()


PLUGIN = WritableLayer()
