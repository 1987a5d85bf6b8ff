"""The switch of a testbed: a Linux bridge in its own network namespace, and the cables to its hosts.

In the root namespace, br_netfilter would send its frames through the machine's packet filter, which an engine can set
to drop. The process that holds the namespace ends with us, like those of testbed hosts.
"""

import contextlib
import itertools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar, cast

from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.hosts.local import LocalHost
from weighbridge.hosts.options import CableOptions, TestbedOptions
from weighbridge.linux import cpus, network, tc
from weighbridge.linux.cgroups import Cgroup
from weighbridge.linux.links import NO_OFFLOADS
from weighbridge.linux.network import in_network_of
from weighbridge.linux.process import Process
from weighbridge.model.command import Command, Completed, HostProcess
from weighbridge.model.host import Host, Limits, NetworkLink, RunContext
from weighbridge.model.names import GroupName
from weighbridge.model.quantity import cpus_in

P = TypeVar("P", bound=HostProcess)
_READY_S = 20.0
_PAUSE_S = 0.005


def await_ready(process: P, refusal: str, ready_s: float = _READY_S) -> P:
    """Return the process once it has printed a complete line with ``ready``.

    If it ends before, or is not ready in ``ready_s`` seconds, it is stopped and Unavailable raised with ``refusal``
    and its last words.
    """
    with contextlib.ExitStack() as stack:
        stack.callback(process.stop)
        for _ in range(int(ready_s / _PAUSE_S)):
            output = process.output_so_far()
            if b"ready" in output and output.endswith(b"\n"):
                stack.pop_all()
                return process
            if process.wait(_PAUSE_S):
                break
        last_words = process.stop().last_words
    raise Unavailable(f"{refusal}: {last_words}")


SUBNET = "198.19.200.0/24"
"""A subnet of 198.18.0.0/15, which is reserved for measurements (RFC 2544); the environment netns begins below it."""
BRIDGE = "br0"
_TAP_S, _LOOK_S = 30.0, 0.02
_PREFIX, _HOSTS, _SITES, _LAST = "198.19.200.", 1, 100, 250
NOWHERE = _PREFIX + "254"
"""The default gateway of every host, which does not exist: a testbed has no external connection."""
_SWITCH = """set -e
ip link set lo up
echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6 || true
for name in iptables ip6tables arptables; do
    if [ -e /proc/sys/net/bridge/bridge-nf-call-$name ]; then echo 0 > /proc/sys/net/bridge/bridge-nf-call-$name; fi
done
ip link add br0 type bridge stp_state 0
ip link set br0 up
echo ready
exec cat
"""


def port_of(address: str) -> str:
    """Return the name of the port of the host with this address."""
    return f"p{address.rpartition('.')[2]}"


def bucket(options: CableOptions) -> list[str]:
    """Return the token bucket at each end of a cable.

    A fast link has a burst of a millisecond, and its hosts have no offloads, so that no packets need splitting.
    """
    assert options.link is not None
    if options.fast:  # with a timer for every frame, 1 Gbit/s became 160 Mbit/s
        return tc.token_bucket(options.link, burst=_limit(options) // 8, limit=_limit(options))
    return tc.token_bucket(options.link, limit=_limit(options), peakrate="1gbit", mtu=options.mtu)


def _limit(options: CableOptions) -> int:
    """Return the largest number of queued bytes at a cable's end; on a fast one, eight milliseconds' worth."""
    return 8 * max(131072, round((options.link or 0) / 8 / 1000)) if options.fast else tc.QUEUE


def queue(options: CableOptions) -> list[str]:
    """Return the queue behind the bucket."""
    return tc.packet_queue(_limit(options), options.mtu)


Inside = Callable[[Command], Completed]


class Switch:
    """The bridge, and the addresses of its hosts and containers."""

    def __init__(self, run: RunContext, holder: Process) -> None:
        self._local = LocalHost(run.id)
        self._holder = holder
        self._hosts = itertools.count(_HOSTS)
        self._sites = itertools.count(_SITES)

    @classmethod
    @contextmanager
    def create(cls, run: RunContext) -> Iterator["Switch"]:
        """Make a switch without hosts. Raises Unavailable if this machine cannot."""
        if not (local := LocalHost(run.id)).root:
            raise Unavailable("only root can create testbed hosts: run as root")
        started = local.start(Command(("unshare", "--net", "sh", "-c", _SWITCH)), hold=True)
        holder = await_ready(started, "the testbed's switch cannot be created")
        try:
            yield cls(run, holder)
        finally:
            holder.stop()

    def next_host(self) -> tuple[str, str]:
        """Return an address for a host, and a hardware address."""
        number = next(self._hosts)
        if number >= _SITES:
            raise Unavailable(f"a testbed has at most {_SITES - _HOSTS} hosts: use fewer")
        return f"{_PREFIX}{number}", f"02:77:00:00:00:{number:02x}"

    def next_site(self) -> str:
        """Return an address for a container on the switch itself."""
        number = next(self._sites)
        if number > _LAST:
            raise Unavailable(f"a testbed's switch has at most {_LAST - _SITES + 1} containers: use fewer")
        return f"{_PREFIX}{number}"

    @property
    def enter(self) -> tuple[str, ...]:
        """Return the beginning of a command that makes a link (a tap) on the switch."""
        return in_network_of(self._holder.pid)

    def join(self, address: str, mtu: int, maker: HostProcess, why: Callable[[], str]) -> None:
        """Make the tap from ``maker`` a port, for the host with this address.

        Raises Unavailable with ``why`` if there is no tap.
        """
        port, words = port_of(address), ("master", BRIDGE, "mtu", str(mtu), "up")
        deadline = time.monotonic() + _TAP_S
        while self._local.run(Command((*self.enter, "ip", "link", "show", port), 10)).returncode != 0:
            if maker.wait(_LOOK_S) or time.monotonic() > deadline:
                raise Unavailable(why())
        self._must("ip", "link", "set", port, *words)

    def without_offloads(self, address: str) -> None:
        """Prevent frames larger than the MTU at the port of the host with this address."""
        self._must("ethtool", "-K", port_of(address), *NO_OFFLOADS)

    def connect(self, pid: int, address: str, mac: str, options: TestbedOptions) -> None:
        """Add a cable from the switch to the host whose first process is ``pid``, where it is eth0."""
        port, mtu = port_of(address), str(options.mtu)
        inside = ("nsenter", "--target", str(pid), "--mount", "--net", "--")
        self._must(
            "ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "address", mac, "netns", str(pid)
        )
        self._must("ip", "link", "set", port, "master", BRIDGE, "mtu", mtu, "up")
        for argv in (
            ("ip", "link", "set", "eth0", "mtu", mtu, "up"),
            ("ip", "address", "add", f"{address}/24", "broadcast", "+", "dev", "eth0"),
            ("ip", "route", "add", "default", "via", NOWHERE, "dev", "eth0"),
        ):
            self._anywhere(*inside, *argv)
        if not options.has_offloads:
            self.without_offloads(address)
            self._anywhere(*inside, "ethtool", "-K", "eth0", *NO_OFFLOADS)
        if options.link is not None:
            self.limit(address, options, self.inside(pid))
        if options.cpus:  # the host's own CPUs process arriving frames
            mask = _mask(cpus_in(options.cpus))
            write = ("sh", "-c", 'echo "$1" > /sys/class/net/eth0/queues/rx-0/rps_cpus', "write", mask)
            self._anywhere(*inside, *write)

    @contextmanager
    def uplink(self, name: str) -> Iterator[str]:
        """Add a cable from the switch to this machine, where it is ``name``; yield this machine's address.

        It has no rate limit, an MTU of 1500, and ends with the switch. Raises Unavailable if this machine already
        uses addresses of the subnet.
        """
        if (used := network.route_to(SUBNET)) is not None:
            raise Unavailable(
                f"interface {used} of this machine has an address in {SUBNET}, which testbed hosts need: remove the "
                "address"
            )
        address, mac = self.next_host()
        port = port_of(address)
        self._must(
            "ip", "link", "add", port, "type", "veth", "peer", "name", name, "address", mac, "netns", str(os.getpid())
        )
        self._must("ip", "link", "set", port, "master", BRIDGE, "up")
        try:
            for argv in (
                ("ip", "link", "set", name, "up"),
                ("ip", "address", "add", f"{address}/24", "broadcast", "+", "dev", name),
            ):
                self._anywhere("env", "--", *argv)
            yield address
        finally:
            with contextlib.suppress(EnvironmentLost, Unavailable):  # it can be gone with an engine's own links
                self._must("ip", "link", "delete", port)

    def inside(self, pid: int) -> Inside:
        """Return a function that runs this machine's commands in the network namespace of a process."""
        return lambda command: self._local.run(command.wrapped(*in_network_of(pid)))

    def limit(self, address: str, options: CableOptions | None, inside: Inside) -> None:
        """Add a token bucket at each end of a host's cable, or remove it with None.

        ``inside`` runs a command at the host's own end.
        """
        steps: list[tuple[str, ...]] = [("del", "root")]
        if options is not None:
            steps = [("add", "root", "handle", "1:", *bucket(options)), ("add", "parent", "1:1", *queue(options))]
        for verb, *words in steps:
            self._must("tc", "qdisc", verb, "dev", port_of(address), *words)
            _check(inside(Command(("tc", "qdisc", verb, "dev", "eth0", *words), 10)))

    def carried(self, address: str, inside: Inside) -> dict[str, float]:
        """Return the bits that passed the token buckets of a host's cable, on the wire, by direction."""
        switch_end = self._local.run(Command((*self.enter, *tc.show(port_of(address))), 10))
        return tc.carried({"out": inside(Command(tc.show("eth0"), 10)).text, "in": switch_end.text})

    def plug(self, address: str, *, up: bool) -> None:
        """Connect or disconnect the cable of the host with this address."""
        self._must("ip", "link", "set", port_of(address), "up" if up else "down")

    def _must(self, *argv: str) -> None:
        if self._holder.poll() is not None:
            raise EnvironmentLost("the testbed's switch has ended")
        self._anywhere(*in_network_of(self._holder.pid), *argv)

    def _anywhere(self, *argv: str) -> None:
        _check(self._local.run(Command(argv, 10)))


def _check(completed: Completed) -> None:
    if completed.returncode != 0:
        begin = completed.argv.index("--") + 1 if "--" in completed.argv else 0
        raise Unavailable(f"the testbed cannot be set up: {' '.join(completed.argv[begin:])}: {completed.last_words}")


def _mask(numbers: list[int]) -> str:
    bits = sum(1 << cpu for cpu in numbers)
    groups: list[str] = []
    while bits or not groups:
        groups.append(f"{bits & 0xFFFFFFFF:08x}")
        bits >>= 32
    return ",".join(reversed(groups))


# the names come from the kernel's table of the namespace; /sys can still show another namespace
_SWITCH_OFF = """sed -n 's/^ *\\([^:]*\\):.*/\\1/p' /proc/self/net/dev | while read -r name; do
    [ "$name" = lo ] || ethtool -K "$name" "$@"
done"""


def without_offloads(host: Host, pid: int) -> None:
    """Disable offloads on the interfaces of the container of ``pid`` and on the host's ends. Raises Unavailable."""
    command = ("sh", "-c", _SWITCH_OFF, "off", *NO_OFFLOADS)
    for prefix in (("nsenter", "--target", str(pid), "--net", "--mount=/proc/1/ns/mnt", "--"), ()):
        completed = host.run(Command((*prefix, *command), 30))
        if completed.returncode != 0:
            raise Unavailable(f"host {host.name}: offloads cannot be switched off: {completed.last_words}")


def switch_for(run: RunContext, name: str, cpu_list: str | None) -> Switch:
    """Return the run's switch, for a host called ``name``. Raises Unavailable if its CPUs do not exist."""
    online = cpus.cpus_online()
    if cpu_list and (missing := sorted({*cpus_in(cpu_list)} - {*online})):
        raise Unavailable(
            f"host {name} cannot use CPU {missing[0]}, because this machine has only CPUs {online}: change 'cpus'"
        )
    switch: Switch = run.share("switch", lambda: Switch.create(run))
    return switch


def host_group(stack: ExitStack, run: RunContext, name: str, kind: str, cpu_list: str | None) -> Cgroup:
    """Return a host's new control group, which ends with the stack. Raises Unavailable if it cannot be pinned."""
    group = Cgroup(GroupName(run.id, f"host-{name}")).create()
    stack.callback(group.remove)
    stack.callback(group.kill)
    pin(group, kind, cpu_list)
    return group


def pin(group: Cgroup, kind: str, cpu_list: str | None) -> None:
    """Pin a control group of a host of this kind to CPUs. Raises Unavailable."""
    for reason in group.limit(Limits(cpuset=cpu_list)).values():
        raise Unavailable(f"a {kind} host cannot be pinned to CPUs {cpu_list}: {reason}")


class SwitchedHost:
    """The cable of a host on the switch: parts of ``DisposableHost``."""

    subnet, gateway = SUBNET, NOWHERE
    name: str
    address: str
    options: CableOptions
    switch: Switch
    limited: bool
    """Whether its cable's rate limit is in force."""
    _within: Inside
    """Runs a command at the host's end of the cable."""

    def _alive(self) -> None: ...

    def next_address(self) -> str:
        return self.switch.next_site()

    @property
    def offloads(self) -> bool:
        """Return whether the cable's ends have offloads, by the options."""
        return self.options.has_offloads

    def keep_offloads(self, pid: int) -> None:
        if not self.options.has_offloads:
            without_offloads(cast(Host, self), pid)

    def link(self) -> NetworkLink | None:
        if self.options.link is None or not self.limited:
            return None
        return NetworkLink(
            f"host {self.name}", self.options.link, lambda: self.switch.carried(self.address, self._within)
        )

    def set_link(self, limited: bool) -> None:
        if limited != self.limited:
            self._alive()
            self.switch.limit(self.address, self.options if limited else None, self._within)
            self.limited = limited

    def plug(self, *, up: bool) -> None:
        self.switch.plug(self.address, up=up)

    def _cable_facts(self) -> dict[str, str]:
        return {
            "link": tc.rate_words(self.options.link) if self.options.link else "no rate limit",
            "mtu": str(self.options.mtu),
            "offloads": "on" if self.options.has_offloads else "off",
        }
