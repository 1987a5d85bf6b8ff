"""An NFS server that acknowledges a write once it is on disk."""

from typing import ClassVar

from weighbridge.model.explained import Proof
from weighbridge.model.measurement import DISK_FLUSHES, DISK_TIME
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class SyncExport(Mechanism):
    """Each commit waits for the server's disk. Without it a crash of the server loses what was acknowledged."""

    kind = "nfs-sync"
    summary = "sync of an NFS export"
    title = "NFS export: sync"
    switched = "sync → async (less durable)"
    remedy = "a faster disk or a log device in the server; async loses data in a crash"
    source = "exports(5)"
    counters: ClassVar = (DISK_FLUSHES, DISK_TIME)
    proof = Proof(fact="storage: export", off=r"(?!.*\bsync\b).*")

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment whose server acknowledges a write before it is on disk."""
        storage = subject.option("storage")
        if storage is None or getattr(storage, "export", None) != "sync":
            return None
        return subject.with_options(storage=storage.model_copy(update={"export": "async"}))


PLUGIN = SyncExport()
