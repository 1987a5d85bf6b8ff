"""The environment `podman`: programs run in a Podman container, started by root or by an ordinary user (rootless)."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from weighbridge.engines import confined, runtimes
from weighbridge.engines.confined import ConfinedOptions
from weighbridge.engines.docker import LAUNCHER
from weighbridge.engines.labelled import LABEL
from weighbridge.engines.podman import Podman, PodmanFolders, podman_of
from weighbridge.engines.private import EngineTraces
from weighbridge.engines.runtimes import DEFAULT, RuntimeName
from weighbridge.environments.podman.contradictions import IN_USER_SPACE, problems
from weighbridge.environments.podman.programs import init_program, knows_pasta, readiness
from weighbridge.environments.podman.root import root_words, unmet
from weighbridge.environments.podman.site import PodmanSite, connected_by_pasta, runtime_facts
from weighbridge.hosts.chroot import limited_group, storage_of
from weighbridge.launcher.launch import Launcher
from weighbridge.linux import selinux
from weighbridge.linux.cgroup_files import TOP
from weighbridge.linux.open_files import too_many_open_files
from weighbridge.linux.process import environment_of, most_open_files, most_processes
from weighbridge.model.by_hand import ByHand, ByHandRequest
from weighbridge.model.environment import Environment, Needs, OpenFiles, Variables
from weighbridge.model.host import Group, Host
from weighbridge.model.openings import OpeningPhases
from weighbridge.model.plugin import Durability, Readiness
from weighbridge.model.site import DATA, Site, SiteRequest

_FIRST_ID, _IDS = 2**31, 2**16
"""The ids that a container has in a user namespace, those that podman's manual gives to its own ``--userns auto``."""
Network = Literal["none", "host", "bridge", "slirp4netns", "pasta"]


class PodmanOptions(ConfinedOptions):
    """Whose containers they are, their network, and how clients reach the server.

    ``rootless: true`` gives containers of an ordinary user, in a user namespace. ``bridge`` (the default) is a bridge
    of netavark's; ``slirp4netns`` (the default of rootless containers) and ``pasta`` carry packets in a process of
    the user's, and are reached by published ports only. ``publish`` has clients use a published port: of a bridge
    from the same host on the bridge's own address (``gateway``) or on ``loopback``, from elsewhere on the host's.
    """

    seccomp: Annotated[
        Literal["default", "unconfined"], Field(description="System call filter: the engine's, or none")
    ] = "default"
    rootless: Annotated[bool, Field(description="Run containers as an ordinary user")] = False
    user_namespace: Annotated[
        bool,
        Field(
            description="Map root in its containers to an unprivileged user on the host (for root's containers; "
            "rootless "
            "containers always do this)"
        ),
    ] = False
    network: Annotated[Network | None, Field(description="default: bridge; with rootless: slirp4netns")] = None
    publish: Annotated[bool, Field(description="Let clients use a published port")] = False
    publish_on: Annotated[
        Literal["gateway", "loopback"],
        Field(description="How a client on the same host reaches the published port of a bridge"),
    ] = "gateway"
    open_files: OpenFiles = None
    variables: Variables = Field(default_factory=dict)
    runtime: Annotated[
        RuntimeName,
        Field(
            description="OCI runtime: runc, crun, youki, or the absolute path of a program; default: crun, or runc "
            "with control groups of version 1"
        ),
    ] = DEFAULT

    @property
    def joined(self) -> Network:
        """Return the network that the options name, or the default one."""
        return self.network or ("slirp4netns" if self.rootless else "bridge")


class PodmanEnvironment(Environment):
    """Containers of podman, with a storage of the run's own."""

    kind = "podman"
    summary = "a Podman container, started by root or rootless, with network none, host, bridge, slirp4netns or pasta"
    cleanup: ClassVar = (EngineTraces(), PodmanFolders())
    options = PodmanOptions
    limited_by_host = True
    shares_root = True
    takes = frozenset({"shm_size", "sysctls"})
    enters = True
    builds_images = True
    mounts = frozenset({"folder", "layer"})
    storage = "directory"
    programs: ClassVar = ("podman",)
    opening_s = 0.8
    engine_s = 5.0

    def opens_in_order(self, options: Any) -> str:
        """Return the same name for all options, because the commands of one user change the same files."""
        return "podman"

    def check(self, options: Any, needs: Needs) -> list[str]:
        """Return why combinations of options cannot work, and why a network is not sufficient for the study."""
        return list(problems(options, needs))

    def weighed_in(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the variants that ``weigh`` compares: root's podman, a user's, and one of a user's servers."""
        rootless = {"rootless": True}
        return {"podman": {}, "podman-rootless": rootless, "podman-published": {**rootless, "publish": True}}

    def ready(self, options: Any | None = None, needs: Needs | None = None) -> Readiness:
        """Return whether podman, its runtime and its network's programs are there, and the study's files can be used.

        It starts nothing.
        """
        state = readiness(options)
        if not state.ready:
            return state
        if needs is None:
            if refusal := unmet(Needs(of_this_machine=True), rootless=True):
                state = replace(state, caveat="images only", detail=f"{state.detail}; {refusal.detail}")
            return state
        if options is None:
            return state
        return unmet(needs, rootless=options.rootless) or too_many_open_files(options.open_files) or state

    def purpose(self, options: Any, role: str) -> str:
        return "podman-rootless" if options.rootless else "podman"

    def confinement(self, options: Any) -> Mapping[str, str]:
        """Return a container's own: a filter of system calls, too, unless it is unconfined."""
        if runtimes.has_own_kernel(options.runtime):
            return super().confinement(options)
        return confined.confinement(options)

    def layer_durability(self, options: PodmanOptions) -> Durability:
        """Return "unknown" for a runtime with virtual machines, which share the layer in a way of their own."""
        return "unknown" if runtimes.is_virtual(options.runtime) else "synchronous"

    def unverified(self, options: Any | None = None) -> str:
        """Return that containers in virtual machines were never started, because that needs KVM."""
        return "" if options is None else runtimes.unverified(options.runtime)

    def variants(self) -> Mapping[str, Any]:
        """Return options by name: those that need more than podman itself."""
        return {
            "podman-rootless": PodmanOptions(rootless=True),
            "podman-rootless, pasta": PodmanOptions(rootless=True, network="pasta"),
        }

    def by_hand(self, options: Any, request: ByHandRequest) -> ByHand:
        """Return that the kit does not write it: it is started with podman's command line."""
        return ByHand("the kit writes Compose files for Docker only: start it by hand, for example with podman run")

    def make_images(self, options: Any, request: SiteRequest, sizes: Collection[int]) -> None:
        podman = self._podman(options, self._placed(options, request))
        for size in sizes:
            podman.image(request.userland, size)

    def _placed(self, options: Any, request: SiteRequest) -> SiteRequest:
        """Return the request with the host that the site gets."""
        if request.host.capabilities.disposable is None:
            return request
        return replace(request, host=request.host.dedicated_host(self.purpose(options, request.role)))

    def _podman(self, options: Any, request: SiteRequest) -> Podman:
        return podman_of(request.run, request.host, rootless=options.rootless, layered=request.userland.layered)

    @contextmanager
    def open(self, options: Any, request: SiteRequest) -> Iterator[Site]:
        """Start a container whose first process is the launcher."""
        request = self._placed(options, request)
        podman = self._podman(options, request).using(options.runtime)
        with ExitStack() as stack:
            group, refused = limited_group(request, limit=options.rootless)  # podman limits root's containers
            if group:
                stack.callback(group.remove)
                stack.callback(group.kill)
            network = _bridge(podman, options, request) if options.joined == "bridge" else {}
            gateway = str(network["subnets"][0]["gateway"]) if network else ""
            name, phases = f"weighbridge-{request.name}", OpeningPhases()
            podman.must(
                f"making {name}", "create", *_words(stack, podman, options, request, group, network, gateway, name)
            )
            stack.callback(podman.ask, "rm", "--force", "--time", "0", name)
            phases.end("create")
            process, stream = podman.attach(name)
            stack.callback(process.stop)

            def why() -> str:
                process.wait(0.2)
                stderr = process.stop().stderr.decode(errors="replace").strip()
                return stderr.splitlines()[-1] if stderr else "the container ended"

            launcher = stack.enter_context(Launcher(stream, request.title, why, environment_of(request.run.id)))
            phases.end("start")
            state = podman.inspect(name)
            pid = int(state["State"]["Pid"])
            if group and options.rootless:
                podman.move(pid, group)
            own = _own_address(state)
            notes = _notes(options, request) | runtime_facts(podman, options.runtime, state)
            if _without_network(podman, options):
                forwarded = _forwarded(options, request)
                stack.enter_context(connected_by_pasta(podman, pid, forwarded))
                notes["pasta"] = f"connected by Weighbridge: podman {podman.version} cannot"
            addresses = _addresses(options, request, own, gateway)
            site = PodmanSite(request, podman, launcher, addresses, pid, group, options.joined != "host", name)
            site.opening_phases = phases.seconds
            site.reached = request.reached if options.publish else {}
            site.layers = (*site.layers, *runtimes.layers(options.runtime))
            site.notes |= notes | {f"not honoured: {limit}": reason for limit, reason in refused.items()}
            stack.callback(site.thaw)  # frozen, its launcher would not hear that it is to end
            yield site


def _bridge(podman: Podman, options: PodmanOptions, request: SiteRequest) -> Mapping[str, Any]:
    """Return the bridge that an environment's roles share; with ``publish`` each has its own, and a port leads there.

    It stays until the run ends, and a site that is opened next to another site joins the same bridge.
    """
    whose = (request.joined_site or request.name) if options.publish else request.environment
    return request.run.share(f"podman bridge {request.host.name} {whose}", podman.bridge)


def _words(
    stack: ExitStack,
    podman: Podman,
    options: PodmanOptions,
    request: SiteRequest,
    group: Group | None,
    network: Mapping[str, Any],
    gateway: str,
    name: str,
) -> list[str]:
    """Return the arguments of ``podman create``."""
    mount = stack.enter_context(storage_of(request)) if request.storage is not None else None
    words = ["--interactive", "--name", name, "--label", f"{LABEL}={request.run.id}", "--pull", "never"]
    words += ["--entrypoint", f'["{LAUNCHER}"]', "--volume", f"{podman.launcher}:{LAUNCHER}:ro"]
    words += ["--log-driver", "none", "--no-healthcheck", "--http-proxy=false", "--systemd=false"]
    words += ["--no-hosts", "--pids-limit", str(options.pids_limit or -1)]
    for limit, most in (("nofile", options.open_files or most_open_files()), ("nproc", most_processes())):
        words += ["--ulimit", f"{limit}={most}:{most}"]
    words += ["--shm-size", f"{request.shm_size}b"] if request.shm_size is not None else []
    for setting, value in request.sysctls.items():
        words += ["--sysctl", f"{setting}={value}"]
    for folder in ("/tmp", "/run"):  # noqa: S108 - of the container
        words += ["--tmpfs", f"{folder}:mode=1777,exec"] if folder != request.userland.layered else []
    for variable, value in {**options.variables, **environment_of(request.run.id)}.items():
        words += ["--env", f"{variable}={value}"]
    if mount is None or mount.way != "layer":
        words += ["--read-only", "--read-only-tmpfs=false"]
    if mount is not None and mount.source:
        owner = ":U" if options.user_namespace else ""  # else its files have no owner in the container
        words += ["--volume", f"{podman.put_folder(mount.source, f'data-{request.name}')}:{DATA}{owner}"]
    if options.user_namespace:
        words += [word for option in ("--uidmap", "--gidmap") for word in (option, f"0:{_FIRST_ID}:{_IDS}")]
    words += confined.podman_words(options, init_program())
    for option in _labels(request.host):
        words += ["--security-opt", option]
    if options.joined != "host":
        words += ["--hostname", request.name[:63]]
    words += root_words(stack, podman, request, {DATA} if mount is not None else ())
    if group and not options.rootless:
        words += ["--cgroups=no-conmon", "--cgroup-parent", f"/{TOP}/{request.run.id}/{request.name}"]
        words += _limits(request)
    joined = "none" if _without_network(podman, options) else str(network.get("name", options.joined))
    words += ["--network", joined, *(() if joined == "none" else ("--dns", "none"))]
    published = options.publish or (request.joined_site and joined not in ("none", "host"))
    if published and not _without_network(podman, options):
        words += _ports(options, request, gateway)
    return [*words, podman.image(request.userland, request.image_files)]


def _labels(host: Host) -> list[str]:
    """Return the SELinux options for a container whose launcher is a file of the host."""
    return selinux.security_options(host.read, files_of_host=True)


def _limits(request: SiteRequest) -> list[str]:
    limits, words = request.limits, []
    if limits.cpus is not None:
        words += ["--cpu-period", str(limits.cpu_period_us), "--cpu-quota", str(limits.cpu_quota_us)]
    if limits.memory is not None:
        words += ["--memory", str(limits.memory), "--memory-swap", "-1"]  # as in a control group: swap is not limited
    if limits.cpuset is not None:
        words += ["--cpuset-cpus", limits.cpuset]
    return words


def _without_network(podman: Podman, options: PodmanOptions) -> bool:
    """Return whether podman makes the container without a network, because Weighbridge starts pasta itself."""
    return options.joined == "pasta" and not knows_pasta(podman.version)


def _ports(options: PodmanOptions, request: SiteRequest, gateway: str) -> list[str]:
    on = _published_on(options, request, gateway)
    return [
        word
        for port in request.ports
        for word in ("--publish", f"{on}:{port.reached}:{port.listens}/{port.transport}")
    ]


def _forwarded(options: PodmanOptions, request: SiteRequest) -> dict[str, list[str]]:
    """Return what pasta is to forward, in pasta's own words, by transport."""
    on = _published_on(options, request, "")
    ports = request.ports if options.publish or request.joined_site else ()
    return {
        kind: [
            f"{on}/{port.reached}" + (f":{port.listens}" if port.listens != port.reached else "")
            for port in ports
            if port.transport == kind
        ]
        for kind in ("tcp", "udp")
    }


def _published_on(options: PodmanOptions, request: SiteRequest, gateway: str) -> str:
    if request.joined_site:  # nothing uses its ports, so no other machine needs to reach them
        return "127.0.0.1"
    if request.separate_hosts:
        return request.host.address
    return gateway if gateway and options.publish_on == "gateway" else "127.0.0.1"


def _own_address(state: Mapping[str, Any]) -> str:
    networks = state["NetworkSettings"].get("Networks") or {}
    return next((str(network["IPAddress"]) for network in networks.values() if network.get("IPAddress")), "")


def _addresses(options: PodmanOptions, request: SiteRequest, own: str, gateway: str) -> tuple[str, str]:
    """Return where the other role reaches the container, and where its servers bind."""
    if options.joined in ("none", "host"):
        return (
            (request.host.address,) * 2 if request.separate_hosts and options.joined == "host" else ("127.0.0.1",) * 2
        )
    if options.publish and request.role != "client" and not request.joined_site:
        return _published_on(options, request, gateway), "0.0.0.0"  # noqa: S104
    if options.joined in IN_USER_SPACE:
        return "0.0.0.0", "0.0.0.0"  # noqa: S104 - it cannot be reached; a client binds to any address
    return own, own


def _notes(options: PodmanOptions, request: SiteRequest) -> dict[str, str]:
    labels = selinux.facts(_labels(request.host))
    notes: dict[str, str] = {"network": options.joined, **labels}
    if options.joined in IN_USER_SPACE:
        why = "it carries the traffic of this environment and is not limited"
        notes[f"not honoured: limits of {options.joined}"] = why
    if request.storage is not None:
        notes["storage"] = f"{DATA} on {request.storage.kind}"
    return notes


PLUGIN = PodmanEnvironment()
