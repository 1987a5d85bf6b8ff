"""The disk for a guest's data: an empty, sparse file system, made by mkfs on the guest's host."""

import os
from contextlib import ExitStack
from pathlib import Path

from weighbridge.errors import DiskFull, Unavailable
from weighbridge.model.command import Command
from weighbridge.model.host import Host
from weighbridge.model.site import MountRequest, SiteRequest

SIZE = 16 * 2**30
"""Bytes of the disk of a site."""
_WHOLE = ("-N", "65536", "-E", "lazy_itable_init=0,lazy_journal_init=0")
"""Options that initialise the disk completely; otherwise the guest's kernel would do it during measurements."""
_MAKE_S = 300.0


def of_site(request: SiteRequest, stack: ExitStack) -> str | None:
    """Return the path, on the site's host, of a new disk for its data; None without data. ``stack`` removes it.

    Raises Unavailable, DiskFull.
    """
    if request.storage is None:
        return None
    mount = stack.enter_context(request.storage.open(MountRequest(request.run, request.host, request.name)))
    file = str(Path(mount.source) / "data.ext4")
    make(request.host, file)
    return file


def passes_cache(image: Path) -> bool:
    """Return whether a file's file system lets a hypervisor bypass this machine's page cache (O_DIRECT)."""
    try:
        os.close(os.open(image, os.O_RDWR | os.O_DIRECT))
    except OSError:
        return False
    return True


def make(host: Host, file: str, size: int = SIZE) -> None:
    """Make an empty file system of ``size`` bytes in a new file on the host. Raises Unavailable, DiskFull."""
    argv = ("mkfs.ext4", "-q", "-F", "-m", "0", "-b", "4096", *_WHOLE, file, f"{size >> 10}k")
    completed = host.run(Command(argv, _MAKE_S))
    if b"No space left" in completed.stderr:
        raise DiskFull(f"host {host.name} has no room for a data disk ({completed.last_words}): make room")
    if completed.returncode != 0:
        raise Unavailable(f"host {host.name}: the data disk cannot be created: {completed.last_words}")
