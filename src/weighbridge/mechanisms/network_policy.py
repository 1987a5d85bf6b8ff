"""A NetworkPolicy of a cluster."""

from typing import ClassVar

from weighbridge.model.explained import Proof
from weighbridge.model.measurement import ALL_CPU, SOFTIRQ_SHARE
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class NetworkPolicy(Mechanism):
    """The cluster's network looks at each connection, or at each packet, before it lets it through."""

    kind = "network-policy"
    summary = "a NetworkPolicy of a cluster"
    title = "NetworkPolicy"
    switched = "a policy that allows this client → none"
    remedy = "fewer policies, or another implementation of them (nftables, eBPF)"
    source = "Kubernetes documentation, Network Policies"
    counters: ClassVar = (ALL_CPU, SOFTIRQ_SHARE)
    proof = Proof(fact="network policy", off="none")

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment without a policy."""
        return subject.with_options(policy=None) if subject.networked and subject.option("policy") else None


PLUGIN = NetworkPolicy()
