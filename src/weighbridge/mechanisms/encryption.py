"""Encryption of the packets between hosts."""

from typing import ClassVar

from weighbridge.model.measurement import ALL_CPU, SOFTIRQ_SHARE
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class Encryption(Mechanism):
    """Each packet of an overlay network is encrypted by IPsec."""

    kind = "encryption"
    summary = "encryption of an overlay network"
    title = "encryption (IPsec)"
    switched = "on → off"
    remedy = "encrypt only the traffic that needs it, in the program (TLS)"
    source = "Docker documentation, Overlay network driver: encrypt traffic"
    counters: ClassVar = (ALL_CPU, SOFTIRQ_SHARE)

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment with its packets as they are."""
        return subject.with_options(encrypted=False) if subject.option("encrypted") else None


PLUGIN = Encryption()
