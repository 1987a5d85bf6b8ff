"""What takes long to make for a page, kept in the user's cache: read only where nobody else could have written it."""

import contextlib
import os
import secrets
import stat
from pathlib import Path

from weighbridge.errors import Unavailable
from weighbridge.user_cache import user_cache_folder


def read_kept(name: str) -> bytes:
    """Return what is kept under a name (``charts/vega.js``); empty where there is nothing that can be trusted."""
    file = _file(name)
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK) if file else None
    except OSError:
        return b""
    if descriptor is None:
        return b""
    with os.fdopen(descriptor, "rb") as opened:
        about = os.fstat(opened.fileno())
        mine = about.st_uid == os.geteuid() and not about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        return opened.read() if mine and stat.S_ISREG(about.st_mode) else b""


def keep(name: str, content: bytes) -> None:
    """Keep it whole or not at all; a cache that cannot be written is no failure."""
    if (file := _file(name)) is None:
        return
    anew = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    with contextlib.suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            anew.write_bytes(content)
            anew.chmod(0o600)
            anew.replace(file)
        finally:
            anew.unlink(missing_ok=True)


def _file(name: str) -> Path | None:
    """Where it is kept; None for a user who has no cache."""
    if given := os.environ.get("WEIGHBRIDGE_CACHE"):
        return Path(given).absolute() / name
    with contextlib.suppress(Unavailable):
        return user_cache_folder() / name
    return None
