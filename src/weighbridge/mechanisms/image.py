"""Programs and libraries of the environment's own."""

from weighbridge.model.explained import Proof
from weighbridge.model.facts import USERLAND
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class OtherUserland(Mechanism):
    """Another build of the program, another C library or allocator: no isolation, but a cost that comes with it."""

    kind = "userland"
    summary = "a separate root filesystem, with other builds of the programs or another C library"
    title = "own programs and libraries"
    switched = "own root filesystem → the study's"
    remedy = "an image with the same versions, C library and allocator"
    source = "Weighbridge: root filesystems are compared by version and content"
    proof = Proof(fact=USERLAND)

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment with the study's userland."""
        return subject.with_arm(userland=None) if subject.arm.userland is not None else None


PLUGIN = OtherUserland()
