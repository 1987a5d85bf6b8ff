"""A program of the user's that carries each packet of a rootless container."""

from typing import ClassVar

from weighbridge.model.explained import PATH, Proof
from weighbridge.model.measurement import ALL_CPU, PACKET_SIZE, SWITCHES
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm

USER_MODE = ("slirp4netns", "pasta")


class UserModeNetwork(Mechanism):
    """slirp4netns or pasta, or the forwarder of its ports, copies what a bridge passes on inside the kernel."""

    kind = "user-mode-network"
    summary = "the user-mode network of rootless containers (slirp4netns, pasta), with its port forwarder"
    title = "rootless networking (pasta or slirp4netns, user namespace)"
    switched = "rootless, through a user-mode program → root's bridge"
    remedy = "a bridge created by root, or network: host"
    source = "Podman documentation, podman-run: --network"
    counters: ClassVar = (ALL_CPU, SWITCHES, PACKET_SIZE)
    proof = Proof(of=PATH, fact="translation", off="none")

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment as root's container on a bridge, at its own address: a user's have none."""
        if not subject.networked or subject.option("joined") not in USER_MODE:
            return None
        profile = getattr(subject.baseline.options, "apparmor", "unconfined")  # a user's containers have none
        return subject.with_options(rootless=False, network="bridge", publish=False, apparmor=profile)


PLUGIN = UserModeNetwork()
