"""Debian packages, with the products of our Maven, Go and C projects: the same bits for every environment."""

import hashlib
import json
import os
import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from weighbridge.errors import UserlandError
from weighbridge.linux import user_namespaces
from weighbridge.linux.packages import install_here
from weighbridge.linux.process import which as _which
from weighbridge.linux.user_namespaces import has_ranges, range_command
from weighbridge.model.by_hand import Recipe
from weighbridge.model.userland import UserlandSpec
from weighbridge.model.userland_source import SourceOptions, UserlandSource
from weighbridge.userland import c as c_programs
from weighbridge.userland import debian_archive
from weighbridge.userland import golang as go_programs
from weighbridge.userland import maven as jars
from weighbridge.userland.products import archive

_NO_SETUID = '--customize-hook=find "$1" -xdev -type f -perm /6000 -exec chmod ug-s {} +'
"""Removes setuid bits, since other users can enter the root filesystem, whose programs get no security updates."""
SUITE = "bookworm"
COMPONENTS = "main contrib non-free"  # netperf is in non-free
BASE = ("iproute2",)
PROGRAMS = "/usr/local/bin"
"""The folder of our own programs in a root filesystem."""
BUILDER = 2
"""Incremented when the same packages give another result."""


_PLACES = frozenset((
    "bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "opt", "proc", "run", "sbin", "srv", "sys", "tmp", "usr",
    "var",
))  # fmt: skip
"""Folders of its root that can get a program from a package or a site."""


class PackagesOptions(SourceOptions):
    """The study's workloads determine the packages.

    ``libc: musl`` builds the workloads' own C programs with the C library of Alpine's images, and its allocator.
    Debian's packages do not change.
    """

    kind: Literal["packages"] = "packages"
    libc: Annotated[
        c_programs.Libc | None,
        Field(
            description="The C library of the workloads' own C programs; default: the library of this "
            "machine's compiler"
        ),
    ] = None


class Packages(UserlandSource):
    """The source that mmdebstrap builds."""

    kind = "packages"
    summary = "the Debian packages that the study's workloads need, and nothing else"
    options = PackagesOptions
    shared = True
    build_s = 25.0

    def key(self, options: Any, spec: UserlandSpec) -> str:
        """Return a digest of the suite, packages and projects that are asked for, not of their versions."""
        libc = _libc(options)
        if libc is not None and not spec.c:
            reason = "no workload of this study uses a C program of Weighbridge"
            raise UserlandError(f"userland: libc: {libc} has no effect, because {reason}: remove it")
        inputs: dict[str, object] = {
            "suite": SUITE, "components": COMPONENTS, "builder": BUILDER, "packages": _packages(spec),
        }  # fmt: skip
        if spec.maven:
            inputs["maven"] = {project: jars.key_of(project) for project in spec.maven}
        if spec.golang:
            inputs["golang"] = {project: go_programs.key_of(project) for project in spec.golang}
        if spec.c:
            inputs["c"] = {project: c_programs.key_of(project, libc) for project in spec.c}
        return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:16]

    def cannot_build(self, options: Any, spec: UserlandSpec, cache: Path) -> tuple[str, str] | None:
        """Return which programs, keys or subordinate ids are missing, and a remedy; None if it can be built."""
        if (missing := debian_archive.lacking()) is not None:
            return missing
        if not _has_ids():
            return _NO_RANGE, _range_remedy()
        if os.geteuid() != 0 and _which("fakechroot") is None and (closed := user_namespaces.refusal("mmdebstrap")):
            return closed[0], f"{closed[1]}; {_ROOTS}"
        return (
            jars.cannot_build(spec.maven, cache)
            or go_programs.cannot_build(spec.golang, cache)
            or c_programs.compiler(_libc(options)).cannot_build(spec.c, cache)
        )

    def lacks(self, options: Any, program: str) -> tuple[str, str] | None:
        """Return why a path can have no program: no package installs one there, and programs start in /."""
        place = os.path.normpath(Path("/", program))
        if place.split("/")[1] in _PLACES:
            return None
        reason = f"a root filesystem of Debian packages has no {place}"
        return reason, (
            "use this machine's files (userland: {kind: host, folder: .}); 'weighbridge weigh --save own.yaml -- "
            f"{program}' writes such a study"
        )

    def recipe(self, options: Any, spec: UserlandSpec) -> Recipe:
        """Return a recipe with Debian's image of the same suite, the same packages, and our programs built in it.

        It names no versions: Debian's archive keeps only the newest of a suite, so a pinned version soon fails.
        """
        suite, names = suite_of(_packages(spec))
        base = f"debian:{suite}"
        builds = (
            *(jars.by_hand(each) for each in spec.maven),
            *(go_programs.by_hand(each, PROGRAMS) for each in spec.golang),
            *(c_programs.by_hand(each, PROGRAMS, _libc(options)) for each in spec.c),
        )
        return Recipe("", base, tuple(COMPONENTS.split()), tuple(names), builds)

    def build(
        self, options: Any, spec: UserlandSpec, work: Path, cache: Path, say: Callable[[str], None]
    ) -> Mapping[str, str]:
        """Build it with jars in /opt/NAME, and the programs of Go and C projects in /usr/local/bin."""
        folders = [jars.ensure(project, cache, say) for project in spec.maven]
        go_files = [go_programs.ensure(project, cache, say) for project in spec.golang]
        c_files = [c_programs.compiler(_libc(options)).ensure(project, cache, say) for project in spec.c]
        _build(_packages(spec), folders, [*go_files, *c_files], work / archive.NAME, say)
        versions: dict[str, str] = {}
        for folder in folders:
            versions |= jars.versions(folder)
        for file in go_files:
            versions |= go_programs.versions(file)
        for file in c_files:
            versions |= c_programs.versions(file)
        return versions


def _libc(options: Any) -> c_programs.Libc | None:
    """Return the requested C library; a study without a root filesystem has no options for it."""
    return None if options is None else options.libc


def _packages(spec: UserlandSpec) -> list[str]:
    return sorted({*spec.packages, *BASE})


def _has_ids() -> bool:
    """Return whether this user can make files of other users, as mmdebstrap must."""
    if os.geteuid() == 0 or _which("fakechroot") is not None:
        return True
    return _which("newuidmap") is not None and has_ranges()


_NO_RANGE = "this user has no subordinate user and group ids, which the build of a root filesystem needs"


_ROOTS = "or use a root filesystem built by root (WEIGHBRIDGE_CACHE)"


def _range_remedy() -> str:
    uidmap = f"{install_here(['newuidmap'])}; " if _which("newuidmap") is None else ""
    return f"as root: {uidmap}{range_command()}; {_ROOTS}"


def suite_of(packages: Iterable[str]) -> tuple[str, list[str]]:
    """Return the Debian suite of packages, which are NAME/SUITE or NAME (the default suite), and their names.

    Raises UserlandError for several suites: their programs would be built for different libraries.
    """
    split = [package.partition("/") for package in packages]
    suites = sorted({suite for _, _, suite in split if suite}) or [SUITE]
    if len(suites) > 1:
        problem = (
            f"the study's workloads need several Debian suites ({', '.join(suites)}), but a root filesystem has "
            "only one"
        )
        raise UserlandError(f"{problem}: write one study for each suite")
    return suites[0], [name for name, _, _ in split]


def _build(
    packages: list[str], folders: list[Path], files: list[Path], tar: Path, say: Callable[[str], None]
) -> None:
    suite, names = suite_of(packages)
    # root builds in the cache, so that leftovers of a kill are found; others need a folder that their subordinate
    # users can reach
    temporary = {"TMPDIR": str(tar.parent)} if os.geteuid() == 0 else {}
    arguments = (
        "--variant=essential", f"--include={','.join(names)}", f"--components={COMPONENTS}",
        *(() if suite == SUITE else ("--aptopt=Acquire::Check-Valid-Until false",)),  # sid: can be a snapshot
        *debian_archive.LEAN, "--customize-hook=mkdir -p $1/var/lib/apt/lists $1/var/cache/apt", _NO_SETUID,
        *(f"--customize-hook=copy-in {shlex.quote(str(folder))} /opt" for folder in folders),
        *(f"--customize-hook=copy-in {shlex.quote(str(file))} {PROGRAMS}" for file in files),
        suite, str(tar),
    )  # fmt: skip
    reasons = {"unable to pick chroot mode": f"{_NO_RANGE}: {_range_remedy()}"}
    debian_archive.mmdebstrap(*arguments, before=_dies_with_us(), env=temporary, unavailable=reasons, say=say)


def _dies_with_us() -> tuple[str, ...]:
    """Return the words before a command that kill it with this process, so that it cannot disturb the next build."""
    alone = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc") if os.geteuid() == 0 else ()
    return "setpriv", "--pdeathsig", "KILL", "--", *alone


PLUGIN = Packages()
