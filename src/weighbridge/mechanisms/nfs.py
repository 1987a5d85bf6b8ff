"""Data on an NFS server."""

from typing import ClassVar

from weighbridge.model.explained import Proof
from weighbridge.model.measurement import DISK_FLUSHES, DISK_TIME
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class NetworkFileSystem(Mechanism):
    """Requests go to a server, which has page cache, file system and disk; each close and sync waits for it."""

    kind = "nfs"
    summary = "NFS itself (protocol, client and server), with any options"
    title = "NFS (protocol, client and server)"
    switched = "NFS → the usual storage"
    remedy = "a local disk for data that is synced often"
    source = "nfs(5)"
    off_with = frozenset({"nfs-sync", "nfs-mount", "nfs-version", "nfs-sizes"})
    counters: ClassVar = (DISK_FLUSHES, DISK_TIME)
    proof = Proof(fact="storage: mounted")

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment with its usual storage: a volume, or a folder of the host."""
        storage = subject.option("storage")
        if not subject.stores or storage is None or storage.kind != "nfs":
            return None
        return subject.with_usual_storage()


PLUGIN = NetworkFileSystem()
