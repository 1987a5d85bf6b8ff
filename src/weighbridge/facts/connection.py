"""The path from a client to a server, probed: interfaces, MSS, routers, translation and packet filters.

The facts do not rely on the environment's own description. A few hundred kilobytes are sent from the client's site to
the server's. The path crosses the netfilter rules whose counters rose meanwhile. The probe is repeated, with silences
between, to separate the interfaces that carried it from other traffic (`weighbridge.facts.probed_interfaces`).
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from weighbridge.errors import Unavailable
from weighbridge.facts import nft_tables, packet_filter
from weighbridge.facts.packet_filter import Met, PacketFilter, crossed_rules
from weighbridge.facts.probed_interfaces import Carrier, Watch, carriers, undecided_ends, unsure
from weighbridge.linux.probing import listens, probe_of
from weighbridge.model.command import Command, Transport, port_in_use
from weighbridge.model.facts import Interface, InterfaceKind, NetworkPath, Translation
from weighbridge.model.host import Host
from weighbridge.model.site import Site
from weighbridge.model.study import Role
from weighbridge.model.workload import Endpoint

BYTES = 256 * 1024
"""The bytes of the probe; on the slowest link of a study they need two seconds."""
ENDS = ("client", "server")
AGAIN, UNSURE = 2, 12
"""The number of further sendings to separate other traffic, normally and if that is hard."""
_LEAST, _MOST, _AGAIN_S = 128 * 1024, 4 * 2**20, 0.2
"""Limits of a further sending: minimum and maximum bytes, and seconds. More bytes make other traffic matter less."""
_LITTLE = 16 * 1024
"""The bytes of every second sending: so few that traffic in bursts can pause meanwhile."""
_LONGEST_S = 6.0
"""The longest time of further sendings, in seconds."""
SECONDS = 20
_HOOKS = ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING")
"""The kernel's own chains; any other chain is only reached from one of them."""
_NUMBERS = ("namespace", "mss", "ttl", "sent", "arrived")
_HOPS = 16
"""The largest number of routers between the two ends that the probe can count."""
_DRIVERS: dict[str, InterfaceKind] = {"veth": "veth", "bridge": "bridge", "tun": "tap"}


_COUNTERS = "/proc/net/dev"
_BOOT = "/proc/sys/kernel/random/boot_id"
Namespace = tuple[str, int]
"""A network namespace: the boot id of its kernel, and its number there, which other kernels can use too."""


@dataclass(slots=True)
class End:
    """The output of one end of the probe. ``kernel`` is the boot id of its kernel."""

    kernel: str = ""
    numbers: dict[str, int] = field(default_factory=dict)
    addresses: dict[str, tuple[str, int]] = field(default_factory=dict)
    interfaces: list[Interface] = field(default_factory=list)
    """The interfaces of its namespace without their place: first all, later those that carried the probe."""


def connection(server: Site, client: Site, at: Mapping[Role, Endpoint], transport: Transport) -> NetworkPath | None:
    """Return the path of a connection from the client's site to the server's, whose port must be free.

    Returns None if nothing gets through. Raises Unavailable if another program has the port, EnvironmentLost if a
    site is gone.
    """
    listens_at, reached_at = at["server"], at["client"]
    if server.listening(((transport, listens_at.port),)):
        raise Unavailable(port_in_use(transport, listens_at.port))
    namespaces: dict[Namespace | str, Host] = {}
    for host in (client.host, server.host):
        namespaces.setdefault(_namespace(host) or host.name, host)
    hosts = list(namespaces.values())
    watch = Watch({
        **{f"host {host.name}": partial(_read, host, host.network[1]) for host in hosts},
        "client": partial(_read, client, _COUNTERS), "server": partial(_read, server, _COUNTERS),
    })  # fmt: skip
    before = [_packet_filter(host) for host in hosts]
    ends = watch.during(lambda: _send(server, client, at, transport, BYTES))
    after = [_packet_filter(host) for host in hosts]
    if ends is None:
        return None
    near, far = ends
    near.kernel, far.kernel = _read(client, _BOOT), _read(server, _BOOT)
    watch.silence(BYTES)
    _send_again(watch, partial(_send, server, client, at, transport))
    carried = carriers(watch.sendings, ENDS)
    undecided = undecided_ends(watch.sendings, ENDS)
    for end, place in ((near, "client"), (far, "server")):
        end.interfaces = [each for each in end.interfaces if (place, each.name) in carried]
    crossed = crossed_on_hosts(before, after)
    return NetworkPath(
        transport=transport,
        interfaces=tuple(_interfaces(near, far, namespaces, carried)),
        mss=near.numbers.get("mss") or None,  # gVisor reports 0
        mss_back=far.numbers.get("mss") or None,
        routers=near.numbers["ttl"] - 1 if "ttl" in near.numbers else None,
        translation=translation((reached_at.address, reached_at.port), near, far, sizes=not undecided),
        uncertain=bool(undecided),
        hooks=None
        if crossed is None
        else tuple(dict.fromkeys(hook for hook, _ in crossed if hook.split()[1] in _HOOKS)),
        rules=None if crossed is None else sum(rule for _, rule in crossed),
        unseen_rules=sum(each.unseen for each in after if each is not None),
    )


def crossed_on_hosts(before: Sequence[PacketFilter | None], after: Sequence[PacketFilter | None]) -> list[Met] | None:
    """Return the rules that a probe crossed on all hosts; None if the filter of one is unknown."""
    crossed = [crossed_rules(earlier, later) for earlier, later in zip(before, after, strict=True)]
    return None if None in crossed else [met for of_a_host in crossed for met in of_a_host or ()]


def _send_again(watch: Watch, send: Callable[[int], object | None]) -> None:
    """Send the probe again, in other sizes, until it is clear which interfaces carry it."""
    began, rate = time.monotonic(), BYTES / watch.took_s
    for times in range(UNSURE):
        late = time.monotonic() - began > _LONGEST_S
        if times >= AGAIN and (late or not unsure(watch.sendings)):
            break
        size = _LITTLE if times % 2 else min(_MOST, max(_LEAST, int(_AGAIN_S * rate)))
        if watch.during(partial(send, size)) is not None:
            watch.silence(size)
            rate = max(rate, size / watch.took_s)


def _send(
    server: Site, client: Site, endpoints: Mapping[Role, Endpoint], transport: Transport, size: int
) -> tuple[End, End] | None:
    """Send ``size`` bytes; return the reports of the client's and the server's end, or None if nothing arrives."""

    def end(role: str, address: str, port: int) -> Command:
        return probe_of("connection", SECONDS, role, transport, address, str(port), str(SECONDS), str(size))

    listener = server.start(end("listen", endpoints["server"].listen, endpoints["server"].port))
    try:
        if not listens(listener, server, transport, endpoints["server"].port):
            return None
        client_completed = client.run(end("connect", endpoints["client"].address, endpoints["client"].port))
        listener.wait(SECONDS if client_completed.returncode == 0 else 0.0)
    finally:
        server_completed = listener.stop()
    near, far = parse(client_completed.text), parse(server_completed.text)
    return None if client_completed.returncode != 0 or near is None or far is None else (near, far)


def parse(text: str) -> End | None:
    """Return what one end of the probe reported; None if its output is incomplete or invalid."""
    end = End()
    try:
        for line in text.splitlines():
            word, *rest = line.split()
            if word in _NUMBERS:
                end.numbers[word] = int(rest[0])
            elif word in ("own", "peer"):
                end.addresses[word] = (rest[0], int(rest[1]))
            elif word == "interface":
                name, driver, mtu, _, offloads = rest
                kind = _kind(name, driver)
                enabled: tuple[str, ...] | None = tuple(offloads.split(",")) if offloads != "-" else ()
                enabled = None if driver == offloads == "-" else enabled  # ethtool does not work (gVisor)
                end.interfaces.append(Interface(place="", name=name, kind=kind, mtu=int(mtu), offloads=enabled))
            else:
                return None
    except (ValueError, IndexError):
        return None
    return end if "namespace" in end.numbers and "own" in end.addresses and end.interfaces else None


def translation(target: tuple[str, int], near: End, far: End, *, sizes: bool = True) -> Translation:
    """Return whose address differs at the server's end: see `weighbridge.model.facts.Translation`.

    A program in between has its own connection, and its packets have another initial TTL than the client's end set.
    If the server's end does not know the TTL of arriving packets, the port decides, which masquerading usually keeps
    (unless it chooses a random one, as kube-proxy does). Some programs use the same number (QEMU's user network);
    then the segments of one end can exceed the interface of the other. ``sizes`` means that the interfaces of both
    ends are known to have carried the probe.
    """
    client = near.addresses["own"]
    peer = far.addresses.get("peer", client)
    same = _same_packets(near, far)
    separate = peer[1] != client[1] or (sizes and (_too_large(near, far) or _too_large(far, near)))
    if (separate and not same) or (same is False and peer[0] != client[0]):
        return "proxy"
    source, destination = peer[0] != client[0], far.addresses["own"] != target
    if source:
        return "source and destination" if destination else "source"
    return "destination" if destination else "none"


def _same_packets(near: End, far: End) -> bool | None:
    """Return whether the arriving packets are the sent ones, by a TTL that no other program uses; None if unknown."""
    sent, arrived = near.numbers.get("sent"), far.numbers.get("arrived")
    return None if sent is None or arrived is None else 0 <= sent - arrived <= _HOPS


def _too_large(sender: End, receiver: End) -> bool:
    """Return whether segments are sent that do not fit through a receiving interface."""
    mtus = [interface.mtu for interface in receiver.interfaces]
    return bool(mtus) and sender.numbers.get("mss", 0) > max(mtus)


def _namespace(host: Host) -> Namespace | None:
    number = host.namespaces().get("net")
    return None if number is None else (_read(host, _BOOT), number)


def _packet_filter(host: Host) -> PacketFilter | None:
    """Return a host's packet filter with its counters; None if any part of it is unreadable."""
    saved, ruleset = _output_of(host, "iptables-save", "-c"), _output_of(host, "nft", "-j", "list", "ruleset")
    tables = None
    if not packet_filter.is_ruleset(ruleset):
        tables = _output_of(host, host.python, "-I", "-S", "-c", Path(nft_tables.__file__).read_text())
    legacy = _read(host, str(Path(host.network[1]).with_name("ip_tables_names"))).split()
    return packet_filter.parse(saved, ruleset, tables, legacy)


def _output_of(host: Host, *argv: str) -> str | None:
    try:
        completed = host.run(Command(argv, 10))
    except Unavailable:
        return None
    return completed.text if completed.returncode == 0 else None


def _read(place: Host | Site, path: str) -> str:
    try:
        return place.read(path).decode(errors="replace")
    except OSError:
        return ""


def _interfaces(
    near: End, far: End, hosts: Mapping[Namespace | str, Host], carried: list[Carrier]
) -> Iterator[Interface]:
    """Yield the interfaces that carried the probe, from the client's end on; each network namespace once.

    ``hosts`` are keyed by their network namespace, or by their name if it is unknown.
    """
    places = {namespace: f"host {host.name}" for namespace, host in hosts.items()}
    ends: list[Namespace] = [(end.kernel, end.numbers["namespace"]) for end in (near, far)]
    yield from _interfaces_at(near, places.get(ends[0], "client"))
    for namespace, host in hosts.items():
        names = [name for place, name in carried if place == f"host {host.name}"]
        yield from (_of_a_host(host, name) for name in names if namespace not in ends)
    if ends[1] != ends[0]:
        yield from _interfaces_at(far, places.get(ends[1], "server"))


def _interfaces_at(end: End, place: str) -> Iterator[Interface]:
    yield from (interface.model_copy(update={"place": place}) for interface in end.interfaces)


def _kind(name: str, driver: str) -> InterfaceKind:
    return "loopback" if name == "lo" else _DRIVERS.get(driver, "other")


def _of_a_host(host: Host, name: str) -> Interface:
    """Return an interface of a host that is in no site's namespace, from sysfs (sysfs-class-net)."""
    folder = f"/sys/class/net/{name}"
    files = ("mtu", "ifindex", "iflink", "bridge/bridge_id", "tun_flags")
    texts = {file: _read(host, f"{folder}/{file}").strip() for file in files}
    driver = "veth" if texts["iflink"] != texts["ifindex"] else "tun" if texts["tun_flags"] else ""
    driver = "bridge" if texts["bridge/bridge_id"] else driver
    mtu = int(texts["mtu"]) if texts["mtu"].isdigit() else 0
    return Interface(place=f"host {host.name}", name=name, kind=_kind(name, driver), mtu=mtu)
