"""Huge pages of the host under a guest's memory."""

from typing import ClassVar

from weighbridge.model.explained import Proof
from weighbridge.model.facts import MEMORY_PAGES
from weighbridge.model.measurement import ALL_CPU
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class GuestHugePages(Mechanism):
    """Under second-level paging a miss of the TLB reads fewer entries where the host's pages are large.

    It is to save time; the memory is set aside, also what the guest never uses, and there before the guest boots.
    Without it the kernel gives ordinary pages, or makes huge ones itself where it can (transparent huge pages).
    """

    kind = "guest-huge-pages"
    summary = "reserved huge pages for a guest's memory, which are meant to save time"
    title = "huge pages of the guest's memory"
    switched = "reserved huge pages → pages chosen by the kernel"
    remedy = "huge_pages: false, if other programs need the memory"
    source = "Linux kernel documentation, admin-guide/mm/hugetlbpage"
    counters: ClassVar = (ALL_CPU,)
    proof = Proof(fact=MEMORY_PAGES, off="ordinary|mostly transparent huge pages")

    def off(self, subject: Subject) -> Arm | None:
        """Return the guest whose memory is like that of any process."""
        return subject.with_options(huge_pages=False) if subject.option("huge_pages") else None


PLUGIN = GuestHugePages()
