"""Builds the userlands of a study, checks whether that is possible, and lists their programs."""

import contextlib
import functools
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from weighbridge import registry
from weighbridge.errors import Unavailable, UserlandError
from weighbridge.linux.packages import debian_package
from weighbridge.model.command import Command
from weighbridge.model.isolation import OUTSIDE
from weighbridge.model.measurement import TrialFailure
from weighbridge.model.options import External
from weighbridge.model.plugin import Readiness
from weighbridge.model.secret import secrets_in
from weighbridge.model.study import Role, Study
from weighbridge.model.userland import (
    CLIENTS_SCOPE,
    USUAL_SCOPE,
    Userland,
    Userlands,
    UserlandSpec,
    measured_packages_scope,
    own_userland_scope,
    packages_scope,
)
from weighbridge.model.userland_source import SourceOptions
from weighbridge.model.workload import Endpoint, Workload
from weighbridge.runner.preflight import lacking_here, userland_problem
from weighbridge.study.external import external_resources, names_external
from weighbridge.userland.build import cache_folder, cached, ensure
from weighbridge.userland.products.root import packages_of
from weighbridge.userland.programs import digest_of, digests, program_files


def userland_of(study: Study) -> UserlandSpec:
    """Return what a userland must hold for the study's workloads."""
    return UserlandSpec.union(registry.workloads()[cell.kind].userland(cell.options) for cell in study.cells)


def userland_problems(study: Study) -> Iterator[Readiness]:
    """Yield why a userland of the study is missing and cannot be built by this user.

    Weighbridge does not read files and images that the study names before the study is approved.
    """
    for key, source in study.sources.items():
        if not study.approved and names_external(source):
            continue
        if (problem := userland_problem(userland_of(study), source)) is not None:
            prefix = "" if key == "userland" else f"{key}: "
            yield Readiness(False, prefix + problem.detail, problem.remedy)


def userlands_built(study: Study) -> bool:
    """Return whether all userlands of the study are built already."""
    spec, cache = userland_of(study), cache_folder()
    return all(cached(spec, cache, source) is not None for source in study.sources.values())


def absent_programs(study: Study) -> Iterator[tuple[str, str]]:
    """Yield each workload with a program path that its userland cannot have, and the reason with a remedy.

    A program that the workload creates or copies before it starts is not reported. Weighbridge does not read files
    that the study names before the study is approved.
    """
    kinds = registry.workloads()
    for cell in study.cells:
        reasons: dict[str, None] = {}
        for arm in [arm for arm in study.arms_of(cell) if arm.aa_of is None]:
            workload, options = kinds[cell.kind], study.options(arm, cell)
            if not study.approved and names_external(options, External.FILE):
                continue
            if workload.openings(options) is not None or workload.prepare(options, _NOWHERE) is not None:
                continue
            for role in workload.roles(options):
                inside = role == "solo" or role in study.file.inside
                source = arm.source(role, study.file) if inside else study.file.source(role)
                if not study.approved and names_external(source):
                    continue
                reasons |= dict.fromkeys(_absent(workload, options, role, source))
        yield from ((cell.workload, why) for why in reasons)


def _absent(workload: Workload, options: object, role: Role, source: SourceOptions | None) -> Iterator[str]:
    plugin = registry.userlands()["packages" if source is None else source.kind]
    with contextlib.suppress(TrialFailure):  # the trial reports it
        program = workload.command(role, options, _NOWHERE).argv[0]
        if "/" not in program or secrets_in(program) or (lacks := plugin.lacks(source, program)) is None:
            return
        if program not in workload.files(role, options, _NOWHERE):
            yield f"{program} is not in the root filesystem, because {lacks[0]}. Try: {lacks[1]}"


def ensure_userlands(study: Study, cache: Path, say: Callable[[str], None]) -> Userlands:
    """Return the study's userlands, built if necessary. Raises as `weighbridge.userland.build.ensure` does."""
    spec, clients = userland_of(study), study.file.client_userland
    userlands = Userlands(
        ensure(spec, cache, say, study.file.userland),
        None if clients is None else ensure(spec, cache, say, clients),
        {arm.name: ensure(spec, cache, say, arm.userland) for arm in study.arms if arm.userland is not None},
    )
    return userlands if all(each.digest for each in userlands.all) else _known_by_contents(study, userlands)


def push_userlands(study: Study, repository: str, say: Callable[[str], None]) -> list[str]:
    """Push the images of a study's userlands to a registry; return their names. Raises as `ensure_userlands` does."""
    cache = cache_folder()
    userlands = functools.cache(lambda: ensure_userlands(study, cache, say))
    return [name for kind in registry.hosts().values() for name in kind.push(userlands, repository, cache, say)]


@dataclass(frozen=True, slots=True)
class ImageWay:
    """How the image of a userland gets to a host.

    ``size`` is the size of its archive in bytes; None if it is not built yet. ``on_nodes`` says whether each node
    that the host can use has the image; None if unknown.
    """

    host: str
    userland: str
    size: int | None
    way: str
    on_nodes: Mapping[str, bool | None]


def image_ways(study: Study) -> Iterator[ImageWay]:
    """Yield how the study's userlands get to the hosts that use images.

    Before the study is approved, Weighbridge contacts no host and reads no file or image that the study names.
    """
    spec, cache, roles = userland_of(study), cache_folder(), (study.server_host, *study.client_hosts)
    for host in dict.fromkeys(roles):
        options = study.file.hosts[host]
        kind = registry.hosts()[options.kind]
        if way := options.image_way:
            for key, source in study.sources.items():
                size: int | None = None
                on_nodes: Mapping[str, bool | None] = {}
                with contextlib.suppress(Unavailable, UserlandError, OSError):
                    may_read = study.approved or not names_external(source)
                    if may_read and (built := cached(spec, cache, source)) is not None:
                        size = built.archive().stat().st_size
                        if study.approved and lacking_here(kind) is None:
                            on_nodes = kind.holds(options, built, cache)
                yield ImageWay(host, key, size, way, on_nodes)


def _known_by_contents(study: Study, userlands: Userlands) -> Userlands:
    """Return the userlands; a missing digest becomes one of the measured programs and their libraries."""
    contents = repr(sorted(measured_programs(study, userlands).items()))
    digest = hashlib.sha256(contents.encode()).hexdigest()

    def known(userland: Userland) -> Userland:
        return userland if userland.digest else replace(userland, digest=digest)

    return Userlands(
        known(userlands.usual),
        None if userlands.clients is None else known(userlands.clients),
        {name: known(each) for name, each in userlands.by_environment.items()},
    )


def userland_facts(study: Study, userlands: Userlands) -> dict[str, Mapping[str, str]]:
    """Return the digests and package versions of userlands, by their scope in a run."""
    facts: dict[str, Mapping[str, str]] = {}
    for scope, userland in _by_scope(study, userlands).items():
        facts |= {scope: {"digest": userland.digest}, packages_scope(scope): userland.versions}
    return facts


def _by_scope(study: Study, userlands: Userlands) -> dict[str, Userland]:
    own = {
        own_userland_scope(arm.name): userlands.by_environment.get(arm.name)
        for arm in study.arms
        if arm.aa_of is None
    }
    every = {USUAL_SCOPE: userlands.usual, CLIENTS_SCOPE: userlands.clients, **own}
    return {scope: userland for scope, userland in every.items() if userland is not None}


PROGRAMS = "programs"
"""The scope of these facts: a word of a command -> SHA-256 of the file that it names, in its role's userland."""
_NOWHERE = Endpoint("127.0.0.1", "127.0.0.1", 5201, "127.0.0.1", 1472)
"""No program's name depends on the address of its server."""


def measured_programs(study: Study, userlands: Userlands) -> dict[str, str]:
    """Return the digest of each program, script and further file that the commands of a study's roles name.

    This includes the ``files`` of a workload, because a program can read any of them. It also includes the programs
    of this machine that a study names, such as an engine's, because two builds can print the same version.
    """
    digest_by_name: dict[str, str] = {}
    read: set[tuple[str, tuple[str, ...], str]] = set()
    for userland, environment, command, files in _commands(study, userlands):
        own = "client" if userland is userlands.clients else environment
        note = "" if userland is userlands.usual else f" ({own})"
        invocation = note, command.argv, command.cwd
        if invocation not in read:
            read.add(invocation)
            digest_by_name |= {f"{word}{note}": digest for word, digest in digests(userland, command).items()}
        digest_by_name |= {path: hashlib.sha256(data).hexdigest() for path, data in files.items()}
    for each in external_resources(study):
        if each.kind in (External.PROGRAM, External.RUNTIME):
            with contextlib.suppress(OSError):  # its readiness reports it
                digest_by_name[each.value] = digest_of(Path(each.value))
    return dict(sorted(digest_by_name.items()))


def measured_packages(study: Study, userlands: Userlands) -> dict[str, Mapping[str, str]]:
    """Return the packages of the measured programs, if they have any, with versions, by their scope in a run."""
    files: dict[int, set[Path]] = {}
    for userland, _, command, _ in _commands(study, userlands):
        files.setdefault(id(userland), set()).update(program_files(userland, command))
    return {
        measured_packages_scope(scope): {
            name: userland.versions[name]
            for name in packages_of(userland.root, files.get(id(userland), ()))
            if name in userland.versions
        }
        for scope, userland in _by_scope(study, userlands).items()
    }


def _commands(study: Study, userlands: Userlands) -> Iterator[tuple[Userland, str, Command, Mapping[str, bytes]]]:
    """Yield each command of a study's roles, with its userland, its environment and the files that it reads."""
    for cell in study.cells:
        workload = registry.workloads()[cell.kind]
        for arm in [arm for arm in study.arms if arm.aa_of is None]:
            options = study.options(arm, cell)
            if workload.openings(options) is not None:
                continue
            for role in workload.roles(options):
                inside = role == "solo" or role in study.file.inside
                userland = userlands.of(role, arm.name if inside else OUTSIDE)
                with contextlib.suppress(TrialFailure):  # the trial reports it
                    command = workload.command(role, options, _NOWHERE)
                    if workload.enters(options):  # the launcher's words come first
                        command = replace(command, argv=command.argv[2:])
                    files = workload.files(role, options, _NOWHERE)
                    yield userland, arm.name, userland.process.of(command), files


def package_of(program: str) -> str:
    """Return the Debian package of a program, if it is installed here or a workload has it; otherwise ""."""
    if program.startswith("."):
        return ""
    named = {name for workload in registry.workloads().values() for name in workload.packages}
    return debian_package(program) or (program if program in named else "")
