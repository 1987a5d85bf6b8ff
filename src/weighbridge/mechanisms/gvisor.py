"""A kernel in user space between a container and the host's."""

from typing import ClassVar

from weighbridge.model.explained import Proof
from weighbridge.model.facts import KERNEL
from weighbridge.model.measurement import ALL_CPU, PAGE_FAULTS, SWITCHES
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm

_OF_GVISOR = ("runsc_platform", "runsc_network", "runsc_files", "runsc_layer")


class UserSpaceKernel(Mechanism):
    """gVisor serves system calls itself, with a network stack and file systems of its own.

    Docker's usual runtime is without the filter of system calls, unless the baseline has it: gVisor's programs never
    pay for it.
    """

    kind = "user-space-kernel"
    summary = "gVisor's kernel, used through Docker's runtime runsc or a RuntimeClass of a cluster"
    title = "user-space kernel (gVisor)"
    switched = "runsc → the usual runtime, without its system-call filter"
    remedy = "the usual runtime, if the kernel's own isolation is enough"
    source = "Young et al., The True Cost of Containing: A gVisor Case Study, HotCloud 2019"
    off_with = frozenset({"gvisor-platform", "gvisor-network", "gvisor-gofer", "gvisor-layer"})
    counters: ClassVar = (ALL_CPU, SWITCHES, PAGE_FAULTS.name)
    proof = Proof(fact=KERNEL)

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment with the engine's, or the cluster's, usual runtime."""
        if subject.option("runtime") == "runsc":
            filters = {
                name: getattr(subject.baseline.options, name, "unconfined") for name in ("seccomp", "apparmor")
            }
            return subject.with_options(without=_OF_GVISOR, runtime="default", **filters)
        return subject.with_options(runtime_class="") if subject.option("runtime_class") else None


PLUGIN = UserSpaceKernel()
