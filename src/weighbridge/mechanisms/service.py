"""A Service of a cluster, in front of a pod."""

from typing import ClassVar

from weighbridge.model.explained import PATH, Proof
from weighbridge.model.measurement import ALL_CPU, CONNECTION_DROPS, SOFTIRQ_SHARE
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class Service(Mechanism):
    """Rules of kube-proxy, or what stands in its place, give each connection the address of a pod."""

    kind = "service"
    summary = "a Service or node port in front of a pod"
    title = "Service (kube-proxy)"
    switched = "Service → the pod's own address"
    remedy = "a headless Service, if the client can choose among the addresses of the pods"
    source = "Kubernetes documentation, Virtual IPs and Service Proxies"
    counters: ClassVar = (ALL_CPU, SOFTIRQ_SHARE, CONNECTION_DROPS)
    proof = Proof(of=PATH, fact="translation", off="none")

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment whose clients use the pod's own address."""
        if not subject.networked or subject.option("reach") in (None, "pod"):
            return None
        return subject.with_options(reach="pod")


PLUGIN = Service()
