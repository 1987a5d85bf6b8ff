"""The programs of a userland by what they hold: a package's version says nothing of one that the user has built."""

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
"""Bytes of a file that are summed up as a whole, which takes a second at most."""
_PART = 32 * 2**20
_LINKS = 40
"""Symbolic links to a file at most, as the kernel has it (path_resolution(7))."""
_SHEBANG = 256
_LDD_S = 30.0
_ELF = b"\x7fELF"
_LOADED = re.compile(r"^\s+(?:\S+ => )?(/.+) \(0x[0-9a-f]+\)$", re.MULTILINE)


def digests(userland: Userland, command: Command) -> dict[str, str]:
    """Return what each word of a command holds that names a file of the userland, by that word: SHA-256.

    The first word is looked for on PATH; a script has its interpreter beside it, and a program of this machine's own
    files the libraries that it is linked with, by their places. Files in folders that each site has of its own are
    not looked for. Of a file larger than `WHOLE` its size and three parts are summed up, and the text says so.
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
        except OSError:  # it may not be read: it cannot be started either, or is no program's to read
            continue
    return digest_by_word


def program_files(userland: Userland, command: Command) -> list[Path]:
    """Return the program that a command starts, and the interpreter of a script, as files of the userland's root."""
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
    """The libraries that a program loads when it starts, as this machine's loader finds them (ldd(1)).

    None of another root folder, whose loader is not asked: its digest is that of all its files.
    """
    with path.open("rb") as file:
        if not userland.of_this_machine or file.read(len(_ELF)) != _ELF:
            return []
    variables = {name: revealed(value) for name, value in _variables(userland, command).items()}
    try:  # not by env(1): every user of the machine can read a command line
        completed = run(Command(("ldd", str(path)), _LDD_S, variables), inherit=False)
    except Unavailable:
        return []
    return _LOADED.findall(completed.text) if completed.returncode == 0 else []


def _variables(userland: Userland, command: Command) -> dict[str, str]:
    return {**SITE_ENV, **userland.process.env, **command.env}


def _file_of(userland: Userland, word: str, command: Command, *, on_path: bool) -> Path | None:
    """Where the file is that a word of a command names; None where it names none."""
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
    """A path as it is seen in a root folder: links start there, and lead nowhere else. None: it is a site's own."""
    at: list[str] = []
    todo = [part for part in reversed(path.split("/")) if part]
    links = 0
    while todo:
        part = todo.pop()
        if part in (".", ".."):
            del at[len(at) - (part == "..") :]
            continue
        entry = root.joinpath(*at, part)
        if entry.is_symlink() and links < _LINKS:
            links += 1
            target = str(entry.readlink())
            at = [] if target.startswith("/") else at
            todo += [each for each in reversed(target.split("/")) if each]
        else:
            at.append(part)
    if at[:1] and at[0] in SITES_OWN and not (layered and Path("/", *at).is_relative_to(layered)):
        return None
    return root.joinpath(*at)


def digest_of(path: Path) -> str:
    """The SHA-256 of a file; of one larger than `WHOLE` as `digests` tells. Raises OSError."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size <= WHOLE:
            return hashlib.file_digest(file, "sha256").hexdigest()
        parts = hashlib.sha256(str(size).encode())
        for at in (0, (size - _PART) // 2, size - _PART):
            file.seek(at)
            parts.update(file.read(_PART))
    return f"{parts.hexdigest()} (of its size and of three parts: it has {size} bytes)"


def _interpreter(path: Path) -> Iterator[tuple[str, bool]]:
    """The words of the first line of a script that starts a program (execve(2)); env(1) looks for its own on PATH."""
    with path.open("rb") as file:
        first = file.read(_SHEBANG).partition(b"\n")[0]
    if first.startswith(b"#!"):
        words = first[2:].decode(errors="replace").split()
        yield from ((word, number == 0 or words[0].endswith("/env")) for number, word in enumerate(words))
