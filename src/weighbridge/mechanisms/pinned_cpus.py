"""Virtual CPUs that stay each on one CPU of the host."""

from weighbridge.model.explained import Proof
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class PinnedCpus(Mechanism):
    """A virtual CPU keeps its caches, and waits for its CPU where another thread of the hypervisor has that."""

    kind = "pinned-cpus"
    summary = "virtual CPUs of a guest that are pinned to CPUs of the host"
    title = "pinned virtual CPUs"
    switched = "one CPU each → any of the limit's"
    remedy = "no pin where the hypervisor's other threads need the same CPUs"
    source = "Red Hat Enterprise Linux 7, Virtualization Tuning and Optimization Guide: NUMA"
    proof = Proof(fact="virtual CPUs")

    def off(self, subject: Subject) -> Arm | None:
        """Return the guest whose virtual CPUs go where the host's scheduler puts them."""
        return subject.with_options(pin=None) if subject.option("pin") == "vcpus" else None


PLUGIN = PinnedCpus()
