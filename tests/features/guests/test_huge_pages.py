"""Huge pages for a guest's memory: what a host has of them, what is said where it has too few."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sentences import raises_sentence
from weighbridge.errors import Unavailable
from weighbridge.features.guests import huge_pages
from weighbridge.features.guests.huge_pages import Pool
from weighbridge.model.command import Completed

MIB = 2**20
MEMINFO = """\
MemAvailable:   21802548 kB
HugePages_Total:     300
HugePages_Free:      290
HugePages_Rsvd:       10
HugePages_Surp:        0
Hugepagesize:       2048 kB
Hugetlb:          614400 kB
"""


class Asked:
    """A host whose meminfo is `MEMINFO`, and on which a command prints this."""

    name = "a"

    def __init__(self, printed: bytes = b"") -> None:
        self._printed = printed

    def read(self, path: str) -> bytes:
        return MEMINFO.encode()

    def run(self, command: Any) -> Completed:
        return Completed(command.argv, 0, self._printed, b"", 0.1)


GROUP: Any = SimpleNamespace(procs=(Path("/sys/fs/cgroup/x/cgroup.procs"),))


def test_what_is_reserved_is_not_free():
    assert huge_pages.pool_of(MEMINFO) == Pool(300, 280, 2 * MIB)
    assert huge_pages.pool_of("MemFree: 1 kB\n") == Pool(0, 0, 0)


@pytest.mark.parametrize(
    ("memory", "guests", "why"),
    [
        (560, 1, ""),
        (280, 2, ""),
        (562, 1, "a guest with 562 MiB needs 281 huge pages of 2 MiB, but this machine has 280 free"),
        (512, 2, "2 guests with 512 MiB each need 512 huge pages of 2 MiB, but this machine has 280 free"),
        (255, 1, "255 MiB of memory is not a multiple of the huge page size, 2 MiB"),
    ],
)
def test_a_guest_needs_as_many_as_its_memory_takes(memory: int, guests: int, why: str):
    problem = huge_pages.lacking(memory * MIB, "this machine", huge_pages.pool_of(MEMINFO), guests)
    assert (problem.detail if problem else "") == why


def test_the_remedy_leaves_the_pages_that_others_have(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("weighbridge.linux.remedies.os.geteuid", lambda: 0)
    problem = huge_pages.lacking(512 * MIB, "this machine", huge_pages.pool_of(MEMINFO), 2)
    assert problem is not None and problem.remedy == "sysctl vm.nr_hugepages=532"
    host: Any = Asked()
    with raises_sentence(Unavailable):
        huge_pages.require(1024 * MIB, host)


@pytest.mark.parametrize(
    ("printed", "pages"),
    [
        (b"HugetlbPages:\t  524288 kB\n", "huge: 512 MiB of them"),
        (b"HugetlbPages:\t       0 kB\n", "ordinary"),
        (b"RssAnon:\t 9 kB\nHugetlbPages:\t 0 kB\nAnonHugePages:\t 4 kB\n", "ordinary"),
        (b"RssAnon:\t 9 kB\nHugetlbPages:\t 0 kB\nAnonHugePages:\t 8 kB\n", "mostly transparent huge pages"),
        (b"", ""),
    ],
)
def test_the_kernel_says_which_pages_a_hypervisor_has(printed: bytes, pages: str):
    host: Any = Asked(printed)
    assert huge_pages.in_use(host, GROUP) == pages
