"""The archive of a userland: what engines import and what is sent to other machines."""

import hashlib
from pathlib import Path

from weighbridge.userland.commands import must

NAME = "root.tar"


def pack(folder: Path, tar: Path) -> None:
    """Archive a folder: the same bytes for the same files. Raises UserlandError, DiskFull."""
    same = ("--sort=name", "--numeric-owner", "--one-file-system", "--format=posix")
    must("tar", "--create", "--file", str(tar), "--directory", str(folder), *same, ".")


def digest_of(tar: Path) -> str:
    """The SHA-256 of an archive."""
    with tar.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()
