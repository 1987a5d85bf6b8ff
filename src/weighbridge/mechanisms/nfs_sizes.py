"""How much an NFS client asks for, or sends, at a time."""

from weighbridge.model.explained import Proof
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class TransferSizes(Mechanism):
    """Smaller requests are more of them, each with its own round trip."""

    kind = "nfs-sizes"
    summary = "read and write sizes of an NFS mount (rsize, wsize) that differ from the negotiated sizes"
    title = "NFS read and write size"
    switched = "configured → negotiated"
    remedy = "do not set rsize and wsize: client and server then negotiate the largest sizes"
    source = "nfs(5): rsize, wsize"
    proof = Proof(fact="storage: mounted")

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment whose client and server agree on the sizes."""
        storage = subject.option("storage")
        if not subject.stores or getattr(storage, "kind", None) != "nfs":
            return None
        if storage.read_size is None and storage.write_size is None:
            return None
        return subject.with_options(storage=storage.model_copy(update={"read_size": None, "write_size": None}))


PLUGIN = TransferSizes()
