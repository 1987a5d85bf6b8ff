"""What a private dockerd adds to the packet filter is taken out again: all of it and nothing else.

The tables below are of Docker 20.10; the files in `data` are of 28.5.2 (Debian sid, iptables 1.8.13 on nftables)
beside rules of a user's: before, and after kill -9 of dockerd while it had four containers (one of an IPv6 network,
one published on the loopback interface alone).
"""

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from weighbridge.engines import firewall
from weighbridge.engines.firewall import readd, undo

EMPTY = """\
:INPUT ACCEPT
:FORWARD ACCEPT
:OUTPUT ACCEPT"""
USERS = """\
:INPUT DROP
:FORWARD ACCEPT
:OUTPUT ACCEPT
:web -
-A INPUT -i lo -j ACCEPT
-A INPUT -p tcp -m tcp --dport 22 -m comment --comment "ssh for docker people" -j ACCEPT
-A FORWARD -i virbr0 -o eth0 -j ACCEPT
-A web -s 10.0.0.0/8 -j RETURN""".replace("- \n", "-\n")
FILTER = """\
:DOCKER -
:DOCKER-ISOLATION-STAGE-1 -
:DOCKER-ISOLATION-STAGE-2 -
:DOCKER-USER -
-A FORWARD -j DOCKER-USER
-A FORWARD -j DOCKER-ISOLATION-STAGE-1
-A FORWARD -o wb-0a1b2c-0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -o wb-0a1b2c-0 -j DOCKER
-A FORWARD -i wb-0a1b2c-0 ! -o wb-0a1b2c-0 -j ACCEPT
-A FORWARD -i wb-0a1b2c-0 -o wb-0a1b2c-0 -j ACCEPT
-A DOCKER -d 172.18.0.2/32 ! -i wb-0a1b2c-0 -o wb-0a1b2c-0 -p tcp -m tcp --dport 5301 -j ACCEPT
-A DOCKER-ISOLATION-STAGE-1 -i wb-0a1b2c-0 ! -o wb-0a1b2c-0 -j DOCKER-ISOLATION-STAGE-2
-A DOCKER-ISOLATION-STAGE-1 -j RETURN
-A DOCKER-ISOLATION-STAGE-2 -o wb-0a1b2c-0 -j DROP
-A DOCKER-ISOLATION-STAGE-2 -j RETURN
-A DOCKER-USER -j RETURN""".splitlines()
NAT = """\
:PREROUTING ACCEPT
:INPUT ACCEPT
:OUTPUT ACCEPT
:POSTROUTING ACCEPT
:DOCKER -
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A OUTPUT ! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DOCKER
-A POSTROUTING -s 172.18.0.0/16 ! -o wb-0a1b2c-0 -j MASQUERADE
-A POSTROUTING -s 172.18.0.2/32 -d 172.18.0.2/32 -p tcp -m tcp --dport 5301 -j MASQUERADE
-A DOCKER -i wb-0a1b2c-0 -j RETURN
-A DOCKER ! -i wb-0a1b2c-0 -p tcp -m tcp --dport 5301 -j DNAT --to-destination 172.18.0.2:5301""".splitlines()

HAIRPIN = NAT[8]
"""Gone when the container is stopped; there after a kill of dockerd."""


def with_docker(before: str) -> list[str]:
    """A filter table once dockerd ran: its chains and rules, and the policy that it sets."""
    lines = before.replace(":FORWARD ACCEPT", ":FORWARD DROP").splitlines()
    chains = [line for line in lines if line.startswith(":")]
    return [*chains, *FILTER[:4], *FILTER[4:10], *(line for line in lines if line.startswith("-A")), *FILTER[10:]]


def after(now: list[str], steps: list[tuple[str, ...]]) -> list[str]:
    """The table once the steps were taken, as iptables takes them: a chain that is in use cannot be deleted."""
    import shlex

    left = list(now)
    for action, *rest in steps:
        if action == "-D":
            rule = next(line for line in left if line.startswith("-A") and shlex.split(line)[1:] == rest)
            left.remove(rule)
        elif action == "-X":
            (chain,) = rest
            uses = [line for line in left if line.startswith("-A") and chain in shlex.split(line)]
            assert uses == [], f"{chain} is in use"
            left = [line for line in left if not line.startswith(f":{chain} ")]
        elif action == "-N":
            left.append(f":{rest[0]} -")
        elif action == "-I":
            chain, place, *rule = rest
            rules = [number for number, line in enumerate(left) if line.startswith(f"-A {chain} ")]
            assert len(rules) >= int(place) - 1, f"{chain} has no rule {int(place) - 1}"
            left.insert([*rules, len(left)][int(place) - 1], shlex.join(["-A", chain, *rule]).replace("'!'", "!"))
        else:
            assert action == "-P"
            left = [f":{rest[0]} {rest[1]}" if line.startswith(f":{rest[0]} ") else line for line in left]
    return left


ADDED = ["-A INPUT -s 192.0.2.1/32 -j DROP", '-A INPUT -m comment --comment "a b" -j LOG', "-A web -j DROP"]
EARLIER = [line.replace("wb-0a1b2c-0", "docker0") for line in with_docker(USERS)]
OURS = ["-A FORWARD -o wb-0a1b2c-0 -j DOCKER", "-A DOCKER-ISOLATION-STAGE-2 -o wb-0a1b2c-0 -j DROP"]
MINE = "-A DOCKER-USER -s 10.8.0.0/16 -j DROP"
OF_MINE = [":DOCKER-USER -", "-A FORWARD -j DOCKER-USER", "-A DOCKER-USER -j RETURN", MINE]
TABLES = {
    "never used before": (EMPTY.splitlines(), with_docker(EMPTY), EMPTY.splitlines()),
    "of a user": (USERS.splitlines(), with_docker(USERS), USERS.splitlines()),
    "nat": (NAT[:4], [line for line in NAT if line != HAIRPIN], NAT[:4]),
    "nat with a rule that does not name the bridge": (NAT[:4], NAT, NAT[:4]),
    "of an engine that was there before": (EARLIER, [*EARLIER, *OURS], EARLIER),
    "with what the user adds meanwhile": (
        USERS.splitlines(), [*with_docker(USERS), *ADDED], [*USERS.splitlines(), *ADDED],
    ),
    "with a user's rules in a chain of Docker's": (
        USERS.splitlines(), [*with_docker(USERS), MINE], [*USERS.splitlines(), *OF_MINE],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLES)
def test_a_table_is_as_it_was(case: str):
    before, now, expected = TABLES[case]
    steps = undo(set(before), now)
    assert sorted(after(now, steps)) == sorted(expected)
    actions = [step[0] for step in steps]
    assert actions == sorted(actions, key=["-D", "-X", "-P"].index), "rules, then chains, then policies"


def test_the_policies_are_restored_even_where_the_table_was_not_noted():
    assert ("-P", "FORWARD", "ACCEPT") in undo(set(), with_docker(EMPTY))


def test_a_rule_that_only_mentions_docker_stays():
    rule = '-A INPUT -s 192.0.2.1/32 -m comment --comment "the DOCKER host of the colleague" -j DROP'
    assert undo(set(), [rule]) == []


@pytest.mark.parametrize("adds", [None, *firewall.Adds])
@pytest.mark.parametrize("quote", ["", '"'])
def test_the_rules_of_our_own_bridges_stay(adds: firewall.Adds | None, quote: str):
    """Also those of another run that goes on."""
    comment = f"-m comment --comment {quote}weighbridge-123456abcdef{quote}"
    bridge = f"-A FORWARD -i wb-abcdef-b0 -o wb-abcdef-b0 {comment} -j ACCEPT"
    assert undo(set(), [bridge], adds) == []
    assert all("weighbridge-123456abcdef" not in step for step in undo(set(), [bridge, *FILTER], adds))


# -- remember and restore --------------------------------------------------------------------------

DATA = Path(__file__).parent / "data"


class FilteredHost:
    """A host with iptables and ip6tables (and nft, where it has ``nft`` tables), as far as `firewall` uses them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tables = {"iptables": {"filter": USERS.splitlines(), "nat": NAT[:4]}, "ip6tables": {}}
        self.nft: dict[str, list[str]] | None = None
        self.pairs: dict[str, str | None] = {}
        """Each veth link here and its peer, None for one in another namespace."""
        self.bridge: dict | None = None
        """docker0, as ip(8) tells it."""
        self.commands: list[str] = []
        self.sysctls = {"net/ipv4/ip_forward": "0"}
        self.refused: set[str] = set()
        monkeypatch.setattr(firewall, "output", self.output)
        monkeypatch.setattr(firewall, "_sysctl", self.sysctls.get)

    def output(self, argv: tuple[str, ...]) -> str | None:
        program, *words = argv
        if program == "nft":
            return self._nft(words)
        if program == "ip":
            return self._ip(words)
        if program.endswith("-save"):
            tables = self.tables[program.removesuffix("-save")].items()
            saved = [line for name, lines in tables for line in (f"*{name}", *map(_counted, lines), "COMMIT")]
            return "\n".join(["# Generated by iptables-save", *saved])
        assert words[:2] == ["--wait", "-t"]
        self.commands.append(" ".join(argv))
        if self.commands[-1] in self.refused:
            return None
        tables = self.tables[program]
        tables[words[2]] = after(tables[words[2]], [tuple(words[3:])])
        return ""

    def _ip(self, words: list[str]) -> str:
        if words == ["-json", "link", "show", "type", "veth"]:
            peers = {name: {"link": peer} if peer else {"link_index": 2} for name, peer in self.pairs.items()}
            return json.dumps([{"ifname": name, **peer} for name, peer in peers.items()])
        if words == ["-json", "address", "show", "dev", "docker0"]:
            return json.dumps([self.bridge]) if self.bridge else ""
        if words[:3] in (["link", "add", "docker0"], ["address", "add", "172.17.0.1/16"], ["link", "set", "docker0"]):
            self.commands.append(" ".join(("ip", *words)))
            return ""
        assert words[:2] == ["link", "delete"]
        del self.pairs[self.pairs.pop(words[2])]
        return ""

    def _nft(self, words: list[str]) -> str | None:
        if self.nft is None:
            return None
        if words == ["list", "tables"]:
            return "\n".join(f"table {name}" for name in self.nft)
        name = " ".join(words[2:])
        if words[0] == "list":
            return "\n".join([f"table {name} {{", *self.nft[name], "}"])
        assert words[:2] == ["delete", "table"]
        del self.nft[name]
        return ""

    def take(self, moment: str) -> None:
        """Bring both families into the state that they had at a moment of `DATA`."""
        for family in firewall.FAMILIES:
            self.tables[family] = firewall.parse((DATA / f"docker-28-{moment}-{family}-save.txt").read_text())

    def state(self) -> dict[str, dict[str, list[str]]]:
        return {
            family: {name: sorted(lines) for name, lines in tables.items() if lines}
            for family, tables in self.tables.items()
        }


def _counted(line: str) -> str:
    return line + " [12:3456]" if line.startswith(":") else line


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> FilteredHost:
    return FilteredHost(monkeypatch)


def test_what_is_remembered_is_restored(tmp_path: Path, host: FilteredHost):
    before = host.state()
    assert firewall.count() == 4
    firewall.remember(tmp_path)
    host.tables["iptables"] |= {"filter": with_docker(USERS), "nat": [line for line in NAT if line != HAIRPIN]}
    assert firewall.left(tmp_path)
    firewall.restore(tmp_path)
    assert host.state() == before
    assert list(tmp_path.iterdir()) == []
    host.commands.clear()
    firewall.restore(tmp_path)
    assert host.commands == [], "without a note nothing is touched"
    assert firewall.left(tmp_path) == []


def test_nothing_of_docker_28_is_left(tmp_path: Path, host: FilteredHost):
    host.take("before")
    before = host.state()
    assert firewall.count() == 3
    firewall.remember(tmp_path)
    host.take("killed")
    assert firewall.count() > 50
    tables = {"iptables": ["filter", "nat", "raw"], "ip6tables": ["filter", "nat", "raw"]}
    expected = [f"{family} {table}" for family, names in tables.items() for table in names]
    assert [sentence.split(":")[0] for sentence in firewall.left(tmp_path)] == expected
    firewall.restore(tmp_path)
    assert host.state() == before, "tables that there were not have no chain any more, which each packet would meet"
    assert not (tmp_path / firewall.NOTE).exists()


def test_what_could_not_be_taken_out_stays_noted_and_is_told(tmp_path: Path, host: FilteredHost):
    firewall.remember(tmp_path)
    host.tables["iptables"]["filter"] = with_docker(USERS)
    host.refused = {"iptables --wait -t filter -X DOCKER-USER"}
    firewall.restore(tmp_path)
    assert firewall.left(tmp_path) == ["iptables filter: 1 of rules, chains and policies"]
    host.refused.clear()
    firewall.restore(tmp_path)
    assert firewall.left(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_the_note_of_an_earlier_version_is_restored(tmp_path: Path, host: FilteredHost):
    """It knew two tables of one family: of the others it cannot be told what was there before."""
    note = {"rules": {"filter": USERS.splitlines(), "nat": NAT[:4]}, "sysctls": {"net/ipv4/ip_forward": "0"}}
    (tmp_path / firewall.NOTE).write_text(json.dumps(note))
    before = host.state()
    host.take("killed")
    host.tables["iptables"] |= {"filter": with_docker(USERS), "nat": NAT}
    others = {family: dict(tables) for family, tables in host.tables.items()}
    firewall.restore(tmp_path)
    assert host.state()["iptables"] | {"mangle": [], "raw": []} == before["iptables"] | {"mangle": [], "raw": []}
    assert host.tables["ip6tables"] == others["ip6tables"]
    assert host.tables["iptables"]["raw"] == others["iptables"]["raw"]
    assert not (tmp_path / firewall.NOTE).exists()


def test_an_engine_of_the_users_that_was_started_meanwhile_keeps_its_rules(tmp_path: Path, host: FilteredHost):
    """They look like those of ours; once it has ended they are taken out."""
    host.nft = {}
    firewall.remember(tmp_path)
    host.take("killed")
    host.nft["inet netavark"] = []
    host.sysctls["net/ipv4/ip_forward"] = "1"
    now = host.state()
    firewall.restore(tmp_path, beside_engine=True)
    assert (host.state(), host.nft) == (now, {})
    assert firewall.left(tmp_path, beside_engine=True) == []
    assert (tmp_path / firewall.NOTE).exists()
    assert firewall.left(tmp_path)


def test_beside_an_engine_that_was_there_before_podman_leaves_no_note(tmp_path: Path, host: FilteredHost):
    firewall.remember(tmp_path, beside_engine=True)
    host.tables["iptables"]["nat"] = [*NAT, ":NETAVARK-1 -", "-A POSTROUTING -j NETAVARK-1"]
    firewall.restore(tmp_path, beside_engine=True)
    assert host.tables["iptables"]["nat"] == NAT
    assert list(tmp_path.iterdir()) == []


def test_an_empty_table_of_iptables_goes_where_there_was_none(tmp_path: Path, host: FilteredHost):
    host.nft = {"ip filter": ["chain INPUT {", "}"]}
    firewall.remember(tmp_path)
    host.tables["ip6tables"] = {"nat": [":PREROUTING ACCEPT", ":DOCKER -", "-A PREROUTING -j DOCKER"]}
    host.nft |= {"ip6 nat": [], "ip raw": ["chain PREROUTING {", "}"]}
    firewall.restore(tmp_path)
    assert host.tables["ip6tables"] == {"nat": []}
    assert [*host.nft] == ["ip filter", "ip raw"], "somebody has a chain in the other"


def test_a_veth_pair_that_did_not_reach_its_container_is_removed(tmp_path: Path, host: FilteredHost):
    users = {"veth0": "veth1", "veth1": "veth0", "vethabcdef1": None, "veth1234567": "veth89abcde"}
    host.pairs = {**users, "veth89abcde": "veth1234567"}
    firewall.remember(tmp_path)
    before = dict(host.pairs)
    host.pairs |= {"vethc7467a5": "vethf987f78", "vethf987f78": "vethc7467a5", "veth2": "veth3", "veth3": "veth2"}
    assert firewall.left(tmp_path) == ["link vethc7467a5"]
    assert firewall.left(tmp_path, beside_engine=True) == []
    firewall.restore(tmp_path, firewall.Adds.DOCKER)
    assert "vethc7467a5" in host.pairs, "another engine may just be making it"
    firewall.restore(tmp_path)
    assert host.pairs == {**before, "veth2": "veth3", "veth3": "veth2"}
    assert list(tmp_path.iterdir()) == []


def test_threads_that_remember_at_the_same_time_write_one_note(
    tmp_path: Path, host: FilteredHost, monkeypatch: pytest.MonkeyPatch
):
    """The first one to read the filter gives another one the time to read it, too."""
    both, reading, readers = threading.Barrier(2), threading.Barrier(2), list[int]()

    def bridge() -> None:
        readers.append(threading.get_ident())
        with suppress(threading.BrokenBarrierError):
            reading.wait(0.2)

    def engine() -> None:
        both.wait(60)
        firewall.remember(tmp_path)

    monkeypatch.setattr(firewall, "_bridge", bridge)
    with ThreadPoolExecutor(2) as threads:
        for each in [threads.submit(engine), threads.submit(engine)]:
            each.result()
    assert len(readers) == 1 and (tmp_path / firewall.NOTE).exists()


def test_sysctls_are_restored(tmp_path: Path, host: FilteredHost, monkeypatch: pytest.MonkeyPatch):
    """Also those that came with br_netfilter, which an engine loads: unless they are 0, bridges are filtered."""
    written: dict[str, str] = {}
    monkeypatch.setattr(Path, "write_text", _noting(written, Path.write_text))
    host.sysctls["net/ipv6/conf/all/forwarding"] = "0"
    firewall.remember(tmp_path)
    forwarding = dict.fromkeys(("net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"), "1")
    host.sysctls |= {**forwarding, "net/bridge/bridge-nf-call-ip6tables": "1", "net/core/other": "1"}
    firewall.restore(tmp_path, firewall.Adds.DOCKER)
    assert written == {}, "another engine runs on"
    firewall.restore(tmp_path)
    assert written == dict.fromkeys((*forwarding, "net/bridge/bridge-nf-call-ip6tables"), "0")


def _noting(written: dict[str, str], write: Callable[..., int]) -> Callable[..., int]:
    def noted(path: Path, text: str, **named: object) -> int:
        if not path.is_relative_to("/proc/sys"):
            return write(path, text, **named)
        written[str(path.relative_to("/proc/sys"))] = text
        return len(text)

    return noted


def test_a_filter_that_cannot_be_read_is_not_taken_for_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Else the user's own engine would lose its rules."""
    monkeypatch.setattr(firewall, "output", lambda _: None)
    firewall.remember(tmp_path)
    host = FilteredHost(monkeypatch)
    host.take("killed")
    firewall.restore(tmp_path)
    assert host.commands == []


NETAVARK = """\
:FORWARD ACCEPT
:NETAVARK_FORWARD -
-A FORWARD -m comment --comment "netavark firewall plugin rules" -j NETAVARK_FORWARD
-A NETAVARK_FORWARD -d 10.89.0.0/24 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A NETAVARK_FORWARD -s 10.89.0.0/24 -j ACCEPT""".splitlines()


def test_what_podman_adds_is_taken_out_and_what_docker_added_stays():
    """As netavark 1.4 left it beside a private dockerd."""
    now = [*NETAVARK, *FILTER]
    steps = undo({":FORWARD ACCEPT"}, now, firewall.Adds.PODMAN)
    assert steps[-1] == ("-X", "NETAVARK_FORWARD")
    assert [step[0] for step in steps] == ["-D", "-D", "-D", "-X"]
    assert not any("DOCKER" in word for step in steps for word in step)
    assert not any("NETAVARK" in word for step in undo(set(), now, firewall.Adds.DOCKER) for word in step)
    assert len(undo({":FORWARD ACCEPT"}, now)) == len(now) - 1


DOCKER0 = {
    "ifname": "docker0", "flags": ["NO-CARRIER", "BROADCAST", "MULTICAST", "UP"], "address": "02:42:ac:11:00:01",
    "addr_info": [
        {"family": "inet", "local": "172.17.0.1", "prefixlen": 16, "scope": "global"},
        {"family": "inet6", "local": "fe80::42:acff:fe11:1", "prefixlen": 64, "scope": "link"},
    ],
}  # fmt: skip


def test_the_bridge_of_a_stopped_engine_is_made_again(tmp_path: Path, host: FilteredHost):
    host.bridge = DOCKER0
    firewall.remember(tmp_path)
    host.bridge = None
    firewall.restore(tmp_path)
    assert host.commands == [
        "ip link add docker0 address 02:42:ac:11:00:01 type bridge",
        "ip address add 172.17.0.1/16 broadcast + dev docker0",
        "ip link set docker0 up",
    ]


STOPPED = [line.replace("wb-0a1b2c-0", "docker0") for line in FILTER]
"""What a service that was stopped has left."""


@pytest.mark.parametrize(
    "lost",
    [
        lambda line: "docker0" in line and not line.startswith("-A FORWARD"),
        lambda line: "docker0" in line,
        lambda line: "DOCKER" in line or "docker0" in line,
        lambda line: False,
    ],
)
def test_rules_of_a_stopped_engine_come_back_each_at_its_place(lost: Callable[[str], bool]):
    before = [*EMPTY.splitlines(), *STOPPED]
    before.insert(6, "-A FORWARD -i virbr0 -o eth0 -j ACCEPT")
    now = [line for line in before if not lost(line)]
    restored = after(now, readd(before, now))
    assert [line for line in restored if line.startswith("-A FORWARD")] == [
        line for line in before if line.startswith("-A FORWARD")
    ]
    assert sorted(restored) == sorted(before)


def test_a_rule_that_is_nobodys_of_dockers_is_not_brought_back():
    """The user has taken it out meanwhile."""
    assert readd(USERS.splitlines(), EMPTY.splitlines()) == []
