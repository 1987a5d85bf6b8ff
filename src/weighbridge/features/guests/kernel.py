"""The kernel of guests: Debian's, decompressed, with the drivers that guests can need. Built once."""

import hashlib
import json
import lzma
import re
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from weighbridge import build_once
from weighbridge.errors import UserlandError
from weighbridge.features.guests import vsock
from weighbridge.features.guests.architecture import HOST
from weighbridge.linux.deletion import OwnFolder, remove_tree
from weighbridge.linux.packages import install_here
from weighbridge.linux.process import which
from weighbridge.userland import debian_archive
from weighbridge.userland.commands import must

PACKAGE = HOST.kernel
SUITE = "bookworm"
_DEPMOD = "depmod"
PROGRAMS = (debian_archive.PROGRAM, _DEPMOD)
"""The programs that build it."""
DRIVERS = (
    "virtio_pci", "virtio_mmio", "virtio_console", "virtio_blk", "virtio_net", "ext4", "crc32c_generic", "tcp_diag",
    "udp_diag", "e1000", "e1000e", "8139cp", "ata_piix", "sd_mod", "xen-netfront", "xen-blkfront", vsock.DRIVER,
)  # fmt: skip
_BUILDER = 2
_KIND = "kernels"
_VMLINUX, _VMLINUZ, _MODULES, _ABOUT = "vmlinux", "vmlinuz", "modules", "about.json"
_XZ = ".xz"
"""The suffix of a compressed module in later kernels of Debian."""
_SETUP_SECTORS, _MAGIC, _PAYLOAD, _SECTOR = 0x1F1, 0x202, 0x248, 512
"""Offsets in the header of a bzImage (Documentation/x86/boot.rst)."""
_IMAGE = 0x38
"""The offset of the magic number in an Image of arm64 (Documentation/arm64/booting.rst)."""
_BANNER = re.compile(rb"Linux version [^\n\0]*? Debian (\S+) \(")


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel; ``image`` is decompressed if possible.

    ``modules`` maps each driver to its files, in the order of loading; a built-in driver has none. ``lacking`` are
    the drivers that are neither built-in nor modules.
    """

    release: str
    version: str
    image: Path
    modules: Mapping[str, tuple[Path, ...]]
    lacking: tuple[str, ...] = ()

    @property
    def compressed(self) -> Path:
        """Return the kernel as Debian packs it, for boot loaders."""
        return self.image.with_name(_VMLINUZ)

    @property
    def key(self) -> str:
        """Return a name for the kernel that depends on its contents."""
        return hashlib.sha256(f"{self.release} {self.version} {sorted(self.modules)}".encode()).hexdigest()[:16]


def cached(cache: Path, package: str = PACKAGE) -> Kernel | None:
    """Return the kernel that was built from a package, or None."""
    return kept_in(cache / _KIND / _key(package))


def kept_in(folder: Path) -> Kernel | None:
    """Return the kernel in a folder, or None. Raises UserlandError if it is damaged."""
    try:
        record = json.loads((folder / _ABOUT).read_text())
        files = {name: tuple(folder / _MODULES / each for each in paths) for name, paths in record["modules"].items()}
        lacking = tuple(record.get("lacking", ()))
        return Kernel(record["release"], record["version"], folder / _VMLINUX, files, lacking)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise UserlandError(f"the cached kernel {folder} is damaged ({error}): delete it and run again") from error


def cannot_build(cache: Path, package: str = PACKAGE) -> tuple[str, str] | None:
    """Return why an uncached kernel cannot be built, and a remedy; None if it can."""
    if cached(cache, package) is not None:
        return None
    if (obstacle := debian_archive.lacking()) is not None:
        return obstacle
    if which(_DEPMOD) is None:
        return f"{_DEPMOD}, which builds the guests' kernel, is not installed", install_here([_DEPMOD])
    return None


BUILD_S = 15.0
"""About how many seconds a build takes."""


def ensure(cache: Path, say: Callable[[str], None], package: str = PACKAGE) -> Kernel:
    """Return the kernel of a Debian package, built if needed. Raises Unavailable, UserlandError, DiskFull."""
    label = "the guests' kernel" + ("" if package == PACKAGE else f" of {package}")
    find_cached, not_possible = partial(cached, cache, package), partial(cannot_build, cache, package)
    return build_once.ensure(
        cache / _KIND, _key(package), label, find_cached, not_possible, say, partial(_build, package)
    )


class OtherCompression(ValueError):
    """A kernel that must decompress itself at boot, with an unknown method (the cloud kernel: lz4)."""


def uncompressed(image: bytes) -> bytes:
    """Return the ELF file in a bzImage, or an Image of arm64, which boots as it is.

    Raises ValueError for other files, and OtherCompression if the kernel must decompress itself.
    """
    if image[_IMAGE : _IMAGE + 4] == b"ARMd":
        return image
    if image.startswith(b"\x1f\x8b"):
        image = _gunzipped(image)
        if image[_IMAGE : _IMAGE + 4] == b"ARMd":
            return image
    if image[4:8] == b"zimg":
        raise OtherCompression("it is an EFI program, which QEMU must decompress")
    if len(image) < _PAYLOAD + 8 or image[_MAGIC : _MAGIC + 4] != b"HdrS":
        raise ValueError("it does not have the header of a Linux kernel")
    offset, size = struct.unpack_from("<II", image, _PAYLOAD)
    start = (image[_SETUP_SECTORS] + 1) * _SECTOR + offset
    payload = image[start : start + size]
    if payload.startswith(b"\xfd7zXZ"):
        archive: lzma.LZMADecompressor | zlib._Decompress = lzma.LZMADecompressor()
    elif payload.startswith(b"\x1f\x8b"):
        archive = zlib.decompressobj(31)
    else:
        raise OtherCompression("it is not compressed with xz or gzip")
    try:
        kernel = archive.decompress(payload)
    except (lzma.LZMAError, zlib.error) as error:
        raise ValueError(f"it cannot be decompressed: {error}") from error
    if not archive.eof:
        raise ValueError("it is incomplete")
    if not kernel.startswith(b"\x7fELF"):
        raise ValueError("its decompressed content is not an ELF file")
    return kernel


def _gunzipped(image: bytes) -> bytes:
    try:
        return zlib.decompress(image, 31)
    except zlib.error as error:
        raise ValueError(f"it cannot be decompressed: {error}") from error


def order_of(dependencies: str, driver: str) -> tuple[str, ...]:
    """Return the files of a driver in the order of loading, from the text of modules.dep (depmod(8)), or ()."""
    for line in dependencies.splitlines():
        file, _, needed = line.partition(":")
        if Path(file).name.partition(".")[0].replace("-", "_") == driver.replace("-", "_"):
            return (*reversed(needed.split()), file)
    return ()


def _key(package: str) -> str:
    inputs = f"{package} {SUITE} {DRIVERS} {_BUILDER}"
    return hashlib.sha256(inputs.encode()).hexdigest()[:16]


def _build(package: str, work: Path) -> None:
    root = work / "root"
    keep(work, root, unpack(root, package, work), package=package)
    remove_tree(OwnFolder.of(work, "root"))


def unpack(root: Path, packages: str, temporary: Path) -> str:
    """Unpack the kernel's package and others into a folder; return its release. Raises UserlandError, DiskFull."""
    environment = {"TMPDIR": str(temporary)}
    debian_archive.mmdebstrap("--variant=extract", f"--include={packages}", SUITE, str(root), env=environment)
    releases = [path.name for path in (root / "lib/modules").iterdir()]
    if len(releases) != 1:
        raise UserlandError(f"{packages} has {len(releases)} kernels")
    must(_DEPMOD, "-b", str(root), releases[0])
    return releases[0]


def keep(folder: Path, root: Path, release: str, *, package: str = PACKAGE, packed: bool = False) -> None:
    """Copy from an unpacked package everything that `kept_in` reads. Raises UserlandError.

    With ``packed``, the kernel stays compressed as in Debian (later ones by zstd), which boots more slowly.
    """
    image = (root / f"boot/vmlinuz-{release}").read_bytes()
    try:
        kernel = image if packed else uncompressed(image)
    except OtherCompression:
        kernel = image
    except ValueError as error:
        raise UserlandError(f"the kernel of {package} cannot be used: {error}") from error
    (folder / _VMLINUX).write_bytes(kernel)
    (folder / _VMLINUZ).write_bytes(image)
    tree = root / "lib/modules" / release
    dependencies = (tree / "modules.dep").read_text()
    built_in = _text(tree / "modules.builtin")
    (folder / _MODULES).mkdir()
    modules, lacking = {}, []
    for driver in DRIVERS:
        needed = order_of(dependencies, driver)
        if not needed and not order_of(built_in, driver):
            lacking.append(driver)
        modules[driver] = [Path(path).name.removesuffix(_XZ) for path in needed]
        for path, name in zip(needed, modules[driver], strict=True):
            (folder / _MODULES / name).write_bytes(_module(tree / path))
    banner = _BANNER.search(kernel)
    version = banner.group(1).decode() if banner else release
    record = {"release": release, "version": version, "modules": modules, "lacking": lacking}
    (folder / _ABOUT).write_text(json.dumps(record, indent=1))


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except FileNotFoundError:
        return ""


def _module(file: Path) -> bytes:
    return lzma.decompress(file.read_bytes()) if file.suffix == _XZ else file.read_bytes()
