"""Reads a kept file, which is the database of a finished run compressed with xz. It can come from a stranger.

Nothing is written to a disk: a run is read from memory anyway, so no copy can stay when a process is killed.
"""

import lzma
import os
from pathlib import Path

from weighbridge.errors import RunDirectoryError
from weighbridge.store.safe_folder import SafeFolder

ENDING = ".sqlite.xz"
SUFFIX = ".xz"
MOST_PACKED, MOST_UNPACKED = 2**24, 2**26
"""The largest sizes of a kept file and of its database, in bytes: 16 and 64 MiB.

A registry is a git repository, which should not have larger files. The largest of our own runs has 0.9 and 6.3 MiB.
However small the file of a stranger is, a reader needs at most 208 MiB of memory for it. While it is unpacked, these
are the packed file, the database and `MOST_MEMORY`. Later they are up to three copies of the database, one of them
SQLite's."""
MOST_MEMORY = 2**27
"""The largest memory for unpacking in bytes, 128 MiB; a file of the highest level of xz needs 65 MiB."""


def is_kept_file(place: Path) -> bool:
    """Return whether a path names a kept file rather than a run directory. It can be missing, a link or a pipe."""
    return place.suffix == SUFFIX and not place.is_dir()


def read_kept_file(file: Path) -> bytes:
    """Return the database in a kept file.

    Raises RunDirectoryError if the file is missing, a link, a pipe or a device, or as `unpacked`.
    """
    try:
        with SafeFolder.open(file.parent) as folder:
            data = read_packed(folder, file.name)
    except FileNotFoundError as error:
        raise RunDirectoryError(f"there is no file {file}") from error
    return unpacked(data, str(file))


def read_packed(folder: SafeFolder, name: str, most: int = MOST_PACKED) -> bytes:
    """Return a file of a folder as it is. Raises RunDirectoryError if it is larger than ``most`` bytes, or a link;
    OSError if it is missing.
    """
    with os.fdopen(folder.open_file(name), "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise RunDirectoryError(f"{folder.path / name} is larger than {most // 2**20} MiB")
    return data


def unpacked(data: bytes, where: str) -> bytes:
    """Return the database in a kept file. Raises RunDirectoryError if it is damaged, or larger than is allowed."""
    unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MOST_MEMORY)
    try:
        content = unpacker.decompress(data, MOST_UNPACKED + 1)
    except (lzma.LZMAError, EOFError) as error:
        raise RunDirectoryError(f"{where} is damaged: it cannot be unpacked with xz") from error
    if len(content) > MOST_UNPACKED:
        raise RunDirectoryError(
            f"{where} is larger than {MOST_UNPACKED // 2**20} MiB when it is unpacked: if you "
            "trust it, unpack it with xz to run.sqlite in a folder, and name the folder"
        )
    if not unpacker.eof or unpacker.unused_data:
        raise RunDirectoryError(f"{where} is damaged: its end is missing, or something follows it")
    return content
