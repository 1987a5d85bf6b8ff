"""A site that is a chroot into the root filesystem on a host, with its own control group, for native environments."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from weighbridge.errors import Unavailable
from weighbridge.launcher import build
from weighbridge.launcher.launch import Launcher
from weighbridge.launcher.site import GroupedSite, group_facts
from weighbridge.linux.cgroup_files import network_of, processes_of
from weighbridge.linux.process import GRACE_S, environment_of, most_open_files, mounted_by
from weighbridge.model.command import Command, HostProcess
from weighbridge.model.facts import IN_NAMESPACE, UNPRIVILEGED
from weighbridge.model.host import Group, Host
from weighbridge.model.site import Mount, MountRequest, SiteEntry, SiteRequest

_TOGETHER_S = 0.2


@dataclass(frozen=True, slots=True)
class SitePaths:
    """A site's paths on its host; ``data`` becomes /srv, ``hosts`` becomes /etc/hosts; "" if the site has none.

    ``group`` is the control group that its first process joins, or None.
    """

    launcher: str
    root: str
    data: str
    hosts: str
    group: Group | None


@dataclass(frozen=True, slots=True)
class StartedProgram:
    """A site's running program: its ``process``, and the ``refused`` limits with the reasons."""

    launcher: Launcher
    process: HostProcess
    group: Group | None
    refused: Mapping[str, str]


class ChrootSite(GroupedSite):
    """A chroot into the root filesystem. Implements ``Site``."""

    def __init__(self, request: SiteRequest, started: StartedProgram, *, own_network: bool) -> None:
        reached = request.host.address if request.separate_hosts else "127.0.0.1"
        super().__init__(request.name, request.host, started.launcher, (reached, reached), started.group)
        self.notes: dict[str, str] = {}
        """Further facts."""
        self._request = request
        self._refused = started.refused
        self._own_network = own_network

    @property
    def pid(self) -> int:
        """Return the host's process number of the site's launcher."""
        return self._launcher.pid

    def entering(self) -> SiteEntry:
        """Return nsenter(1) for a site with its own network. In a plain chroot, the launcher starts programs."""
        return SiteEntry(join_namespaces(self.host, self.pid), self._group) if self._own_network else SiteEntry()

    def scope(self) -> Mapping[str, str]:
        """Return the files of its control group (or processes, without a group), and of its own network."""
        used = self._group.scope() if self._group else processes_of(self.pid)
        return {**used, **(network_of(self.pid) if self._own_network else {})}

    def _user(self) -> str:
        if self.host.root:
            return "root"
        return IN_NAMESPACE if self._request.userland.of_this_machine else UNPRIVILEGED

    def facts(self) -> Mapping[str, str]:
        """Return the root filesystem, the limits, and the limits that could not be applied."""
        facts = {
            "userland": self._request.userland.digest,
            "user": self._request.userland.process.user(self._user()),
            **group_facts(self.host, self.pid),
        }
        return facts | self.notes | {f"not honoured: {limit}": reason for limit, reason in self._refused.items()}


def join_namespaces(host: Host, pid: int, *, every: bool = False) -> tuple[str, ...]:
    """Return the words that start a program in the namespaces and the root folder of a host's process.

    ``every`` joins all namespaces, otherwise only the namespaces that a launcher creates.
    """
    user = () if host.root else ("--user",)
    which = ("--all",) if every else (*user, "--mount", "--ipc", "--net", "--root", "--wd")
    keep = () if host.root else ("--preserve-credentials",)  # a user's namespace has no other user
    return ("nsenter", "--target", str(pid), *which, *keep, "--")


@contextmanager
def chroot_site(request: SiteRequest, *, own_network: bool = False) -> Iterator[ChrootSite]:
    """Yield a site with its own control group, and with ``own_network`` in its own network namespace without links.

    Raises Unavailable if namespaces cannot be made.
    """

    def command(parts: SitePaths) -> tuple[str, ...]:
        return launcher_command(request, parts, own_network=own_network)

    with started(request, command) as running:
        site = ChrootSite(request, running, own_network=own_network)
        try:
            yield site
        finally:  # a frozen launcher cannot receive the order to end
            site.thaw()


@contextmanager
def started(
    request: SiteRequest, command: Callable[[SitePaths], tuple[str, ...]], wrapper: str = ""
) -> Iterator[StartedProgram]:
    """Start the program of ``command``, which is or starts a site's launcher, under the limits of the request.

    ``wrapper`` is the program that starts the launcher, "" without one.
    All of its processes and resources are gone when the context ends. Raises Unavailable if it does not start.
    """
    host, run = request.host, request.run
    group, refused = limited_group(request)
    with ExitStack() as stack:
        data = stack.enter_context(storage_of(request)).source if request.storage is not None else ""
        if group:
            stack.callback(group.remove)
            stack.callback(group.kill)
        hosts = str(_hosts_file(request)) if request.supporting_services else ""
        program = host.program(build.ensure(run.cache, run.say))
        parts = SitePaths(program, str(host.userland(request.userland)), data, hosts, group)
        process, stream = host.talk(Command(command(parts)))

        def end() -> None:  # wait first, because it can have processes to wait for
            process.wait(GRACE_S)
            process.stop()

        stack.callback(end)

        def why() -> str:
            process.wait(_TOGETHER_S)
            host.run(Command(("true",), 10))  # if the complete host is gone, report that
            completed = process.stop()
            said = completed.message_of(wrapper) if wrapper else completed.last_words
            if wrapper and completed.returncode >= 0:
                return f"the wrapper ended with exit code {completed.returncode}: {said}"
            return f"its launcher ended: {said}" if completed.stderr else "its launcher was killed"

        env, starter = environment_of(run.id), "the wrapper" if wrapper else "the launcher"
        launcher = stack.enter_context(Launcher(stream, request.title, why, env, starter=starter))
        yield StartedProgram(launcher, process, group, refused)


def launcher_command(request: SiteRequest, parts: SitePaths, *, own_network: bool = False) -> tuple[str, ...]:
    """Return the command of the launcher, in the control group and in its own namespaces, which end with it.

    The root is read-only, because the programs use the same bits everywhere.
    """
    argv = [parts.launcher]
    for path in parts.group.procs if parts.group else ():
        argv += ["--join", str(path)]
    argv += ["--files", str(request.open_files or most_open_files())]  # sessions of sshd can have a lower limit
    inside = "self" if request.userland.of_this_machine else "root"
    argv += [*(() if request.host.root else ("--user", inside)), *(("--net",) if own_network else ())]
    argv += ["--root", parts.root, "--name", mounted_by(request.run.id)]
    argv += ["--data", parts.data] if parts.data else []
    argv += ["--hosts", parts.hosts] if parts.hosts else []
    argv += ["--shm", str(request.shm_size)] if request.shm_size is not None else []
    argv += ["--layer", request.userland.layered] if request.userland.layered else []
    return tuple(argv)


def _hosts_file(request: SiteRequest) -> Path:
    """Write the names of the sidecars, containers of this machine, to a file that ends with the run's state."""
    assert request.supporting_services is not None
    path = request.run.state / f"hosts-{request.name}"
    path.write_bytes(request.supporting_services.hosts_file())
    path.chmod(0o644)
    return path


def storage_of(request: SiteRequest) -> AbstractContextManager[Mount]:
    """Create the storage of a site that has one, and remove it when the context ends."""
    assert request.storage is not None
    return request.storage.open(MountRequest(request.run, request.host, request.name))


def limited_group(request: SiteRequest, *, limit: bool = True) -> tuple[Group | None, Mapping[str, str]]:
    """Return a site's control group, or None if the user cannot make one, and the refused limits with the reasons."""
    limits = request.limits
    try:
        group = request.host.group(request.name)
    except Unavailable as error:
        limit_values = {"cpus": limits.cpus, "memory": limits.memory, "pin": limits.cpuset}
        return None, {name: str(error) for name, value in limit_values.items() if value is not None}
    return group, group.limit(limits) if limit else {}
