"""Hosts made on this machine for the duration of a run: separate namespaces, joined by a switch.

A host is a process tree in its own network, mount, UTS, IPC and PID namespaces. Its first process ends when our end
of a pipe closes, and with it everything in the host, its mounts and its cable. However we end, only control groups,
the folder of its engine and paused containers (which cannot die frozen) remain, which ``weighbridge clean`` removes.
"""

import contextlib
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.hosts.local import LocalHost, remove_engine_folder
from weighbridge.hosts.options import TestbedOptions
from weighbridge.hosts.switch import Switch, SwitchedHost, await_ready, host_group, pin, switch_for
from weighbridge.linux import cpus, network
from weighbridge.linux.cgroups import Cgroup
from weighbridge.linux.deletion import OwnFolder
from weighbridge.linux.namespaces import namespaces_of
from weighbridge.linux.packages import install_here
from weighbridge.linux.process import Process, SocketStream
from weighbridge.model.command import Command, Completed
from weighbridge.model.host import Capabilities, Group, RunContext
from weighbridge.model.names import GroupName
from weighbridge.model.quantity import cpus_in

# /sys is mounted again to show this network namespace, with the tree of control groups bound back into it. Writes
# below /run, /etc, /opt and /var/lib stay in the host: dockerd keeps files of overlay networks in /var/lib/docker and
# containerd has /opt/containerd, whatever their data folders are. A cache in there is bound back. tini reaps orphans
# of the engine; cat ends with our pipe.
_INIT = """set -e
init=$1 name=$2 cache=$3
mount -t proc proc /proc
mount -t tmpfs -o mode=755 weighbridge /run
mkdir /run/lock /run/cgroup /run/cache
mount --rbind /sys/fs/cgroup /run/cgroup
mount -t sysfs sysfs /sys
mount --rbind /run/cgroup /sys/fs/cgroup
umount -l /run/cgroup
mount --rbind "$cache" /run/cache
for folder in etc opt var/lib; do
    mkdir -p "/run/upper/$folder" "/run/work/$folder"
    layers="lowerdir=/$folder,upperdir=/run/upper/$folder,workdir=/run/work/$folder"
    if [ -d "/$folder" ]; then mount -t overlay -o "$layers" weighbridge "/$folder"; fi
done
case $cache/ in /etc/*|/opt/*|/var/lib/*) mount --rbind /run/cache "$cache";; esac
umount -l /run/cache
hostname "$name"
echo "127.0.0.1 localhost $name" > /etc/hosts
: > /etc/resolv.conf
ip link set lo up
echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6 || true
echo ready
exec "$init" -- cat
"""
JOIN = 'while [ "$1" != -- ]; do echo 0 > "$1" || exit 125; shift; done; shift; exec "$@"'
"""A shell that writes itself into the control groups named before "--", then becomes the program."""
# nsenter stays as the parent of its command. It must survive the signals for a clean shutdown of a server, because
# otherwise the server would be killed during it.
_JOIN = f'trap "" TERM INT; {JOIN}'
NAMESPACES = ("--mount", "--uts", "--ipc", "--net", "--pid")


class TestbedHost(SwitchedHost, LocalHost):
    """A host of namespaces that sees this machine's files. Implements ``DisposableHost``."""

    __test__ = False  # not a test, despite its name
    this_machine = False
    interface = "eth0"
    options: TestbedOptions

    def __init__(
        self, name: str, options: TestbedOptions, run: RunContext, switch: Switch, holder: Process, group: Cgroup
    ) -> None:
        address, self._mac = switch.next_host()
        super().__init__(run.id, name, address)
        self.network = (name, "/proc/1/net/dev")
        self.options = options
        self.cpuset = options.cpus
        self.switch = switch
        self.limited = options.link is not None
        self._run = run
        self._holder = holder
        self._join = [str(path) for path in group.procs]
        self.pid = _first_process(holder)
        self._within = switch.inside(self.pid)
        self.folder = Path(f"/proc/{self.pid}/root")
        """The host's files, as seen from this machine."""
        self._enter = ("nsenter", "--target", str(self.pid), *NAMESPACES, "--", "env", "--default-signal=TERM,INT")

    @property
    def capabilities(self) -> Capabilities:
        has_cable = self.options.link is not None
        return Capabilities(
            disposable=self, link=self.link if has_cable else None, limit_link=self.set_link if has_cable else None,
            guest_disk=self.program, image_layer=self.userland,
        )  # fmt: skip

    def _alive(self) -> None:
        if self._holder.poll() is not None:
            raise EnvironmentLost(f"host {self.name} was lost because its first process ended")

    def _inside(self, command: Command) -> Command:
        """Return a command in the host's namespaces and control group, so that it runs on the host's CPUs."""
        self._alive()
        return command.wrapped("sh", "-c", _JOIN, "join", *self._join, "--", *self._enter)

    def run(self, command: Command) -> Completed:
        completed = super().run(self._inside(command))
        if completed.returncode != 0:
            self._alive()
        return completed

    def start(self, command: Command, *, hold: bool = False) -> Process:
        return super().start(self._inside(command), hold=hold)

    def talk(self, command: Command) -> tuple[Process, SocketStream]:
        return super().talk(self._inside(command))

    def read(self, path: str) -> bytes:
        return (self.folder / path.lstrip("/")).read_bytes()

    def namespaces(self) -> Mapping[str, int]:
        """Return the numbers of its first process's namespaces, by kind."""
        return namespaces_of(Path(f"/proc/{self.pid}"))

    def signal(self, pid: int, number: int) -> None:
        kill = ("sh", "-c", 'kill "-$1" "-$2"', "kill", str(int(number)), str(pid))
        with contextlib.suppress(EnvironmentLost):
            self.run(Command(kill, 10))

    def group(self, name: str) -> Group:
        """Make the control group ``weighbridge/RUN/NAME``, with the host's own CPUs if it has any."""
        group = Cgroup(GroupName(self._run.id).below(name)).create()
        pin(group, "testbed", self.cpuset)
        return group

    def cpus_online(self) -> list[int]:
        """Return the host's own CPUs, else all of this machine's."""
        return cpus_in(self.cpuset) if self.cpuset else cpus.cpus_online()

    def free_ports(self, taken: Collection[int] = ()) -> int:
        used = network.bound("tcp", self.folder / "proc/1") | network.bound("udp", self.folder / "proc/1")
        return network.free_port(taken, lambda port: port not in used)

    def dedicated_host(self, purpose: str) -> "TestbedHost":
        """Return one more host, with the same cable and CPUs."""
        return self._run.share(
            f"host {self.name} {purpose}", lambda: testbed_host(f"{self.name}-{purpose}", self.options, self._run)
        )

    @contextmanager
    def engine_folder(self) -> Iterator[str]:
        """Yield a folder in the cache, as on this machine, whose files the host sees."""
        data = OwnFolder.of(self._run.cache / "engines", self._run.id, self.name)
        data.path.mkdir(parents=True, exist_ok=True)
        try:
            yield str(data.path)
        finally:
            remove_engine_folder(data)

    def reach(self, path: str) -> Path | None:
        """Return the path of the socket, whose file this machine sees too."""
        socket = self.folder / path.lstrip("/")
        return socket if socket.exists() else None

    def facts(self) -> Mapping[str, str]:
        return {
            "kind": "testbed: namespaces on this machine; all testbed hosts share its kernel, CPUs and memory",
            "address": self.address,
            **self._cable_facts(),
            "CPUs": self.options.cpus or "all of this machine",
        }

    def switch_off(self) -> None:
        """End everything in it at once, like a power cut; paused processes are thawed to die."""
        with contextlib.suppress(OSError):
            Cgroup(GroupName(self._run.id)).thaw_below()
        self._holder.stop()


@contextmanager
def testbed_host(name: str, options: TestbedOptions, run: RunContext) -> Iterator[TestbedHost]:
    """Make a host, and end it with everything in it. Raises Unavailable if this machine cannot."""
    init = init_program()
    if init is None:
        raise Unavailable(": ".join(no_init()))
    switch = switch_for(run, name, options.cpus)
    with ExitStack() as stack:
        group = host_group(stack, run, name, "testbed", options.cpus)
        holder = _hold(run, init, name, group)
        host = TestbedHost(name, options, run, switch, holder, group)
        stack.callback(host.switch_off)
        switch.connect(host.pid, host.address, host._mac, options)
        yield host


def _hold(run: RunContext, init: str, name: str, group: Cgroup) -> Process:
    join = ("sh", "-c", JOIN, "join", *(str(path) for path in group.procs), "--")
    namespaces = ("--fork", "--kill-child", "--propagation", "private")
    arguments = (init, f"wb-{name}", str(run.cache.resolve()))
    argv = (*join, "unshare", *NAMESPACES, *namespaces, "--", "sh", "-c", _INIT, "init", *arguments)
    return await_ready(
        LocalHost(run.id).start(Command(argv), hold=True), f"the testbed host {name} cannot be created"
    )


def _first_process(holder: Process) -> int:
    return int(Path(f"/proc/{holder.pid}/task/{holder.pid}/children").read_text().split()[0])


def init_program() -> str | None:
    """Return the program that reaps a host's orphans: tini, a dependency of Debian's docker.io, or Docker's copy."""
    return shutil.which("tini") or shutil.which("docker-init", path="/usr/libexec/docker:/usr/bin")


def no_init() -> tuple[str, str]:
    """Return the message for a machine without an `init_program`, and what helps."""
    return "testbed hosts need tini as their first process", install_here(["tini"])
