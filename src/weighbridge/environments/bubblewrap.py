"""Bubblewrap: the userland in the sandbox of Flatpak and of many agents, without an engine, also for a user."""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from weighbridge.errors import Unavailable
from weighbridge.hosts import cable
from weighbridge.hosts.chroot import ChrootSite, SitePaths, StartedProgram, join_namespaces, started
from weighbridge.hosts.first_process import first_process
from weighbridge.launcher.within import within
from weighbridge.linux import user_namespaces
from weighbridge.linux.packages import install_here
from weighbridge.linux.process import mounted_by, run
from weighbridge.model.command import Command
from weighbridge.model.environment import Environment, EnvironmentOptions, Needs
from weighbridge.model.facts import APPARMOR, CAPABILITIES, NAMESPACES, NEW_PRIVILEGES
from weighbridge.model.plugin import Readiness
from weighbridge.model.site import DATA, Site, SiteEntry, SiteRequest

LAUNCHER = "/run/weighbridge-launcher"
_ISOLATED = (
    "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try",
    "--cap-drop", "ALL", "--new-session", "--die-with-parent",
)  # fmt: skip
"""The sandbox of Flatpak and agents: one user without capabilities; bwrap itself allows no new privileges."""
_OF_THE_KERNEL = ("--proc", "/proc", "--dev", "/dev")
_TRY = ("bwrap", *_ISOLATED, "--ro-bind", "/", "/", *_OF_THE_KERNEL, "--", "/bin/sh", "-c", ":")


class BubblewrapOptions(EnvironmentOptions):
    """``own`` is a network namespace that a veth pair joins to the host, like the network of ``netns``."""

    network: Annotated[Literal["host", "own"], Field(description="The host's network, or a separate one")] = "host"


class Bubblewrap(Environment):
    """A sandbox of namespaces alone: no image, no engine, no filter of system calls."""

    kind = "bubblewrap"
    group = "sandboxes"
    summary = "bubblewrap (bwrap), the sandbox of Flatpak and many AI agents, on the host's network or a separate one"
    options = BubblewrapOptions
    limited_by_host = True
    mounts = frozenset({"folder"})
    storage = "directory"
    shares_root = True
    enters = True
    programs: ClassVar = ("bwrap",)
    host_programs: ClassVar = programs

    def check(self, options: Any, needs: Needs) -> list[str]:
        """Return why a network of its own cannot carry what the study needs: it ends at its host."""
        return cable.problems(needs) if options.network == "own" else []

    def confinement(self, options: Any) -> Mapping[str, str]:
        """Return what bwrap is asked for, no filter of system calls."""
        return {CAPABILITIES: "", NEW_PRIVILEGES: "never", APPARMOR: "", NAMESPACES: ""}

    def route_to_supporting_services(self, options: Any) -> str:
        """Return the route to the study's supporting services: as natively, or routed from the sandbox."""
        return "routed by the host to the bridge" if options.network == "own" else "host to bridge"

    def ready(self, options: Any | None = None, needs: Needs | None = None) -> Readiness:
        """Return whether a trial sandbox starts, and has a cable if a server on a separate network needs one."""
        try:
            completed = run(Command(_TRY, 10))
        except Unavailable as missing:
            return Readiness(False, str(missing), install_here(self.programs))
        if completed.returncode != 0:
            refusal = user_namespaces.refusal("bwrap") or (
                completed.last_words,
                "run outside a container" if os.geteuid() == 0 else "run as root, outside a container",
            )
            return Readiness(False, *refusal)
        if options is None or options.network != "own" or os.geteuid() == 0:
            return Readiness(True)
        return cable.unmet(needs) or cable.WITHOUT_CABLE

    @contextmanager
    def open(self, options: Any, request: SiteRequest) -> Iterator[Site]:
        """Run a sandbox in its own control group, and connect a separate network to the host."""
        if request.userland.process.uid is not None:
            user = request.userland.process.user("root")
            why = f"a sandbox has only one user, so it cannot run an image's programs as {user}"
            raise Unavailable(f"{request.title}: {why}. Use docker or podman")
        own_network = options.network == "own"

        def argv(parts: SitePaths) -> tuple[str, ...]:
            words = command(request, parts, own_network=own_network)
            return within(request.host, request.run, parts.group, *words, layer=layer(request))

        with started(request, argv) as running, ExitStack() as stack:
            site = BubblewrapSite(request, running, own_network=own_network)
            stack.callback(site.thaw)  # frozen, its launcher would not hear that it is to end
            if own_network:
                stack.enter_context(cable.joined(request, site))
            yield site


class BubblewrapSite(ChrootSite):
    """A running sandbox. Implements ``Site``; its first process is bwrap's own, which waits for the others."""

    def __init__(self, request: SiteRequest, started: StartedProgram, *, own_network: bool) -> None:
        super().__init__(request, started, own_network=own_network)
        self._first_of = started.group or started.process.pid
        self._pid: int | None = None

    @property
    def pid(self) -> int:
        """Return the host's number of the sandbox's first process, looked up at first use."""
        if self._pid is None:
            self._pid = first_process(self.host, self._first_of, self.title)
        return self._pid

    def entering(self) -> SiteEntry:
        """Return nsenter(1), which joins the namespaces. The program keeps its capabilities, unlike the sandbox's."""
        return SiteEntry(join_namespaces(self.host, self.pid, every=True), self._group)

    def facts(self) -> Mapping[str, str]:
        """Return the facts of a chroot, with the network and the version of bwrap."""
        version = self.host.run(Command(("bwrap", "--version"), 20)).text.strip()
        network = "own" if self._own_network else "host"
        return {
            **super().facts(),
            "network": network,
            "bubblewrap": version or "unknown",
        }


def command(request: SiteRequest, parts: SitePaths, *, own_network: bool) -> tuple[str, ...]:
    """Return the argument list (bwrap(1)) that starts the launcher in a sandbox.

    The root is read-only; /tmp, /run and /dev are in memory, of the size that bwrap gives them. The user is root, as
    natively, but of this machine's own programs.
    """
    userland = request.userland
    user, group = (os.geteuid(), os.getegid()) if userland.of_this_machine else (0, 0)
    folder = _folder(request)
    binds = [
        *(("--bind", parts.data, DATA) if parts.data else ()),
        *(("--ro-bind", parts.hosts, "/etc/hosts") if parts.hosts else ()),
        *(_resolver() if userland.of_this_machine else ()),
        *(("--bind", folder, folder) if folder else ()),
        *("--ro-bind", parts.launcher, LAUNCHER),
    ]
    return (
        "bwrap",
        *_ISOLATED,
        *(("--unshare-net",) if own_network else ()),
        *("--uid", str(user), "--gid", str(group)),
        *("--ro-bind", parts.root, "/"),
        *("--ro-bind", "/sys", "/sys"),
        *_OF_THE_KERNEL,
        *("--tmpfs", "/tmp"),  # noqa: S108
        *("--tmpfs", "/run"),
        *binds,
        *("--chdir", "/"),
        "--",
        LAUNCHER,
    )


def layer(request: SiteRequest) -> tuple[str, ...]:
    """Return the launcher's options for a layer in memory over the folder of the userland: not every bwrap can."""
    folder = _folder(request)
    user = () if request.host.root else ("--user", "root")
    return (*user, "--layer", folder, "--name", mounted_by(request.run.id)) if folder else ()


def _folder(request: SiteRequest) -> str:
    """Return the folder that programs can write to, without links, which bwrap would not follow; "" for none."""
    layered = request.userland.layered
    return str(Path(layered).resolve()) if layered else ""


def _resolver() -> tuple[str, ...]:
    """Return the bind of the target of /etc/resolv.conf if it is a link into /run (systemd-resolved)."""
    place = Path("/etc/resolv.conf").resolve()
    return ("--ro-bind-try", str(place), str(place)) if place.is_relative_to("/run") else ()


PLUGIN = Bubblewrap()
