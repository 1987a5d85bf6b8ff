"""Builds and caches root file systems: one per set of packages, built once, never changed afterwards."""

import contextlib
import hashlib
import json
import os
import pwd
import shlex
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from weighbridge.errors import DiskFull, Unavailable, UserlandError
from weighbridge.model.command import Command
from weighbridge.model.site import Userland
from weighbridge.model.userland import UserlandSpec
from weighbridge.process import run
from weighbridge.user_cache import user_cache_folder
from weighbridge.userland import golang as programs
from weighbridge.userland import maven as jars
from weighbridge.userland import once

SUITE = "bookworm"
COMPONENTS = "main contrib non-free"  # netperf is in non-free
BASE = ("iproute2",)
BUILDER = 1
"""Raised when what is built from the same packages changes."""
BUILD_DEADLINE_S = 1800.0


def cache_folder() -> Path:
    """Where userlands and engines' data are kept: WEIGHBRIDGE_CACHE, else the user's cache folder.

    Raises Unavailable for a user who has neither.
    """
    if given := os.environ.get("WEIGHBRIDGE_CACHE"):
        return Path(given).absolute()
    return user_cache_folder()


def key_of(spec: UserlandSpec) -> str:
    """The name under which a userland is cached: what is asked for, not what came of it."""
    asked: dict[str, object] = {
        "suite": SUITE, "components": COMPONENTS, "builder": BUILDER, "packages": _packages(spec),
    }  # fmt: skip
    if spec.maven:
        asked["maven"] = {project: jars.key_of(project) for project in spec.maven}
    if spec.golang:
        asked["golang"] = {project: programs.key_of(project) for project in spec.golang}
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]


def _packages(spec: UserlandSpec) -> list[str]:
    return sorted({*spec.packages, *BASE})


def cached(spec: UserlandSpec, cache: Path) -> Userland | None:
    """The built userland, or None."""
    folder = cache / "userlands" / key_of(spec)
    try:
        about = json.loads((folder / "about.json").read_text())
        return Userland(about["digest"], folder / "root", folder / "root.tar", about["versions"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError) as error:
        raise UserlandError(f"the cached userland {folder} is damaged ({error}): delete it and run again") from error


def cannot_build(spec: UserlandSpec) -> tuple[str, str] | None:
    """Why this user cannot build a userland, and what helps; None: it can."""
    if _which("mmdebstrap") is None:
        return "mmdebstrap, which builds userlands, is not installed", "apt-get install mmdebstrap"
    if not _has_ids():
        return _NO_RANGE, _range_remedy()
    return jars.cannot_build(spec.maven, cache_folder()) or programs.cannot_build(spec.golang, cache_folder())


def _has_ids() -> bool:
    """Whether this user can make files of other users, as mmdebstrap must."""
    if os.geteuid() == 0 or _which("fakechroot") is not None:
        return True
    return _which("newuidmap") is not None and all(_has_range(Path(file)) for file in ("/etc/subuid", "/etc/subgid"))


_NO_RANGE = "this user has no subordinate user and group ids to build a userland with"


def _range_remedy() -> str:
    uidmap = "apt-get install uidmap; " if _which("newuidmap") is None else ""
    return (
        f"as root: {uidmap}usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {_user()[0]}; "
        "or use a userland that root has built, with WEIGHBRIDGE_CACHE"
    )


def _user() -> tuple[str, str]:
    """The name, or what serves as one, and the number of this user."""
    number = os.geteuid()
    try:
        return pwd.getpwuid(number).pw_name, str(number)
    except KeyError:
        return str(number), str(number)


def _has_range(file: Path) -> bool:
    """Whether a file like /etc/subuid (``user:first:count``) gives this user a range."""
    with contextlib.suppress(OSError):
        return any(line.split(":")[0] in _user() for line in file.read_text().splitlines())
    return False


def _which(program: str) -> str | None:
    """Where a program is; users often do not have the folders of root's programs in their PATH."""
    return shutil.which(program, path=os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin")))


def ensure(spec: UserlandSpec, cache: Path, say: Callable[[str], None]) -> Userland:
    """The userland, built if need be.

    In its /opt/NAME are the jars of its Maven projects, in /usr/local/bin the programs of its Go projects.
    Safe when several runs want it at the same time. Raises Unavailable where this user cannot build one,
    UserlandError where it fails, DiskFull.
    """

    def build(work: Path) -> None:
        folders = [jars.ensure(project, cache, say) for project in spec.maven]
        files = [programs.ensure(project, cache, say) for project in spec.golang]
        say("installing its packages takes a few minutes")
        _build(_packages(spec), folders, files, work)

    return once.ensure(
        cache / "userlands",
        key_of(spec),
        "the userland",
        lambda: cached(spec, cache),
        # what Maven and Go lack is told where they are built
        lambda: cannot_build(UserlandSpec()),
        say,
        build,
    )


def suite_of(packages: Iterable[str]) -> tuple[str, list[str]]:
    """The one Debian suite that packages want which are written NAME/SUITE (the usual one without), and the names.

    Raises UserlandError where they want several: their programs would be built for different libraries.
    """
    split = [package.partition("/") for package in packages]
    suites = sorted({suite for _, _, suite in split if suite}) or [SUITE]
    if len(suites) > 1:
        raise UserlandError(f"a userland is of one Debian suite, but the study's workloads want {', '.join(suites)}")
    return suites[0], [name for name, _, _ in split]


def _build(packages: list[str], folders: list[Path], files: list[Path], work: Path) -> None:
    tar, root = work / "root.tar", work / "root"
    suite, names = suite_of(packages)
    # root builds below the cache, so that what a kill leaves behind is found; others need a folder that their
    # subordinate users can reach
    temporary = {"TMPDIR": str(work)} if os.geteuid() == 0 else {}
    _must(
        *_dies_with_us(), "mmdebstrap",
        "--variant=apt", f"--include={','.join(names)}", f"--components={COMPONENTS}",
        *(() if suite == SUITE else ("--aptopt=Acquire::Check-Valid-Until false",)),  # sid's lists may be a copy's
        "--aptopt=Apt::Install-Recommends false",
        "--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*",
        "--dpkgopt=path-exclude=/usr/share/locale/*",
        "--essential-hook=mkdir -p $1/usr/share/man/man1",  # where Java's packages put links to their manuals
        "--customize-hook=rm -rf $1/var/lib/apt/lists $1/var/cache/apt $1/etc/hostname $1/etc/resolv.conf",
        "--customize-hook=mkdir -p $1/var/lib/apt/lists $1/var/cache/apt",
        *(f"--customize-hook=copy-in {shlex.quote(str(folder))} /opt" for folder in folders),
        *(f"--customize-hook=copy-in {shlex.quote(str(file))} {programs.PLACE}" for file in files),
        suite, str(tar), env=temporary,
    )  # fmt: skip
    root.mkdir()
    keep = (
        ("--numeric-owner", "--same-permissions") if os.geteuid() == 0 else ("--no-same-owner", "--exclude=./dev/*")
    )
    _must("tar", "--extract", "--file", str(tar), "--directory", str(root), *keep)
    status = (root / "var/lib/dpkg/status").read_text()
    versions = versions_in(status)
    for folder in folders:
        versions |= jars.versions(folder)
    for file in files:
        versions |= programs.versions(file)
    about = {"digest": _digest(tar), "versions": versions, "asked": packages, "suite": suite}
    (work / "about.json").write_text(json.dumps(about, indent=1, sort_keys=True))


def _dies_with_us() -> tuple[str, ...]:
    """A launcher: what is behind it is killed when we are, so that no half-done build gets in the next one's way."""
    alone = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc") if os.geteuid() == 0 else ()
    return "setpriv", "--pdeathsig", "KILL", "--", *alone


def _must(*argv: str, env: Mapping[str, str] | None = None) -> None:
    completed = run(Command(argv, BUILD_DEADLINE_S, env or {}))
    program = "mmdebstrap" if "mmdebstrap" in argv else argv[0]
    if completed.timed_out:
        raise UserlandError(f"{program} did not end within {BUILD_DEADLINE_S / 60:.0f} minutes")
    if completed.returncode != 0:
        lines = completed.stderr.decode(errors="replace").splitlines()
        told = [line for line in lines if line.startswith("E:")] or lines[-1:] or ["no message"]
        if "unable to pick chroot mode" in " ".join(lines):
            raise Unavailable(f"{_NO_RANGE}: {_range_remedy()}")
        if "No space left" in " ".join(lines):
            raise DiskFull(f"{program} ran out of disk space: {told[0]}")
        raise UserlandError(f"{program} failed: {told[0]}")


def versions_in(dpkg_status: str) -> dict[str, str]:
    """Package -> version of every installed package, from the text of /var/lib/dpkg/status."""
    versions = {}
    for paragraph in dpkg_status.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in paragraph.splitlines() if ": " in line and line[0] != " ")
        if fields.get("Status") == "install ok installed":
            versions[fields["Package"]] = fields["Version"]
    return versions


def _digest(tar: Path) -> str:
    with tar.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()
