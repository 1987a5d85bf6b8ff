"""How an NFS client writes: each write at once, or what has gathered."""

from typing import ClassVar

from weighbridge.model.explained import Proof
from weighbridge.model.measurement import DISK_FLUSHES, DISK_TIME
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class SyncMount(Mechanism):
    """With ``sync`` each write is a request that the program waits for; else a sync or close sends what there is."""

    kind = "nfs-mount"
    summary = "sync of an NFS mount"
    title = "NFS mount: sync"
    switched = "sync → async"
    remedy = "mount: async, which is safe for programs that sync"
    source = "nfs(5): the sync mount option"
    counters: ClassVar = (DISK_FLUSHES, DISK_TIME)
    proof = Proof(fact="storage: mounted", off=r"(?!.*\bsync\b).*")

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment whose client sends writes when the program syncs."""
        storage = subject.option("storage")
        if not subject.stores or getattr(storage, "mount", None) != "sync":
            return None
        return subject.with_options(storage=storage.model_copy(update={"mount": "async"}))


PLUGIN = SyncMount()
