"""This machine's own root folder in a container: bound into it, read-only.

Nothing is copied. The container's programs read the same files of the same file systems as the programs of a native
site, so that the comparison does not include the cost of a storage driver.
"""

import io
import os
import re
import stat
import tarfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

from weighbridge.engines.client import gives_other_ids
from weighbridge.engines.layers import executable
from weighbridge.errors import Unavailable
from weighbridge.linux.folders import Mounted, mount_table
from weighbridge.model.plugin import Readiness
from weighbridge.model.site import DATA, SITES_OWN
from weighbridge.model.userland import Userland

_ENGINES_FILES = ("/etc/hostname", "/etc/hosts", "/etc/resolv.conf")
"""The files that Docker replaces. They must exist, because the folder is read-only."""
_KERNELS = frozenset((
    "autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs",
    "efivarfs", "fusectl", "hugetlbfs", "mqueue", "nsfs", "proc", "pstore", "rpc_pipefs", "securityfs", "selinuxfs",
    "sysfs", "tracefs",
))  # fmt: skip
"""File systems without files of users."""
_ENGINES = re.compile(r"/(docker|containers|containerd|podman)/.*/(merged|shm|rootfs)$")
"""Where engines mount the root folders of their containers, and their memory: these come and go."""


def bare_layer(root: Path, launcher: str, program: bytes) -> bytes:
    """Return a layer with the launcher, folders to mount onto, and the root folder's own links, as an archive.

    Every user of its programs can write to DATA if the layer holds it.
    """
    layer = io.BytesIO(executable(launcher, program))
    layer.seek(0, io.SEEK_END)
    with tarfile.open(fileobj=layer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for entry in sorted(os.scandir(root), key=lambda each: each.name):
            about = tarfile.TarInfo(entry.name)
            if entry.is_symlink():
                about.type, about.linkname = tarfile.SYMTYPE, str(Path(entry.path).readlink())
            elif entry.is_dir():
                mode = stat.S_IMODE(entry.stat().st_mode)
                about.type, about.mode = tarfile.DIRTYPE, 0o1777 if f"/{entry.name}" == DATA else mode
            else:
                continue  # programs have no use for a file in the root folder itself
            archive.addfile(about)
    return layer.getvalue()


def refusal() -> Readiness | None:
    """Return why containers of the engine that answers cannot have this machine's root folder; None: they can."""
    if (missing := _missing_file()) is not None:
        return missing
    if os.geteuid() != 0 and gives_other_ids():
        why = "the Docker engine remaps user ids (userns-remap), so its containers cannot read your files"
        return Readiness(False, why, "weigh an image (--image), or use an engine without userns-remap")
    return None


def _missing_file() -> Readiness | None:
    for path in _ENGINES_FILES:
        if not Path(path).exists():
            why = f"this machine has no {path}, which Docker replaces in each container"
            return Readiness(False, f"{why}: its root folder cannot be used", f"touch {path}")
    return None


def bound(root: Path, others: Collection[str] = ()) -> tuple[Path, ...]:
    """Return the folders of the machine's root that a container gets, and the mounts below them, also of files.

    Each is bound by itself: Docker makes read-only what it binds, and not what is mounted below that. ``others`` are
    places that have something else in the container: these are left out, and at DATA all that is mounted below.
    Raises Unavailable if a file is missing that Docker replaces.
    """
    if (missing := _missing_file()) is not None:
        raise Unavailable(f"{missing.detail}: {missing.remedy}")
    top = [Path(entry.path) for entry in os.scandir(root) if entry.is_dir(follow_symlinks=False)]
    top = [path for path in top if path.name not in SITES_OWN]
    paths = dict.fromkeys((*sorted(map(str, top)), *(each.at for each in mount_table() if _holds_files(each, top))))
    hidden = DATA in others
    return tuple(Path(path) for path in paths if path not in others and not (hidden and path.startswith(f"{DATA}/")))


def binds(userland: Userland, others: Collection[str], *, recursive: bool = False) -> list[Any]:
    """Return Docker's mounts of a container's root folder, as `bound`; none for a userland that its image holds.

    ``recursive`` includes all mounts below each one, for a runtime that binds in a user namespace. There the kernel
    refuses to leave them out (mount_namespaces(7)), and the runtime must make all of them read-only itself.
    """
    from docker.types import Mount

    if not userland.of_this_machine:
        return []
    return [_bind(Mount, str(path), recursive=recursive) for path in bound(userland.root, others)]


def _bind(mount: Any, path: str, *, recursive: bool) -> Any:
    bind = mount(path, path, type="bind", read_only=True)
    bind["BindOptions"] = {"NonRecursive": not recursive}
    return bind


def _holds_files(mounted: Mounted, top: list[Path]) -> bool:
    if mounted.filesystem in _KERNELS or mounted.at in _ENGINES_FILES or _ENGINES.search(mounted.at):
        return False
    reachable = os.path.isdir(mounted.at) or os.path.isfile(mounted.at)  # noqa: PTH112, PTH113 - they never raise
    return reachable and any(folder in Path(mounted.at).parents for folder in top)
