"""How a client reaches a server: interfaces, MSS, routers, translation and packet filters, from a probe of the path.

Nothing is taken from what an environment says of itself. A few hundred kilobytes are sent from the client's site to
the server's; the interfaces and netfilter rules whose counters rose meanwhile are those that are crossed.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from weighbridge.errors import Unavailable
from weighbridge.facts._probing import listens, probe_of
from weighbridge.linux import counters
from weighbridge.model.command import Command, Transport, port_in_use
from weighbridge.model.path import Interface, InterfaceKind, NetworkPath, Translation
from weighbridge.model.plugin import Endpoint
from weighbridge.model.site import Host, Site

BYTES = 256 * 1024
"""What is sent; on the slowest link that a study may have it takes two seconds."""
SECONDS = 20
_CARRIED = 0.9 * BYTES
"""Bytes from which an interface is taken to have carried the probe, and not only what others sent meanwhile."""
_FILTERED = 4
"""Packets from which a rule or a chain's policy is taken to have met the probe; of table nat, which sees the first
packet of each connection alone, one will do."""
_HOOKS = ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING")
"""The kernel's own chains; any other is only met from one of them."""
_COUNTER = re.compile(r"\[(\d+):\d+\]")
_NUMBERS = ("namespace", "mss", "ttl")
_DRIVERS: dict[str, InterfaceKind] = {"veth": "veth", "bridge": "bridge"}


_BOOT = "/proc/sys/kernel/random/boot_id"
Namespace = tuple[str, int]
"""A network namespace: the kernel that it is of, by its boot's id, and its number there, which kernels have alike."""


@dataclass(slots=True)
class End:
    """What one end of the probe printed. ``kernel``: the boot's id of the kernel that it was on."""

    kernel: str = ""
    numbers: dict[str, int] = field(default_factory=dict)
    addresses: dict[str, tuple[str, int]] = field(default_factory=dict)
    interfaces: list[tuple[Interface, int]] = field(default_factory=list)
    """Each of its namespace, without its place, and the bytes that it carried meanwhile."""


def connection(server: Site, client: Site, at: Endpoint, transport: Transport) -> NetworkPath | None:
    """Give the path of a connection from the client's site to the server's, whose port must be free.

    None where nothing gets through. Raises Unavailable where another program has the port, EnvironmentLost where a
    site has gone.
    """
    if server.listening(((transport, at.port),)):
        raise Unavailable(port_in_use(transport, at.port))
    hosts = list({host.name: host for host in (client.host, server.host)}.values())
    before = [_Seen.of(host) for host in hosts]
    listener = server.start(_end("listen", transport, at.listen, at.port))
    try:
        if not listens(listener, server, transport, at.port):
            return None
        asked = client.run(_end("connect", transport, at.address, at.port))
        listener.wait(SECONDS if asked.returncode == 0 else 0.0)
    finally:
        answered = listener.stop()
    after = [_Seen.of(host) for host in hosts]
    near, far = parse(asked.text), parse(answered.text)
    if asked.returncode != 0 or near is None or far is None:
        return None
    near.kernel, far.kernel = _read(client, _BOOT), _read(server, _BOOT)
    counted = [_filters(earlier.filters, later.filters) for earlier, later in zip(before, after, strict=True)]
    crossed = None if None in counted else [line for each in counted for line in each or ()]
    return NetworkPath(
        transport=transport,
        interfaces=tuple(_interfaces(near, far, hosts, before, after)),
        mss=near.numbers.get("mss"),
        mss_back=far.numbers.get("mss"),
        routers=near.numbers["ttl"] - 1 if "ttl" in near.numbers else None,
        translation=translation((at.address, at.port), near, far),
        hooks=None
        if crossed is None
        else tuple(dict.fromkeys(hook for hook, _ in crossed if hook.split()[1] in _HOOKS)),
        rules=None if crossed is None else sum(rule for _, rule in crossed),
    )


def _end(role: str, transport: Transport, address: str, port: int) -> Command:
    return probe_of("connection", SECONDS, role, transport, address, str(port), str(SECONDS), str(BYTES))


def parse(text: str) -> End | None:
    """What one end printed; None where that is anything else, or not all of it."""
    end = End()
    try:
        for line in text.splitlines():
            word, *rest = line.split()
            if word in _NUMBERS:
                end.numbers[word] = int(rest[0])
            elif word in ("own", "peer"):
                end.addresses[word] = (rest[0], int(rest[1]))
            elif word == "interface":
                name, driver, mtu, carried, offloads = rest
                on = () if offloads == "-" else tuple(offloads.split(","))
                kind = _kind(name, driver)
                end.interfaces.append(
                    (Interface(place="", name=name, kind=kind, mtu=int(mtu), offloads=on), int(carried))
                )
            else:
                return None
    except (ValueError, IndexError):
        return None
    return end if "namespace" in end.numbers and "own" in end.addresses and end.interfaces else None


def translation(asked: tuple[str, int], near: End, far: End) -> Translation:
    """Whose address the server's end has otherwise than the client's: see `weighbridge.model.path.Translation`.

    Masquerading keeps the client's port; a program in between has a connection, and so a port, of its own. Some give
    it the same number (QEMU's user network): then one end's segments may be larger than the other end's interface has
    room for.
    """
    own = near.addresses["own"]
    peer = far.addresses.get("peer", own)
    if peer[1] != own[1] or _too_large(near, far) or _too_large(far, near):
        return "proxy"
    source, destination = peer[0] != own[0], far.addresses["own"] != asked
    if source:
        return "source and destination" if destination else "source"
    return "destination" if destination else "none"


def _too_large(sender: End, receiver: End) -> bool:
    """Whether segments are sent that do not fit through an interface which received what they carried."""
    mtus = [interface.mtu for interface, carried in receiver.interfaces if carried >= _CARRIED]
    return bool(mtus) and sender.numbers.get("mss", 0) > max(mtus)


@dataclass(frozen=True, slots=True)
class _Seen:
    """A host's own network at one time: its namespace, bytes by interface, and its packet filter with counters."""

    namespace: Namespace | None
    carried: Mapping[str, int]
    filters: list[str] | None

    @classmethod
    def of(cls, host: Host) -> "_Seen":
        link = _said(host, "readlink", "/proc/self/ns/net") or ""
        number = re.search(r"\d+", link)
        table = counters.interfaces(_read(host, host.network[1]))
        carried = {name: numbers[0] + numbers[8] for name, numbers in table.items()}
        saved = _said(host, "iptables-save", "-c")
        return cls(
            (_read(host, _BOOT), int(number[0])) if number else None,
            carried,
            None if saved is None else saved.splitlines(),
        )


def _said(host: Host, *argv: str) -> str | None:
    """What a program of the host prints; None where it is not there or fails."""
    try:
        done = host.run(Command(argv, 10))
    except Unavailable:
        return None
    return done.text if done.returncode == 0 else None


def _read(place: Host | Site, path: str) -> str:
    """A file of a host or a site; empty where it cannot be read."""
    try:
        return place.read(path).decode(errors="replace")
    except OSError:
        return ""


def _interfaces(
    near: End, far: End, hosts: list[Host], before: list[_Seen], after: list[_Seen]
) -> Iterator[Interface]:
    """What carried the probe, from the client's end on; each network namespace once."""
    own = {earlier.namespace: f"host {host.name}" for host, earlier in zip(hosts, before, strict=True)}
    ends: list[Namespace] = [(end.kernel, end.numbers["namespace"]) for end in (near, far)]
    yield from _carrying(near, own.get(ends[0], "client"))
    for host, earlier, later in zip(hosts, before, after, strict=True):
        for name, carried in later.carried.items() if earlier.namespace not in ends else ():
            if carried - earlier.carried.get(name, 0) >= _CARRIED:
                yield _of_a_host(host, name)
    if ends[1] != ends[0]:
        yield from _carrying(far, own.get(ends[1], "server"))


def _carrying(end: End, place: str) -> Iterator[Interface]:
    for interface, carried in end.interfaces:
        if carried >= _CARRIED:
            yield interface.model_copy(update={"place": place})


def _kind(name: str, driver: str) -> InterfaceKind:
    return "loopback" if name == "lo" else _DRIVERS.get(driver, "other")


def _of_a_host(host: Host, name: str) -> Interface:
    """An interface of a host that is in no site's namespace, from sysfs (sysfs-class-net)."""
    folder = f"/sys/class/net/{name}"
    told = {
        file: _read(host, f"{folder}/{file}").strip() for file in ("mtu", "ifindex", "iflink", "bridge/bridge_id")
    }
    driver = "bridge" if told["bridge/bridge_id"] else "veth" if told["iflink"] != told["ifindex"] else ""
    mtu = int(told["mtu"]) if told["mtu"].isdigit() else 0
    return Interface(place=f"host {host.name}", name=name, kind=_kind(name, driver), mtu=mtu)


def _filters(before: list[str] | None, after: list[str] | None) -> list[tuple[str, bool]] | None:
    """The netfilter chains that the probe met ("nat OUTPUT"), each with whether by a rule or by its policy.

    From the counters of two ``iptables-save -c``; None where there is none.
    """
    if before is None or after is None:
        return None
    earlier = dict(_counters(before))
    found = []
    for (table, line), packets in _counters(after):
        least = 1 if table == "nat" else _FILTERED
        if packets - earlier.get((table, line), 0) >= least:
            chain = line[1:].split()[0] if line.startswith(":") else line.split()[1]
            found.append((f"{table} {chain}", not line.startswith(":")))
    return found


def _counters(saved: Iterable[str]) -> Iterator[tuple[tuple[str, str], int]]:
    """Table and line (without its counters) of each chain and rule, and the packets that it has met."""
    table = ""
    for line in saved:
        if line.startswith("*"):
            table = line[1:]
        elif (counter := _COUNTER.search(line)) is not None:
            yield (table, _COUNTER.sub("", line).strip()), int(counter[1])
