"""A container's own view of the control groups."""

from weighbridge.model.explained import Proof
from weighbridge.model.facts import NAMESPACES
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class CgroupNamespace(Mechanism):
    """Programs see their own group as the topmost, in /proc and /sys; a runtime that sizes itself by it may err."""

    kind = "cgroup-namespace"
    summary = "a private control-group namespace, if a study requests one"
    title = "control-group namespace"
    switched = "private → the host's"
    remedy = "cgroup_namespace: host, if programs are allowed to see the host's groups"
    source = "cgroup_namespaces(7)"
    proof = Proof(fact=NAMESPACES, off=r"(?!.*\bcgroup).*")

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment that sees the host's control groups."""
        return (
            subject.with_options(cgroup_namespace="host") if subject.option("cgroup_namespace") == "private" else None
        )


PLUGIN = CgroupNamespace()
