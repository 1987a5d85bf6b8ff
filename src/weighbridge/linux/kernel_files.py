"""Reads small files of the kernel, in a third of the time of `Path.read_bytes`, because every trial reads dozens."""

import os

_AT_ONCE = 1 << 16


def read_here(path: str) -> bytes:
    """Return the content of a file of this machine. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.read(descriptor, _AT_ONCE)
        while more := data and os.read(descriptor, _AT_ONCE):
            data += more
        return data
    finally:
        os.close(descriptor)
