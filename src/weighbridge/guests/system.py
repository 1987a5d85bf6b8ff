"""The system of guests that are hosts: a small Debian with all modules, an engine and Xen's tools. Built once.

It has no init system: the first process of every guest mounts it and starts one program of it.
"""

import gzip
import hashlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from weighbridge import build_once
from weighbridge.errors import Unavailable, UserlandError
from weighbridge.guests import disk, kernel
from weighbridge.guests.kernel import Kernel
from weighbridge.userland.commands import must

PROGRAM = "/usr/bin/python3"
"""What is started of it, with `AGENT` as the text of its program."""
AGENT = "/usr/lib/weighbridge/boot.py"
PACKAGES = (
    "docker.io", "ethtool", "iproute2", "iptables", "kmod", "mount", "nfs-common", "nfs-kernel-server", "procps",
    "python3", "rpcbind", "util-linux", "xen-utils-4.17",
)  # fmt: skip
_HYPERVISOR = "xen-hypervisor-4.17-amd64"
_KIND = "systems"
_DISK, _XEN = "system.ext4", "xen"
_BUILDER = 1
_FREE = 2 * 2**30
"""Bytes that its disk has left: sparse, and what is written ends with the guest."""
_LEFT_OUT = ("drivers/gpu", "drivers/media", "drivers/iio", "drivers/net/wireless", "drivers/infiniband", "sound")
"""Modules for which a guest has no hardware: two thirds of them all."""
_WITHOUT = ("doc", "man", "locale", "info")


@dataclass(frozen=True, slots=True)
class System:
    """``disk`` is its root file system, which QEMU opens so that nothing is written to it; ``xen`` the hypervisor."""

    kernel: Kernel
    disk: Path
    xen: Path


def cannot_build(cache: Path, boot: str) -> tuple[str, str] | None:
    """Why it cannot be built, where it is not cached yet, and what helps."""
    return None if _cached(cache / _KIND / _key(boot)) is not None else kernel.cannot_build(cache)


def ensure(cache: Path, boot: str, say: Callable[[str], None]) -> System:
    """The system, built if need be; it has ``boot`` at `AGENT`. Raises Unavailable, UserlandError, DiskFull."""
    key = _key(boot)

    def make(work: Path) -> None:
        if os.geteuid() != 0:
            raise Unavailable("only root may make a disk whose files belong to whom they belong in the system")
        _build(work, boot)

    return build_once.ensure(
        cache / _KIND, key, "the system of guest hosts (this takes some minutes)",
        lambda: _cached(cache / _KIND / key), lambda: cannot_build(cache, boot), say, make,
    )  # fmt: skip


def _key(boot: str) -> str:
    asked = f"{PACKAGES} {_HYPERVISOR} {kernel.PACKAGE} {kernel.SUITE} {kernel.DRIVERS} {_LEFT_OUT} {_BUILDER} {boot}"
    return hashlib.sha256(asked.encode()).hexdigest()[:16]


def _cached(folder: Path) -> System | None:
    made = kernel.kept_in(folder)
    return System(made, folder / _DISK, folder / _XEN) if made is not None else None


def _build(work: Path, boot: str) -> None:
    unpacked, root = work / "kernel", work / "root"
    release = kernel.unpack(unpacked, f"{kernel.PACKAGE},{_HYPERVISOR}", work)
    kernel.keep(work, unpacked, release)
    (work / _XEN).write_bytes(_hypervisor(unpacked))
    must(
        "mmdebstrap", "--variant=apt", f"--include={','.join(PACKAGES)}", "--aptopt=Apt::Install-Recommends false",
        *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in _WITHOUT),
        "--customize-hook=rm -rf $1/var/lib/apt/lists $1/var/cache/apt $1/etc/hostname $1/etc/resolv.conf",
        kernel.SUITE, str(root), env={"TMPDIR": str(work)},
    )  # fmt: skip
    modules = root / "lib/modules" / release
    shutil.copytree(unpacked / "lib/modules" / release, modules, symlinks=True)
    for name in _LEFT_OUT:
        shutil.rmtree(modules / "kernel" / name, ignore_errors=True)
    must("depmod", "-b", str(root), release)
    program = root / AGENT.lstrip("/")
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(boot)
    (root / "var/cache/weighbridge").mkdir(parents=True)
    disk.make_disk(work / _DISK, disk.size_of(root) + _FREE, root)
    for folder in (unpacked, root):
        shutil.rmtree(folder)


def _hypervisor(root: Path) -> bytes:
    """Xen without its compression, which QEMU does not boot."""
    found = sorted((root / "boot").glob("xen-*.gz"))
    if not found:
        raise UserlandError(f"{_HYPERVISOR} has no hypervisor")
    return gzip.decompress(found[0].read_bytes())
