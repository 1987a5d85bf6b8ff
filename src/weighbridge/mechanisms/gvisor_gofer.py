"""gVisor's file server."""

from typing import ClassVar

from weighbridge.model.explained import Proof
from weighbridge.model.facts import GVISOR_FILES
from weighbridge.model.measurement import ALL_CPU, SWITCHES
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class GvisorGofer(Mechanism):
    """A second process opens each file for the sandbox, which has no right to do so itself."""

    kind = "gvisor-gofer"
    summary = "gVisor's gofer, a process that opens files for it"
    title = "gVisor's gofer"
    switched = "gofer → direct access"
    remedy = "runsc --directfs, the default since 2023"
    source = "Young et al., The True Cost of Containing: A gVisor Case Study, HotCloud 2019"
    counters: ClassVar = (ALL_CPU, SWITCHES)
    proof = Proof(fact=GVISOR_FILES, off="true")

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment whose sandbox opens files itself."""
        return subject.with_options(runsc_files="direct") if subject.option("runsc_files") == "gofer" else None


PLUGIN = GvisorGofer()
