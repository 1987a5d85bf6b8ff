"""The table of connections that a host's packet filter keeps."""

from typing import ClassVar

from weighbridge.model.explained import Proof
from weighbridge.model.facts import CONNECTION_TRACKING
from weighbridge.model.measurement import ALL_CPU, CONNECTION_DROPS, SOFTIRQ_SHARE
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class ConnectionTracking(Mechanism):
    """Each packet is looked up in it, and each new connection entered; published ports need it.

    A container's own namespace tracks as well, where the engine's rules for its name server are there.
    """

    kind = "connection-tracking"
    summary = "connection tracking of a host's packet filter (conntrack)"
    title = "the host's connection tracking (conntrack)"
    switched = "tracked → NOTRACK"
    remedy = "NOTRACK rules for this traffic, if its addresses are not translated"
    source = "iptables-extensions(8), CT: --notrack"
    off_with = frozenset({"address-translation", "docker-proxy"})
    counters: ClassVar = (ALL_CPU, SOFTIRQ_SHARE, CONNECTION_DROPS)
    proof = Proof(fact=CONNECTION_TRACKING, off="off")

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment on a host that tracks nothing."""
        if not (subject.networked and subject.option("conntrack")):
            return None
        return subject.with_options(conntrack=False)


PLUGIN = ConnectionTracking()
