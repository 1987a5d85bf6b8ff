"""The version of the NFS protocol."""

from weighbridge.model.explained import Proof
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm

_USUAL = "4.2"


class NfsVersion(Mechanism):
    """Version 3 has no state and other requests for one operation; 4.0 has no sessions."""

    kind = "nfs-version"
    summary = "a version of the NFS protocol that is older than 4.2"
    title = "NFS version"
    switched = f"own version → {_USUAL}"
    remedy = f"version: {_USUAL}"
    source = "nfs(5)"
    proof = Proof(fact="storage: mounted", off=r".*\bvers=4\.2\b.*")

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment with what mounts ask for today."""
        storage = subject.option("storage")
        if not subject.stores or getattr(storage, "kind", None) != "nfs" or storage.version == _USUAL:
            return None
        return subject.with_options(storage=storage.model_copy(update={"version": _USUAL}))


PLUGIN = NfsVersion()
