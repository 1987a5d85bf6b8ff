"""The initial RAM disk of guests: their first process, the launcher, and the drivers. Built once."""

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path

from weighbridge import build_once
from weighbridge.features.guests.kernel import Kernel
from weighbridge.launcher import build
from weighbridge.linux import static_c

NAME = "ramdisk"
_SOURCE = Path(__file__).parent / "source"
_KIND = "ramdisks"
_BUILDER = 2
_SIGNED = b"~Module signature appended~\n"
_DIRECTORY, _PROGRAM, _FILE = 0o040755, 0o100755, 0o100644


def ensure(kernel: Kernel, cache: Path, say: Callable[[str], None]) -> Path:
    """Return the initial RAM disk's file, built if needed. Raises Unavailable, UserlandError, DiskFull."""
    launcher = build.ensure(cache, say)
    inputs = f"{_BUILDER} {kernel.key} {build.digest(launcher)} {build_once.key_of_folder(_SOURCE)}"
    key = hashlib.sha256(inputs.encode()).hexdigest()[:16]
    file = cache / _KIND / key / NAME

    def make(work: Path) -> None:
        program = work / "init"
        sources = [str(path) for path in sorted(_SOURCE.glob("*.c"))]
        static_c.compile_program("the guests' first process", static_c.OPTIONS, sources, program)
        (work / NAME).write_bytes(packed(kernel, program, launcher))
        program.unlink()

    return build_once.ensure_file(file, "the guests' RAM disk", say, make)


def packed(kernel: Kernel, init: Path, launcher: Path) -> bytes:
    """Return the archive; each line of /modules has a driver and the files that the first process loads for it."""
    lines = [
        " ".join((name, *(f"/lib/{path.name}" for path in paths))) for name, paths in sorted(kernel.modules.items())
    ]
    modules = {path.name: path for paths in kernel.modules.values() for path in paths}
    return archive(
        (
            *((name, _DIRECTORY, b"") for name in ("dev", "lib", "proc", "root", "sys")),
            ("init", _PROGRAM, init.read_bytes()),
            ("launcher", _PROGRAM, launcher.read_bytes()),
            ("modules", _FILE, "".join(f"{line}\n" for line in lines).encode()),
            *((f"lib/{name}", _FILE, unsigned(path.read_bytes())) for name, path in sorted(modules.items())),
        )
    )


def unsigned(module: bytes) -> bytes:
    """Return a kernel module without its signature, whose check costs an emulated CPU a tenth of a second.

    The trailer (include/linux/module_signature.h) is 12 bytes, the last four of which are the signature's size.
    """
    if not module.endswith(_SIGNED):
        return module
    size = int.from_bytes(module[-len(_SIGNED) - 4 : -len(_SIGNED)], "big")
    return module[: -len(_SIGNED) - 12 - size]


def archive(files: Iterable[tuple[str, int, bytes]]) -> bytes:
    """Return an archive of names, modes and data in the kernel's newc format (early-userspace/buffer-format.rst)."""
    cpio = bytearray()
    for number, (name, mode, data) in enumerate((*files, ("TRAILER!!!", 0, b"")), 1):
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
        cpio += b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
        cpio += bytes(-len(cpio) % 4)
        cpio += data + bytes(-len(data) % 4)
    return bytes(cpio)
