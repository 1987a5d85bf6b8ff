"""gVisor as a runtime of Docker's containers: runsc, with which a kernel in user space serves their system calls."""

import contextlib
import functools
import mmap
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weighbridge.engines.client import client_from_environment
from weighbridge.errors import Unavailable
from weighbridge.linux.network import bound_in, tables_of
from weighbridge.linux.process import output
from weighbridge.model.command import Transport
from weighbridge.model.host import Host
from weighbridge.model.plugin import Readiness

if TYPE_CHECKING:
    from weighbridge.engines.docker import Engine

PROGRAM = "runsc"
VERSION = "v0.0.0-20260905035102-160fafc42237"
INSTALL = f"CGO_ENABLED=0 GOBIN=/usr/local/bin go install gvisor.dev/gvisor/runsc@{VERSION}"
LEAST_MEMORY = 24 * 2**20
"""Bytes in which a sandbox comes up, seen with VERSION: in 16 MiB it ends before it answers."""
_ON_HOST = "runsc-host"
_HOST_NETWORK = "--network=host"
"""Without it runsc takes the addresses of every interface of its network namespace: the host's, on its network."""
_MODULE = re.compile(rb"gvisor\.dev/gvisor\t(v[0-9][^\t\n]{1,60})[\t\n]")
_LOOK_S = 0.002
_STOP = "stop that engine: the run then starts one with gVisor"
_PLATFORM = "systrap"
"""Runsc's default: it catches system calls with seccomp, and needs no device."""


def registration(is_there: Callable[[str], bool] = lambda path: True) -> dict[str, Any]:
    """Return gVisor's entry in the daemon.json of an engine of ours; empty where it is not installed.

    ``is_there`` tells whether the host of the engine has a program at a path.
    """
    path = shutil.which(PROGRAM)
    if path is None or not is_there(path):
        return {}
    own = {"path": path, "runtimeArgs": [f"--platform={_PLATFORM}"]}
    on_host = {"path": path, "runtimeArgs": [f"--platform={_PLATFORM}", _HOST_NETWORK]}
    return {"runtimes": {PROGRAM: own, _ON_HOST: on_host}}


def runtime(engine: "Engine", network: str) -> str:
    """The name of the runtime in an engine for a container on this network. Unavailable where it has none."""
    if (name := _registered(engine.client, network)) is None:
        raise Unavailable(f"the Docker engine of host {engine.host.name} {_lacks(network)}: {_STOP}")
    return name


def refusal(network: str) -> Readiness | None:
    """Return why the engine that answers has no gVisor for this network; None where it has, or none answers."""
    if (client := client_from_environment()) is None:
        return None
    with contextlib.closing(client):
        if _registered(client, network) is not None:
            return None
    return Readiness(False, f"the running Docker engine {_lacks(network)}", _STOP)


def _registered(client: Any, network: str) -> str | None:
    """Return the name of a client's engine for a runsc that is made for this network; None where it has none."""
    for name, about in _runtimes(client).items():
        for_host_network = _HOST_NETWORK in _arguments(about)
        if Path(about.get("path") or "").name == PROGRAM and for_host_network == (network == "host"):
            return name
    return None


def _lacks(network: str) -> str:
    which = f"with {_HOST_NETWORK}, without which it would take over the host's addresses"
    return f"has not registered runsc {which if network == 'host' else 'without options'} (dockerd's 'runtimes')"


def facts(engine: "Engine", network: str) -> dict[str, str]:
    """Return gVisor's version and platform."""
    about = _runtimes(engine.client)[runtime(engine, network)]
    platform = [word.partition("=")[2] for word in _arguments(about) if word.startswith("--platform=")]
    return {
        "runtime": f"runsc {version(str(about['path']))}, platform {platform[-1] if platform else _PLATFORM}",
        "kernel": "gVisor's own, in user space",
    }


def readiness() -> Readiness:
    """Return whether gVisor is installed."""
    if shutil.which(PROGRAM) is None:
        return Readiness(False, "runsc, gVisor's runtime, is not installed", f"{INSTALL} (Go 1.21 or later)")
    return Readiness(True, f"runsc {version(str(shutil.which(PROGRAM)))}")


@functools.cache
def version(path: str) -> str:
    """Return the version that a program prints, else, of one that ``go install`` built, that of its Go module."""
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
    """``Site.listening`` for a sandbox on its host's network, whose own tables do not have its sockets.

    ``pid`` is the sandbox's, whose network namespace is the host's.
    """

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
