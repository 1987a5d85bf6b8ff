"""Programs and libraries of the environment's own."""

from weighbridge.model.explained import Proof
from weighbridge.model.facts import USERLAND
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class OtherUserland(Mechanism):
    """Another build of the program, another C library or allocator: no isolation, but a cost that comes with it."""

    kind = "userland"
    summary = "a userland of the environment's own: other builds, another C library"
    title = "its own programs and libraries"
    switched = "its own userland → the study's"
    remedy = "an image with the same versions, C library and allocator"
    source = "Weighbridge: userlands are compared by version and content"
    proof = Proof(fact=USERLAND)

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment with the study's userland."""
        return subject.with_arm(userland=None) if subject.arm.userland is not None else None


PLUGIN = OtherUserland()
