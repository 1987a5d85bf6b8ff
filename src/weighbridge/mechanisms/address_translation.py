"""The packet filter that gives a published port's connections another address."""

from typing import ClassVar

from weighbridge.model.explained import PATH, Proof
from weighbridge.model.measurement import ALL_CPU, CONNECTION_DROPS, SOFTIRQ_SHARE
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class AddressTranslation(Mechanism):
    """Netfilter tracks the connection and rewrites each packet; rules of the engine are crossed for it.

    From another host packets are also forwarded to the container's bridge. Its own address is reached without that,
    on a bridge that has the host's interface.
    """

    kind = "address-translation"
    summary = "address translation of published ports, including connection tracking and packet-filter rules"
    title = "address translation and forwarding (netfilter)"
    switched = "published port → the container's own address"
    remedy = "connect to the container's own address, or use the host's network"
    source = "Felter et al., An Updated Performance Comparison of Virtual Machines and Linux Containers, ISPASS 2015"
    off_with = frozenset({"docker-proxy"})
    counters: ClassVar = (ALL_CPU, SOFTIRQ_SHARE, CONNECTION_DROPS)
    proof = Proof(of=PATH, fact="translation", off="none")

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment whose clients use the container's own address."""
        if not (subject.networked and subject.option("publish")):
            return None
        if subject.option("joined") in ("slirp4netns", "pasta"):
            return None  # no client reaches a user's network but by published ports
        if subject.apart and subject.can_be("attach", "interface"):
            return subject.with_options(publish=False, attach="interface")  # no bridge is reached from elsewhere else
        return subject.with_options(publish=False)


PLUGIN = AddressTranslation()
