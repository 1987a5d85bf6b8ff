"""Which addresses and names a bridge gives out, and the rules by which `clean` finds what is left of it."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from sentences import raises_sentence
from weighbridge.errors import Unavailable
from weighbridge.hosts.bridge import Bridge, _free_network, addresses
from weighbridge.hosts.local import LocalHost
from weighbridge.linux import links, network
from weighbridge.linux.process import link_prefix
from weighbridge.model.host import RunContext
from weighbridge.model.names import RunId

RUN = RunId("0123456789ab")
TABLE = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"


class Routed(LocalHost):
    """This machine, with other routes."""

    def __init__(self, *thirds: int) -> None:
        super().__init__(RUN)
        self.table = TABLE + "".join(f"x{n}\t00{n:02X}13C6\t0\t1\t0\t0\t0\t00FFFFFF\t0\t0\t0\n" for n in thirds)

    def read(self, path: str) -> bytes:
        assert path == "/proc/self/net/route"
        return self.table.encode()


@pytest.fixture
def run(tmp_path: Path) -> RunContext:
    return RunContext(RUN, tmp_path, tmp_path, ExitStack())


def test_addresses_end_with_the_network():
    give = addresses("198.19.202")
    given = [give() for _ in range(253)]
    assert given[0] == "198.19.202.2" and given[-1] == "198.19.202.254" and len({*given}) == 253
    with raises_sentence(Unavailable):
        give()


def test_clean_knows_its_links(run: RunContext):
    bridge = Bridge(run, LocalHost(RUN), "wb-6789ab-b0", "198.19.202.1", 1500, addresses("198.19.202"))
    names = [bridge.name, *(bridge.next_port() for _ in range(1000))]
    assert len({*names}) == 1001
    names.append(f"{link_prefix(RUN)}c")  # the companions' bridge
    assert all(links.OURS.fullmatch(name) and len(name) <= 15 for name in names)


def test_a_network_that_is_used_is_passed_over(run: RunContext):
    free = _free_network(run, Routed())
    assert 202 <= free < 250
    assert network.route_in(Routed(free).table, f"198.19.{free}.0/24") == f"x{free}"
    other = _free_network(run, Routed(free))
    assert other != free and 202 <= other < 250
    with raises_sentence(Unavailable):
        _free_network(run, Routed(*range(202, 250)))


SAVED = """*filter
:FORWARD DROP [12:3456]
-A FORWARD -i wb-6789ab-b0 -o wb-6789ab-b0 -m comment --comment weighbridge-0123456789ab -j ACCEPT
-A FORWARD -i wb-6789ab-1 -o wb-6789ab-1 -j ACCEPT
-A FORWARD -m comment --comment "weighbridge-no" -j ACCEPT
-A INPUT -m comment --comment weighbridge-0123456789ab -j ACCEPT
COMMIT
"""
RAW = """*raw
:PREROUTING ACCEPT [12:3456]
-A PREROUTING -d 172.17.0.0/16 -i vx -m comment --comment weighbridge-0123456789ab -j ACCEPT
-A PREROUTING -d 172.17.0.2/32 ! -i wb-0a1b2c-0 -j DROP
COMMIT
"""
"""As it was where dockerd 28.5.2 dropped what came from link vx, until the first rule let it pass."""


def test_a_rule_that_leads_to_an_engines_network_is_one_of_ours(monkeypatch: pytest.MonkeyPatch):
    ours = " ".join(("PREROUTING", *links.rule_to_subnet("vx", "172.17.0.0/16", RUN)))
    assert [*links.rules_in(RAW)] == [(RUN, ours)]
    commands: list[tuple[str, ...]] = []
    monkeypatch.setattr(links, "output", lambda argv: commands.append(argv) or SAVED + RAW)
    links.remove_all(RUN)
    assert [argv[2:6] for argv in commands if argv[0] == "iptables"] == [
        ("-t", "filter", "-D", "FORWARD"),
        ("-t", "raw", "-D", "PREROUTING"),
    ]
