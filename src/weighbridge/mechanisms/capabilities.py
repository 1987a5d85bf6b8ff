"""The capabilities that an engine takes from root of its containers."""

from typing import ClassVar

from weighbridge.model.explained import Proof
from weighbridge.model.facts import CAPABILITIES
from weighbridge.model.measurement import ALL_CPU, CPU_SYSTEM
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class FewerCapabilities(Mechanism):
    """Checked where a call needs one; what a program may not do, it may do in another way, or not at all.

    Engines let more calls through their filter of system calls where a container has more capabilities, so that is
    off on both sides. An engine's own set is switched where the study names this mechanism.
    """

    kind = "capabilities"
    summary = "dropped capabilities of a container's programs, if a study changes them or names this mechanism"
    title = "fewer capabilities"
    switched = "own set → all"
    remedy = "the capabilities that the program needs (cap_add)"
    source = "capabilities(7); Docker documentation, Runtime privilege and Linux capabilities"
    off_with = frozenset({"seccomp"})
    counters: ClassVar = (ALL_CPU, CPU_SYSTEM.name)
    proof = Proof(fact=CAPABILITIES)

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment whose programs have all capabilities that its engine can give."""
        own = subject.option("capabilities")
        if own in (None, "all") or (own == "default" and self.kind not in subject.named):
            return None
        return subject.with_options(capabilities="all")


PLUGIN = FewerCapabilities()
