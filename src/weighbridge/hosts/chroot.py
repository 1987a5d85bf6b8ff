"""A site that is a chroot into the userland on a host, with its own control group: what native environments open."""

import base64
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.hosts._hold import JOIN, hold
from weighbridge.model.command import Command, Completed, Running, Transport
from weighbridge.model.mount import Mount, MountRequest
from weighbridge.model.site import SITE_ENV, Group, HostProcess, Link, SiteRequest
from weighbridge.process import RUN_VARIABLE, mounted_by

# The programs see the same bits everywhere, so the root is read-only. The mounts live in a namespace of their own
# and end with its last process; `cat` holds it until our end of its pipe closes, however we end.
_HOLD = """set -e
mount --rbind "$4" "$1"
mount -o remount,bind,ro "$1"
for d in proc sys dev; do mount --rbind "/$d" "$1/$d"; done
for d in tmp run; do mount -t tmpfs -o mode=1777 "$3" "$1/$d"; done
if [ -n "$2" ]; then mount --bind "$2" "$1/srv"; fi
echo ready $$
exec cat
"""
_TOGETHER_S = 0.2
_WHOLE_HOST = Path("/mnt")


class ChrootSite:
    """A chroot into the userland. Implements ``Site``. ``pid`` holds its namespaces, in the host's own numbers."""

    def __init__(
        self,
        request: SiteRequest,
        holder: HostProcess,
        cgroup: Group | None,
        refused: list[str],
        *,
        own_network: bool,
    ) -> None:
        self.name = request.name
        self.host = request.host
        self.address = self.listen = request.host.address if request.apart else "127.0.0.1"
        self.links: tuple[Link, ...] = ()
        self.notes: dict[str, str] = {}
        """Further facts."""
        self.pid = int(holder.output_so_far().split()[1])
        self._request = request
        self._holder = holder
        self._cgroup = cgroup
        self._refused = refused
        self._own_network = own_network
        join = [str(path) for path in cgroup.procs] if cgroup else []
        user = () if request.host.root else ("--user", "--preserve-credentials")
        network = ("--net",) if own_network else ()
        root = _place(request.host.userland(request.userland))
        self._prefix = (
            "sh", "-c", JOIN, "join", *join, "--",
            "nsenter", "--target", str(self.pid), *user, "--mount", *network, "--",
            "setpriv", "--pdeathsig", "KILL", "chroot", str(root), "/usr/bin/env", "-i",
            *(f"{key}={value}" for key, value in {**SITE_ENV, RUN_VARIABLE: request.run.id}.items()),
        )  # fmt: skip

    def _wrapped(self, command: Command) -> Command:
        """Behind the launcher; it dies with us (in a user namespace nothing else would find it)."""
        self._check()
        return command.wrapped(*self._prefix, *(f"{key}={value}" for key, value in command.env.items()))

    def run(self, command: Command) -> Completed:
        """Run to the end; killed at its deadline."""
        return self.host.run(self._wrapped(command))

    def start(self, command: Command) -> Running:
        """Start and return at once."""
        return _InSite(self.host.start(self._wrapped(command)), self._check_now_ending)

    def _check_now_ending(self) -> None:
        """The holder may end a moment after what was killed together with it."""
        self._holder.wait(_TOGETHER_S)
        self._check()

    def _check(self) -> None:
        if self._holder.poll() is not None:
            self.host.run(Command(("true",), 10))  # where the whole host has gone, that is what is told
            raise EnvironmentLost(f"{self.name}: the process that holds its mounts was killed")

    def put(self, path: str, data: bytes) -> None:
        """Write a file below /tmp or /run of the site."""
        writer = ("sh", "-c", 'base64 -d > "$1"', "put", path)
        done = self.run(Command(writer, stdin=base64.b64encode(data)))
        if done.returncode != 0:
            raise EnvironmentLost(f"{self.name}: cannot write {path}: {done.last_words}")

    def listening(self, ports: tuple[tuple[Transport, int], ...]) -> bool:
        """True when every port has a listener in the site's network namespace."""
        return self.host.listening(ports, self.pid if self._own_network else "self")

    def freeze(self) -> None:
        """Stop every process in the site from running."""
        if self._cgroup:
            self._cgroup.freeze()

    def thaw(self) -> None:
        """Let them run again."""
        if self._cgroup:
            self._cgroup.thaw()

    def meters(self) -> Mapping[str, float]:
        """Counters of its control group."""
        return self._cgroup.meters() if self._cgroup else {}

    def scope(self) -> Mapping[str, str]:
        """The files of its control group (or its processes, where it has none), and of a network of its own."""
        network = {"net": f"/proc/{self.pid}/net/dev"} if self._own_network else {}
        return {**(self._cgroup.scope() if self._cgroup else {"processes": f"/proc/{self.pid}/ns/mnt"}), **network}

    def facts(self) -> Mapping[str, str]:
        """The userland, the limits, and what could not be honoured."""
        found = {
            "userland": self._request.userland.digest,
            "user": "root" if self.host.root else "unprivileged",
        }
        return (
            found | self.notes | {f"not honoured: {sentence.split(':')[0]}": sentence for sentence in self._refused}
        )


class _InSite:
    """A process of the site. One that was killed with its host has not failed: the environment was lost."""

    def __init__(self, process: HostProcess, check: Callable[[], None]) -> None:
        self._process = process
        self._check = check
        self.poll = process.poll
        self.wait = process.wait

    def stop(self, *, timed_out: bool = False) -> Completed:
        """As the process's own; EnvironmentLost where it was killed and the site has gone."""
        killed = self._process.poll() == -signal.SIGKILL
        completed = self._process.stop(timed_out=timed_out)
        if killed:
            self._check()
        return completed


@contextmanager
def chroot_site(request: SiteRequest, *, own_network: bool = False) -> Iterator[ChrootSite]:
    """A site with its own control group, and with ``own_network`` in a network namespace of its own (without links).

    Raises Unavailable where namespaces may not be made.
    """
    cgroup, refused = _group(request)
    with ExitStack() as stack:
        data = stack.enter_context(_data(request)).source if request.storage is not None else ""
        if cgroup:
            stack.callback(cgroup.remove)
            stack.callback(cgroup.kill)
        holder = _hold(request, data, own_network=own_network)
        stack.callback(holder.stop)
        yield ChrootSite(request, holder, cgroup, refused, own_network=own_network)


def _data(request: SiteRequest) -> AbstractContextManager[Mount]:
    assert request.storage is not None
    return request.storage.open(MountRequest(request.run, request.host, request.name))


def _group(request: SiteRequest) -> tuple[Group | None, list[str]]:
    limits = request.limits
    try:
        group = request.host.group(request.name)
    except Unavailable as error:
        asked = {"cpus": limits.cpus, "memory": limits.memory, "pin": limits.cpuset}
        return None, [f"{what}: {error}" for what, value in asked.items() if value is not None]
    return group, group.limit(limits)


def _place(root: Path) -> Path:
    """Where the site's root is mounted: on the userland itself, unless that is the whole of its host."""
    return _WHOLE_HOST if root == Path("/") else root


def _hold(request: SiteRequest, data: str, *, own_network: bool) -> HostProcess:
    user = () if request.host.root else ("--map-root-user",)
    network = ("--net",) if own_network else ()
    root = request.host.userland(request.userland)
    own = (str(_place(root)), data, mounted_by(request.run.id), str(root))
    argv = (
        "unshare", *user, "--mount", *network, "--propagation", "private", "sh", "-c", _HOLD, "hold", *own,
    )  # fmt: skip
    return hold(request.host.start(Command(argv), hold=True), f"cannot enter the userland for {request.name}")
