"""The boot medium for hypervisors that cannot start a kernel directly: a CD image, built once.

It is the same for every guest: the first process asks for its arguments over the serial port.
"""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

from weighbridge import build_once
from weighbridge.features.guests import ramdisk
from weighbridge.features.guests.kernel import Kernel
from weighbridge.linux.deletion import OwnFolder, remove_tree
from weighbridge.linux.packages import install_here
from weighbridge.userland.commands import must

NAME = "boot.iso"
PROGRAMS = ("xorriso",)
LOADER = ("isolinux.bin", "ldlinux.c32")
"""The files of the boot loader."""
LOADER_FOLDERS = (
    Path("/usr/lib/ISOLINUX"), Path("/usr/lib/syslinux/modules/bios"), Path("/usr/lib/syslinux/bios"),
    Path("/usr/share/syslinux"),
)  # fmt: skip
"""The folders of these files: Debian uses two, Arch one, Fedora, openSUSE and Alpine another."""
PORT, CONSOLE = "/dev/ttyS0", "ttyS1"
"""The guest's end of the launcher's stream, and the port of its console."""
_KIND = "media"
_BUILDER = 1
_FOLDER = "content"
_CONFIGURATION = f"""default guest
prompt 0
timeout 0
label guest
  kernel /vmlinuz
  append initrd=/ramdisk console={CONSOLE} quiet panic=-1 -- --serial {PORT}
"""


def cannot_build() -> tuple[str, str] | None:
    """Return why the boot medium cannot be built, and a remedy; None if it can."""
    for name in LOADER:
        if loader_file(name) is None:
            return f"{name}, which builds the guests' boot medium, is missing", install_here([name])
    return None


def loader_file(name: str) -> Path | None:
    """Return the path of a file of the boot loader; None if it is not installed."""
    return next((folder / name for folder in LOADER_FOLDERS if (folder / name).is_file()), None)


def ensure(kernel: Kernel, cache: Path, say: Callable[[str], None]) -> Path:
    """Return the boot medium's file, built if needed. Raises Unavailable, UserlandError, DiskFull."""
    first = ramdisk.ensure(kernel, cache, say)
    inputs = f"{_BUILDER} {kernel.key} {first.parent.name} {_CONFIGURATION}"
    key = hashlib.sha256(inputs.encode()).hexdigest()[:16]
    file = cache / _KIND / key / NAME

    def cached() -> Path | None:
        return file if file.is_file() else None

    def make(work: Path) -> None:
        content = work / _FOLDER
        content.mkdir()
        for source in (*filter(None, map(loader_file, LOADER)), kernel.compressed, first):
            shutil.copyfile(source, content / source.name)
        (content / "isolinux.cfg").write_text(_CONFIGURATION)
        must(
            "xorriso", "-as", "mkisofs", "-quiet", "-o", str(work / NAME), "-b", "isolinux.bin", "-c", "boot.cat",
            "-no-emul-boot", "-boot-load-size", "4", "-boot-info-table", "-input-charset", "utf-8", str(content),
        )  # fmt: skip
        remove_tree(OwnFolder.of(work, _FOLDER))

    return build_once.ensure(cache / _KIND, key, "the guests' boot medium", cached, cannot_build, say, make)
