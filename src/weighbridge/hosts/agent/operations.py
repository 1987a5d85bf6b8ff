"""The operations of the agent: each has a request's fields and bytes as input, and returns those of its answer."""

import contextlib
import fcntl
import os
import platform
import socket
import struct
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from weighbridge.engines import engine_socket
from weighbridge.facts.host import fingerprint, volatile_facts
from weighbridge.hosts.agent.sweep import Membership, RunOwner, encode_membership
from weighbridge.hosts.agent.userlands import Receiver, keep_program, make_data_folder, remove_data_folder, root_of
from weighbridge.hosts.local import LocalHost
from weighbridge.linux import cpus, network
from weighbridge.linux.cgroups import Cgroup
from weighbridge.linux.cleanup import HOST_VARIABLE
from weighbridge.linux.delegation import tree
from weighbridge.linux.process import RUN_VARIABLE, Process, SocketStream, wait_readable
from weighbridge.linux.process import talk as start_talking
from weighbridge.model.command import Command
from weighbridge.model.host import Limits
from weighbridge.model.names import SafeName

Reply = tuple[Mapping[str, Any], bytes]


def machine() -> str:
    """Return an id of this machine since its boot, and of its PID namespace."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}/{Path('/proc/self/ns/pid').readlink().name}"


def hello(connection: str) -> dict[str, Any]:
    """Return the data that our side needs before the first request; ``connection`` is SSH_CONNECTION (ssh(1))."""
    server = connection.split()
    return {
        "hello": 1,
        "pid": os.getpid(),
        "root": os.geteuid() == 0,
        "architecture": platform.machine(),
        "python": platform.python_version(),
        "machine": machine(),
        "cpus": cpus.cpus_online(),
        "interfaces": ipv4_addresses(),
        "server": server[2] if len(server) == 4 else "",
    }


class Operations:
    """The shared state of the operations: processes, control groups and the root filesystem being received."""

    def __init__(self, whose: RunOwner, send: Callable[..., None], warn: Callable[[bytes], None]) -> None:
        """``send`` sends a frame to our side, ``warn`` a line to the guard."""
        self.membership: Membership | None = None
        self._whose = whose
        self._send = send
        self._warn = warn
        self._env = {RUN_VARIABLE: whose.run, HOST_VARIABLE: whose.host}
        self._local = LocalHost(whose.run)
        self._processes: dict[int, Process] = {}
        self._streams: dict[int, SocketStream] = {}
        self._groups: dict[str, Cgroup] = {}
        self._receiver: Receiver | None = None
        self._received = 0
        self._pieces: dict[str, bytes] = {}

    def start(
        self,
        data: bytes,
        *,
        process: int,
        argv: list[str],
        env: dict[str, str],
        stop_signal: int,
        hold: bool,
        talk: bool,
    ) -> Reply:
        """Start a process; its end, and the output of an interactive one, are sent without a request."""
        command = Command(tuple(argv), env=env, stdin=data, stop_signal=stop_signal)
        if talk:
            child, self._streams[process] = start_talking(command, env=self._env)
            threading.Thread(target=self._tell_output, args=(process, self._streams[process]), daemon=True).start()
        else:
            child = Process(command, env=self._env, hold=hold)
        self._processes[process] = child
        ended = os.pidfd_open(child.pid)
        threading.Thread(target=self._tell_end, args=(process, child, ended), daemon=True).start()
        return {"pid": child.pid}, b""

    def _tell_end(self, number: int, process: Process, ended: int) -> None:
        wait_readable(ended)
        os.close(ended)
        self._send({"ended": number, "code": process.poll()})

    def _tell_output(self, number: int, stream: SocketStream) -> None:
        piece = b"..."
        while piece:
            try:
                piece = stream.receive()
            except OSError:
                piece = b""
            self._send({"said": number}, piece)

    def connect(self, data: bytes, *, process: int, path: str) -> Reply:
        """Connect to a local socket; its data is sent as the output of an interactive process."""
        self._streams[process] = SocketStream(engine_socket.connected(path))
        threading.Thread(target=self._tell_output, args=(process, self._streams[process]), daemon=True).start()
        return {}, b""

    def hang_up(self, data: bytes, *, process: int) -> Reply:
        """Close a connection to a socket."""
        self._streams.pop(process).close()
        return {}, b""

    def output(self, data: bytes, *, process: int, start: int) -> Reply:
        """Return a process's standard output so far, from a byte on."""
        return {}, self._processes[process].output_so_far(start)

    def send(self, data: bytes, *, process: int) -> Reply:
        """Write to a process's standard input."""
        (self._streams.get(process) or self._processes[process]).send(data)
        return {}, b""

    def end(self, data: bytes, *, process: int) -> Reply:
        """Close the input of an interactive process."""
        self._streams[process].end()
        return {}, b""

    def stop(self, data: bytes, *, process: int, timed_out: bool) -> Reply:
        """End a process; return its code, its seconds, and its two outputs one after the other."""
        completed = self._processes.pop(process).stop(timed_out=timed_out)
        self._streams.pop(process, None)
        return {"code": completed.returncode, "duration": completed.duration_s, "split": len(completed.stdout)}, (
            completed.stdout + completed.stderr
        )

    def read(self, data: bytes, *, path: str) -> Reply:
        """Return a file's content."""
        return {}, Path(path).read_bytes()

    def namespaces(self, data: bytes) -> Reply:
        """Return the numbers of the agent's namespaces, by kind."""
        return {"value": dict(self._local.namespaces())}, b""

    def meters_of(self, data: bytes, *, pid: int) -> Reply:
        """Return the counters of a process's control group."""
        return {"value": dict(self._local.meters_of(pid))}, b""

    def scope_of(self, data: bytes, *, pid: int) -> Reply:
        """Return the files of a process's control group and network."""
        return {"value": dict(self._local.scope_of(pid))}, b""

    def signal(self, data: bytes, *, pid: int, number: int) -> Reply:
        """Signal a process group."""
        self._local.signal(pid, number)
        return {}, b""

    def group(self, data: bytes, *, name: str) -> Reply:
        """Make a control group."""
        group = Cgroup(self._whose.group.below(name), mount=tree(self._whose.run)).create()
        self._groups[name] = group
        return {"procs": [str(path) for path in group.procs], "scope": group.scope()}, b""

    def group_do(self, data: bytes, *, name: str, verb: str, limits: dict[str, Any] | None = None) -> Reply:
        """Apply a verb to a control group: ``limit``, or one of `methods`."""
        group = self._groups[name]
        if verb == "limit":
            return {"value": group.limit(Limits(**(limits or {})))}, b""
        methods: dict[str, Callable[[], Any]] = {
            "freeze": group.freeze,
            "thaw": group.thaw,
            "exempt_file_servers": group.exempt_file_servers,
            "meters": group.meters,
            "kill": group.kill,
            "remove": group.remove,
            "everywhere": lambda: [str(path) for path in group.everywhere],
        }
        return {"value": methods[verb]()}, b""

    def free_port(self, data: bytes, *, taken: list[int]) -> Reply:
        """Return a free port."""
        return {"value": network.free_port(taken)}, b""

    def time(self, data: bytes) -> Reply:
        """Return the seconds since 1970 on this machine."""
        return {"value": time.time()}, b""

    def facts(self, data: bytes) -> Reply:
        """Return the machine's fingerprint and its volatile facts."""
        return {"value": {**fingerprint(), **volatile_facts()}}, b""

    def userland(self, data: bytes, *, digest: str) -> Reply:
        """Return the root filesystem's folder; empty if it must be sent, which begins with this request."""
        root = root_of(SafeName(digest))
        if root.is_dir():
            return {"root": str(root)}, b""
        self._received += 1
        self._receiver = Receiver(SafeName(digest), self._whose.folder_name, self._received)
        return {"root": ""}, b""

    def userland_piece(self, data: bytes) -> Reply:
        """Receive a piece of the root filesystem."""
        assert self._receiver is not None
        self._receiver.piece(data)
        return {}, b""

    def userland_finish(self, data: bytes) -> Reply:
        """Check and unpack the root filesystem."""
        assert self._receiver is not None
        return {"root": str(self._receiver.finish())}, b""

    def program(self, data: bytes, *, name: str, digest: str, unfinished: bool) -> Reply:
        """Keep a program under its digest; return its path with the last piece."""
        self._pieces[digest] = self._pieces.get(digest, b"") + data
        if unfinished:
            return {}, b""
        content = zlib.decompress(self._pieces.pop(digest))
        path = keep_program(SafeName(name), SafeName(digest), content, self._whose.folder_name)
        return {"path": str(path)}, b""

    def data_folder(self, data: bytes, *, name: str) -> Reply:
        """Make a folder on the disk for a site's data."""
        return {"path": str(make_data_folder(self._whose.folder_name, SafeName(name)))}, b""

    def discard_data(self, data: bytes, *, name: str) -> Reply:
        """Remove a site's data folder."""
        remove_data_folder(self._whose.folder_name, SafeName(name))
        return {}, b""

    def engine(self, data: bytes, *, path: str) -> Reply:
        """Return the socket of an engine that the login user can use; ``path`` names one, else it is searched."""
        socket_path = path or engine_socket.find()
        user = os.environ.get("SUDO_UID", "0")
        if os.geteuid() == 0 and user != "0":
            socket_path = engine_socket.lend(socket_path, self._whose.socket_folder, int(user))
        return {"value": socket_path}, b""

    def swarm(self, data: bytes, *, membership: dict[str, Any] | None) -> Reply:
        """Set the membership of a swarm that ends with the agent in any way; None clears it."""
        self.membership = Membership(**membership) if membership else None
        self._warn(encode_membership(self.membership))
        return {}, b""


TABLE: dict[str, Callable[..., Reply]] = {
    name: operation for name, operation in vars(Operations).items() if not name.startswith("_")
}
"""Every operation by its name."""
IN_ORDER = frozenset({"connect", "start", "swarm", "time", "userland", "userland_piece"})
"""The operations that the main thread runs itself, one after the other.

Writing to a process is not included because the process might not read; the caller waits for the answer before the
next write."""


_SIOCGIFADDR = 0x8915  # netdevice(7)
_NAME = 16


def ipv4_addresses() -> dict[str, str]:
    """Return the first address of each interface that has one: interface -> address."""
    addresses = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as inet_socket:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):  # it has no address
                request = struct.pack(f"{_NAME}s240x", name.encode()[: _NAME - 1])
                answer = fcntl.ioctl(inet_socket.fileno(), _SIOCGIFADDR, request)
                addresses[name] = socket.inet_ntoa(answer[20:24])
    return addresses
