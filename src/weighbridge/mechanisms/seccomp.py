"""The filter of system calls that an engine gives its containers."""

from typing import ClassVar

from weighbridge.model.explained import Proof
from weighbridge.model.facts import SECCOMP
from weighbridge.model.measurement import ALL_CPU, CPU_SYSTEM
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class SystemCallFilter(Mechanism):
    """Each system call runs a BPF program first; where seccomp implies it, speculative stores are held back, too."""

    kind = "seccomp"
    summary = "the system-call filter of Docker and Podman containers"
    title = "system-call filter (seccomp)"
    switched = "default → unconfined"
    remedy = "seccomp: unconfined, or a shorter profile, if you trust the program"
    source = "Linux kernel documentation, userspace-api/seccomp_filter"
    counters: ClassVar = (ALL_CPU, CPU_SYSTEM.name)
    proof = Proof(fact=SECCOMP, off="off")

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment without the filter; gVisor serves its system calls itself."""
        if subject.option("seccomp") != "default" or subject.option("runtime") == "runsc":
            return None
        return subject.with_options(seccomp="unconfined")


PLUGIN = SystemCallFilter()
