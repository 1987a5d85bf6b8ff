"""User-mode Linux: its installed kernel, and the argument list of a guest. The kernel is a program of its host."""

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from weighbridge import build_once
from weighbridge.errors import Unavailable
from weighbridge.features.guests.kernel import Kernel, order_of
from weighbridge.features.guests.network import Tap
from weighbridge.features.guests.words import words
from weighbridge.linux import static_c
from weighbridge.linux.memory_room import mib
from weighbridge.linux.packages import install_here
from weighbridge.linux.process import output, which
from weighbridge.model.plugin import Readiness

PROGRAM = "linux.uml"
MODULES = Path("/usr/lib/uml/modules")
"""The folder with the kernel's modules, by its release."""
DRIVERS = ("udp_diag", "overlay")
"""Modules that the guest can need; everything else is built in."""
MEMORY_FOLDER = Path("/dev/shm")  # noqa: S108 - its file there has no name
"""The folder of the guest's memory, an unnamed file: on a disk, its pages would be written to the disk."""
HOSTFS = "hostfs"
"""The file system with which the guest reads a folder of its host."""
_PORT = "/dev/ttyS0"
_KIND, _LABEL = "uml", "the library of user-mode Linux"
_SOURCE = Path(__file__).parent / "source"
_SHARED = ("-shared", "-fPIC", "-O2", "-s", "-Wall", "-Wextra")


@dataclass(frozen=True, slots=True)
class UmlMachine:
    """A guest of user-mode Linux, with one processor."""

    name: str
    """The name of the run's mounts in the guest."""
    site: str
    """The name of the folder in `MEMORY_FOLDER` for its process number and its control socket."""
    ramdisk: Path
    library: Path
    """The library that completes the calls with which its kernel traces the guest's processes."""
    memory: int
    """Bytes of its RAM."""
    root: Path
    """The image of a disk with its root folder, or the root folder itself."""
    of_folder: bool = False
    """Whether ``root`` is a folder of the host."""
    layered: str = ""
    """A folder of the root to which programs can write, in memory."""
    data: Path | None = None
    """The image of its data disk."""
    synced: bool = True
    """Whether each write to the data disk reaches the host's disk before it is acknowledged (O_SYNC)."""
    network: Tap | None = None
    open_files: int = 1024
    window: ClassVar[int] = 3072
    """Bytes on the way to the launcher. The kernel stops reading its port for ever once 4,000 wait in the guest."""
    vsock: ClassVar[None] = None

    def argv(self) -> tuple[str, ...]:
        """Return the argument list. Its stdin and stdout are the launcher's stream, its stderr is the console."""
        root = f"hostfs={self.root}" if self.of_folder else f"ubd0rd={self.root}"
        return (
            "env", f"TMPDIR={MEMORY_FOLDER}", f"LD_PRELOAD={self.library}", PROGRAM,
            f"mem={self.memory >> 20}M", f"initrd={self.ramdisk}", f"umid={self.site}", f"uml_dir={MEMORY_FOLDER}",
            "con0=null,fd:2", "con=null", "ssl0=fd:0,fd:1", "ssl=null",
            root, *self._data(), *self._network(),
            "quiet", "panic=-1", "noreboot", "--", *self._init(),
        )  # fmt: skip

    def sealed(self, *, as_root: bool) -> tuple[str, ...]:
        """Return the launcher's options that make the host read-only for the kernel, except its data disk.

        A guest's root can mount any folder of the host that its kernel sees, because hostfs is built in.
        """
        data = () if self.data is None else ("--data", str(self.data))
        return (*(() if as_root else ("--user", "self")), "--sealed", "--name", self.name, *data)

    def modules(self) -> tuple[str, ...]:
        """Return the modules that the guest loads."""
        return DRIVERS if self.layered else DRIVERS[:1]

    def _data(self) -> tuple[str, ...]:
        if self.data is None:
            return ()
        return (f"ubd1{'s' if self.synced else ''}d={self.data}",)

    def _network(self) -> tuple[str, ...]:
        if self.network is None:
            return ()
        tap = self.network
        return (f"vec0:transport=tap,ifname={tap.name},mac={tap.hardware},mtu={tap.mtu},depth=128,gro=1",)

    def _init(self) -> tuple[str, ...]:
        disks = (HOSTFS if self.of_folder else "/dev/ubda", *(() if self.data is None else ("/dev/ubdb",)))
        layer = ("--layer", self.layered) if self.layered else ()
        told = words(self.name, self.modules(), disks, self.network, self.open_files)
        return (*told, "--serial", _PORT, "--taken", *layer)


def installed() -> Kernel:
    """Return the installed kernel. Raises Unavailable if its modules are missing."""
    program = which(PROGRAM)
    if program is None:
        raise Unavailable(f"{PROGRAM} is not installed: {install_here([PROGRAM])}")
    release = output((program, "--version"))
    if not release:
        raise Unavailable(f"{PROGRAM} does not report its version: install it again")
    folder = MODULES / release
    try:
        dependencies = (folder / "modules.dep").read_text()
    except OSError as error:
        raise Unavailable(f"{PROGRAM} {release} has no modules in {folder} ({error.strerror})") from error
    files = modules_of(dependencies, folder)
    # the RAM disk depends on this version
    contents = [Path(program), *(path for paths in files.values() for path in paths)]
    version = hashlib.sha256(b"".join(path.read_bytes() for path in contents)).hexdigest()[:16]
    return Kernel(release, version, Path(program), files)


def modules_of(dependencies: str, folder: Path) -> Mapping[str, tuple[Path, ...]]:
    """Return the files of each of `DRIVERS`, from the text of modules.dep; a built-in one has none."""
    return {driver: tuple(folder / file for file in order_of(dependencies, driver)) for driver in DRIVERS}


def library(cache: Path, say: Callable[[str], None]) -> Path:
    """Return the library for `UmlMachine.library`, built if needed. Raises Unavailable, UserlandError, DiskFull."""
    file = cache / _KIND / build_once.key_of_folder(_SOURCE) / "preload.so"

    def make(work: Path) -> None:
        sources = [str(path) for path in sorted(_SOURCE.glob("*.c"))]
        static_c.compile_program(_LABEL, _SHARED, sources, work / file.name)

    return build_once.ensure_file(file, _LABEL, say, make)


def without_room(memory: int, guests: int, folder: Path = MEMORY_FOLDER) -> Readiness | None:
    """Return why the memory of guests does not fit into the memory folder, or cannot have programs; None if it can.

    The kernel ends a guest that touches a page for which the folder has no room.
    """
    try:
        status = os.statvfs(folder)
    except OSError as error:
        return Readiness(False, f"{folder} cannot be used ({error.strerror})", f"mount a tmpfs on {folder}")
    if status.f_flag & os.ST_NOEXEC:
        return Readiness(False, f"{folder} is mounted noexec", f"mount -o remount,exec {folder}")
    free, needed = status.f_bavail * status.f_frsize, memory * guests
    if needed > free:
        size = -(-(needed - free + status.f_blocks * status.f_frsize) // 2**20)
        detail = f"the guests' memory of {mib(needed)} does not fit into {folder} ({mib(free)} free)"
        return Readiness(False, detail, f"mount -o remount,size={size}M {folder}")
    return None
