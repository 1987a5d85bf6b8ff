"""OCI runtimes of container engines: which ones an engine knows, their versions, and the one that made a container.

A name is looked up in the engine's own table. An engine that a run starts registers the installed `KNOWN` runtimes,
and those that the study names by path. gVisor's options and registration are in `weighbridge.engines.gvisor`.
"""

import contextlib
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from weighbridge.engines import gvisor
from weighbridge.engines.client import client_from_environment
from weighbridge.errors import Unavailable
from weighbridge.linux import virtualisation
from weighbridge.linux.confinement import status_field
from weighbridge.linux.folders import changeable_by_others
from weighbridge.linux.packages import install_here
from weighbridge.linux.process import output, which
from weighbridge.model.command import Command
from weighbridge.model.facts import RUNTIME, RUNTIME_PROGRAM, RUNTIME_SUPERVISOR
from weighbridge.model.host import Host
from weighbridge.model.isolation import Layer, Layers
from weighbridge.model.options import External
from weighbridge.model.plugin import Readiness
from weighbridge.model.validation import shown

DEFAULT = "default"
GVISOR = gvisor.PROGRAM
KNOWN: Mapping[str, str] = {
    "crun": "",
    "youki": "cargo install youki --no-default-features --features v1,v2,seccomp --root /usr/local "
    "(with the headers of libseccomp)",
    "krun": "install crun with libkrun",
    "sysbox-runc": "install Sysbox as its documentation says",
}
"""Runtimes that engines of ours register if they are in PATH, with the command that installs what no package has.

A study can name no other program without its path, because an engine starts it as root.
"""
STOCK = "runc"
"""The runtime that every engine has."""
SHIMS = "io.containerd."
"""The beginning of names that containerd resolves itself: ``io.containerd.kata.v2`` is containerd-shim-kata-v2."""
_NAMES_SHIMS = 23
"""The first major version of Docker that accepts the name of a shim without an entry in its table."""
_VIRTUAL = ("kata", "krun")
_NUMBER = re.compile(r"(?:version:?|^\S+\s*:?)\s+v?(\d\S*)")
_WORD = re.compile(r"[a-z][a-z0-9_-]{0,40}")
_VERSION_S = 30.0

_PATTERN = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}|(/\.?[A-Za-z0-9_][A-Za-z0-9_.+@-]{0,99}){1,20}"


def _name_or_path(wanted: str) -> str:
    if re.fullmatch(_PATTERN, wanted) is None:
        other = "neither a name (crun) nor an absolute path without '..' (/opt/youki/bin/youki)"
        raise ValueError(f"{shown(wanted)} is {other}")
    return wanted


RuntimeName = Annotated[
    str,
    AfterValidator(_name_or_path),
    Field(examples=["crun", "/opt/youki/bin/youki"], json_schema_extra={"pattern": f"^({_PATTERN})$"}),
    External.RUNTIME,
]
"""A name that the engine knows, or the absolute path of a program."""


@dataclass(frozen=True, slots=True)
class RegisteredRuntime:
    """An entry in an engine's table. ``path`` is "" for a runtime that is only a shim of containerd."""

    name: str
    path: str = ""
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RuntimeVersion:
    """The name and the version that a runtime's program prints; "" if it prints none."""

    program: str
    number: str

    def __str__(self) -> str:
        return " ".join(filter(None, (self.program, self.number))) or "of unknown version"


UNKNOWN = RuntimeVersion("", "")


@dataclass(frozen=True, slots=True)
class Supervisor:
    """The parent of a container's first process: containerd's shim, or conmon. "" is unknown.

    ``runtime`` is the program with which it created the container.
    """

    name: str = ""
    runtime: str = ""


def is_path(wanted: str) -> bool:
    """Return whether a study names a runtime by the path of its program."""
    return wanted.startswith("/")


def has_own_kernel(wanted: str) -> bool:
    """Return whether the containers of a runtime have a kernel of their own, as far as its name says."""
    return wanted == GVISOR or is_virtual(wanted)


def is_virtual(wanted: str) -> bool:
    """Return whether a runtime starts a virtual machine for each container, as far as its name says."""
    return any(word in Path(wanted).name for word in _VIRTUAL)


def layers(wanted: str) -> Layers:
    """Return the hypervisors that a runtime adds around its containers."""
    return (Layer(f"virtual machine of {Path(wanted).name}"),) if is_virtual(wanted) else ()


def unverified(wanted: str) -> str:
    """Return the part of a runtime that was never tested on real hardware, or ""."""
    return "no container in a virtual machine of Kata Containers or krun was started" if is_virtual(wanted) else ""


def is_gvisor(path: str) -> bool:
    """Return whether the program at a path is gVisor, as far as its name says."""
    return Path(path).name == GVISOR


def gvisor_by_name(wanted: str) -> str:
    """Return why gVisor must have its own name: on the host's network it would take over the host's addresses."""
    return f"runtime: {wanted} is gVisor, which needs options of its own. Write 'runtime: {GVISOR}'"


def version_in(text: str) -> RuntimeVersion:
    """Return the name and the version in the output of ``RUNTIME --version``."""
    program, number = _WORD.match(text.strip()), _NUMBER.search(text.strip())
    return RuntimeVersion(program[0] if program else "", number[1] if number else "")


def version_here(path: str) -> RuntimeVersion:
    """Return the version of a runtime of this machine."""
    return version_in(output((path, "--version"), deadline_s=_VERSION_S) or "")


# -- an engine's table ------------------------------------------------------------------------------


def registered(info: Mapping[str, Any]) -> dict[str, RegisteredRuntime]:
    """Return the runtimes in the answer to ``docker info``, by name, without aliases of the stock runtime's shim.

    A runtime whose entry is incomplete has no path.
    """
    table = info.get("Runtimes")
    runtimes = {}
    for name, entry in table.items() if isinstance(table, Mapping) else ():
        about = entry if isinstance(entry, Mapping) else {}
        path, arguments = about.get("path"), about.get("runtimeArgs")
        words = tuple(map(str, arguments)) if isinstance(arguments, Sequence) else ()
        runtimes[str(name)] = RegisteredRuntime(str(name), path if isinstance(path, str) else "", words)
    return {name: each for name, each in runtimes.items() if not (name.startswith(SHIMS) and each.path)}


def in_engine(info: Mapping[str, Any], wanted: str) -> RegisteredRuntime | None:
    """Return the entry of an engine for a runtime that a study names, or None if it has none."""
    table = registered(info)
    if is_path(wanted):
        return next((each for each in table.values() if each.path == wanted and not each.arguments), None)
    if wanted in table:
        return table[wanted]
    major = re.match(r"\d+", str(info.get("ServerVersion") or ""))
    if wanted.startswith(SHIMS) and major and int(major[0]) >= _NAMES_SHIMS:
        return RegisteredRuntime(wanted)
    return None


def not_registered(wanted: str) -> tuple[str, str]:
    """Return why an engine cannot use a runtime, and how to register it."""
    entry = f"{Path(wanted).name}={wanted if is_path(wanted) else 'PATH'}"
    return f"has not registered the runtime {wanted}", f"register it (dockerd --add-runtime {entry})"


def registration(
    by_path: Sequence[str] = (), is_there: Callable[[str], bool] = lambda path: True
) -> dict[str, dict[str, str]]:
    """Return the entries in the daemon.json of a private engine for the installed runtimes and for those by path.

    ``is_there`` returns whether the engine's host has a program at a path.
    """
    found = {name: path for name in KNOWN if (path := which(name)) is not None}
    installed = {name: path for name, path in found.items() if not any(faults(Path(path)))}
    named = {f"{Path(path).name}-{hashlib.sha256(path.encode()).hexdigest()[:8]}": path for path in by_path}
    return {name: {"path": path} for name, path in {**installed, **named}.items() if is_there(path)}


# -- before a run -----------------------------------------------------------------------------------


def lacking_hardware(wanted: str, device: Path = Path(virtualisation.DEVICE)) -> Readiness | None:
    """Return why this machine cannot run containers of a runtime, or None."""
    if not is_virtual(wanted) or device.exists():
        return None
    why = f"runtime: {wanted} starts a virtual machine for each container, but {device} is missing"
    return Readiness(False, why, virtualisation.ELSEWHERE)


def of_running_engine(wanted: str) -> Readiness | None:
    """Return whether the engine that answers has a runtime; None if none answers."""
    if (client := client_from_environment()) is None:
        return None
    with contextlib.closing(client):
        if in_engine(client.info(), wanted) is not None:
            return Readiness(True)
    why, remedy = not_registered(wanted)
    remedy += ", or stop that engine, so that the run starts one with it"
    return Readiness(False, f"the running Docker engine {why}", remedy)


def of_engine_to_start(wanted: str) -> Readiness:
    """Return whether an engine that the run starts can have a runtime. Starts no program of the study."""
    if is_path(wanted):
        fault = next(faults(Path(wanted)), None)
        return Readiness(True) if fault is None else Readiness(False, f"runtime: {fault[0]}", fault[1])
    if wanted == STOCK:
        return Readiness(True)
    shim = _shim_of(wanted)
    if not shim and wanted not in KNOWN:
        why = f"runtime: the location of {wanted} is unknown, because no engine that knows it is running"
        return Readiness(False, why, "write the absolute path of its program")
    if (path := which(shim or wanted)) is not None:
        return of_engine_to_start(path)
    if shim:
        return Readiness(False, f"runtime: {wanted} needs {shim}, which is not in PATH", f"install {shim}")
    remedy = install_here([wanted], {name: command for name, command in KNOWN.items() if command})
    return Readiness(False, f"the runtime {wanted} is not installed", remedy)


def _shim_of(wanted: str) -> str:
    """Return the program of a shim that a study names as containerd does, or ""."""
    name, _, version = wanted.removeprefix(SHIMS).rpartition(".")
    return f"containerd-shim-{name}-{version}" if wanted.startswith(SHIMS) and name else ""


def faults(program: Path) -> Iterator[tuple[str, str]]:
    """Yield why a runtime that a study names by path must not be started, and what helps."""
    try:
        if not program.is_file() or not os.access(program, os.X_OK):
            yield f"{program} is not an executable program", "write the absolute path of an OCI runtime"
            return
        yield from changeable_by_others(program)
    except OSError as error:
        yield f"{program} is not accessible ({error.strerror})", "check its permissions"


def known_here() -> str:
    """Return the runtimes of the engine that answers, with their versions, or of one that a run would start."""
    paths = [name for name in (STOCK, GVISOR, *KNOWN) if which(name)]
    if (client := client_from_environment()) is not None:
        with contextlib.closing(client):
            paths = [each.path or each.name for each in registered(client.info()).values()]
    return ", ".join(sorted({_versioned(path) for path in paths}))


def _versioned(path: str) -> str:
    found, name = which(path), Path(path).name
    if found and is_gvisor(path):
        return f"{name} {gvisor.version(found)}"
    version = version_here(found) if found else UNKNOWN
    return str(version) if version.program else name


# -- in a run ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChosenRuntime:
    """A runtime that a study names, in an engine. ``wanted`` is as the study names it."""

    wanted: str
    entry: RegisteredRuntime
    version: RuntimeVersion


def chosen(client: Any, host: Host, wanted: str, *, private: bool, environment: Sequence[str] = ()) -> ChosenRuntime:
    """Return a runtime of a host's engine. Raises Unavailable if it is not registered, or if it is gVisor.

    ``private`` says that the engine is ours, ``environment`` are the words that give a program the engine's PATH.
    """
    if (entry := in_engine(client.info(), wanted)) is None:
        if private:
            raise Unavailable(f"runtime: host {host.name} has no program {wanted}")
        why, remedy = not_registered(wanted)
        raise Unavailable(f"the Docker engine of host {host.name} {why}: {remedy}")
    version = UNKNOWN
    if entry.path:
        with contextlib.suppress(Unavailable):
            argv = (*environment, entry.path, "--version")
            version = version_in(host.run(Command(argv, _VERSION_S)).text)
    if is_gvisor(entry.path) or version.program == GVISOR:
        raise Unavailable(gvisor_by_name(wanted))
    return ChosenRuntime(wanted, entry, version)


def supervisor_of(read: Callable[[str], bytes], pid: int) -> Supervisor:
    """Return the process that supervises a container, by its first process's number on the host.

    containerd's shim for runc notes its runtime in its working directory. conmon has it among its arguments. What
    this user cannot read is unknown.
    """
    try:
        parent = int(status_field(read(f"/proc/{pid}/status").decode(errors="replace"), "PPid"))
        words = read(f"/proc/{parent}/cmdline").decode(errors="replace").split("\0")
    except (OSError, ValueError):
        return Supervisor()
    name = Path(words[0]).name
    if name == "conmon":
        return Supervisor(name, next((words[at + 1] for at in range(len(words) - 1) if words[at] == "-r"), ""))
    with contextlib.suppress(OSError):
        return Supervisor(name, read(f"/proc/{parent}/cwd/runtime").decode(errors="replace").strip())
    return Supervisor(name)


def verified_facts(runtime: ChosenRuntime, reported: str, supervisor: Supervisor) -> dict[str, str]:
    """Return the facts of the runtime that made a container. Raises Unavailable if it is another than the study's.

    ``reported`` is the runtime that ``inspect`` reports, or "". A runtime with arguments is started through a script
    of the engine, so its path is not compared.
    """
    wanted, entry, version = runtime.wanted, runtime.entry, runtime.version
    if not reported and not supervisor.runtime:
        raise Unavailable(f"runtime: {wanted} was requested, but the engine does not report which runtime is in use")
    if reported and Path(reported).name not in {Path(each).name for each in (entry.name, entry.path) if each}:
        raise Unavailable(f"runtime: {wanted} was requested, but the engine reports {reported}")
    created_by = Path(supervisor.runtime).name
    if entry.path and not entry.arguments and created_by not in ("", Path(entry.path).name):
        raise Unavailable(f"runtime: {wanted} was requested, but {supervisor.runtime} created the container")
    if wanted in (STOCK, *KNOWN) and version.program and version.program != _prints(wanted):
        raise Unavailable(f"runtime: {wanted} was requested, but {entry.path} is {version}")
    return facts_of(str(version) if version.program else entry.name, supervisor)


def _prints(wanted: str) -> str:
    """Return the name that a runtime's program prints. krun is a link to crun."""
    return "crun" if wanted == "krun" else wanted


def facts_of(runtime: str, supervisor: Supervisor) -> dict[str, str]:
    """Return the facts of a container's runtime, without unknown ones."""
    found = {RUNTIME: runtime, RUNTIME_PROGRAM: supervisor.runtime, RUNTIME_SUPERVISOR: supervisor.name}
    return {fact: value for fact, value in found.items() if value}
