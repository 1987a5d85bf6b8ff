"""Digests of a root filesystem's programs: a package's version does not identify a program that the user built."""

import contextlib
import hashlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from weighbridge.errors import Unavailable
from weighbridge.linux.process import run
from weighbridge.model.command import SITE_ENV, Command
from weighbridge.model.site import SITES_OWN
from weighbridge.model.userland import Userland
from weighbridge.secret_values import revealed

WHOLE = 256 * 2**20
"""Bytes up to which a file is hashed completely, which takes at most a second."""
_PART = 32 * 2**20
_LINKS = 40
"""The largest number of symbolic links to a file, as in the kernel (path_resolution(7))."""
_SHEBANG = 256
_LDD_S = 30.0
_ELF = b"\x7fELF"
_LOADED = re.compile(r"^\s+(?:\S+ => )?(/.+) \(0x[0-9a-f]+\)$", re.MULTILINE)


def digests(userland: Userland, command: Command) -> dict[str, str]:
    """Return the SHA-256 of each file of the root filesystem that a word of a command names, by that word.

    The first word is searched on PATH. A script's interpreter is added, and for a program in this machine's own
    files, the linked libraries by their paths. Files in folders that each site has separately are skipped. For a file
    larger than `WHOLE`, the digest covers its size and three parts, and says so.
    """
    digest_by_word: dict[str, str] = {}
    todo = [(word, number == 0) for number, word in enumerate(command.argv)]
    for word, on_path in todo:
        path = _file_of(userland, word, command, on_path=on_path)
        if path is None or word in digest_by_word:
            continue
        try:
            digest_by_word[word] = digest_of(path)
            digest_by_word |= {library: digest_of(Path(library)) for library in _libraries(userland, path, command)}
            todo += _interpreter(path) if on_path else ()
        except OSError:  # an unreadable file cannot be started or read by the program either
            continue
    return digest_by_word


def program_files(userland: Userland, command: Command) -> list[Path]:
    """Return the program that a command starts, and the interpreter of a script, as files below the root folder."""
    paths: list[Path] = []
    todo = [*command.argv[:1]]
    for word in todo:
        path = _file_of(userland, word, command, on_path=True)
        if path is not None and path not in paths:
            paths.append(path)
            with contextlib.suppress(OSError):
                todo += [word for word, on_path in _interpreter(path) if on_path]
    return paths


def _libraries(userland: Userland, path: Path, command: Command) -> list[str]:
    """Return the libraries that a program loads when it starts, by this machine's loader (ldd(1)).

    Other root filesystems have none, because their digest covers all of their files.
    """
    with path.open("rb") as file:
        if not userland.of_this_machine or file.read(len(_ELF)) != _ELF:
            return []
    variables = {name: revealed(value) for name, value in _variables(userland, command).items()}
    try:  # not by env(1), because every user can read command lines
        completed = run(Command(("ldd", str(path)), _LDD_S, variables), inherit=False)
    except Unavailable:
        return []
    return _LOADED.findall(completed.text) if completed.returncode == 0 else []


def _variables(userland: Userland, command: Command) -> dict[str, str]:
    return {**SITE_ENV, **userland.process.env, **command.env}


def _file_of(userland: Userland, word: str, command: Command, *, on_path: bool) -> Path | None:
    if not word or "\0" in word:
        return None
    folders = [command.cwd]
    if on_path and "/" not in word:
        path = _variables(userland, command)["PATH"]
        folders = [each for each in path.split(":") if each.startswith("/")]
    for folder in folders:
        with contextlib.suppress(OSError):
            file = _inside(userland.root, str(Path(folder, word)), userland.layered)
            if file is not None and stat.S_ISREG(file.stat().st_mode):
                return file
    return None


def _inside(root: Path, path: str, layered: str) -> Path | None:
    """Return a path as seen in a root folder, which links cannot leave; None if it belongs to the site."""
    parts: list[str] = []
    todo = [part for part in reversed(path.split("/")) if part]
    links = 0
    while todo:
        part = todo.pop()
        if part in (".", ".."):
            del parts[len(parts) - (part == "..") :]
            continue
        entry = root.joinpath(*parts, part)
        if entry.is_symlink() and links < _LINKS:
            links += 1
            target = str(entry.readlink())
            parts = [] if target.startswith("/") else parts
            todo += [each for each in reversed(target.split("/")) if each]
        else:
            parts.append(part)
    if parts[:1] and parts[0] in SITES_OWN and not (layered and Path("/", *parts).is_relative_to(layered)):
        return None
    return root.joinpath(*parts)


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file; if it is larger than `WHOLE`, as described in `digests`. Raises OSError."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size <= WHOLE:
            return hashlib.file_digest(file, "sha256").hexdigest()
        sampled = hashlib.sha256(str(size).encode())
        for offset in (0, (size - _PART) // 2, size - _PART):
            file.seek(offset)
            sampled.update(file.read(_PART))
    return f"{sampled.hexdigest()} (of its size and of three parts: it has {size} bytes)"


def _interpreter(path: Path) -> Iterator[tuple[str, bool]]:
    """Yield the words of a script's first line (execve(2)), and whether each is searched on PATH, as by env(1)."""
    with path.open("rb") as file:
        first = file.read(_SHEBANG).partition(b"\n")[0]
    if first.startswith(b"#!"):
        words = first[2:].decode(errors="replace").split()
        yield from ((word, number == 0 or words[0].endswith("/env")) for number, word in enumerate(words))
