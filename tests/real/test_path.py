"""The largest UDP payload that does not fragment, on real paths: network namespaces joined by veth pairs."""

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from weighbridge import registry
from weighbridge.facts import connection as path_of_connection
from weighbridge.facts.connection import connection
from weighbridge.facts.path import probe
from weighbridge.hosts.local import LocalHost
from weighbridge.launcher import build
from weighbridge.linux import counters, network, probing
from weighbridge.model.command import Command, PublishedPort
from weighbridge.model.host import Limits
from weighbridge.model.site import Site, SiteRequest
from weighbridge.model.study import Role
from weighbridge.model.userland import Userland
from weighbridge.model.workload import Endpoint
from weighbridge.userland.build import cache_folder

from .conftest import open_run

PORT = 15301
CLIENT, SERVER = "198.18.1.1", "198.18.2.2"
QUICK_S = 2.0


class Namespace:
    """A network namespace for as long as its one process runs, and as much of a site in it as the probe needs."""

    def __init__(self, host: LocalHost):
        self.host = host
        self.holder = host.start(Command(("unshare", "--net", "--", "sleep", "600"), 601))
        while kernel_network(self.holder.pid) == kernel_network("self"):
            assert self.holder.poll() is None, self.holder.stop()
            time.sleep(0.002)

    def ip(self, *arguments: str) -> None:
        subprocess.run(("nsenter", f"--net=/proc/{self.holder.pid}/ns/net", "ip", *arguments), check=True)

    def _inside(self, command: Command) -> Command:
        if command.argv[0] == probing.LAUNCHER:  # which a site of a launcher would start
            launcher = str(build.ensure(cache_folder(), print))
            command = replace(command, argv=(launcher, *command.argv[1:]))
        return command.wrapped("nsenter", "--target", str(self.holder.pid), "--net", "--")

    def run(self, command: Command) -> Any:
        return self.host.run(self._inside(command))

    def start(self, command: Command) -> Any:
        return self.host.start(self._inside(command))

    def read(self, path: str) -> bytes:
        own = path.startswith("/proc/net/")
        return self.host.read(f"/proc/{self.holder.pid}{path.removeprefix('/proc')}" if own else path)

    def listening(self, ports: Any, within_s: float = 0.0) -> bool:
        return network.listening(ports, self.holder.pid)


def kernel_network(pid: int | str) -> str:
    return subprocess.run(("readlink", f"/proc/{pid}/ns/net"), capture_output=True, text=True, check=False).stdout


Make = Callable[[], Namespace]


@pytest.fixture
def namespace() -> Iterator[Make]:
    """Makes namespaces; they and what is in them are gone when their process has ended."""
    with ExitStack() as stack:
        host = LocalHost("5125e5000000")

        def make() -> Namespace:
            made = Namespace(host)
            stack.callback(made.holder.stop)
            made.ip("link", "set", "lo", "up")
            return made

        yield make


def link(one: Namespace, name: str, other: Namespace, peer: str, mtu: int, peer_mtu: int = 0) -> None:
    """A cable between two namespaces."""
    one.ip("link", "add", name, "mtu", str(mtu), "type", "veth", "peer", "name", peer, "netns", str(other.holder.pid))
    other.ip("link", "set", peer, "mtu", str(peer_mtu or mtu))
    one.ip("link", "set", name, "up")
    other.ip("link", "set", peer, "up")


def both(at: Endpoint) -> dict[Role, Endpoint]:
    """What is the same for both roles."""
    return {"server": at, "client": at}


def payload_of(server: Any, client: Any, at: Endpoint) -> int | None:
    found = probe(server, client, both(at))
    return None if found is None else found.udp_payload


def between(server: Any, client: Any, address: str) -> int | None:
    return payload_of(server, client, Endpoint(listen=address, address=address, port=PORT))


@pytest.mark.measures
@pytest.mark.parametrize(("mtu", "payload"), [(1500, 1472), (1450, 1422), (9000, 8972), (65535, 65507), (576, 548)])
def test_two_hosts_on_one_cable(namespace: Make, mtu: int, payload: int):
    client, server = namespace(), namespace()
    link(client, "eth0", server, "eth0", mtu)
    client.ip("address", "add", f"{CLIENT}/15", "dev", "eth0")
    server.ip("address", "add", f"{SERVER}/15", "dev", "eth0")
    began = time.monotonic()
    found = between(server, client, SERVER)
    assert time.monotonic() - began < QUICK_S
    assert found == payload


@pytest.mark.parametrize(("client_mtu", "server_mtu"), [(9000, 1500), (1500, 9000)])
def test_two_ends_that_disagree(namespace: Make, client_mtu: int, server_mtu: int):
    client, server = namespace(), namespace()
    link(client, "eth0", server, "eth0", client_mtu, server_mtu)
    client.ip("address", "add", f"{CLIENT}/15", "dev", "eth0")
    server.ip("address", "add", f"{SERVER}/15", "dev", "eth0")
    found = between(server, client, SERVER)
    assert found == 1472


def through_a_router(namespace: Make, middle_mtu: int) -> tuple[Namespace, Namespace, Namespace]:
    client, router, server = namespace(), namespace(), namespace()
    link(client, "eth0", router, "left", 1500)
    link(router, "right", server, "eth0", middle_mtu, 1500)
    client.ip("address", "add", f"{CLIENT}/24", "dev", "eth0")
    router.ip("address", "add", "198.18.1.254/24", "dev", "left")
    router.ip("address", "add", "198.18.2.254/24", "dev", "right")
    server.ip("address", "add", f"{SERVER}/24", "dev", "eth0")
    client.ip("route", "add", "default", "via", "198.18.1.254")
    server.ip("route", "add", "default", "via", "198.18.2.254")
    router.run(Command(("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")))
    return client, router, server


@pytest.mark.measures
@pytest.mark.parametrize("middle_mtu", [1400, 1280, 500])
def test_a_router_with_a_smaller_link_that_says_so(namespace: Make, middle_mtu: int):
    client, _, server = through_a_router(namespace, middle_mtu)
    began = time.monotonic()
    found = between(server, client, SERVER)
    assert time.monotonic() - began < QUICK_S
    assert found == middle_mtu - 28


@pytest.mark.measures
def test_a_switch_that_drops_what_is_too_large_and_says_nothing(namespace: Make):
    client, switch, server = namespace(), namespace(), namespace()
    link(client, "eth0", switch, "left", 9000)
    link(server, "eth0", switch, "right", 9000, 1426)
    client.ip("address", "add", f"{CLIENT}/15", "dev", "eth0")
    server.ip("address", "add", f"{SERVER}/15", "dev", "eth0")
    switch.ip("link", "add", "bridge", "type", "bridge")
    for port in ("left", "right"):
        switch.ip("link", "set", port, "master", "bridge")
    switch.ip("link", "set", "bridge", "up")
    began = time.monotonic()
    found = between(server, client, SERVER)
    assert time.monotonic() - began < 5
    assert found == 1398


def test_inside_an_overlay(namespace: Make):
    client, server = namespace(), namespace()
    link(client, "eth0", server, "eth0", 1500)
    for number, (here, there) in enumerate(((client, SERVER), (server, CLIENT)), 1):
        here.ip("address", "add", f"{CLIENT if here is client else SERVER}/15", "dev", "eth0")
        here.ip(
            "link", "add", "vxlan0", "type", "vxlan", "id", "42", "remote", there, "dev", "eth0", "dstport", "4789"
        )
        here.ip("address", "add", f"192.0.2.{number}/24", "dev", "vxlan0")
        here.ip("link", "set", "vxlan0", "up")
    assert between(server, client, "192.0.2.2") == 1422
    assert between(server, client, SERVER) == 1472


def test_loopback(namespace: Make):
    host = namespace()
    assert payload_of(host, host, Endpoint("127.0.0.1", "127.0.0.1", PORT)) == 65507


def test_every_fifth_datagram_is_lost(namespace: Make):
    client, server = namespace(), namespace()
    link(client, "eth0", server, "eth0", 1500)
    client.ip("address", "add", f"{CLIENT}/15", "dev", "eth0")
    server.ip("address", "add", f"{SERVER}/15", "dev", "eth0")
    often = ("-m", "statistic", "--mode", "nth", "--every", "5", "--packet", "0")
    lost = server.run(Command(("iptables", "-A", "INPUT", "-p", "udp", *often, "-j", "DROP"), 10))
    assert lost.returncode == 0, lost.last_words
    found = between(server, client, SERVER)
    assert found == 1472


@pytest.mark.measures
def test_no_path_and_a_port_that_is_taken_are_no_result(namespace: Make):
    client, server = namespace(), namespace()
    server.ip("address", "add", f"{SERVER}/15", "dev", "lo")
    began = time.monotonic()
    assert between(server, client, SERVER) is None
    assert time.monotonic() - began < 10
    holder = server.start(Command(("perl", "-MSocket", "-e", TAKE, str(PORT)), 60))
    try:
        while not server.listening((("udp", PORT),)):
            time.sleep(0.002)
        assert between(server, server, SERVER) is None
    finally:
        holder.stop()


TAKE = "socket(S, PF_INET, SOCK_DGRAM, 17); bind(S, sockaddr_in($ARGV[0], INADDR_ANY)) or die $!; sleep 60"


SITES = {
    "native": ("native", {}, 65507),
    "host": ("docker", {"network": "host"}, 65507),
    "bridge": ("docker", {"network": "bridge"}, 1472),
    "published": ("docker", {"network": "bridge", "publish": True}, 1472),
    "proxy": ("docker", {"network": "bridge", "publish": True, "publish_on": "loopback"}, 1472),
}
"""Environments on one host, each with the payload that passes between it and that host."""


@pytest.fixture(scope="module")
def open_site(userland: Userland) -> Iterator[Callable[..., Site]]:
    with open_run("5125e5000001") as run:

        def open_site(name: str, kind: str, options: dict[str, Any], port: int) -> Site:
            environment = registry.environments()[kind]
            ports = (PublishedPort("udp", port, port),) if port else ()
            request = SiteRequest(run, LocalHost(run.id), name, "server", userland, Limits(), ports)
            opened: Site = run.stack.enter_context(environment.open(environment.options(**options), request))
            return opened

        yield open_site


@pytest.fixture(scope="module")
def outside(open_site: Callable[..., Site]) -> Site:
    """Where the client is."""
    return open_site("outside", "native", {}, 0)


@pytest.mark.parametrize("name", SITES)
def test_inside_the_environments(open_site: Callable[..., Site], outside: Site, name: str):
    kind, options, payload = SITES[name]
    port = network.free_port()
    server = open_site(name, kind, options, port)
    found = payload_of(server, outside, Endpoint(listen=server.listen, address=server.address, port=port))
    assert found == payload


UDP = {"protocol": "udp", "bitrate": "10Mbit/s", "length": "mtu"}
WORKLOADS = {
    "netperf-rr": ("netperf", {"test": "UDP_RR", "request_size": "mtu"}),
    "netperf-stream": ("netperf", {"test": "UDP_STREAM", "message_size": "mtu"}),
    "iperf": ("iperf", UDP),
    "iperf3": ("iperf3", UDP),
    "nuttcp": ("nuttcp", UDP),
    "sockperf": ("sockperf", {"message_size": "mtu"}),
}
WITH_PROC = 'mount --rbind /proc "$0/proc" && exec chroot "$0" "$@"'
"""Without /proc nuttcp's server ends with a segmentation fault at its first UDP test."""


def fragments(of: Namespace) -> int:
    """How many fragments the kernel has made in this namespace."""
    names, values = (line.split() for line in of.run(Command(("grep", "^Ip:", "/proc/net/snmp"))).text.splitlines())
    return int(dict(zip(names, values, strict=True))["FragCreates"])


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("more", [0, 1])
def test_the_real_programs_send_what_was_probed_and_a_byte_more_is_fragmented(
    namespace: Make, userland: Userland, name: str, more: int
):
    client, server = namespace(), namespace()
    link(client, "eth0", server, "eth0", 1450)
    client.ip("address", "add", f"{CLIENT}/15", "dev", "eth0")
    server.ip("address", "add", f"{SERVER}/15", "dev", "eth0")
    kind, options = WORKLOADS[name]
    workload = registry.workloads()[kind]
    read = workload.options.model_validate({"duration": "1s", **options})
    at = Endpoint(SERVER, SERVER, PORT, CLIENT, 0)
    at = replace(at, udp_payload=(payload_of(server, client, at) or 0) + more)
    assert workload.packet_size(read, at) == 1422 + more
    command = workload.command("server", read, at)
    chroot = ("unshare", "--mount", "--", "sh", "-c", WITH_PROC, str(userland.root))
    serving = server.start(command.wrapped(*chroot))
    try:
        while not server.listening(command.listens):
            assert serving.poll() is None
            time.sleep(0.002)
        asked = client.run(workload.command("client", read, at).wrapped(*chroot))
    finally:
        served = serving.stop()
    assert workload.parse(read, {"server": served, "client": asked}).measurements
    assert (fragments(client) > 0) == bool(more)


def test_the_path_of_a_connection(namespace: Make, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(probing, "READY_S", 1.0)
    monkeypatch.setattr(path_of_connection, "SECONDS", 4)  # that is what a path without a way back takes
    client, server = namespace(), namespace()
    link(client, "eth0", server, "eth0", 1400)
    client.ip("address", "add", f"{CLIENT}/15", "dev", "eth0")
    server.ip("address", "add", f"{SERVER}/15", "dev", "eth0")
    at = both(Endpoint(SERVER, SERVER, PORT))
    for transport in ("tcp", "udp", "tcp"):  # no port is left waiting
        found = connection(server, client, at, transport)
        assert found is not None and found.transport == transport
        ends = [(each.place, each.name, each.kind, each.mtu) for each in found.interfaces]
        assert ends == [("client", "eth0", "veth", 1400), ("server", "eth0", "veth", 1400)]
        assert (found.routers, found.translation, found.loopback) == (0, "none", False)
        assert found.mss == (1348 if transport == "tcp" else None), "1400 less 40 of headers and 12 of time stamps"
    alone = (
        connection(server, server, both(Endpoint("127.0.0.1", "127.0.0.1", PORT)), "tcp")
        if server_lo(server)
        else None
    )
    assert alone is not None and alone.loopback and alone.mtu == 65536 and (alone.mss or 0) > 9000
    assert connection(server, client, both(Endpoint(SERVER, SERVER.replace(".2.2", ".3.3"), PORT)), "tcp") is None
    server.ip("route", "del", "198.18.0.0/15")
    began = time.monotonic()
    assert connection(server, client, at, "tcp") is None, "no way back"
    assert time.monotonic() - began < 30


@pytest.mark.measures
@pytest.mark.parametrize("way", ["steady", "in bursts"])
def test_what_others_send_meanwhile_is_no_part_of_the_path(namespace: Make, way: str):
    """As on a busy machine: another interface of the client's carries more than the probe all the time."""
    client, server, other = namespace(), namespace(), namespace()
    link(client, "eth0", server, "eth0", 1400)
    link(client, "busy", other, "busy", 1300)
    client.ip("address", "add", f"{CLIENT}/15", "dev", "eth0")
    server.ip("address", "add", f"{SERVER}/15", "dev", "eth0")
    client.ip("address", "add", "192.0.2.1/24", "dev", "busy")
    other.ip("address", "add", "192.0.2.2/24", "dev", "busy")
    pause = {"steady": "0.002", "in bursts": "0.05"}[way]
    sent = {"steady": "80", "in bursts": "2000"}[way]  # about 40 MB/s
    sending = client.start(Command(("perl", "-MSocket", "-e", FLOOD, pause, sent), 60))
    try:
        for transport in ("tcp", "udp"):
            before, began = carried(client, "busy"), time.monotonic()
            found = connection(server, client, both(Endpoint(SERVER, SERVER, PORT)), transport)
            rate = (carried(client, "busy") - before) / (time.monotonic() - began)
            assert rate > 5e6, "nobody sends"
            assert found is not None
            ends = [(each.place, each.name, each.mtu) for each in found.interfaces]
            assert ends == [("client", "eth0", 1400), ("server", "eth0", 1400)], f"{rate / 1e6:.0f} MB/s beside it"
    finally:
        sending.stop()


FLOOD = (
    "socket(S, PF_INET, SOCK_DGRAM, 17); connect(S, sockaddr_in(9, inet_aton('192.0.2.2')));"
    "for (;;) { send(S, 'x' x 1000, 0) for 1 .. $ARGV[1]; select(undef, undef, undef, $ARGV[0]) }"
)


def carried(of: Namespace, name: str) -> int:
    """Bytes that an interface has sent."""
    return counters.interfaces(of.read("/proc/net/dev").decode())[name][8]


def server_lo(server: Namespace) -> bool:
    server.ip("link", "set", "lo", "up")
    return True
