"""The archive of a userland: what engines import and what is sent to other machines."""

import hashlib
from pathlib import Path

from weighbridge.userland.commands import must

NAME = "root.tar"
_NO_TIMES = "--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime"
"""Of when a file was read or changed nothing is kept, nor of the process that packed it."""


def pack(folder: Path, tar: Path) -> None:
    """Archive a folder: the same bytes for the same files. Raises UserlandError, DiskFull."""
    same = ("--sort=name", "--numeric-owner", "--one-file-system", "--format=posix", _NO_TIMES)
    must("tar", "--create", "--file", str(tar), "--directory", str(folder), *same, ".")


def digest_of(tar: Path) -> str:
    """The SHA-256 of an archive."""
    with tar.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()
