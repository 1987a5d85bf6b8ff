"""Images of whole machines, built by mmdebstrap and kept under a key of everything that they are made of."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
MACHINES = ("bookworm", "trixie", "sid", "bookworm-arm64")
"""A suite of Debian, and its architecture where that is not amd64."""
SIZE = "14G"

_OPTIONS = (
    "--variant=important",
    "--format=directory",
    '--aptopt=APT::Install-Recommends "false"',
    '--aptopt=Acquire::Languages "none"',
    '--aptopt=Acquire::Check-Valid-Until "false"',
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
    "--dpkgopt=force-unsafe-io",
    '--essential-hook=mkdir -p "$1/usr/share/man/man1"',
)
_QEMU = ("mmdebstrap", "--variant=apt", "--include=qemu-system-x86,qemu-system-arm,qemu-utils,ipxe-qemu", "trixie")


def machines_folder() -> Path:
    """Return the folder of images, wheels and running machines: $MACHINES or one in the user's cache."""
    if chosen := os.environ.get("MACHINES"):
        return Path(chosen)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "weighbridge-machines"


def suite_of(machine: str) -> str:
    """Return the suite of Debian that a machine has."""
    return machine.partition("-")[0]


def architecture_of(machine: str) -> str:
    """Return Debian's name of the machine's architecture."""
    return machine.partition("-")[2] or "amd64"


def emulated(machine: str) -> list[str]:
    """Return the words before a command that runs the machine's programs here; none where they run as they are."""
    return [] if architecture_of(machine) == "amd64" else [sys.executable, str(HERE / "foreign.py")]


def packages(machine: str) -> list[str]:
    """Return the Debian packages of the machine."""
    return (HERE / "packages" / f"{machine}.txt").read_text().split()


def image_key(machine: str, public_key: str) -> str:
    """Return the key of the machine's image: a hash of its packages, the recipe and the options of mmdebstrap."""
    parts = (machine, SIZE, *sorted(packages(machine)), *_OPTIONS, (HERE / "recipe.sh").read_text(), public_key)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def ssh_key(folder: Path) -> Path:
    """Return the private key that opens every machine of the folder; it is made at first use."""
    key = folder / "key"
    if not key.exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    return key


def image(machine: str, folder: Path) -> Path:
    """Return the folder with the machine's root.ext4, vmlinuz and initrd, built if need be."""
    public = ssh_key(folder).with_suffix(".pub")
    kept = folder / "images" / f"{machine}-{image_key(machine, public.read_text())}"
    if kept.exists():
        return kept
    building = kept.with_name(kept.name + ".building")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    root = building / "root"
    recipe = f'--customize-hook="{HERE / "recipe.sh"}" "$1" "{public}"'
    include = "--include=" + ",".join(packages(machine))
    made = ["mmdebstrap", *_OPTIONS, f"--architectures={architecture_of(machine)}", include, recipe]
    _logged(building / "mmdebstrap.log", [*emulated(machine), *made, suite_of(machine), root])
    for name, pattern in (("vmlinuz", "vmlinuz-*"), ("initrd", "initrd.img-*")):
        (newest,) = (root / "boot").glob(pattern)
        shutil.copy(newest, building / name)
    disk = building / "root.ext4"
    subprocess.run(["truncate", "--size", SIZE, disk], check=True)
    filesystem = ["mke2fs", "-q", "-t", "ext4", "-E", "lazy_itable_init=1,lazy_journal_init=1", "-d", root, disk]
    _logged(building / "mke2fs.log", filesystem)
    shutil.rmtree(root)
    building.rename(kept)
    return kept


def emulator(folder: Path) -> Path:
    """Return a root folder with QEMU 10, whose programs are run in it by chroot.

    QEMU 7.2 of Debian 12 emulates `-cpu max` in a way in which systemd loses its mounts.
    """
    kept = folder / "qemu"
    if not kept.exists():
        building = kept.with_name("qemu.building")
        shutil.rmtree(building, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        _logged(folder / "qemu.log", [*_QEMU, building])
        building.rename(kept)
    return kept


def _logged(log: Path, command: list[str | Path]) -> None:
    """Run the command with its output in the log, whose end is part of the error where it fails."""
    with log.open("w") as stream:
        ended = subprocess.run(command, stdout=stream, stderr=subprocess.STDOUT, check=False)
    if ended.returncode:
        raise RuntimeError(f"{command[0]} ended with {ended.returncode}: {log.read_text()[-2000:]} (in {log})")
