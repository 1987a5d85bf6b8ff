"""A container as a site, and the stream to its first process through the engine's attach interface."""

import contextlib
import os
import resource
import socket
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from weighbridge.engines.client import engine_errors
from weighbridge.engines.docker import LAUNCHER, Engine
from weighbridge.errors import Unavailable
from weighbridge.launcher.launch import Launcher
from weighbridge.launcher.site import LaunchedSite, group_facts
from weighbridge.linux import selinux
from weighbridge.linux.cgroup_files import NETWORK, process_limit
from weighbridge.linux.process import limit_sending, most_open_files, wait_readable
from weighbridge.model.facts import UNPRIVILEGED, USERLAND
from weighbridge.model.site import SiteEntry, SiteRequest
from weighbridge.model.userland import Userland

_HEADER = 8
"""Bytes before each piece: 1 for standard output, 2 for standard error; three zeros; the size, big-endian."""
_STDOUT = 1
_ULIMITS = (
    "core", "cpu", "data", "fsize", "memlock", "msgqueue", "nice", "nproc", "rss", "rtprio", "rttime", "sigpending",
    "stack",
)  # fmt: skip
"""The limits that Docker accepts. It accepts none for the address space, and open files are set elsewhere."""
_PIECE = 2**16


def started(container: Any) -> "Attached":
    """Start a container, attached to it: detached again if it cannot be started."""
    attached = Attached(container.client, container.id)
    try:
        container.start()
    except BaseException:
        attached.end()
        raise
    return attached


class Attached:
    """A stream to and from a container. Implements ``Stream``. ``errors`` is its standard error so far."""

    def __init__(self, client: Any, container: str) -> None:
        """Attach to a container that is not started yet."""
        self.errors = b""
        self._held = bytearray()
        with engine_errors("attaching to a container"):
            streams = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            self._socket = client.api.attach_socket(container, params=streams)
        self._raw = getattr(self._socket, "_sock", self._socket)
        # The SDK gives the socket alone. The response that it is from flushes what is below it when it is finalized,
        # which fails loudly (from Python 3.13 on) if that was closed first, so it is always closed from the top
        self._close = weakref.finalize(self, getattr(self._socket, "_response", self._socket).close)
        self._raw.settimeout(None)
        limit_sending(self._raw)

    def send(self, data: bytes) -> None:
        self._raw.sendall(data)

    def receive(self, timeout_s: float | None = None) -> bytes:
        while self._close.alive:
            size = int.from_bytes(self._held[4:_HEADER], "big")
            if len(self._held) >= _HEADER + size > _HEADER:
                kind, piece = self._held[0], bytes(self._held[_HEADER : _HEADER + size])
                del self._held[: _HEADER + size]
                if kind == _STDOUT:
                    return piece
                self.errors = (self.errors + piece)[-_PIECE:]
                continue
            if timeout_s is not None and not wait_readable(self._raw, timeout_s=timeout_s):
                raise TimeoutError(f"no output within {timeout_s:g} s")
            got = self._raw.recv(_PIECE)
            if not got:
                self._close()
            self._held += got
        return b""

    def end(self) -> None:
        with contextlib.suppress(OSError):
            self._raw.shutdown(socket.SHUT_WR)


_FREEZE_S, _AGAIN_S = 10.0, 0.2
_NOT_AT_REST = "unable to freeze"
_SAID = 60
"""The number of letters of another process's command line that a message shows."""


def pause(api: Any, container: str, name: str) -> None:
    """Have Docker freeze a container. Where runc gives up, as on a busy machine, it is asked again for some seconds.

    Raises Unavailable or EnvironmentLost.
    """
    until = time.monotonic() + _FREEZE_S
    while True:
        try:
            with engine_errors(f"{name}: pause"):
                api.pause(container)
                return
        except Unavailable as why:
            if _NOT_AT_REST not in str(why) or time.monotonic() > until:
                raise
        time.sleep(_AGAIN_S)


class DockerSite(LaunchedSite):
    """A running container. Implements ``Site``; ``notes`` looks for further facts, once they are asked for."""

    def __init__(
        self,
        request: SiteRequest,
        engine: Engine,
        container: Any,
        addresses: tuple[str, str],
        notes: Callable[[], Mapping[str, str]],
        launcher: Launcher,
    ) -> None:
        super().__init__(request.name, engine.host, launcher, addresses)
        self._notes = notes
        self._engine = engine
        self._container = container
        self.pid = int(container.attrs["State"]["Pid"])
        self._userland = request.userland

    def _pause(self) -> None:
        pause(self._engine.client.api, self._container.id, self.title)

    def _resume(self) -> None:
        with engine_errors(f"{self.title}: unpause"):
            self._engine.client.api.unpause(self._container.id)

    def entering(self) -> SiteEntry:
        """Return ``docker exec``, which asks the engine to start the program in the container."""
        return SiteEntry(("docker", *self._engine.cli_options, "exec", self._container.id))

    def meters(self) -> Mapping[str, float]:
        """Return counters of the container's control group, read from the kernel, not through the engine."""
        return self.host.meters_of(self.pid)

    def scope(self) -> Mapping[str, str]:
        """Return the files of its control group, and of its network if that is not the host's."""
        shared = self._container.attrs["HostConfig"]["NetworkMode"] == "host"
        return {what: path for what, path in self.host.scope_of(self.pid).items() if not (shared and what == NETWORK)}

    def facts(self) -> Mapping[str, str]:
        """Return the engine, the network and the userland."""
        with engine_errors(f"{self.title}: inspect"):
            info, notes = self._engine.client.info(), self._notes()
        warnings = {f"not honoured: {w}": w for w in self._container.attrs.get("Warnings") or ()}
        return {
            USERLAND: self._userland.digest,
            "user": self._userland.process.user(UNPRIVILEGED if runs_for_user(self._userland) else "root"),
            "docker": self._engine.version + (" (private)" if self._engine.private else ""),
            **self._engine.programs,
            "storage driver": " on ".join((info.get("Driver", "?"), *_backing(info))),
            "cgroup driver": info.get("CgroupDriver", "?"),
            "runtime": info.get("DefaultRuntime", "?"),
            "host": self.host.name,
            "address": self.address,
            **group_facts(self.host, self.pid),
            **selinux.facts(self._container.attrs["HostConfig"].get("SecurityOpt") or ()),
            **warnings,
            **notes,
        }


def runs_for_user(userland: Userland) -> bool:
    """Return whether a userland's programs have the user's access to this machine's files, and no more."""
    return userland.of_this_machine and os.geteuid() != 0


def process_options(
    engine: Engine, userland: Userland, open_files: int | None = None, pids_limit: int | None = None
) -> dict[str, Any]:
    """Return Docker's options for processes that run as natively: their user, number and open files.

    Each container can have its own limits on files and processes.
    """
    from docker.types import Ulimit

    files = open_files or most_open_files()
    limits = [Ulimit(name="nofile", soft=files, hard=files)]
    if engine.host.this_machine and not engine.rootless:  # a rootless engine cannot raise its own
        limits += [Ulimit(name=name, soft=soft, hard=hard) for name, (soft, hard) in _own_limits().items()]
    return {"ulimits": limits, "pids_limit": pids_limit or _most_processes(engine), **user_options(engine, userland)}


def _own_limits() -> dict[str, tuple[int, int]]:
    """Return the limits that native programs have, soft and hard, by Docker's names: an engine has others."""
    return {name: resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}")) for name in _ULIMITS}


def _most_processes(engine: Engine) -> int:
    """Return the limit of processes that native programs have, -1 for none: systemd would set one (DefaultTasksMax).

    For a user, native programs share the limit of all of the user's processes; for root, they have no limit.
    """
    if os.geteuid() != 0 and engine.host.this_machine:
        with contextlib.suppress(OSError):
            return process_limit(engine.host.read, os.getpid()) or -1
    return -1


def user_options(engine: Engine, userland: Userland) -> dict[str, Any]:
    """Return Docker's options of whom the first process of a container runs as; empty for root.

    Root of a rootless engine's containers is the user.
    """
    if not runs_for_user(userland) or engine.rootless:
        return {}
    return {"user": f"{os.geteuid()}:{os.getegid()}", "group_add": [str(group) for group in os.getgroups()]}


def _backing(info: Mapping[str, Any]) -> list[str]:
    """Return the file system that holds the engine's layers, if its storage driver reports it."""
    return [value for key, value in info.get("DriverStatus") or () if key == "Backing Filesystem"]


def must_be_there(engine: Engine, container: Any) -> None:
    """Raise Unavailable if the container is not on the host: /proc would belong to other processes.

    The check repeats for a second, because the process can still be about to execute its program.
    """
    pid = container.attrs["State"]["Pid"]
    for _ in range(200):
        words = b""
        with contextlib.suppress(OSError):
            words = engine.host.read(f"/proc/{pid}/cmdline")
        if LAUNCHER.encode() in words or container.id.encode() in words:  # gVisor's sandbox names its container
            return
        time.sleep(0.005)
    container.reload()
    state = container.attrs["State"]
    if not state["Running"]:
        code, why = state["ExitCode"], state["Error"] or "no message"
        raise Unavailable(f"its container exited immediately with code {code}: {why}")
    command = words.rstrip(b"\0").replace(b"\0", b" ").decode(errors="replace")
    state_of_it = f"is '{command[:_SAID]}'" if command else "does not exist"
    raise Unavailable(
        "the Docker engine is on another machine, or this machine is too busy to start a container within a second "
        f"(the reported process {pid} of the container {state_of_it}). Set DOCKER_HOST to an engine on this "
        "machine, or use that machine as an ssh host"
    )


def why_lost(engine: Engine, container: Any, attached: Attached) -> Callable[[], str]:
    """Return a function that says why a container's launcher was lost. Raises EnvironmentLost with the engine."""

    def why() -> str:
        with engine_errors("looking for a lost container"):
            state = engine.client.api.inspect_container(container.id)["State"]
        stderr = attached.errors.decode(errors="replace").strip()
        return (
            stderr or str(state["Error"]) or ("its launcher was lost" if state["Running"] else "the container ended")
        )

    return why
