"""This machine's own root folder in a container: bound into it, read-only, with a folder that can be written to.

Nothing is copied. The container's programs read the same files of the same file systems as those of a native site, so
that a storage driver's cost is no part of what is compared.
"""

import contextlib
import io
import os
import re
import shutil
import stat
import tarfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from weighbridge.engines.layers import executable
from weighbridge.errors import Unavailable
from weighbridge.linux.mounts import Mounted, mount_table
from weighbridge.model.mount import Volumes
from weighbridge.model.site import RunContext
from weighbridge.model.userland import Userland

_SITES_OWN = ("proc", "sys", "dev", "tmp", "run")
"""What the engine mounts into a container itself."""
_ENGINES_FILES = ("/etc/hostname", "/etc/hosts", "/etc/resolv.conf")
"""What Docker puts its own in the place of: it needs something there, as the folder is read-only."""
_KERNELS = frozenset((
    "autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs",
    "efivarfs", "fusectl", "hugetlbfs", "mqueue", "nsfs", "proc", "pstore", "rpc_pipefs", "securityfs", "selinuxfs",
    "sysfs", "tracefs",
))  # fmt: skip
"""File systems that hold no files of anybody's."""
_ENGINES = re.compile(r"/(docker|containers|containerd|podman)/.*/(merged|shm|rootfs)$")
"""Where engines mount the root folders of their containers, and their memory: these come and go."""
_MEMORY = Path("/dev/shm")  # noqa: S108 - it is looked for what is mounted there


def bare_layer(root: Path, launcher: str, program: bytes) -> bytes:
    """Return a layer with the launcher, folders to mount onto, and the root folder's own links, as an archive."""
    made = io.BytesIO(executable(launcher, program))
    made.seek(0, io.SEEK_END)
    with tarfile.open(fileobj=made, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for entry in sorted(os.scandir(root), key=lambda each: each.name):
            about = tarfile.TarInfo(entry.name)
            if entry.is_symlink():
                about.type, about.linkname = tarfile.SYMTYPE, str(Path(entry.path).readlink())
            elif entry.is_dir():
                about.type, about.mode = tarfile.DIRTYPE, stat.S_IMODE(entry.stat().st_mode)
            else:
                continue  # programs have no use for a file in the root folder itself
            archive.addfile(about)
    return made.getvalue()


def bound(root: Path) -> tuple[Path, ...]:
    """Return the folders of the machine's root that a container gets, and what is mounted below them, files too.

    Each is bound by itself: Docker makes read-only what it binds, and not what is mounted below that. Raises
    Unavailable where a file is missing that Docker replaces.
    """
    missing = [path for path in _ENGINES_FILES if not Path(path).exists()]
    if missing:
        raise Unavailable(
            f"this machine has no {missing[0]}, which Docker replaces in each container, so that its own root folder "
            f"cannot be one: touch {missing[0]}"
        )
    top = [Path(entry.path) for entry in os.scandir(root) if entry.is_dir(follow_symlinks=False)]
    top = [path for path in top if path.name not in _SITES_OWN]
    return (*sorted(top), *(Path(each.at) for each in mount_table() if _holds_files(each, top)))


def binds(userland: Userland, taken: Collection[str]) -> list[Any]:
    """Return Docker's mounts of a container's root folder; none of a userland that its image holds.

    ``taken``: where the container has something else mounted.
    """
    from docker.types import Mount

    if userland.tar is not None:
        return []
    return [_bind(Mount, path) for path in dict.fromkeys(map(str, bound(userland.root))) if path not in taken]


def _bind(mount: Any, path: str) -> Any:
    made = mount(path, path, type="bind", read_only=True)
    made["BindOptions"] = {"NonRecursive": True}
    return made


def _holds_files(mounted: Mounted, top: list[Path]) -> bool:
    if mounted.filesystem in _KERNELS or mounted.at in _ENGINES_FILES or _ENGINES.search(mounted.at):
        return False
    there = os.path.isdir(mounted.at) or os.path.isfile(mounted.at)  # noqa: PTH112, PTH113 - they never raise
    return there and any(folder in Path(mounted.at).parents for folder in top)


@contextmanager
def layered(folder: str, run: RunContext, site: str, volumes: Volumes) -> Iterator[str]:
    """Make a volume that is a layer in memory over a folder, which stays as it is; gives the volume's name.

    Its memory is that of those who write to it, as natively. Raises Unavailable where /dev/shm is not in memory.
    """
    if os.geteuid() != 0:  # what root writes in the container nobody else could remove
        raise Unavailable("a folder in memory for a container takes root: run as root, or use an image")
    if not any(each.at == str(_MEMORY) and each.filesystem == "tmpfs" for each in mount_table()):
        raise Unavailable(
            f"{_MEMORY} is no memory (tmpfs), in which a container could write: mount -t tmpfs tmpfs {_MEMORY}"
        )
    here = _MEMORY / f"weighbridge-{run.id}-{site}"
    about = Path(folder).stat()
    try:
        here.mkdir(mode=0o700)
    except FileExistsError:
        raise Unavailable(f"{here} is there already, and is not this run's: remove it") from None
    try:
        (here / "work").mkdir()
        (here / "upper").mkdir()
        os.chown(here / "upper", about.st_uid, about.st_gid)
        (here / "upper").chmod(stat.S_IMODE(about.st_mode))
        options = f"lowerdir={folder},upperdir={here}/upper,workdir={here}/work"
        with volumes.volume(f"{site}-folder", {"type": "overlay", "device": "overlay", "o": options}) as name:
            yield name
    finally:
        shutil.rmtree(here, ignore_errors=True)


def left() -> Iterator[tuple[str, Path]]:
    """This user's layers in memory, each with its run: what others put into /dev/shm is theirs."""
    for path in _MEMORY.glob("weighbridge-*-*"):
        with contextlib.suppress(OSError):
            about = path.lstat()
            if stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid():
                yield path.name.split("-")[1], path


def discard(run_id: str) -> None:
    """Remove those of one run."""
    for run, path in list(left()):
        if run == run_id:
            shutil.rmtree(path, ignore_errors=True)
