"""Offloads that an interface has not, so that the kernel handles each packet by itself."""

from typing import ClassVar

from weighbridge.model.explained import Proof
from weighbridge.model.facts import OFFLOADS
from weighbridge.model.measurement import (
    ALL_CPU,
    PACKET_SIZE,
    SEGMENTS,
    SOFTIRQ_SHARE,
    SOFTNET_DROPS,
    SOFTNET_SQUEEZES,
)
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class MissingOffloads(Mechanism):
    """With TSO, GSO and GRO up to 64 KiB pass the network stack, a veth and a bridge as one packet."""

    kind = "offloads"
    summary = "offloads (TSO, GSO, GRO, checksums) that are switched off on a container's interface"
    title = "missing offloads (TSO, GSO, GRO, checksums)"
    switched = "off → on"
    remedy = "ethtool -K INTERFACE tso on gso on gro on tx on rx on"
    source = "Linux kernel documentation, networking/segmentation-offloads"
    counters: ClassVar = (ALL_CPU, SOFTIRQ_SHARE, SEGMENTS, PACKET_SIZE, SOFTNET_DROPS, SOFTNET_SQUEEZES)
    proof = Proof(fact=OFFLOADS)

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment whose interface has the kernel's own."""
        if not (subject.networked and subject.option("no_offloads")):
            return None
        return subject.with_options(no_offloads=())


PLUGIN = MissingOffloads()
