"""The addresses of cables to network namespaces: no two runs have the same, and none that the host has a route to."""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sentences import raises_sentence
from weighbridge.errors import Unavailable
from weighbridge.hosts import cable
from weighbridge.model.command import Command, Completed
from weighbridge.model.host import Host, RunContext

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
    first = cable._free_block(cast(RunContext, Run(run)), cast(Host, Routed(routes)))
    return IPv4Network(f"{cable._address(first)}/30")


@pytest.fixture(autouse=True)
def _from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cable, "_networks", cast(Any, iter(range(2**20))))


def test_two_runs_and_two_sites_have_different_networks():
    found = [block("6e57d057a0e1"), block("6e57d057a0e1"), block("0123456789ab")]
    assert len({*found}) == 3
    assert all(each.subnet_of(IPv4Network("198.18.0.0/16")) for each in found)


def test_a_network_that_the_host_has_a_route_to_is_passed_over(monkeypatch: pytest.MonkeyPatch):
    taken = block("6e57d057a0e1")
    monkeypatch.setattr(cable, "_networks", cast(Any, iter(range(2**20))))
    assert block("6e57d057a0e1", str(taken)).network_address == IPv4Address(taken.network_address + 4)
    monkeypatch.setattr(cable, "_networks", cast(Any, iter(range(2**20))))
    with raises_sentence(Unavailable):
        block("6e57d057a0e1", "198.18.0.0/16")


SAVED = """*raw
:PREROUTING ACCEPT [0:0]
-A PREROUTING -d 172.17.0.2/32 ! -i wb-0a1b2c-0 -j DROP
COMMIT
"""
"""Of dockerd 28.5.2, for a container on its bridge without published ports."""


class RoutingHost:
    """A host of which the commands are noted, and what its packet filter has."""

    name = "here"

    def __init__(self, saved: str) -> None:
        self.saved = saved
        self.commands: list[str] = []

    def run(self, command: Command) -> Completed:
        self.commands.append(" ".join(command.argv))
        text = self.saved if command.argv == ("iptables-save",) else ""
        text = "5: wb-x    inet 198.19.200.1/30 scope global wb-x" if "show" in command.argv else text
        return Completed(command.argv, 0, text.encode(), b"", 0.1)


@pytest.mark.parametrize(("saved", "tables"), [("", ["filter", "filter"]), (SAVED, ["filter", "filter", "raw"])])
def test_companions_are_reached_also_where_the_engine_drops_what_is_routed_to_them(saved: str, tables: list[str]):
    host: Any = RoutingHost(saved)
    services = SimpleNamespace(subnet="172.17.0.0/16", link="wb-0a1b2c-0")
    request: Any = SimpleNamespace(host=host, supporting_services=services, run=SimpleNamespace(id="0123456789ab"))
    with cable._routed(request, "wb-x", 1):
        added = [each for each in host.commands if " -I " in each]
    assert [each.split()[3] for each in added] == tables
    removed = [each for each in host.commands if " -D " in each]
    assert sorted(each.replace(" -I ", " -D ") for each in added) == sorted(removed)
