"""A limit of memory that the baseline has not."""

from typing import ClassVar

from weighbridge.model.explained import Proof
from weighbridge.model.facts import MEMORY_LIMIT
from weighbridge.model.measurement import PAGE_FAULTS
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class MemoryLimit(Mechanism):
    """Near its limit a group gives back what files it has in memory, and reads them again."""

    kind = "memory-limit"
    summary = "a memory limit that only this environment has"
    title = "memory limit"
    switched = "own limit → the study's"
    remedy = "a higher limit (cached file contents count towards it)"
    source = "Linux kernel documentation, admin-guide/cgroup-v2: memory"
    counters: ClassVar = (PAGE_FAULTS.name,)
    proof = Proof(fact=MEMORY_LIMIT)

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment with the study's limit of memory, if any."""
        own = subject.arm.resources
        if own is None or own.memory == subject.resources.memory:
            return None
        return subject.with_usual_limits(own, "memory")


PLUGIN = MemoryLimit()
