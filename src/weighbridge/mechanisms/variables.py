"""Variables of a container's programs: above all those of the C library's allocator."""

from typing import ClassVar

from weighbridge.model.explained import Proof
from weighbridge.model.facts import VARIABLES
from weighbridge.model.measurement import CPU_SYSTEM, PAGE_FAULTS
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class OwnVariables(Mechanism):
    """No isolation, but what images set: an allocator that gives memory back at once, or another one."""

    kind = "variables"
    summary = "environment variables of this environment, for example for the memory allocator"
    title = "own variables (allocator)"
    switched = "own variables → the image's"
    remedy = "keep the allocator's default settings, or preload another allocator"
    source = "mallopt(3), environment variables"
    counters: ClassVar = (CPU_SYSTEM.name, PAGE_FAULTS.name)
    proof = Proof(fact=VARIABLES, off="none")

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment with the variables of its image."""
        return subject.with_options(without=("variables",)) if subject.option("variables") else None


PLUGIN = OwnVariables()
