"""gVisor as a runtime of Docker's containers: runsc, with which a kernel in user space serves their system calls."""

import contextlib
import functools
import itertools
import mmap
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from weighbridge.engines.client import client_from_environment
from weighbridge.errors import Unavailable
from weighbridge.linux.network import bound_in, tables_of
from weighbridge.linux.process import output
from weighbridge.model.command import Transport
from weighbridge.model.facts import GVISOR_FILES, GVISOR_LAYERS, GVISOR_NETWORK, GVISOR_PLATFORM
from weighbridge.model.host import Host
from weighbridge.model.plugin import Readiness

PROGRAM = "runsc"
VERSION = "v0.0.0-20260905035102-160fafc42237"
INSTALL = f"CGO_ENABLED=0 GOBIN=/usr/local/bin go install gvisor.dev/gvisor/runsc@{VERSION}"
LEAST_MEMORY = 24 * 2**20
"""The bytes of memory that a sandbox of VERSION needs to start. With 16 MiB it ends before it answers."""
_MODULE = re.compile(rb"gvisor\.dev/gvisor\t(v[0-9][^\t\n]{1,60})[\t\n]")
_LOOK_S = 0.002
_STOP = "stop that engine, so that the run can start one with gVisor"
_PLATFORM = "systrap"
"""Runsc's default: it catches system calls with seccomp, and needs no device."""
_HOST_NETWORK = "--network=host"
"""Without it runsc takes over the addresses of all interfaces of its network namespace, also of the host."""


Platform = Literal["systrap", "ptrace"]
Stack = Literal["own", "host"]
Files = Literal["direct", "gofer"]
LayerOf = Literal["own", "host"]


@dataclass(frozen=True, slots=True)
class GvisorSandbox:
    """The settings of runsc for a container: the options ``runsc_...``.

    ``platform``: None is whatever its engine has registered.
    """

    platform: Platform | None = None
    stack: Stack = "own"
    files: Files = "direct"
    layer: LayerOf = "own"

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of runsc that are not its defaults, but for the platform, which is always named."""
        flags = {
            f"--platform={self.platform or _PLATFORM}": True,
            _HOST_NETWORK: self.stack == "host",
            "--directfs=false": self.files == "gofer",
            "--overlay2=none": self.layer == "host",
        }
        return tuple(flag for flag, given in flags.items() if given)

    def is_served_by(self, arguments: Sequence[str]) -> bool:
        """Return whether a runtime has these settings. The engine chooses the settings that are not given."""
        wanted = {"network": _DEFAULTS["network"], **dict(map(_flag, self.arguments))}
        if self.platform is None:
            del wanted["platform"]
        flags = {**_DEFAULTS, **dict(map(_flag, arguments))}
        return all(flags[name] == value for name, value in wanted.items())


_DEFAULTS: Mapping[str, str] = {
    "platform": _PLATFORM,
    "network": "sandbox",
    "directfs": "true",
    "overlay2": "root:self",
}
"""Those flags of runsc that decide who serves what, with its defaults (``runsc flags``)."""
_FACTS: Mapping[str, str] = {
    "platform": GVISOR_PLATFORM,
    "network": GVISOR_NETWORK,
    "directfs": GVISOR_FILES,
    "overlay2": GVISOR_LAYERS,
}


def _flag(argument: str) -> tuple[str, str]:
    name, _, value = argument.lstrip("-").partition("=")
    return name, value or "true"


def in_force(arguments: Sequence[str]) -> dict[str, str]:
    """Return how a running sandbox serves its container, by the command line of its process."""
    flags = {**_DEFAULTS, **dict(_flag(each) for each in arguments if each.startswith("-"))}
    return {fact: flags[name] for name, fact in _FACTS.items()}


def registration(is_there: Callable[[str], bool] = lambda path: True) -> dict[str, Any]:
    """Return gVisor's runtimes in the daemon.json of a private engine; empty if it is not installed.

    There is one entry for each choice in a study; the first has runsc's defaults. ``is_there`` returns whether the
    engine's host has a program at a path.
    """
    path = shutil.which(PROGRAM)
    if path is None or not is_there(path):
        return {}
    ways = itertools.product(get_args(Platform), get_args(Stack), get_args(Files), get_args(LayerOf))
    sandboxes = [GvisorSandbox(*way) for way in ways]
    names = {each: "-".join((PROGRAM, *_differences(each))) for each in sandboxes}
    return {names[each]: {"path": path, "runtimeArgs": [*each.arguments]} for each in sandboxes}


def _differences(sandbox: GvisorSandbox) -> Iterator[str]:
    """Yield the parts of a runtime's name after "runsc"."""
    for argument in sandbox.arguments:
        name, value = _flag(argument)
        if value != _DEFAULTS[name]:
            yield {"directfs": "gofer", "overlay2": "layer"}.get(name, value)


def runtime(client: Any, host: Host, sandbox: GvisorSandbox) -> str:
    """Return the name of the runtime with these settings in an engine of a host. Raises Unavailable."""
    if (name := _registered(client, sandbox)) is None:
        raise Unavailable(f"the Docker engine of host {host.name} {_lacks(sandbox)}: {_STOP}")
    return name


def refusal(sandbox: GvisorSandbox) -> Readiness | None:
    """Return why the engine that answers has no such gVisor; None if it has, or if none answers."""
    if (client := client_from_environment()) is None:
        return None
    with contextlib.closing(client):
        if _registered(client, sandbox) is not None:
            return None
    return Readiness(False, f"the running Docker engine {_lacks(sandbox)}", _STOP)


def _registered(client: Any, sandbox: GvisorSandbox) -> str | None:
    """Return the engine's name of a runsc with these settings, or None if it has none."""
    for name, about in _runtimes(client).items():
        if Path(about.get("path") or "").name == PROGRAM and sandbox.is_served_by(_arguments(about)):
            return name
    return None


def _lacks(sandbox: GvisorSandbox) -> str:
    flags = [each for each in sandbox.arguments if sandbox.platform is not None or not each.startswith("--platform")]
    which = f"with {' '.join(flags)}" if flags else "without options"
    why = " (without it, gVisor would take over the host's addresses)" if flags == [_HOST_NETWORK] else ""
    return f"has not registered runsc {which}{why} (dockerd's 'runtimes')"


def facts(client: Any, host: Host, sandbox: GvisorSandbox, pid: int) -> dict[str, str]:
    """Return gVisor's version and platform, and how the process of a container's sandbox (``pid``) serves it."""
    about = _runtimes(client)[runtime(client, host, sandbox)]
    platform = dict(map(_flag, _arguments(about))).get("platform", _PLATFORM)
    told = {
        "runtime": f"runsc {version(str(about['path']))}, platform {platform}",
        "kernel": "gVisor's own, in user space",
    }
    with contextlib.suppress(OSError):
        told |= in_force(host.read(f"/proc/{pid}/cmdline").decode(errors="replace").split("\0"))
    return told


def readiness() -> Readiness:
    """Return whether gVisor is installed."""
    if shutil.which(PROGRAM) is None:
        return Readiness(False, "runsc, gVisor's runtime, is not installed", f"{INSTALL} (Go 1.21 or later)")
    return Readiness(True, f"runsc {version(str(shutil.which(PROGRAM)))}")


@functools.cache
def version(path: str) -> str:
    """Return the version that a program prints, or the version of its Go module if ``go install`` built it."""
    printed_version = re.search(r"version (\S+)", output((path, "--version")) or "")
    if printed_version and printed_version[1] != "VERSION_MISSING":
        return printed_version[1]
    try:
        with Path(path).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as program:
            module_version = _MODULE.search(program)
            return module_version[1].decode() if module_version else "of unknown version"
    except (OSError, ValueError):
        return "of unknown version"


def listening_outside(host: Host, pid: int) -> Callable[..., bool]:
    """Read ``Site.listening`` of a sandbox on its host's network, whose own tables do not have its sockets."""

    def bound(transport: Transport) -> set[int]:
        bound_ports: set[int] = set()
        for table in tables_of(transport):
            with contextlib.suppress(OSError):
                bound_ports |= bound_in(transport, host.read(f"/proc/{pid}/net/{table}").decode())
        return bound_ports

    def listening(ports: tuple[tuple[Transport, int], ...], within_s: float = 0.0) -> bool:
        deadline = time.monotonic() + within_s
        while not (all_listening := all(port in bound(transport) for transport, port in ports)):
            if time.monotonic() >= deadline:
                break
            time.sleep(_LOOK_S)
        return all_listening

    return listening


def _runtimes(client: Any) -> dict[str, Any]:
    return dict(client.info().get("Runtimes") or {})


def _arguments(about: dict[str, Any]) -> list[str]:
    return about.get("runtimeArgs") or []
