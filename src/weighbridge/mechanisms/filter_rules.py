"""Rules of a packet filter that each packet is compared with."""

from typing import ClassVar

from weighbridge.model.explained import Proof
from weighbridge.model.facts import FILTER_RULES
from weighbridge.model.measurement import ALL_CPU, SOFTIRQ_SHARE, SOFTNET_DROPS, SOFTNET_SQUEEZES
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class FilterRules(Mechanism):
    """A chain is a list: a packet that matches none of its rules is compared with all of them."""

    kind = "filter-rules"
    summary = "a long chain of packet-filter rules"
    title = "packet-filter rules"
    switched = "a long chain → none"
    remedy = "accept established connections first, or use sets instead of lists (ipset, nftables)"
    source = "nftables wiki, Performance; iptables(8)"
    counters: ClassVar = (ALL_CPU, SOFTIRQ_SHARE, SOFTNET_DROPS, SOFTNET_SQUEEZES)
    proof = Proof(fact=FILTER_RULES, off="0")

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment on a host with its engine's rules alone."""
        if not (subject.networked and subject.option("filter_rules")):
            return None
        return subject.with_options(filter_rules=0)


PLUGIN = FilterRules()
