"""Finds and removes the leftovers of an engine in the host's packet filter and sysctls.

dockerd keeps its chains, its FORWARD policies and ip_forward when it stops; since version 27 also for IPv6, since 28
also rules of table raw. On its start it empties the chains of an earlier one, and removes the bridge docker0 if it is
configured without one. An engine that speaks nftables itself (netavark, Docker 29 on request) has tables of its own.
A dockerd that is killed before an end of a veth pair is in its container leaves the pair. A private engine must leave
the machine as it was. A note of that state is kept in a folder, so that ``weighbridge clean`` can restore it even
after a kill.
"""

import contextlib
import enum
import itertools
import json
import re
import shlex
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weighbridge.linux.links import is_rule
from weighbridge.linux.process import output

NOTE = "firewall.json"
FAMILIES = {"iptables": "ip", "ip6tables": "ip6"}
"""The programs of both families, each with its ``-save``, and what nftables calls the family.

Which back end they speak to (nftables, the legacy tables) is the machine's choice, and the engine's too: it calls the
same programs."""
TABLES = ("filter", "nat", "raw", "mangle")
_BRIDGED = ("net/bridge/bridge-nf-call-iptables", "net/bridge/bridge-nf-call-ip6tables")
"""There once br_netfilter is loaded, which an engine does: set to 0, frames pass bridges as they did without it."""
_SYSCTLS = (
    "net/ipv4/ip_forward",  # writing it sets most of what follows, which therefore comes after it
    "net/ipv4/conf/all/accept_redirects", "net/ipv4/conf/default/forwarding", "net/ipv6/conf/all/forwarding",
    "net/ipv6/conf/default/forwarding", *(f"net/ipv4/neigh/default/gc_thresh{number}" for number in (1, 2, 3)),
)  # fmt: skip
_OF_INTERFACES = "net/ipv[46]/conf/*/forwarding"

Saved = dict[str, list[str]]
"""The chains (":NAME POLICY") and rules ("-A ...") by table, without counters."""


@dataclass(frozen=True, slots=True)
class _Marks:
    lines: str
    """A pattern for the lines of iptables-save(8) that an engine adds."""
    tables: tuple[str, ...]
    """Its own tables of nftables."""


class Adds(enum.Enum):
    """What each kind of engine adds."""

    DOCKER = _Marks(
        r"^:DOCKER|^-A DOCKER|-j DOCKER|\bwb-[0-9a-f]+|\bdocker0\b"
        r"|-s (\S+)/(?:32|128) -d \1/(?:32|128) .*-j MASQUERADE$"
        r"|^-A PREROUTING -d 127\.0\.0\.\d+/32 ! -i lo -p (?:tcp|udp|sctp) .*--dport \d+ -j DROP$",
        ("ip docker-bridges", "ip6 docker-bridges"),
    )
    """Its chains, rules that name our bridges, a published port's way back to itself, and what keeps others from a
    port that is published on the loopback interface."""
    PODMAN = _Marks(r"^:NETAVARK|^-A NETAVARK|-j NETAVARK", ("inet netavark",))
    """netavark's chains; each of its rules is in one of them or leads to one."""


_NOTING = threading.RLock()
"""Held while a thread writes the note, or undoes what it says: several threads open engines."""
_BRIDGE = "docker0"
_VETH = re.compile(r"veth[0-9a-f]{7}")
"""Docker's names of both ends of a veth pair. The end in the container is renamed."""
_USERS_CHAIN = re.compile(r"^:DOCKER-USER |^-A DOCKER-USER |-j DOCKER-USER$")
"""The chain that Docker makes for rules of the user's, with the rules in it and the way into it."""
_USERS_CHAIN_UNUSED = "-A DOCKER-USER -j RETURN"
_OWN = {"nft": "nft table", "ip": "link"}
"""The names of the objects that the commands of these programs delete."""
_EVERYTHING = "|".join(adds.value.lines for adds in Adds)


def saved(family: str) -> Saved | None:
    """Return all tables of ``iptables`` or ``ip6tables``, or None if they cannot be read."""
    text = output((f"{family}-save",))
    return None if text is None else parse(text)


def parse(text: str) -> Saved:
    """Return the tables in the output of iptables-save(8), without counters."""
    tables: Saved = {}
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("*"):
            lines = tables.setdefault(line[1:], [])
        elif line.startswith((":", "-A")):
            lines.append(re.sub(r" \[\d+:\d+\]$", "", line))
    return tables


def nft_tables() -> set[str]:
    """Return the tables of nftables ("ip docker-bridges"), or nothing without nft(8)."""
    return {line.removeprefix("table ") for line in (output(("nft", "list", "tables")) or "").splitlines()}


def count() -> int | None:
    """Return the number of rules in all tables of iptables and ip6tables; None if one cannot be read."""
    families = [saved(family) for family in FAMILIES]
    tables = [lines for family in families if family is not None for lines in family.values()]
    return None if None in families else sum(line.startswith("-A") for lines in tables for line in lines)


def remember(folder: Path, *, beside_engine: bool = False) -> None:
    """Note the rules and sysctls as they are before an engine starts; a note that is there already is kept.

    ``beside_engine``: whether the user's own Docker engine runs.
    """
    with _NOTING:
        if not (folder / NOTE).exists():
            _write_note(folder, beside_engine=beside_engine)


def _write_note(folder: Path, *, beside_engine: bool) -> None:
    tables = {family: state for family in FAMILIES if (state := saved(family)) is not None}
    note = {
        "tables": {family: {name: state.get(name, []) for name in TABLES} for family, state in tables.items()},
        "nft": sorted(nft_tables()),
        "pairs": sorted(_pairs()),
        "bridge": _bridge(),
        "beside_engine": beside_engine,
        "sysctls": {name: value for name in _sysctls() if (value := _sysctl(name)) is not None or name in _BRIDGED},
    }
    part = (folder / NOTE).with_suffix(".part")
    part.write_text(json.dumps(note))
    part.replace(folder / NOTE)  # so that no kill leaves half a note


def restore(folder: Path, adds: Adds | None = None, *, beside_engine: bool = False) -> None:
    """Remove only the entries that engines added since ``remember``, or nothing if nothing was noted.

    ``adds`` limits this to entries of one kind because another engine still runs. The note is then kept for it, and
    the sysctls are left alone. The note is also kept if an entry could not be removed. ``beside_engine`` means that
    the user's own Docker engine runs now, whose rules look like ours: they and the sysctls stay, and if it did not
    run before, so does the note.
    """
    with _NOTING:
        _restore(folder, adds, beside_engine=beside_engine)


def _restore(folder: Path, adds: Adds | None, *, beside_engine: bool) -> None:
    (folder / NOTE).with_suffix(".part").unlink(missing_ok=True)
    note = _note(folder)
    if note is None:
        return
    for argv in _steps(note, Adds.PODMAN if beside_engine else adds):
        output(argv)
    if adds is not None:
        return
    if beside_engine:
        if note.get("beside_engine") and not left(folder, beside_engine=True):
            (folder / NOTE).unlink(missing_ok=True)
        return
    for argv in itertools.chain(_disused_chains(note), _disused_tables(note), _lost_bridge(note), _lost_rules(note)):
        output(argv)
    for name, value in note["sysctls"].items():
        if _set_by_engine(name, value, _sysctl(name)):
            with contextlib.suppress(OSError):
                (Path("/proc/sys") / name).write_text(value or "0")
    if not left(folder):
        (folder / NOTE).unlink(missing_ok=True)


def left(folder: Path, *, beside_engine: bool = False) -> list[str]:
    """Return the entries that engines added to the packet filter since ``remember``, by table; empty without a note.

    ``beside_engine``: without entries that can belong to the user's own Docker engine, which is running.
    """
    note = _note(folder)
    steps = [] if note is None else [*_steps(note, Adds.PODMAN if beside_engine else None)]
    tables = Counter(f"{argv[0]} {argv[3]}" for argv in steps if argv[0] in FAMILIES)
    own = [f"{_OWN[argv[0]]} {' '.join(argv[3:])}" for argv in steps if argv[0] in _OWN]
    return [*(f"{table}: {number} of rules, chains and policies" for table, number in tables.items()), *own]


def undo(
    before: set[str], now: list[str], adds: Adds | None = None, *, policies_too: bool = True
) -> list[tuple[str, ...]]:
    """Return the iptables arguments that remove the rules, chains and policies that an engine added: rules first.

    Rules of Weighbridge's own bridges are left out because they end with the links of their run, possibly another
    one. A chain DOCKER-USER with rules of the user stays too. The only policy that an engine sets is FORWARD's, to
    DROP.
    """
    ours = re.compile(adds.value.lines if adds else _EVERYTHING)
    added = [line for line in now if line not in before and ours.search(line) and not is_rule(line)]
    if any(line.startswith("-A DOCKER-USER ") and line != _USERS_CHAIN_UNUSED for line in now):
        added = [line for line in added if not _USERS_CHAIN.search(line)]
    steps = [tuple(shlex.split("-D" + rule[2:])) for rule in added if rule.startswith("-A")]
    steps += [("-X", chain.split()[0][1:]) for chain in added if chain.startswith(":")]
    forward, dropped = ":FORWARD ", ":FORWARD DROP"
    if policies_too and adds is not Adds.PODMAN and dropped in now and dropped not in before:
        policies = [line.removeprefix(forward) for line in before if line.startswith(forward)]
        steps.append(("-P", "FORWARD", *(policies or ["ACCEPT"])))
    return steps


def readd(before: list[str], now: list[str]) -> list[tuple[str, ...]]:
    """Return the iptables arguments that bring back what an engine that has stopped had left, each rule at its place.

    That is what a later engine has taken out of the chains of Docker's, or with them.
    """
    docker = re.compile(Adds.DOCKER.value.lines)
    lost = [line for line in before if line not in now and docker.search(line) and not is_rule(line)]
    steps: list[tuple[str, ...]] = [("-N", line.split()[0][1:]) for line in lost if line.startswith(":")]
    places: Counter[str] = Counter()
    for line in (each for each in before if each.startswith("-A")):
        chain, *rule = shlex.split(line)[1:]
        places[chain] += 1
        if line in lost:
            steps.append(("-I", chain, str(places[chain]), *rule))
    return steps


def _note(folder: Path) -> dict[str, Any] | None:
    try:
        note: dict[str, Any] = json.loads((folder / NOTE).read_text())
    except FileNotFoundError:
        return None
    if "tables" not in note:  # of a version that knew the IPv4 tables filter and nat alone: the rest is not judged
        note = {"tables": {"iptables": note["rules"]}, "nft": None, "sysctls": note["sysctls"]}
    return note


def _noted_tables(note: dict[str, Any]) -> Iterator[tuple[str, str, list[str], list[str]]]:
    """Yield each noted table: family, name, and lines then and now. A family is only read when its turn comes."""
    for family, tables in note["tables"].items():
        now = saved(family) or {}
        yield from ((family, table, before, now.get(table, [])) for table, before in tables.items())


def _steps(note: dict[str, Any], adds: Adds | None) -> Iterator[tuple[str, ...]]:
    """Return the commands that remove entries of engines (or of this kind) that were not noted.

    For all kinds, one end of each veth pair of Docker's that has no end in a container is removed too.
    """
    for family, table, before, now in _noted_tables(note):
        for argv in undo(set(before), now, adds, policies_too=table == "filter"):
            yield (family, "--wait", "-t", table, *argv)
    if note["nft"] is not None:
        added = nft_tables() - set(note["nft"])
        for each in (adds,) if adds else Adds:
            yield from (("nft", "delete", "table", *name.split()) for name in each.value.tables if name in added)
    if adds is None and (noted := note.get("pairs")) is not None:
        yield from (("ip", "link", "delete", pair[0]) for pair in sorted(_pairs() - {*map(tuple, noted)}))


def _disused_chains(note: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield the commands that remove the kernel's own chains of new tables if these have no rule left."""
    for family, table, before, now in _noted_tables(note):
        if now and not before and all(re.fullmatch(r":\S+ ACCEPT", line) for line in now):
            yield from ((family, "--wait", "-t", table, "-X", line[1:].split()[0]) for line in now)


def _disused_tables(note: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Return the commands that remove the rest of those tables in nftables if they have no chain."""
    added = nft_tables() - set(note["nft"] or ()) if note["nft"] is not None else set()
    for name in sorted(
        f"{FAMILIES[family]} {table}" for family, tables in note["tables"].items() for table in tables
    ):
        words = name.split()
        if name in added and "chain" not in (output(("nft", "list", "table", *words)) or "chain"):
            yield ("nft", "delete", "table", *words)


def _lost_rules(note: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield commands that restore the rules of a user's engine that had stopped before the private engine started."""
    for family, table, before, now in _noted_tables(note):
        yield from ((family, "--wait", "-t", table, *argv) for argv in readd(before, now))


def _bridge() -> dict[str, Any] | None:
    """Return the bridge docker0 of a user's engine: its address, networks and whether it is up; None without one."""
    try:
        (bridge,) = json.loads(output(("ip", "-json", "address", "show", "dev", _BRIDGE)) or "[]")
    except ValueError:
        return None
    networks = [
        f"{each['local']}/{each['prefixlen']}" for each in bridge.get("addr_info", []) if each["scope"] == "global"
    ]
    return {"address": bridge["address"], "networks": networks, "up": "UP" in bridge.get("flags", [])}


def _lost_bridge(note: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Return the commands that create the bridge again if our engine has removed it."""
    bridge = note.get("bridge")
    if bridge is None or _bridge() is not None:
        return
    yield ("ip", "link", "add", _BRIDGE, "address", bridge["address"], "type", "bridge")
    yield from (("ip", "address", "add", network, "broadcast", "+", "dev", _BRIDGE) for network in bridge["networks"])
    if bridge["up"]:
        yield ("ip", "link", "set", _BRIDGE, "up")


def _pairs() -> set[tuple[str, ...]]:
    """Return the ends of each veth pair that Docker named and that are both in this namespace."""
    links = json.loads(output(("ip", "-json", "link", "show", "type", "veth")) or "[]")
    ends = {(each.get("ifname", ""), each.get("link", "")) for each in links}
    return {pair for pair in ends if pair == tuple(sorted(pair)) and all(map(_VETH.fullmatch, pair))}


def _set_by_engine(name: str, noted: str | None, now: str | None) -> bool:
    """Return whether a sysctl has changed as engines change it: forwarding on, larger tables of neighbours."""
    if noted == now or now is None:
        return False
    if "gc_thresh" in name and noted is not None:
        return int(now) > int(noted)
    return now == "1"


def _sysctls() -> Iterator[str]:
    yield from _SYSCTLS
    interfaces = (str(path.relative_to("/proc/sys")) for path in sorted(Path("/proc/sys").glob(_OF_INTERFACES)))
    yield from (name for name in interfaces if name not in _SYSCTLS and "/all/" not in name)
    yield from _BRIDGED


def _sysctl(name: str) -> str | None:
    try:
        return (Path("/proc/sys") / name).read_text().strip()
    except OSError:
        return None
