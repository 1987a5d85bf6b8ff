"""Systems that need Debian's unstable branch: VirtualBox (contrib), alone or as a host with its kernel modules."""

from pathlib import Path

from weighbridge.errors import UserlandError
from weighbridge.features.guests import kernel
from weighbridge.linux.deletion import OwnFolder, remove_tree
from weighbridge.userland import debian_archive

SUITE = "sid"
NOT_SIGNED_LATELY = '--aptopt=Acquire::Check-Valid-Until "false"'
"""An option for mirrors that are snapshots, whose list of packages has expired."""
_HOST = (
    "ethtool", "iproute2", "iptables", "kmod", "linux-headers-amd64", "linux-image-amd64", "mount", "procps",
    "python3", "util-linux", "virtualbox", "virtualbox-dkms",
)  # fmt: skip
MODULES = ("vboxdrv", "vboxnetadp", "vboxnetflt")
_ONLY_FOR_BUILDING = ("usr/src", "usr/lib/gcc", "usr/libexec/gcc", "var/lib/dkms", "usr/lib/x86_64-linux-gnu/perl")
_BUILDER = 1
INPUTS = f"{SUITE} {_HOST} {_ONLY_FOR_BUILDING} {_BUILDER}"
"""The inputs that identify a host with VirtualBox."""


def virtualbox(root: Path, temporary: Path) -> None:
    """Fill a folder with a system that has VirtualBox, without modules. Raises UserlandError, DiskFull."""
    _make(root, ("virtualbox",), temporary)


def host_of_virtualbox(work: Path) -> str:
    """Make ``root`` below a folder, and the kernel next to it; return its release. Raises UserlandError, DiskFull.

    DKMS builds the modules when their package is configured, which takes several minutes.
    """
    root = work / "root"
    _make(root, _HOST, work)
    releases = [path.name for path in (root / "lib/modules").iterdir()]
    if len(releases) != 1:
        raise UserlandError(f"the system with VirtualBox has {len(releases)} kernels")
    for name in MODULES:
        if not [*(root / "lib/modules" / releases[0]).glob(f"updates/dkms/{name}.ko*")]:
            raise UserlandError(f"VirtualBox's module {name} was not built for kernel {releases[0]}")
    kernel.keep(work, root, releases[0], packed=True)
    for folder in _ONLY_FOR_BUILDING:
        remove_tree(OwnFolder.of(work, "root", *folder.split("/")))
    for image in (root / "boot").iterdir():
        image.unlink()
    return releases[0]


def _make(root: Path, packages: tuple[str, ...], temporary: Path) -> None:
    debian_archive.mmdebstrap(
        "--variant=apt", "--components=main contrib", f"--include={','.join(packages)}", *debian_archive.LEAN,
        NOT_SIGNED_LATELY, SUITE, str(root), env={"TMPDIR": str(temporary)},
    )  # fmt: skip
