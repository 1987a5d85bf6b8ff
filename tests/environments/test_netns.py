"""The addresses of network namespaces: no two runs have the same, and none that the host has a route to."""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Any, cast

import pytest

from weighbridge.environments import netns
from weighbridge.errors import Unavailable
from weighbridge.model.site import Host, RunContext

HEAD = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"


@dataclass
class Routed:
    """A host with these routes."""

    routes: tuple[str, ...]
    name: str = "here"
    network: tuple[str, str] = ("", "/proc/net/dev")

    def read(self, path: str) -> bytes:
        assert path == "/proc/net/route"
        lines = [self._line(IPv4Network(each)) for each in self.routes]
        return (HEAD + "".join(lines)).encode()

    def _line(self, subnet: IPv4Network) -> str:
        there, mask = (int.from_bytes(each.packed, "little") for each in (subnet.network_address, subnet.netmask))
        return f"v0\t{there:08X}\t00000000\t0001\t0\t0\t0\t{mask:08X}\t0\t0\t0\n"


@dataclass
class Run:
    id: str


def block(run: str, *routes: str) -> IPv4Network:
    first = netns._free_block(cast(RunContext, Run(run)), cast(Host, Routed(routes)))
    return IPv4Network(f"{netns._address(first)}/30")


@pytest.fixture(autouse=True)
def _from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(netns, "_networks", cast(Any, iter(range(2**20))))


def test_two_runs_and_two_sites_have_different_networks():
    found = [block("6e57d057a0e1"), block("6e57d057a0e1"), block("0123456789ab")]
    assert len({*found}) == 3
    assert all(each.subnet_of(IPv4Network("198.18.0.0/16")) for each in found)


def test_a_network_that_the_host_has_a_route_to_is_passed_over(monkeypatch: pytest.MonkeyPatch):
    taken = block("6e57d057a0e1")
    monkeypatch.setattr(netns, "_networks", cast(Any, iter(range(2**20))))
    assert block("6e57d057a0e1", str(taken)).network_address == IPv4Address(taken.network_address + 4)
    monkeypatch.setattr(netns, "_networks", cast(Any, iter(range(2**20))))
    with pytest.raises(Unavailable, match=r"uses all of 198\.18\.0\.0/16"):
        block("6e57d057a0e1", "198.18.0.0/16")
