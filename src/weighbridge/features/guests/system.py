"""The systems of guests that are hosts: small ones with all modules, and engines or hypervisors. Each is built once.

A system has no init system: the first process of every guest mounts it and starts one of its programs.
"""

import gzip
import hashlib
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from weighbridge import build_once
from weighbridge.errors import Unavailable, UserlandError
from weighbridge.features.guests import disk, kernel, sid
from weighbridge.features.guests.kernel import Kernel
from weighbridge.linux.deletion import OwnFolder, remove_tree
from weighbridge.userland import debian_archive
from weighbridge.userland.commands import must

Name = Literal["debian", "virtualbox"]
"""Debian 12 with Docker's engine, NFS and Xen's tools; Debian sid with VirtualBox and its modules."""
PROGRAM = "/usr/bin/python3"
"""The program of the system that is started, with the program text in `AGENT`."""
AGENT = "/usr/lib/weighbridge/boot.py"
PACKAGES = (
    "btrfs-progs", "docker.io", "e2fsprogs", "ethtool", "iproute2", "iptables", "kmod", "mount", "nfs-common",
    "nfs-kernel-server", "procps", "python3", "qemu-system-xen", "rpcbind", "util-linux", "xen-utils-4.17",
    "xfsprogs",
)  # fmt: skip
_HYPERVISOR = "xen-hypervisor-4.17-amd64"
_KIND = "systems"
_DISK, _XEN = "system.ext4", "xen"
_BUILDER = 1
_FREE = 2 * 2**30
"""Bytes of free space on its disk: sparse, and writes end with the guest."""
_LEFT_OUT = ("drivers/gpu", "drivers/media", "drivers/iio", "drivers/net/wireless", "drivers/infiniband", "sound")
"""Modules without hardware in guests: two thirds of all."""


@dataclass(frozen=True, slots=True)
class System:
    """A system; ``disk`` is its root filesystem, which QEMU does not write to, and ``xen`` the hypervisor."""

    kernel: Kernel
    disk: Path
    xen: Path


@dataclass(frozen=True, slots=True)
class _Recipe:
    """A recipe; ``make`` fills ``root`` in the given folder, and returns the release of its kernel."""

    inputs: str
    make: Callable[[Path], str]
    modules: tuple[str, ...] = ()


def cannot_build(cache: Path, boot: str, name: Name = "debian") -> tuple[str, str] | None:
    """Return why an uncached system cannot be built, and a remedy; None if it can."""
    return None if _cached(cache / _KIND / _key(boot, name)) is not None else kernel.cannot_build(cache)


def is_cached(cache: Path, boot: str, name: Name) -> bool:
    """Return whether a system needs no build."""
    return _cached(cache / _KIND / _key(boot, name)) is not None


def ensure(cache: Path, boot: str, say: Callable[[str], None], name: Name = "debian") -> System:
    """Return the system, built if needed, with ``boot`` at `AGENT`. Raises Unavailable, UserlandError, DiskFull."""
    key = _key(boot, name)

    def make(work: Path) -> None:
        if os.geteuid() != 0:
            raise Unavailable("only root can create a disk that keeps the file owners of the system")
        _build(work, boot, name)

    return build_once.ensure(
        cache / _KIND, key, "the guest hosts' system (some minutes)",
        lambda: _cached(cache / _KIND / key), lambda: cannot_build(cache, boot, name), say, make,
    )  # fmt: skip


def modules(name: Name) -> tuple[str, ...]:
    """Return the modules to load after such a system has booted."""
    return _RECIPES[name].modules


def _key(boot: str, name: Name) -> str:
    inputs = f"{_RECIPES[name].inputs} {kernel.DRIVERS} {_LEFT_OUT} {_BUILDER} {boot}"
    return hashlib.sha256(inputs.encode()).hexdigest()[:16]


def _cached(folder: Path) -> System | None:
    guest_kernel = kernel.kept_in(folder)
    return System(guest_kernel, folder / _DISK, folder / _XEN) if guest_kernel is not None else None


def _build(work: Path, boot: str, name: Name) -> None:
    root = work / "root"
    release = _RECIPES[name].make(work)
    _leave_out(work, release)
    must("depmod", "-b", str(root), release)
    program = root / AGENT.lstrip("/")
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(boot)
    (root / "var/cache/weighbridge").mkdir(parents=True)
    disk.make_disk(work / _DISK, disk.size_of(root) + _FREE, root)
    remove_tree(OwnFolder.of(work, "root"))


def _leave_out(work: Path, release: str) -> None:
    """Remove modules that no guest needs. The root's ``/lib`` is a link to ``usr/lib``, which is not followed."""
    for left_out in _LEFT_OUT:
        remove_tree(OwnFolder.of(work, "root", "usr", "lib", "modules", release, "kernel", *left_out.split("/")))


def _debian(work: Path) -> str:
    unpacked, root = work / "kernel", work / "root"
    release = kernel.unpack(unpacked, f"{kernel.PACKAGE},{_HYPERVISOR}", work)
    kernel.keep(work, unpacked, release)
    (work / _XEN).write_bytes(_hypervisor(unpacked))
    debian_archive.mmdebstrap(
        "--variant=apt", f"--include={','.join(PACKAGES)}", *debian_archive.LEAN, kernel.SUITE, str(root),
        env={"TMPDIR": str(work)},
    )  # fmt: skip
    shutil.copytree(unpacked / "lib/modules" / release, root / "lib/modules" / release, symlinks=True)
    remove_tree(OwnFolder.of(work, "kernel"))
    return release


def _hypervisor(root: Path) -> bytes:
    """Return Xen's image, decompressed, because QEMU does not boot a compressed one."""
    hypervisors = sorted((root / "boot").glob("xen-*.gz"))
    if not hypervisors:
        raise UserlandError(f"{_HYPERVISOR} has no hypervisor")
    return gzip.decompress(hypervisors[0].read_bytes())


_RECIPES: Mapping[Name, _Recipe] = {
    "debian": _Recipe(f"{PACKAGES} {_HYPERVISOR} {kernel.PACKAGE} {kernel.SUITE}", _debian),
    "virtualbox": _Recipe(sid.INPUTS, sid.host_of_virtualbox, sid.MODULES),
}
