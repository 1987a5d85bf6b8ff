"""File systems that are made and mounted on a host while they are needed."""

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from weighbridge.errors import DiskFull, EnvironmentLost, Unavailable
from weighbridge.linux.packages import install_on
from weighbridge.model.command import Command
from weighbridge.model.host import Host
from weighbridge.model.storage import DiskOptions

_MOUNT_S, _UNMOUNT_S, _MAKE_S = 60.0, 20.0, 300.0
_MAKE = {
    # complete from the start: otherwise the kernel would continue to initialise it during measurements
    "ext4": ("mkfs.ext4", "-q", "-F", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0"),
    "xfs": ("mkfs.xfs", "-q", "-f"),
    "btrfs": ("mkfs.btrfs", "-q", "-f"),
}
_DIRECT = 'at=$(losetup -nO NAME -j "$1") && losetup --direct-io=on "$at" && test "$(losetup -nO DIO "$at")" -eq 1'
_PREPARE = 'mkdir -p "$1" && truncate -s "$3" "$2" && command -v "$4"'


@contextmanager
def mounted(host: Host, kind: str, source: str, folder: Path, options: Sequence[str] = ()) -> Iterator[None]:
    """Mount ``source`` as a file system of that kind (mount(8)). Raises Unavailable with mount's message.

    It is unmounted at the end, even while it is in use.
    """
    how = ("-o", ",".join(options)) if options else ()
    completed = host.run(Command(("mount", "-t", kind, *how, "--", source, str(folder)), _MOUNT_S))
    if completed.returncode != 0:
        reason = "mount timed out" if completed.timed_out else completed.last_words
        raise Unavailable(f"host {host.name}: {source} cannot be mounted as {kind}: {reason}")
    try:
        yield
    finally:
        with contextlib.suppress(EnvironmentLost):
            host.run(Command(("umount", "--lazy", "--", str(folder)), _UNMOUNT_S))


@contextmanager
def disk_in(host: Host, folder: Path, disk: DiskOptions) -> Iterator[Path]:
    """Make a file system in a file in ``folder``, and yield its mount point. Its loop device ends with the mount.

    Its writes bypass the host's page cache, which would hold them a second time and defeat O_DIRECT. Raises
    Unavailable, DiskFull.
    """
    image, mount_point = folder / "disk.img", folder / "disk"
    make = _MAKE[disk.filesystem]
    prepared = host.run(
        Command(("sh", "-c", _PREPARE, "prepare", str(mount_point), str(image), str(disk.size), make[0]), 10)
    )
    if prepared.returncode != 0:
        reason = prepared.last_words or f"{make[0]} is not installed there: {install_on(host, [make[0]])}"
        raise Unavailable(f"host {host.name}: a disk cannot be created: {reason}")
    mkfs = host.run(Command((*make, str(image)), _MAKE_S))
    if b"No space left" in mkfs.stderr:
        raise DiskFull(f"host {host.name} has no room for a disk ({mkfs.last_words}): make room")
    if mkfs.returncode != 0:
        raise Unavailable(f"host {host.name}: a disk cannot be created: {mkfs.last_words}")
    with mounted(host, disk.filesystem, str(image), mount_point, ("loop",)):
        if host.run(Command(("sh", "-c", _DIRECT, "direct", str(image)), 10)).returncode != 0:
            raise Unavailable(
                f"host {host.name}: a disk cannot be created because {folder} does not support direct I/O for loop "
                "devices"
            )
        host.run(Command(("rm", "-rf", "--", str(mount_point / "lost+found")), 10))
        yield mount_point
