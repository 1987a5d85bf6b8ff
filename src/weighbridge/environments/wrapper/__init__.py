"""Any program that runs another one: ``PROGRAM OPTIONS -- COMMAND``, such as the sandboxes of coding agents."""

import os
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, Field, model_validator

from weighbridge.environments.wrapper.denials import Trials, read_again, tried, unconfined
from weighbridge.environments.wrapper.preset import FOLDER, Network, Places, Preset, PresetError, names, preset
from weighbridge.environments.wrapper.site import WrappedSite, not_covered
from weighbridge.errors import Unavailable
from weighbridge.hosts.chroot import SitePaths, launcher_command, started
from weighbridge.linux import user_namespaces
from weighbridge.linux.packages import install_here
from weighbridge.linux.process import run, which
from weighbridge.model.command import Command
from weighbridge.model.environment import Environment, EnvironmentOptions, Needs
from weighbridge.model.facts import ADDITIONAL_RULES
from weighbridge.model.options import External
from weighbridge.model.plugin import Group, Readiness
from weighbridge.model.site import DATA, Site, SiteRequest
from weighbridge.model.spelling import nearest

LAUNCHER, SETTINGS = "/run/weighbridge-launcher", "/run/weighbridge-settings"
"""The places of launcher/source/site.h, which every site of a wrapper has."""
_MEMORY, _HOME = "/tmp", "/run"  # noqa: S108 - of the site
_ONLY_ROOT = ("a user's sites are in a user namespace, where a setuid program has no rights", "run as root")
_TRY_S = 30.0
_VERSION = re.compile(r"\d+\.\d[\w.+-]*")
_IN_MEMORY = f"""mount -t tmpfs try {_HOME} && mount -t tmpfs try {_MEMORY} && printf %s "$1" > {SETTINGS} || exit
shift; exec "$@\""""
_IN_ROOT = """IFS=:; for folder in $2; do [ -x "$1$folder/$3" ] && exit; done; exit 1"""
"""Whether a root folder ($1) has a program ($3) in a folder of a PATH ($2)."""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def _without_null(word: str) -> str:
    if "\0" in word:
        raise ValueError("a word of the command contains the character NUL: remove it")
    return word


def _known(name: str) -> str:
    if name not in names():
        hint = nearest(name, names()) or f". Known presets: {', '.join(names())}"
        raise ValueError(f"unknown preset '{name[:40]}'{hint}")
    return name


class WrapperOptions(EnvironmentOptions):
    """``command`` is the command line up to the program, and ``preset`` names one that Weighbridge knows.

    In ``command``, ``{data}`` is the folder of the data, ``{folder}`` the working folder, and ``{launcher}`` the
    program that the wrapper must be able to start.
    """

    command: Annotated[
        Annotated[
            tuple[Annotated[str, Field(min_length=1, max_length=4096), AfterValidator(_without_null)], ...],
            Field(min_length=1),
        ]
        | None,
        Field(description="The wrapper's command line, up to the program that it starts"),
        External.COMMAND,
    ] = None
    preset: Annotated[
        Annotated[str, AfterValidator(_known)] | None, Field(description="A sandbox that Weighbridge knows")
    ] = None
    network: Annotated[
        Network | None,
        Field(
            description="No network, or the host's network. Default of a preset: none if it can, and host if a "
            "workload needs a network"
        ),
    ] = None
    omit: Annotated[tuple[str, ...], Field(description="Mechanisms of the preset to leave out, as explain does")] = ()
    rules: Annotated[
        int,
        Field(ge=0, le=10_000, description="Number of additional rules of the preset, each for a file of its own"),
    ] = 0

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.command is None) == (self.preset is None):
            raise ValueError("give either 'command' or 'preset'")
        if self.preset is None:
            program = (self.command or ("",))[0]
            if "/" in program and program[0] not in "/{":
                raise ValueError(f"the wrapper starts in /, so give the absolute path of {program[:60]} in 'command'")
            for name in ("omit", "rules"):
                if getattr(self, name):
                    raise ValueError(f"'{name}' needs a preset")
            return self
        chosen = preset(self.preset)
        if self.network is not None and self.network not in chosen.network:
            raise ValueError(f"the preset {self.preset} cannot have 'network: {self.network}'")
        if self.rules and not chosen.rule:
            fits = ", ".join(name for name in names() if preset(name).rule)
            raise ValueError(f"the preset {self.preset} has no rules for files to add: remove 'rules', or use {fits}")
        if unknown := [name for name in self.omit if name not in chosen.switches]:
            known = f"omit {', '.join(chosen.switches)}" if chosen.switches else "remove 'omit'"
            raise ValueError(f"the preset {self.preset} cannot omit {unknown[0][:40]!r}: {known}")
        return self

    @property
    def removable(self) -> frozenset[str]:
        """The mechanisms that are on and that the preset can leave out."""
        return frozenset(preset(self.preset).switches) - {*self.omit} if self.preset else frozenset()


class Wrapper(Environment):
    """A site with the layers of a native one, in which another program starts the launcher.

    So a wrapper differs from ``native`` by the wrapper alone. It can use this machine's own files, or a root
    filesystem that contains the wrapper's program.
    """

    kind = "wrapper"
    group: ClassVar[Group] = "sandboxes"
    summary = "any program that runs another one, such as the sandboxes landrun, firejail, nsjail, srt and codex"
    options = WrapperOptions
    limited_by_host = True
    mounts = frozenset({"folder"})
    storage = "directory"
    shares_root = True
    takes = frozenset({"shm_size"})
    opening_s = 1.0

    def unverified(self, options: Any | None = None) -> str:
        with suppress(PresetError):  # ready() reports it
            return preset(options.preset).unverified if options is not None and options.preset else ""
        return ""

    def check(self, options: Any, needs: Needs) -> Sequence[str]:
        """Return why programs without a network cannot be a server or a client."""
        if not needs.network:
            return []
        if options.network == "none":
            return ["without a network, no client reaches a server: use network: host, or leave 'network' out"]
        if options.preset and "host" not in preset(options.preset).network:
            return [f"the preset {options.preset} always denies the host's network, so no client reaches a server"]
        return []

    def route_to_supporting_services(self, options: Any) -> str:
        """Return the route to the supporting services of a study: as natively."""
        return "" if options.network == "none" else "host to bridge"

    def variants(self) -> Mapping[str, Any]:
        """Return each preset by its name, unchecked, so that one with a wrong file gets a row, too."""
        return {name: WrapperOptions.model_construct(preset=name) for name in names()}

    def weighed_in(self) -> Mapping[str, Mapping[str, Any]]:
        """Return each preset by its name."""
        return {name: {"preset": name} for name in names()}

    def ready(self, options: Any | None = None, needs: Needs | None = None) -> Readiness:
        """Return whether the wrapper's programs are installed, and whether a preset starts a shell."""
        if options is None or (needs is not None and not needs.of_this_machine):
            return Readiness(True)  # the root filesystem contains the wrapper: open() checks this
        if options.preset is None:
            return _installed(options.command[0])
        try:
            chosen = preset(options.preset)
        except PresetError as error:
            return Readiness(False, str(error), f"correct {FOLDER / options.preset}.yaml")
        if chosen.only_root and os.geteuid() != 0:
            return Readiness(False, *_ONLY_ROOT)
        if missing := [program for program in chosen.programs if which(program) is None]:
            programs = " and ".join(f"'{program}'" for program in missing)
            several = len(missing) > 1
            why = f"the program{'s' * several} {programs} {'are' if several else 'is'} not installed"
            return Readiness(False, why, install_here(missing, chosen.installers()))
        return _tried_here(
            options.preset,
            chosen,
            chosen.chosen(options.network, networked=_networked(needs)),
            frozenset(options.omit),
        )

    def ready_unapproved(self, options: Any, needs: Needs) -> Readiness:
        """Return whether a name is in PATH. A path is not looked at, because it can lead to another machine."""
        if options.command is None or "/" in options.command[0]:
            return super().ready_unapproved(options, needs)
        return self.ready(options, needs)

    @contextmanager
    def open(self, options: Any, request: SiteRequest) -> Iterator[Site]:
        """Start the launcher through the wrapper, and try in the first site what it denies."""
        if request.userland.process.uid is not None:
            user = request.userland.process.user("root")
            why = f"a sandbox has only one user, so it cannot run an image's programs as {user}"
            raise Unavailable(f"{request.title}: {why}. Use docker or podman")
        places = places_of(request)
        chosen = preset(options.preset) if options.preset else None
        network = chosen.chosen(options.network, networked=request.networked) if chosen else options.network
        without = frozenset(options.omit)
        words = (
            chosen.words(network, without, places, options.rules)
            if chosen
            else tuple(map(places.filled, options.command))
        )
        settings = chosen.settings(network, places) if chosen else ""
        programs = chosen.programs if chosen else words[:1]
        key = f"{' '.join(programs)} in {request.userland.digest} on {request.host.name}"
        if lacking := request.run.share(key, lambda: nullcontext(_lacking_in_root(request, programs))):
            why = f"the root filesystem does not contain '{lacking}', which must be in it"
            raise Unavailable(f"{request.title}: {why}. Add its package, or use 'userland: host'")

        argv = partial(command, request, words, settings, places.outside, rules=options.rules)
        with started(request, argv, Path(programs[0]).name) as running:
            site = WrappedSite(request, running)
            shown = chosen.words(network, without, places) if chosen else words
            written = [word.replace(places.outside, "{outside}") for word in shown]  # the same in each site
            site.notes |= _notes(request, chosen, network, written)
            if chosen and chosen.rule:
                site.notes[ADDITIONAL_RULES] = str(options.rules)
            try:
                site.trials = _trials(request, site, places, chosen, network, without)
                yield site
            finally:  # a frozen launcher cannot receive the order to end
                site.thaw()


def command(
    request: SiteRequest, words: Sequence[str], settings: str, outside: str, parts: SitePaths, rules: int = 0
) -> tuple[str, ...]:
    """Return the argument list: the launcher makes the layers and becomes the wrapper, which starts it again.

    ``rules`` is the number of files for additional rules.
    """
    written = [*(["--settings", settings] if settings else []), *(["--rules", str(rules)] if rules else [])]
    return (*launcher_command(request, parts), *written, "--outside", outside, "--exec", *words, LAUNCHER)


def _networked(needs: Needs | None) -> bool:
    return needs is not None and needs.network


def _installed(program: str) -> Readiness:
    """Return whether the program of a study's own wrapper is installed, and how to get it: a preset can know it."""
    if "{" in program or which(program) is not None:
        return Readiness(True)
    if "/" in program:
        return Readiness(False, f"{program} is missing, or is not executable for this user", "check its path")
    remedy = install_here([program])
    with suppress(KeyError, PresetError):
        get = install_here([program], preset(program).installers())
        remedy = f"{get}; then use its preset: --in {program}, or 'preset: {program}' in a study"
    return Readiness(False, f"the program '{program}' is not installed", remedy)


def places_of(request: SiteRequest) -> Places:
    """Return the paths in a site. The working folder is without links, because many wrappers do not follow them."""
    layered = request.userland.layered
    folder = str(Path(layered).resolve()) if layered else ""
    data = DATA if request.storage is not None else folder
    outside = f"{_HOME}/weighbridge-{secrets.token_hex(8)}"
    return Places(data or _MEMORY, folder or data or _MEMORY, _HOME, LAUNCHER, SETTINGS, outside)


def _lacking_in_root(request: SiteRequest, programs: Sequence[str]) -> str:
    """Return a program that a root filesystem which is not this machine's does not contain, or ""."""
    if request.userland.of_this_machine:
        return ""
    root = str(request.host.userland(request.userland))
    for program in programs:
        path, name = ("", f"/{program.lstrip('/')}") if program.startswith("/") else (_PATH, program)
        argv = ("sh", "-c", _IN_ROOT, "find", root, path or ":", name.lstrip("/"))
        if request.host.run(Command(argv, 20)).returncode != 0:
            return program
    return ""


def _notes(
    request: SiteRequest, chosen: Preset | None, network: Network | None, words: Sequence[str]
) -> dict[str, str]:
    """Return the facts about the wrapper that no reading inside can show."""
    notes = {"network": network or "decided by the wrapper", "wrapper": " ".join(words)}
    if chosen is None:
        return notes
    key = f"version of {' '.join(chosen.version)} on {request.host.name}"
    if chosen.version and (version := request.run.share(key, lambda: nullcontext(_version(request, chosen)))):
        notes["version of the wrapper"] = version
    return notes | not_covered(chosen)


def _version(request: SiteRequest, chosen: Preset) -> str:
    argv = apart(chosen.version, root=request.host.root)  # firejail mounts folders in /run for it
    found = _VERSION.search(request.host.run(Command(argv, _TRY_S)).text)
    return found[0] if found else ""


def _trials(
    request: SiteRequest,
    site: WrappedSite,
    places: Places,
    chosen: Preset | None,
    network: Network | None,
    without: frozenset[str],
) -> Trials:
    """Return the answers to the trials, which only the first site of an environment and role makes.

    Each site reads its own /proc again, except the sites that a trial opens and times.
    Raises Unavailable if the wrapper does not confine as its preset claims.
    """
    key = f"trials {request.host.name} {request.environment} {request.role}"
    trials = request.run.share(key, lambda: nullcontext(tried(site, request.run, places)))
    if not request.joined_site:
        trials = read_again(site, trials)
    if (
        chosen is not None
        and network is not None
        and (why := unconfined(request.title, chosen, network, without, trials))
    ):
        raise Unavailable(why)
    return trials


def apart(words: Sequence[str], settings: str = "", *, root: bool) -> tuple[str, ...]:
    """Return the command in a mount namespace with a /run and a /tmp of its own, so that it leaves nothing there."""
    user = () if root else ("--user", "--map-root-user")
    return ("unshare", *user, "--mount", "sh", "-c", _IN_MEMORY, "try", settings, *words)


def _tried_here(name: str, chosen: Preset, network: Network, without: frozenset[str]) -> Readiness:
    """Return whether a preset starts a shell in a mount namespace with a /run and a /tmp of its own, as in a site."""
    places = Places(_MEMORY, _MEMORY, _HOME, "/bin/sh", SETTINGS, _HOME)
    words = (*chosen.words(network, without, places), "/bin/sh", "-c", ":")
    argv = apart(words, chosen.settings(network, places), root=os.geteuid() == 0)
    try:
        completed = run(Command(argv, _TRY_S))
    except Unavailable as why:
        return Readiness(False, str(why), install_here(["unshare"]))
    if completed.returncode == 0:
        return Readiness(True)
    said = completed.last_words if completed.timed_out else completed.message_of(chosen.programs[0])
    outside = "run outside a container" if os.geteuid() == 0 else "run as root, outside a container"
    return Readiness(False, *(user_namespaces.refusal(chosen.programs[0]) or (f"{name} failed: {said}", outside)))


PLUGIN = Wrapper()
