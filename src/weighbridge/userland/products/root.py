"""The root folder of a root filesystem, which native sites enter."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from weighbridge.errors import UserlandError
from weighbridge.model.site import DATA, SITES_OWN
from weighbridge.userland.commands import must

NAME = "root"
_AS_ROOT = ("--numeric-owner", "--same-permissions", "--xattrs", "--xattrs-include=security.capability")
"""Options that keep file capabilities (capabilities(7)), as engines do."""
MOUNT_POINTS = (*SITES_OWN, DATA.strip("/"))
"""Mount points of sites, which images and folders of users sometimes do not have."""


def unpack(tar: Path, root: Path) -> None:
    """Extract an archive into a new folder. Raises UserlandError, DiskFull."""
    root.mkdir()
    keep = _AS_ROOT if os.geteuid() == 0 else ("--no-same-owner", "--exclude=./dev/*")
    must("tar", "--extract", "--file", str(tar), "--directory", str(root), *keep)
    for name in MOUNT_POINTS:
        try:
            (root / name).mkdir(exist_ok=True)
        except FileExistsError:
            reason = "but environments mount a folder there: move it in the image"
            raise UserlandError(f"/{name} is a file, {reason}") from None
    if not (root / "etc").is_symlink():
        (root / "etc").mkdir(exist_ok=True)
        if not os.path.lexists(root / "etc/hosts"):  # sites with host names mount a file there, as Docker does
            (root / "etc/hosts").touch()


def packages_in(root: Path) -> dict[str, str]:
    """Return package -> version from Debian's database; empty without one."""
    try:
        return versions_in((root / "var/lib/dpkg/status").read_text(errors="replace"))
    except OSError:
        return {}


def packages_of(root: Path, files: Iterable[Path]) -> list[str]:
    """Return the Debian packages of some files below a root folder, by name; empty without dpkg's lists.

    A package from before /bin, /sbin and /lib became links to folders of /usr lists its files under these names.
    """
    names = {f"/{file.relative_to(root)}" for file in files}
    wanted = {name.encode() for each in names for name in (each, each.removeprefix("/usr"))}
    packages = set()
    for listed in (root / "var/lib/dpkg/info").glob("*.list") if wanted else ():
        with contextlib.suppress(OSError):
            if not wanted.isdisjoint(listed.read_bytes().split(b"\n")):
                packages.add(listed.stem.partition(":")[0])
    return sorted(packages)


def versions_in(dpkg_status: str) -> dict[str, str]:
    """Return package -> version of every installed package, from the text of /var/lib/dpkg/status."""
    versions = {}
    for paragraph in dpkg_status.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in paragraph.splitlines() if ": " in line and line[0] != " ")
        if fields.get("Status") == "install ok installed":
            versions[fields["Package"]] = fields["Version"]
    return versions
