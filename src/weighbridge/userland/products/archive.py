"""The archive of a root filesystem, which engines import and other machines receive."""

import hashlib
from pathlib import Path

from weighbridge.userland.commands import must

NAME = "root.tar"
_NO_TIMES = "--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime"
"""An option that omits times of access and change, and the number of the packing process."""


def pack(folder: Path, tar: Path) -> None:
    """Archive a folder: the same files give the same bytes. Raises UserlandError, DiskFull."""
    same = ("--sort=name", "--numeric-owner", "--one-file-system", "--format=posix", _NO_TIMES)
    must("tar", "--create", "--file", str(tar), "--directory", str(folder), *same, ".")


def digest_of(tar: Path) -> str:
    """Return the SHA-256 of an archive."""
    with tar.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()
