"""Virtual CPUs that stay each on one CPU of the host."""

from weighbridge.model.explained import Proof
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class PinnedCpus(Mechanism):
    """A virtual CPU keeps its caches, and waits for its CPU where another thread of the hypervisor has that."""

    kind = "pinned-cpus"
    summary = "a guest's virtual CPUs that are pinned to CPUs of the host"
    title = "pinned virtual CPUs"
    switched = "one CPU each → any CPU of the limit"
    remedy = "no pin, if other threads of the hypervisor need the same CPUs"
    source = "Red Hat Enterprise Linux 7, Virtualization Tuning and Optimization Guide: NUMA"
    proof = Proof(fact="virtual CPUs")

    def off(self, subject: Subject) -> Arm | None:
        """Return the guest whose virtual CPUs go where the host's scheduler puts them."""
        return subject.with_options(pin=None) if subject.option("pin") == "vcpus" else None


PLUGIN = PinnedCpus()
