"""Hosts of one kernel are one machine, whose CPUs and network count once."""

from typing import Any

import pytest

from weighbridge.linux.kernel_files import read_here
from weighbridge.meters.machines import networks_of
from weighbridge.model.host import HERE
from weighbridge.runner import same_machine
from weighbridge.runner.same_machine import BOOT_ID, name_machines
from weighbridge.runner.stage import machines_of

from .world import FakeHost, FakeSite, World

HERE_BOOT, FAR = "6e8f1b5a-here", "0d8e2c1f-far"
OURS = {"net": 1, "pid": 2}


class Named(FakeHost):
    """A host reached by a name, of some kernel; None: it does not tell which."""

    def __init__(self, world: World, name: str, boot: str | None, namespaces: dict[str, int], *cpus: int) -> None:
        super().__init__(world)
        self.name, self.machine = name, f"host {name}"
        self.network = self.machine, "/proc/self/net/dev"
        self._boot, self._namespaces, self._cpus = boot, namespaces, cpus

    def read(self, path: str) -> bytes:
        if path == BOOT_ID and self._boot is not None:
            return f"{self._boot}\n".encode()
        return super().read(path)

    def namespaces(self) -> dict[str, int]:
        return self._namespaces

    def cpus_online(self) -> list[int]:
        return [*self._cpus]


@pytest.fixture(autouse=True)
def _this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(same_machine, "read_here", lambda path: f"{HERE_BOOT}\n".encode())


def stage_of(world: World, **hosts: Any) -> dict[Any, Any]:
    sites: dict[Any, Any] = {role: FakeSite(world, role, "one", role) for role in hosts}
    for role, host in hosts.items():
        sites[role].host = host
    return sites


def test_two_names_of_one_machine_count_its_cpus_and_its_network_once(world: World):
    a, b = (Named(world, name, FAR, OURS, 0, 1, 2, 3) for name in "ab")
    name_machines([a, b])
    sites = stage_of(world, server=b, client=a)
    (machine,) = machines_of(sites, read_here).values()
    assert (a.machine, b.machine) == ("host a", "host a")
    assert (machine.cpus, machine.roles) == (4, ("server", "client"))
    assert len(networks_of(sites.values())) == 1


def test_two_kernels_are_two_machines_whatever_they_have_alike(world: World):
    """Every kernel gives its first namespaces the same numbers; one that does not tell its boot is one of its own."""
    hosts = [Named(world, f"h{n}", boot, OURS, 0, 1) for n, boot in enumerate((FAR, "other", None, None))]
    name_machines(hosts)
    assert len({host.machine for host in hosts}) == len({host.network for host in hosts}) == 4


def test_where_this_process_is_told_another_boot_a_testbed_is_still_here(world: World):
    """So it is in systemd-nspawn: a testbed mounts /proc anew, and sees the kernel's own."""
    testbed = Named(world, "t", "kernel's own", {}, 0)
    testbed.machine = HERE
    ssh, other = (Named(world, name, boot, {}, 0) for name, boot in (("s", "kernel's own"), ("o", FAR)))
    name_machines([ssh, testbed, other])
    assert (ssh.machine, testbed.machine, other.machine) == (HERE, HERE, "host o")
