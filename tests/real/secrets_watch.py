"""Where a secret must not be: command lines of this machine, and files, while commands run."""

import base64
import gzip
import os
import re
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from weighbridge.runner.run_lock import base
from weighbridge.userland.build import cache_folder

_PAUSE_S = 0.01
_LARGEST = 64 * 2**20
_GZIP = re.compile(rb"H4sI[A-Za-z0-9+/]+={0,2}")


def forms(secret: str) -> tuple[bytes, ...]:
    """The secret as it is, and the middle of its base64 at each offset: what surrounds it changes the rest."""
    shifted = (base64.b64encode(b"." * before + secret.encode())[4:-4] for before in range(3))
    return secret.encode(), *shifted


@dataclass
class Watch:
    """What was seen of some secrets, by where it was."""

    secrets: tuple[str, ...]
    began: float = field(default_factory=time.time)
    command_lines: set[bytes] = field(default_factory=set)
    _ended: threading.Event = field(default_factory=threading.Event)

    def look(self) -> None:
        """Read every command line again and again."""
        own = str(os.getpid())
        while not self._ended.wait(_PAUSE_S):
            for process in Path("/proc").iterdir():
                if not process.name.isdecimal() or process.name == own:
                    continue
                try:
                    words = (process / "cmdline").read_bytes()
                except OSError:
                    continue
                if any(form in words for secret in self.secrets for form in forms(secret)):
                    self.command_lines.add(words)

    def files_with_it(self, folders: Iterable[Path]) -> list[Path]:
        """The files, written since the watch began, that have a secret in their content or their name."""
        return [path for folder in folders for path in _files(folder) if self._has(path)]

    def _has(self, path: Path) -> bool:
        try:
            if path.stat().st_mtime < self.began - 1 or path.stat().st_size > _LARGEST:
                return False
            content = str(path).encode() + path.read_bytes()
        except OSError:
            return False
        packed = b"".join(_unpacked(match[0]) for match in _GZIP.finditer(content))
        return any(form in text for secret in self.secrets for form in forms(secret) for text in (content, packed))


def _unpacked(text: bytes) -> bytes:
    """What a page has compressed; b"" of what only looks so."""
    try:
        return gzip.decompress(base64.b64decode(text))
    except (OSError, ValueError, EOFError, zlib.error):
        return b""


def _files(folder: Path) -> Iterator[Path]:
    for here, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not os.path.ismount(Path(here, name))]
        yield from (path for name in names if (path := Path(here, name)).is_file() and not path.is_symlink())


@contextmanager
def watching(*secrets: str) -> Iterator[Watch]:
    """Look at command lines meanwhile."""
    watch = Watch(secrets)
    thread = threading.Thread(target=watch.look)
    thread.start()
    try:
        yield watch
    finally:
        watch._ended.set()
        thread.join()


def written_to(tmp_path: Path) -> tuple[Path, ...]:
    """The folders that runs write to: the test's, the user's cache, what runs keep of themselves, /tmp."""
    return tmp_path, cache_folder(), base(), Path("/tmp"), Path("/var/tmp")
