"""How much a container's /dev/shm holds."""

from weighbridge.model.explained import Proof
from weighbridge.model.facts import SHARED_MEMORY
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class SharedMemorySize(Mechanism):
    """Databases and browsers share memory by it: where it is full they fail, or write to files in its place."""

    kind = "shm-size"
    summary = "a size of /dev/shm that only this environment has"
    title = "size of /dev/shm"
    switched = "own size → the default of its kind (Docker: 64 MiB)"
    remedy = "shm_size: as much as the program needs"
    source = "shm_overview(7); Docker documentation, docker run: --shm-size"
    proof = Proof(fact=SHARED_MEMORY)

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment with the size that its kind gives."""
        return subject.with_arm(shm_size=None) if subject.arm.shm_size is not None else None


PLUGIN = SharedMemorySize()
