"""A folder of the kernel's NFS server, mounted on the site's host or by its engine.

A host runs the server for the length of a run, and clients' hosts run the services that they need; all is undone.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import count, pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.linux.packages import install_on
from weighbridge.model.command import Command
from weighbridge.model.host import HERE, Host, RunContext
from weighbridge.model.names import SafeName
from weighbridge.model.plugin import Durability, Readiness
from weighbridge.model.quantity import Size
from weighbridge.model.site import Mount, MountRequest
from weighbridge.model.storage import Storage, StorageOptions

When = Literal["sync", "async"]
"""Whether a write is answered once it is on the disk, or before."""
_LEFT = "NFS mounts and exports would remain after a killed run"
REMEDY = "use hosts with their own kernel: 'hosts: {a: {kind: guest}}'"
_LONGEST_S = 60.0
_THREADS = "8"
_PROGRAMS = ("rpcbind", "rpc.statd", "rpc.nfsd")
_MISSING = 'for name; do command -v "$name" > /dev/null || echo "$name"; done'
_REGISTERED = 'for n in $(seq 200); do rpcinfo -t "$1" "$2" > /dev/null 2>&1 && exit; sleep 0.1; done; exit 1'
_MODULES = """set -e
modprobe --all "$@"
mkdir -p /run/rpcbind /run/rpc_pipefs
mountpoint -q /run/rpc_pipefs || mount -t rpc_pipefs rpc_pipefs /run/rpc_pipefs
"""
_UNUSED = """set -e
mkdir -p /var/lib/nfs/nfsdcld
mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
exec cat /proc/fs/nfsd/threads
"""
_START = """set -e
for n in $(seq 100); do [ -s /var/lib/nfs/nfsdcld/main.sqlite ] && break; sleep 0.1; done
sleep 0.5
rpc.nfsd "$@"
grep -q Y /proc/fs/nfsd/v4_end_grace || echo Y > /proc/fs/nfsd/v4_end_grace || true
"""
"""No client of an earlier server can come back: without nfsdcld, new ones would wait 90 s for that."""
_UNMOUNT = """
for at in $(awk -v path="$1" '{ split(substr($0, index($0, " - ") + 3), own, " ") }
    own[1] ~ /^nfs/ && substr(own[2], index(own[2], ":") + 1) == path { print $5 }' /proc/self/mountinfo)
do umount -i -c -f -l "$at" || exit
done
"""
"""Unmounting is first forced, so that processes that wait for a lost server give up.

Then the mount is removed from the tree even if its files are open."""


@dataclass(frozen=True, slots=True)
class Export:
    """A folder that a server exports to one client; ``line`` is what exportfs(8) says is in force."""

    path: str
    line: str


class NfsServer:
    """The server of one host."""

    def __init__(self, run: RunContext, host: Host) -> None:
        self._run = run
        self._host = host
        self._numbers = count(1)

    @property
    def versions(self) -> str:
        """The versions that it serves, according to its kernel."""
        return self._host.read("/proc/fs/nfsd/versions").decode().strip()

    @contextmanager
    def export(self, name: str, client: str, when: When) -> Iterator[Export]:
        """Yield a new, empty folder that the host with the address ``client`` can mount. Raises Unavailable."""
        with self._host.data_folder(self._run, SafeName(f"{name}-export")) as folder:
            options = f"rw,{when},no_subtree_check,no_root_squash,insecure,fsid={next(self._numbers)}"
            run_or_unavailable(self._host, "an NFS export", "exportfs", "-i", "-o", options, f"{client}:{folder}")
            try:
                yield Export(str(folder), _in_force(self._host, folder, when))
            finally:
                take_back(self._run, self._host, "an NFS export", "exportfs", "-u", f"{client}:{folder}")


def why_not_here() -> str:
    """Return why no host with this machine's kernel has NFS: it cannot, or a killed run would leave it there."""
    for where, name in (
        (f"/lib/modules/{os.uname().release}/modules.dep", "/nfsd.ko"),
        ("/proc/filesystems", "nfsd"),
    ):
        with suppress(OSError):
            if name in Path(where).read_text():
                return _LEFT
    return "this machine's kernel has no NFS"


def server_of(run: RunContext, host: Host) -> NfsServer:
    """Return the server of a host for the whole run. Raises Unavailable, also if the host has another one."""
    services_of(run, host)
    return run.share(f"nfs server {host.name}", lambda: _server(run, host))


def services_of(run: RunContext, host: Host) -> None:
    """Return what servers and clients both need on a host: modules, rpcbind, rpc.statd. Raises Unavailable."""
    run.share(f"nfs {host.name}", lambda: _services(host))


def run_or_unavailable(host: Host, what: str, *argv: str, deadline_s: float = _LONGEST_S) -> str:
    """Run a command on a host and give what it printed. Unavailable, that ``what`` cannot be had, if it fails."""
    completed = host.run(Command(argv, deadline_s))
    if completed.returncode != 0:
        why = f"no answer within {deadline_s:g} s" if completed.timed_out else completed.last_words
        raise Unavailable(f"host {host.name}: {what} is unavailable: {why}")
    return completed.text


def take_back(run: RunContext, host: Host, what: str, *argv: str) -> None:
    """Run a command that undoes something; report a failure, unless the host has gone."""
    try:
        completed = host.run(Command(argv, _LONGEST_S))
    except EnvironmentLost:
        return
    if completed.returncode != 0:
        why = "no answer" if completed.timed_out else completed.last_words
        run.say(f"host {host.name}: {what} could not be removed: {why}")


def unmount(run: RunContext, host: Host, path: str) -> None:
    """Unmount an export wherever a host has it mounted, even if its server no longer answers."""
    take_back(run, host, "an NFS mount", "sh", "-c", _UNMOUNT, "unmount", path)


@contextmanager
def _services(host: Host) -> Iterator[None]:
    if host.machine == HERE:
        raise Unavailable(f"host {host.name}: {why_not_here()}: {REMEDY}")
    if host.capabilities.disposable is None:
        raise Unavailable(f"host {host.name}: {_LEFT}: {REMEDY}")
    if not host.root:
        raise Unavailable(f"host {host.name}: only root can mount NFS")
    if lacking := run_or_unavailable(host, "NFS", "sh", "-c", _MISSING, "missing", *_PROGRAMS).split():
        raise Unavailable(f"host {host.name} does not have {' and '.join(lacking)}: {install_on(host, lacking)}")
    run_or_unavailable(host, "NFS", "sh", "-c", _MODULES, "modules", "nfs", "nfsv3", "nfsv4")
    with ExitStack() as stack:
        for service, number in (("rpcbind -f -w", "portmapper"), ("rpc.statd -F --no-notify", "status")):
            _serve(stack, host, service, number)
        yield


@contextmanager
def _server(run: RunContext, host: Host) -> Iterator[NfsServer]:
    run_or_unavailable(host, "an NFS server", "modprobe", "nfsd")
    if run_or_unavailable(host, "an NFS server", "sh", "-c", _UNUSED).strip() != "0":
        raise Unavailable(f"host {host.name} already has an NFS server: put 'storage' on another host")
    with ExitStack() as stack:
        stack.callback(host.start(Command(("nfsdcld", "-F"))).stop)
        stack.callback(take_back, run, host, "an NFS server", "rpc.nfsd", "0")
        arguments = ("-H", host.address, "-V", "3", "-V", "4", "-V", "4.2", _THREADS)
        run_or_unavailable(host, "an NFS server", "sh", "-c", _START, "start", *arguments)
        _serve(stack, host, "rpc.mountd -F", "mountd")
        yield NfsServer(run, host)


def _serve(stack: ExitStack, host: Host, service: str, registered: str) -> None:
    """Start a service in the foreground, unless the host has it; returns once it is registered with rpcbind."""
    if host.run(Command(("rpcinfo", "-t", "127.0.0.1", registered), _LONGEST_S)).returncode == 0:
        return
    argv = tuple(service.split())
    stack.callback(host.start(Command(argv)).stop)
    run_or_unavailable(host, argv[0], "sh", "-c", _REGISTERED, "registered", "127.0.0.1", registered)


def _in_force(host: Host, folder: Path, when: When) -> str:
    """Return exportfs(8)'s line of a folder. Raises Unavailable if it is not what was asked for."""
    words = run_or_unavailable(host, "an NFS export", "exportfs", "-v").split()
    line = next((after for word, after in pairwise(words) if word == str(folder)), "")
    options = line.partition("(")[2].rstrip(")").split(",")
    if when not in options or "rw" not in options:
        raise Unavailable(f"host {host.name}: its NFS export should be '{when}' and 'rw', but is '{line or 'none'}'")
    return ",".join(options)


_WRITABLE = 'at=$(mktemp -d "$1/try-XXXXXX") && exec rmdir "$at"'


_TransferSize = Annotated[Size, Field(ge=2**12, le=2**20, multiple_of=2**12)]


def _as_text(version: object) -> object:
    return str(version) if isinstance(version, int | float) else version


class NfsOptions(StorageOptions):
    """How the server exports, how the client mounts. What ``sync`` means differs between the two."""

    kind: Literal["nfs"] = "nfs"
    export: Annotated[
        When, Field(description="When the server acknowledges a write: once it is on disk, or before")
    ] = "sync"
    mount: Annotated[
        When, Field(description="Whether the client sends each write at once, or caches it until a sync")
    ] = "async"
    version: Annotated[
        Literal["3", "4.0", "4.2"], BeforeValidator(_as_text), Field(description="Protocol version")
    ] = "4.2"
    read_size: Annotated[_TransferSize | None, Field(description="Bytes per read; default: negotiated")] = None
    write_size: Annotated[_TransferSize | None, Field(description="Bytes per write; default: negotiated")] = None
    hard: Annotated[
        bool,
        Field(description="Whether programs wait for a server that does not answer (otherwise they get an error)"),
    ] = True

    @property
    def in_force(self) -> frozenset[str]:
        """The options that the mount table must show for the mount."""
        shown = {f"vers={self.version}", "hard" if self.hard else "soft", "rw"}
        return frozenset((shown | {"sync"} if self.mount == "sync" else shown) | set(self._sizes))

    @property
    def _sizes(self) -> tuple[str, ...]:
        """The mount options of those sizes that are not left to client and server."""
        sizes = {"rsize": self.read_size, "wsize": self.write_size}
        return tuple(f"{name}={size}" for name, size in sizes.items() if size is not None)

    def mount_options(self, address: str) -> str:
        """Return the options of the mount of a server with this address, as mount(2) takes them."""
        common = f"addr={address},rw,nfsvers={self.version},proto=tcp,{self.mount},{'hard' if self.hard else 'soft'}"
        common = ",".join((common, *self._sizes))
        return f"{common},mountproto=tcp,mountaddr={address}" if self.version == "3" else common


class Nfs(Storage):
    """Server and client are the kernel's. The server is on the host that ``placement`` names, else the site's own."""

    kind = "nfs"
    summary = "a folder on a host's kernel NFS server, mounted or as an engine volume"
    options = NfsOptions
    ways = ("volume", "folder")
    served: ClassVar[bool] = True

    def durability(self, options: Any) -> Durability:
        """Return "asynchronous" if a power cut of the server loses data that it had acknowledged."""
        return "synchronous" if options.export == "sync" else "asynchronous"

    def ready(self, options: Any | None = None) -> Readiness:
        """Return that it is not ready, because only guest hosts, which end with the run, can have it."""
        root = "" if os.geteuid() == 0 else "run as root, and "
        return Readiness(False, why_not_here(), root + REMEDY)

    @contextmanager
    def open(self, options: Any, request: MountRequest) -> Iterator[Mount]:
        """Export a new, empty folder to the site's host, mount it, and check what is in force."""
        run, host = request.run, request.host
        at = request.server or host
        services_of(run, host)
        server = server_of(run, at)
        mount_options = options.mount_options(at.address)
        with ExitStack() as stack:
            export = stack.enter_context(server.export(request.name, host.address, options.export))
            facts = {"export": export.line, "versions of the server": server.versions}
            servers = (at,) if at.name != host.name else ()
            filesystem, cached_by = "nfs" if options.version == "3" else "nfs4", f"the NFS server on host {at.name}"
            folder = str(stack.enter_context(host.data_folder(run, SafeName(f"{request.name}-mount"))))
            stack.callback(unmount, run, host, export.path)
            mount_checked(host, export, mount_options, folder, options)
            if request.volumes is None:
                yield Mount("folder", folder, servers, facts, filesystem, cached_by, options.in_force)
                return
            unmount(run, host, export.path)  # the engine mounts it itself, with the same options
            driver = {"type": "nfs", "o": mount_options, "device": f":{export.path}"}
            with request.volumes.volume(request.name, driver) as volume:
                try:
                    yield Mount("volume", volume, servers, facts, filesystem, cached_by, options.in_force)
                finally:  # before the engine is asked to remove it
                    unmount(run, host, export.path)


def mount_checked(host: Host, export: Export, mount_options: str, folder: str, options: NfsOptions) -> None:
    """Mount an export at a folder. Raises Unavailable if it is refused, is missing an option, or is not writable."""
    run_or_unavailable(
        host, "an NFS mount", "mount", "-i", "-t", "nfs", "-o", mount_options, f":{export.path}", folder
    )
    in_force = _mounted(host, folder)
    if lacking := sorted(options.in_force - in_force):
        raise Unavailable(
            f"host {host.name}: its NFS mount should be '{lacking[0]}', but is "
            f"'{','.join(sorted(in_force)) or 'none'}'"
        )
    run_or_unavailable(host, "a writable NFS mount", "sh", "-c", _WRITABLE, "try", folder)


def _mounted(host: Host, folder: str) -> set[str]:
    """Return the options, of the mount and of its file system, that are in force at a folder."""
    for line in reversed(host.read("/proc/self/mountinfo").decode(errors="replace").splitlines()):
        before, _, after = line.partition(" - ")
        if before.split(" ")[4] == folder:
            return {*before.split(" ")[5].split(","), *after.split(" ")[2].split(",")}
    return set()


PLUGIN = Nfs()
