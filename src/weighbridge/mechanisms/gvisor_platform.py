"""How gVisor catches the system calls of its container."""

from typing import ClassVar

from weighbridge.model.explained import Proof
from weighbridge.model.facts import GVISOR_PLATFORM
from weighbridge.model.measurement import ALL_CPU, SWITCHES
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class GvisorPlatform(Mechanism):
    """With ptrace each system call stops its thread twice and wakes another process; systrap answers in place."""

    kind = "gvisor-platform"
    summary = "gVisor's platform ptrace, which stops a thread at each system call"
    title = "gVisor's platform (ptrace)"
    switched = "ptrace → the engine's own (systrap)"
    remedy = "platform systrap, the default since 2023, or kvm"
    source = "gVisor documentation, Platform Guide"
    counters: ClassVar = (ALL_CPU, SWITCHES)
    proof = Proof(fact=GVISOR_PLATFORM, off="(?!ptrace).*")

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment with the platform that its engine has registered, or ours with systrap."""
        return (
            subject.with_options(without=("runsc_platform",))
            if subject.option("runsc_platform") == "ptrace"
            else None
        )


PLUGIN = GvisorPlatform()
