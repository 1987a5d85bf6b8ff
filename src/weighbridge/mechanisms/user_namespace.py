"""A user namespace of root's containers."""

from weighbridge.model.explained import Proof
from weighbridge.model.facts import NAMESPACES
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class UserNamespace(Mechanism):
    """The kernel translates the ids of each file and process; rights against the machine itself are lacking."""

    kind = "user-namespace"
    summary = "a user namespace for root's containers, if a study requests one"
    title = "user namespace"
    switched = "own namespace → the host's"
    remedy = "no user namespace, if root in the container is allowed to be root on the host"
    source = "user_namespaces(7); Podman documentation, podman-run: --uidmap"
    proof = Proof(fact=NAMESPACES, off=r"(?!.*\buser).*")

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment whose root is that of the host."""
        return subject.with_options(user_namespace=False) if subject.option("user_namespace") else None


PLUGIN = UserNamespace()
