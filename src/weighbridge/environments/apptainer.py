"""Apptainer: the containers of most sites with Slurm, started by their user, without an engine or a daemon."""

import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from weighbridge.errors import EnvironmentLost, Unavailable
from weighbridge.hosts.chroot import ChrootSite, SitePaths, StartedProgram, started
from weighbridge.hosts.first_process import first_process
from weighbridge.launcher.within import within
from weighbridge.linux import user_namespaces
from weighbridge.linux.confinement import lacking, named, status_field
from weighbridge.linux.folders import mounted_at
from weighbridge.linux.memory_folders import MemoryFolders, memory_of
from weighbridge.linux.packages import install_here, install_on, missing_on
from weighbridge.linux.process import RUN_VARIABLE, run, which
from weighbridge.linux.remedies import as_root
from weighbridge.model.command import Command, Completed
from weighbridge.model.environment import Environment, EnvironmentOptions, Needs
from weighbridge.model.facts import APPARMOR, CAPABILITIES, NAMESPACES, NEW_PRIVILEGES
from weighbridge.model.host import Group, Host
from weighbridge.model.names import SafeName
from weighbridge.model.plugin import Readiness
from weighbridge.model.site import DATA, Site, SiteRequest
from weighbridge.userland.products import sif

LAUNCHER = "/run/weighbridge-launcher"
_NOT_MOUNTED = "home,tmp,cwd,hostfs,bind-paths"
"""The mounts from the machine that Apptainer makes by default and that a native site does not have."""
_IN_MEMORY = {"tmp": "/tmp", "run": "/run", "shm": "/dev/shm"}  # noqa: S108 - of the site
_MAKE_FOLDERS = """set -e
umask 077
mkdir "$1" "$2/tmp"
ln -s "$1" "$2/memory"
cd "$1"
mkdir -m 1777 tmp run shm
: > run/weighbridge-launcher
"""
"""It creates a link, because Apptainer mounts no path below /dev at another path in /dev."""
_SETTINGS = ("APPTAINER", "SINGULARITY")
"""The prefixes of the variables with which users configure Apptainer."""
_FUSE = Path("/dev/fuse")
_UNPACKED = "squashfs, unpacked by Apptainer"
_NAMES = """if [ -d "$1" ]; then cat "$1/cgroup.procs"; else cat "/proc/$1/task/$1/children"; fi | tr ' ' '\\n' |
while read -r pid; do cat "/proc/$pid/comm"; done 2>/dev/null"""
"""Prints the names of the processes in a control group, or of the children of a process."""
_TEMPORARY = "/tmp"  # noqa: S108 - below its own folder
_OF_THE_KERNEL = ("/proc", "/sys", "/dev")
_TRY_S = 30.0
_LEVEL = re.compile(r"^(?:FATAL|ERROR)\s*:\s*")
_TRIED_PROGRAM = ("/usr", "/bin", "/lib", "/lib64")
_TRIED_FOLDERS = ("root/dev", "root/proc", "root/sys", "root/tmp", "tmp")
_PREPARE_TRIAL = f"""set -e
own=$(mktemp -d)
cd "$own"
mkdir -p "$@"
echo "$own"
for path in {" ".join(_TRIED_PROGRAM)}; do if [ -e "$path" ]; then echo "$path"; fi; done
"""


class ApptainerOptions(EnvironmentOptions):
    """Without ``user_namespace`` Apptainer uses root's rights, its setuid program's rights, or none."""

    contain: Annotated[bool, Field(description="Separate processes, IPC and /dev (--containall)")] = False
    image: Annotated[
        Literal["squashfs", "folder"], Field(description="A SIF file, which Apptainer mounts, or an unpacked folder")
    ] = "squashfs"
    user_namespace: Annotated[
        bool,
        Field(description="Use a user namespace even if Apptainer runs as root or has a setuid program (--userns)"),
    ] = False


class Apptainer(Environment):
    """Apptainer on the host's network, with the same root filesystem as every other environment."""

    kind = "apptainer"
    summary = "Apptainer on the host's network, with a mounted or unpacked image"
    options = ApptainerOptions
    limited_by_host = True
    mounts = frozenset({"folder"})
    storage = "directory"
    programs: ClassVar = ("apptainer",)
    host_programs: ClassVar = programs
    cleanup: ClassVar = (MemoryFolders(),)

    def confinement(self, options: Any) -> Mapping[str, str]:
        """Return the facts that Apptainer sets by default, which has no filter of system calls."""
        return dict.fromkeys((CAPABILITIES, NEW_PRIVILEGES, APPARMOR, NAMESPACES), "")

    def route_to_supporting_services(self, options: Any) -> str:
        """Return the route to the study's supporting services: as natively."""
        return "host to bridge"

    def ready(self, options: Any | None = None, needs: Needs | None = None) -> Readiness:
        """Return whether a trial container starts, of a folder with this machine's programs."""
        if which("apptainer") is None:
            return Readiness(False, "the program 'apptainer' is not installed", install_here(self.programs))
        try:
            completed = _tried(options or ApptainerOptions())
        except Unavailable as missing:
            return Readiness(False, str(missing), install_here(self.programs))
        if completed.returncode != 0:
            refusal = user_namespaces.refusal("apptainer") or (
                f"apptainer: {_complaint(completed)}",
                "run outside a container" if os.geteuid() == 0 else "run as root, outside a container",
            )
            return Readiness(False, *refusal)
        by_fuse = os.geteuid() != 0 or (options is not None and options.user_namespace)
        if by_fuse and not os.access(_FUSE, os.R_OK | os.W_OK):
            why = f"this user is not allowed to open {_FUSE}, which Apptainer needs to mount images"
            if options is None or options.image == "folder":
                return Readiness(True, why, "", "" if options else "only image: folder")
            return Readiness(False, why, f"use image: folder, or {as_root(f'chmod 666 {_FUSE}')}")
        return Readiness(True)

    def ready_on(self, options: Any, host: Host) -> Readiness:
        completed = _tried_on(options, host)
        if completed.returncode != 0:
            return Readiness(False, f"apptainer: {_complaint(completed)}")
        if options.image == "squashfs" and (options.user_namespace or not host.root):
            openable = host.run(Command(("sh", "-c", f"[ -r {_FUSE} ] && [ -w {_FUSE} ]"), 20))
            if openable.returncode:
                return Readiness(False, f"this user is not allowed to open {_FUSE}: use 'image: folder'")
        return Readiness(True)

    @contextmanager
    def open(self, options: Any, request: SiteRequest) -> Iterator[Site]:
        if request.userland.process.uid is not None:
            user = request.userland.process.user("root")
            why = f"an Apptainer container has only one user, so it cannot run an image's programs as {user}"
            raise Unavailable(f"{request.title}: {why}. Use docker or podman")
        host = request.host
        if why := missing_on(host, self.host_programs):
            raise Unavailable(f"{request.title}: {why}. Try: {install_on(host, self.programs)}")
        with ExitStack() as stack:
            own = stack.enter_context(_own_folder(request))
            image = str(host.userland(request.userland))
            if options.image == "squashfs":
                built = sif.ensure(request.userland, request.run.cache, request.run.say, _builder)
                image = host.program(built)

            def argv(parts: SitePaths) -> tuple[str, ...]:
                words = command(options, request, parts, own, image, _status(request))
                return within(host, request.run, parts.group, *words)

            running = stack.enter_context(started(request, argv))
            if running.group:
                running.group.exempt_file_servers()  # squashfuse
            site = ApptainerSite(options, request, running, own)
            stack.callback(site.thaw)  # frozen, its launcher would not hear that it is to end
            yield site


class ApptainerSite(ChrootSite):
    """A running container. Implements ``Site``; contained, its first process is Apptainer's own."""

    def __init__(self, options: ApptainerOptions, request: SiteRequest, started: StartedProgram, own: str) -> None:
        super().__init__(request, started, own_network=False)
        self._options, self._own = options, own
        self._first_of: Group | int = started.group or started.process.pid
        self._pid: int | None = None

    @property
    def pid(self) -> int:
        """Return the host's number of a process of the site that stays, looked up at first use."""
        if not self._options.contain:
            return super().pid
        if self._pid is None:
            self._pid = first_process(self.host, self._first_of, self.title)
        return self._pid

    def facts(self) -> Mapping[str, str]:
        """Return the facts of a chroot, with Apptainer's version and rights, the image, and the mounts."""
        mounts = mounted_at(self.read("/proc/self/mountinfo").decode(errors="replace"))
        root = [each.filesystem for each in mounts if each.at == "/"]
        facts = {
            **super().facts(),
            "network": "host",
            "apptainer": version(self.host),
            "rights": self._rights(),
            "image": self._image(),
            "file system of /": root[-1] if root else "unknown",
            "mounted from outside": " ".join(from_outside([each.at for each in mounts])) or "nothing",
        }
        if facts["image"] == _UNPACKED:
            facts["not honoured: image"] = "Apptainer could not mount it; mounting needs squashfuse"
        return facts

    def _rights(self) -> str:
        """Return the rights with which Apptainer created the container."""
        file = "/proc/self/uid_map"
        hosts = self.host.run(Command(("cat", file), 20)).text
        if self.read(file).decode(errors="replace").split() != hosts.split():
            return "user namespace"
        return "root" if self.host.root else "setuid program"

    def _image(self) -> str:
        """Return the kind of image of the root. The mounts do not show it, because Apptainer adds a layer."""
        if self._options.image == "folder":
            return "folder"
        if self.host.run(Command(("ls", self._own + _TEMPORARY), 20)).text.strip():
            return _UNPACKED
        if self._rights() == "user namespace":  # the kernel mounts no squashfs in one
            return "squashfs, mounted by squashfuse"
        where = str(self._first_of.procs[0].parent if not isinstance(self._first_of, int) else self._first_of)
        names = self.host.run(Command(("sh", "-c", _NAMES, "names", where), 20)).text
        return f"squashfs, mounted by {'squashfuse' if 'squashfuse' in names else 'the kernel'}"


def version(host: Host) -> str:
    """Return the version of a host's Apptainer, for example ``1.4.5``, or ``unknown``."""
    return host.run(Command(("apptainer", "--version"), 20)).text.strip().rpartition(" ")[2] or "unknown"


def from_outside(mounts: list[str]) -> list[str]:
    """Return where something of the machine is, or something of Apptainer's making, that no native site has.

    These are all mount points except the kernel's and those that every site has.
    """
    ours = {"/", LAUNCHER, DATA, *_IN_MEMORY.values()}
    return sorted(
        {at for at in mounts if at not in ours and not any(f"{at}/".startswith(f"{top}/") for top in _OF_THE_KERNEL)}
    )


def command(
    options: ApptainerOptions,
    request: SiteRequest,
    parts: SitePaths,
    own: str,
    image: str,
    status: str,
) -> tuple[str, ...]:
    """Return the argument list (apptainer-exec(1)) that starts the launcher in a container.

    Nothing of the user's is mounted. /tmp and /run are in memory as everywhere, and so is /dev/shm, which Apptainer
    creates itself only if it is contained.
    """
    in_memory = [name for name in _IN_MEMORY if name != "shm" or not options.contain]
    binds = [
        *(_bind(f"{own}/memory/{name}", _IN_MEMORY[name]) for name in in_memory),
        _bind(parts.launcher, LAUNCHER, read_only=True),
        *([_bind(parts.data, DATA)] if parts.data else []),
        *([_bind(parts.hosts, "/etc/hosts", read_only=True)] if parts.hosts else []),
    ]
    return (
        *_apptainer(own),
        *exec_words(options, status),
        *("--env", f"{RUN_VARIABLE}={request.run.id}"),
        *(word for bind in binds for word in ("--mount", bind)),
        image,
        LAUNCHER,
    )


def exec_words(options: ApptainerOptions, status: str) -> tuple[str, ...]:
    """Return the command that starts a container, and its options. ``status`` is the /proc/PID/status of who does.

    Root's Apptainer asks for all capabilities, and starts nothing where root has not all of them.
    """
    has = status_field(status, "CapPrm")
    lacks = lacking(has) if named(has) != "none" else []  # a user's asks for none
    dropped = ",".join(f"CAP_{name.upper()}" for name in lacks)
    return (
        "exec",
        *(("--userns",) if options.user_namespace else ()),
        *(("--containall",) if options.contain else ()),
        *(("--drop-caps", dropped) if dropped and not options.user_namespace else ()),
        *("--no-mount", _NOT_MOUNTED),
        *("--pwd", "/"),
    )


def _status(request: SiteRequest) -> str:
    """Return the /proc/PID/status of a process of the host, asked once."""
    host = request.host

    def asked() -> str:
        return host.run(Command(("cat", "/proc/self/status"), 20)).text

    return request.run.share(f"status {host.name}", lambda: nullcontext(asked()))


def _apptainer(own: str) -> tuple[str, ...]:
    """Return the beginning of its command line, without the user's settings, with a folder for its own files."""
    settings = [word for name in sorted(os.environ) if name.startswith(_SETTINGS) for word in ("-u", name)]
    places = {"CONFIGDIR": "config", "CACHEDIR": "cache", "TMPDIR": "tmp"}
    return (
        "env",
        *settings,
        *(f"APPTAINER_{name}={own}/{folder}" for name, folder in places.items()),
        "apptainer",
        "--quiet",
        "--nocolor",
    )


def _builder(own: Path) -> tuple[str, ...]:
    (own / "tmp").mkdir()
    return _apptainer(str(own))


def _bind(source: str, destination: str, *, read_only: bool = False) -> str:
    """Return the value of --mount, which is a line of CSV."""
    quoted = '"{}"'.format(f"source={source}".replace('"', '""')) if {*source} & {*',"'} else f"source={source}"
    return f"type=bind,{quoted},destination={destination}{',ro' if read_only else ''}"


@contextmanager
def _own_folder(request: SiteRequest) -> Iterator[str]:
    """Return a folder for a site on its host's disk, with a link to those that it has in memory.

    These are plain folders, because only root can mount a tmpfs.
    """
    host, memory = request.host, str(memory_of(request.run.id, request.name))
    with host.data_folder(request.run, SafeName(f"{request.name}-apptainer")) as own:
        made = host.run(Command(("sh", "-c", _MAKE_FOLDERS, "make", memory, str(own)), 20))
        try:
            if made.returncode != 0:
                raise Unavailable(f"{request.title}: its folders cannot be created: {made.last_words}")
            yield str(own)
        finally:
            with suppress(EnvironmentLost, Unavailable):
                host.run(Command(("rm", "-rf", memory), 60))


def _tried(options: ApptainerOptions) -> Completed:
    """Run a trial container from a folder in which this machine's programs are mounted."""
    status = Path("/proc/self/status").read_text()
    with tempfile.TemporaryDirectory(prefix="weighbridge-") as folder:
        for name in _TRIED_FOLDERS:
            (Path(folder) / name).mkdir(parents=True)
        paths = [path for path in _TRIED_PROGRAM if Path(path).exists()]
        return run(Command(_trial(options, folder, status, paths), _TRY_S))


def _tried_on(options: ApptainerOptions, host: Host) -> Completed:
    """Run the trial container of `_tried` on an open host of another machine."""
    prepared = host.run(Command(("sh", "-c", _PREPARE_TRIAL, "prepare", *_TRIED_FOLDERS), 20))
    if prepared.returncode != 0:
        return prepared
    folder, *paths = prepared.text.split()
    try:
        status = host.run(Command(("cat", "/proc/self/status"), 20)).text
        return host.run(Command(_trial(options, folder, status, paths), _TRY_S))
    finally:
        host.run(Command(("rm", "-rf", folder), 20))


def _trial(options: ApptainerOptions, folder: str, status: str, paths: Sequence[str]) -> tuple[str, ...]:
    binds = [word for path in paths for word in ("--mount", _bind(path, path))]
    return (*_apptainer(folder), *exec_words(options, status), *binds, f"{folder}/root", "/bin/sh", "-c", ":")


def _complaint(completed: Completed) -> str:
    """Return the last line that Apptainer printed, without its level: ``FATAL:   ...``."""
    return _LEVEL.sub("", completed.last_words)


PLUGIN = Apptainer()
